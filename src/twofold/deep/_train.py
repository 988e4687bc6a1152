"""Training: the epoch loop of every network. It knows nothing of the models.

    θ ← θ − step of the solver along ∇θ mean loss(batch)           batches in an order drawn anew for every epoch

A model brings a module and its players: who owns which parameters, and the loss that each lowers in its turn. A network
that classifies has one player; a generator and its critic are two. An epoch is a sweep of the loop that all models
share: history, callbacks, early stopping and checkpoints are the same. Randomness belongs to (seed, epoch), and weights
and the optimizer's memory are the state, so an epoch that is run again after a restart has the same bits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.seeds import generator
from twofold.deep._optimizers import Optimizer

FALLING: dict[str, Callable[[float], float]] = {  # the learning rate's factor when this share of the steps is done
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
}
SCHEDULES = ("constant", "invscaling", "adaptive", *FALLING)
FEWEST = 1e-6  # a learning rate that adapts is not divided any further
AUTO = 200  # rows of a batch, at most, when nothing else is said
NOTHING = np.zeros(0, np.float32)
FETCHED = 1_000_000  # numbers at once
ENOUGH = 10_000_000  # weights times rows, from which a batch is worth a second thread


class Player(NamedTuple):
    """Who moves which parameters, and to lower what: ``loss(*batch, done)`` gives a mean and the parts to be noted.

    `done` is the share of the training that lies behind, for what is to grow slowly. Of rows with weights the parts
    have the sum, as "rows".
    """

    parameters: list[nn.Parameter]
    loss: Callable[..., tuple[Tensor, dict[str, Tensor]]]
    betas: tuple[float, float] | None = None  # instead of the model's
    penalized: bool = False  # whether the objective that is noted has alpha's part in it


class State(NamedTuple):
    """What an epoch changes."""

    weights: np.ndarray  # all parameters and buffers, one after the other
    memory: np.ndarray  # what the optimizers remember
    rate: float = 0.0  # the learning rate, where it does not fall by a plan
    best: float = math.inf  # the least objective of an epoch, or minus the best score on rows held out
    stale: int = 0  # epochs in a row that were not better by tol
    kept: np.ndarray = NOTHING  # the weights of the best score


class Before(NamedTuple):
    """What earlier fits have left, for one that goes on from there."""

    epochs: int = 0
    rows: int = 0  # seen, each as often as it was
    state: State | None = None


FIRST = Before()


def train(
    model: Any,
    module: nn.Module,
    players: list[Player],
    data: tuple[Tensor, ...],
    *,
    seed: int,
    fingerprint: Callable[[], str],
    X: Any = None,
    y: Any = None,
    note: Callable[[dict[str, float]], dict[str, float]] | None = None,
    judge: Callable[[], float] | None = None,
    before: Before = FIRST,
    once: bool = False,
    unit: float = 1.0,
) -> State:
    """Train for up to ``model.max_iter`` epochs on tensors of equally many rows, and set ``weights_`` and the history.

    `note` may look at what an epoch brought, warn, and return more columns of the history. `judge` scores the module on
    rows held out, of which the best epoch is kept. `once` is a single epoch of a stream: a learning rate that falls by
    a plan stays where it begins. The objective is told times `unit`.
    """
    where, n = choose_device(model.device), len(data[0])
    module.to(where)
    data = tuple(D.to(where) for D in data)
    optimizers = [
        Optimizer(
            model.solver,
            p.parameters,
            model.alpha,
            betas=p.betas or (model.beta_1, model.beta_2),
            epsilon=model.epsilon,
            momentum=model.momentum,
            nesterov=model.nesterovs_momentum,
        )
        for p in players
    ]
    plan = None if once else FALLING.get(model.learning_rate)
    epochs = 1 if once else model.max_iter

    def rate_of(state: State) -> Callable[[float], float]:
        return (lambda done: model.learning_rate_init * plan(done)) if plan else (lambda done: state.rate)

    def sweep(state: State, t: int) -> loop.Sweep:
        restore_state(state, module, optimizers)
        parts = run_epoch(model, module, players, optimizers, data, seed, t, rate_of(state), before.epochs)
        parts["objective"] *= unit
        if not all(map(math.isfinite, parts.values())):
            rate = f"learning_rate_init={model.learning_rate_init:g}"
            raise InputError(f"{type(model).__name__} diverged in epoch {t + 1} with {rate}. Give a smaller one.")
        extra = {k: v for k, v in parts.items() if k != "objective"}
        extra.update(note(parts) if note else {})
        extra.update({"validation": judge()} if judge else {})
        value = -extra["validation"] if judge else parts["objective"]
        tol = model.tol if judge else model.tol * min(1.0, unit)
        found, stop = look_back(model, state, value, tol, before.rows + (t + 1) * n)
        new = copy_state(module, optimizers)
        new = found._replace(weights=new.weights, memory=new.memory)
        if judge and value < state.best:
            new = new._replace(kept=new.weights)
        planned = once or plan is not None or model.n_iter_no_change == math.inf
        return loop.Sweep(new, parts["objective"], extra, done=stop or t == epochs - 1, converged=stop or planned)

    start = copy_state(module, optimizers)._replace(rate=float(model.learning_rate_init))
    if before.state is not None:
        start = start._replace(best=before.state.best, stale=before.state.stale)
        if len(before.state.memory) == len(start.memory):  # those of a stream go on, others begin anew
            start = start._replace(memory=before.state.memory, rate=before.state.rate)
    with limit_threads(batch_rows(model, n) * len(flatten(list(module.parameters())))):
        return loop.run(
            model,
            sweep,
            start,
            max_iter=epochs,
            tol=-math.inf,  # what counts is `look_back`: one epoch of a noisy objective says little about the end
            fitted=lambda state: {"weights_": name_weights(state.kept if len(state.kept) else state.weights, module)},
            X=X,
            y=y,
            fingerprint=fingerprint,
            seed=seed,
            advice="Raise max_iter or tol",
        )


def look_back(model: Any, state: State, value: float, tol: float, rows: int) -> tuple[State, bool]:
    """The best value so far, how long it is ago, the learning rate that follows from it, and whether to stop."""
    stale = state.stale + 1 if value > state.best - tol else 0
    rate, stop = state.rate, stale > model.n_iter_no_change
    if model.solver == "sgd" and model.learning_rate == "invscaling":
        rate = model.learning_rate_init / (rows + 1) ** model.power_t
    elif stop and model.solver == "sgd" and model.learning_rate == "adaptive" and rate > FEWEST:
        rate, stale, stop = rate / 5, 0, False
    return state._replace(rate=rate, best=min(value, state.best), stale=stale), stop


def batch_rows(model: Any, n: int) -> int:
    """Rows of a batch."""
    return min(AUTO if model.batch_size == "auto" else int(model.batch_size), n)


def run_epoch(
    model: Any,
    module: nn.Module,
    players: list[Player],
    optimizers: list[Optimizer],
    data: tuple[Tensor, ...],
    seed: int,
    t: int,
    rate: Callable[[float], float],
    before: int = 0,
) -> dict[str, float]:
    """Every row once; the mean of each part, of which "objective" is the first player's loss.

    The random numbers are those of epoch `t`, after as many as there were `before`.
    """
    n = len(data[0])
    size = batch_rows(model, n)
    steps = -(-n // size)
    seen: dict[str, list[Tensor]] = {}
    squares: list[Tensor] = []
    pulls: list[float] = []
    module.train()
    with seed_torch(seed, before + t):
        order = torch.randperm(n).to(data[0].device) if model.shuffle else None
        for i, batch in enumerate(iterate_batches(data, order, size)):
            done = (t + i / steps) / model.max_iter
            for j, (player, optimizer) in enumerate(zip(players, optimizers, strict=True)):
                loss, parts = player.loss(*batch, done)
                rows = float(parts.pop("rows")) if "rows" in parts else len(batch[0])
                if player.penalized and model.alpha:
                    squares += optimizer.squares()
                    pulls.append(0.5 * model.alpha / rows if rows else 0.0)
                optimizer.step(loss, rate(done), rows)
                for name, value in (parts if j else {"objective": loss, **parts}).items():
                    seen.setdefault(name, []).append(value.detach())
    module.eval()
    shares = torch.tensor([min(size, n - start) / n for start in range(0, n, size)], dtype=torch.float64)
    means = {name: float(torch.stack(values).cpu().double() @ shares) for name, values in seen.items()}
    if pulls:
        each = torch.stack(squares).cpu().double().reshape(steps, -1).sum(dim=1)
        means["objective"] += float(each @ (shares * torch.tensor(pulls, dtype=torch.float64)))
    return means


def iterate_batches(data: tuple[Tensor, ...], order: Tensor | None, size: int) -> Iterator[tuple[Tensor, ...]]:
    """The rows in that order, so many at a time. Fetching has a cost of its own: small batches are fetched together."""
    if order is None:
        yield from zip(*(D.split(size) for D in data), strict=True)
        return
    together = max(1, FETCHED // (size * data[0][0].numel()))
    for rows in order.split(together * size):
        yield from zip(*(D.index_select(0, rows).split(size) for D in data), strict=True)


# ---- state ---------------------------------------------------------------------------------------------------------


def copy_state(module: nn.Module, optimizers: list[Optimizer]) -> State:
    """A copy of all weights, and of what the optimizers remember."""
    return State(flatten(list(module.state_dict().values())), flatten(list_memory(optimizers)))


def restore_state(state: State, module: nn.Module, optimizers: list[Optimizer]) -> None:
    """The opposite of `copy_state`."""
    fill_tensors(list(module.state_dict().values()), state.weights)
    fill_tensors(list_memory(optimizers), state.memory)
    for optimizer in optimizers:
        optimizer.made = int(optimizer.steps)


def list_memory(optimizers: list[Optimizer]) -> list[Tensor]:
    return [t for optimizer in optimizers for t in optimizer.memory]


def flatten(tensors: Sequence[Tensor]) -> np.ndarray:
    """All numbers one after the other, in the precision of the first."""
    parts = [t.detach().to("cpu", tensors[0].dtype).reshape(-1) for t in tensors]
    return torch.cat(parts).numpy().copy() if parts else np.zeros(0, np.float32)


def fill_tensors(tensors: Sequence[Tensor], values: np.ndarray) -> None:
    start = 0
    with torch.no_grad():
        for t in tensors:
            t.copy_(torch.from_numpy(values[start : start + t.numel()]).reshape(t.shape))
            start += t.numel()


def name_weights(values: np.ndarray, module: nn.Module) -> dict[str, np.ndarray]:
    """A flat array as the arrays of a module's state, by their names."""
    out, start = {}, 0
    for name, t in module.state_dict().items():
        out[name] = values[start : start + t.numel()].reshape(tuple(t.shape)).copy()
        start += t.numel()
    return out


# ---- machine -------------------------------------------------------------------------------------------------------


def choose_device(wish: str) -> torch.device:
    """ "auto" is the graphics card if there is one."""
    if wish == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wish)


BORN = os.getpid()  # torch's threads live in the process that loaded it
if hasattr(os, "register_at_fork"):  # a forked child would wait for them for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@contextmanager
def limit_threads(work: int) -> Iterator[None]:
    """As many threads in torch as the configuration says, or one if the work of a batch is too little to be shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(config().threads if work > ENOUGH and os.getpid() == BORN else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seed_torch(seed: int, *path: int) -> Iterator[None]:
    """Torch's random numbers are those of a place, within; the stream outside is not touched."""
    with torch.random.fork_rng():
        torch.manual_seed(int(generator(seed, *path).integers(2**62)))
        yield
