"""Training: the epoch loop of every network. It knows nothing of the models.

    θ ← θ − step of the optimizer along ∇θ mean loss(batch)        batches in an order drawn anew for every epoch

A model brings a module and its players: who owns which parameters, and the loss that each lowers in its turn. A network
that classifies has one player; a generator and its critic are two. An epoch is a sweep of the loop that all models
share: history, callbacks, early stopping and checkpoints are the same. Randomness belongs to (seed, epoch), and weights
and the optimizer's memory are the state, so an epoch that is run again after a restart has the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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

SCHEDULES: dict[str, Callable[[float], float]] = {  # the learning rate's factor when this share of the steps is done
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
}
FETCHED = 1_000_000  # numbers at once
ENOUGH = 10_000_000  # weights times rows, from which a batch is worth a second thread


class Player(NamedTuple):
    """Who moves which parameters, and to lower what: ``loss(*batch, done)`` gives a mean and the parts to be noted.

    `done` is the share of the training that lies behind, for what is to grow slowly.
    """

    parameters: list[nn.Parameter]
    loss: Callable[..., tuple[Tensor, dict[str, Tensor]]]
    betas: tuple[float, float] = (0.9, 0.999)


class State(NamedTuple):
    """What an epoch changes."""

    weights: np.ndarray  # all parameters and buffers, one after the other
    memory: np.ndarray  # what the optimizers remember


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
) -> None:
    """Train for ``model.max_iter`` epochs on tensors of equally many rows, and set ``weights_`` and the history.

    `note` may look at what an epoch brought, warn, and return more columns of the history.
    """
    where = choose_device(model.device)
    module.to(where)
    data = tuple(D.to(where) for D in data)
    optimizers = [Optimizer(model.optimizer, p.parameters, model.weight_decay, p.betas) for p in players]

    def sweep(state: State, t: int) -> loop.Sweep:
        restore_state(state, module, optimizers)
        parts = run_epoch(model, module, players, optimizers, data, seed, t)
        if not all(map(math.isfinite, parts.values())):
            rate = f"learning_rate={model.learning_rate:g}"
            raise InputError(f"{type(model).__name__} diverged in epoch {t + 1} with {rate}. Give a smaller one.")
        extra = {k: v for k, v in parts.items() if k != "objective"}
        extra.update(note(parts) if note else {})
        return loop.Sweep(copy_state(module, optimizers), parts["objective"], extra, done=t == model.max_iter - 1)

    with limit_threads(model.batch_size * len(flatten(list(module.parameters())))):
        loop.run(
            model,
            sweep,
            copy_state(module, optimizers),
            max_iter=model.max_iter,
            tol=-math.inf,  # the epochs that were asked for are made: a noisy objective says little about the end
            fitted=lambda state: {"weights_": name_weights(state.weights, module)},
            X=X,
            y=y,
            fingerprint=fingerprint,
            seed=seed,
        )


def run_epoch(
    model: Any,
    module: nn.Module,
    players: list[Player],
    optimizers: list[Optimizer],
    data: tuple[Tensor, ...],
    seed: int,
    t: int,
) -> dict[str, float]:
    """Every row once; the mean of each part, of which "objective" is the first player's loss."""
    n, size = len(data[0]), int(model.batch_size)
    steps = -(-n // size)
    rate = SCHEDULES[model.schedule]
    seen: dict[str, list[Tensor]] = {}
    module.train()
    with seed_torch(seed, t):
        order = torch.randperm(n).to(data[0].device)
        for i, batch in enumerate(iterate_batches(data, order, size)):
            done = (t + i / steps) / model.max_iter
            for j, (player, optimizer) in enumerate(zip(players, optimizers, strict=True)):
                loss, parts = player.loss(*batch, done)
                optimizer.step(loss, model.learning_rate * rate(done))
                for name, value in (parts if j else {"objective": loss, **parts}).items():
                    seen.setdefault(name, []).append(value.detach())
    module.eval()
    shares = torch.tensor([len(rows) / n for rows in order.split(size)], dtype=torch.float64)
    return {name: float(torch.stack(values).cpu().double() @ shares) for name, values in seen.items()}


def iterate_batches(data: tuple[Tensor, ...], order: Tensor, size: int) -> Iterator[tuple[Tensor, ...]]:
    """The rows in that order, so many at a time. Fetching has a cost of its own: small batches are fetched together."""
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


def list_memory(optimizers: list[Optimizer]) -> list[Tensor]:
    return [t for optimizer in optimizers for t in optimizer.memory]


def flatten(tensors: list[Tensor]) -> np.ndarray:
    parts = [t.detach().to("cpu", torch.float32).reshape(-1) for t in tensors]
    return torch.cat(parts).numpy().copy() if parts else np.zeros(0, np.float32)


def fill_tensors(tensors: list[Tensor], values: np.ndarray) -> None:
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


@contextmanager
def limit_threads(work: int) -> Iterator[None]:
    """As many threads in torch as the configuration says, or one if the work of a batch is too little to be shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(config().threads if work > ENOUGH else 1)
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
