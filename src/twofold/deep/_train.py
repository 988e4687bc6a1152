"""Training: the epoch loop of every network, and L-BFGS. It knows nothing of the models.

    θ ← θ − step of the solver along ∇θ mean loss(batch)           batches in a new random order in every epoch
    θ ← argmin of  loss(all rows) + ½ alpha ‖W‖² / n               L-BFGS of SciPy, in double precision

A solver steps along the gradient g of a loss, with a memory of the steps before:

    sgd        v ← μ v + η g              θ ← θ − v                     the heavy ball (Polyak 1964)
               or, with nesterov,         θ ← θ − (η g + μ v)           looks ahead along the velocity (Nesterov 1983)
    adagrad    s ← s + g²                 θ ← θ − η g / (√s + ε)        Duchi, Hazan & Singer 2011
    adam       m ← β₁m + (1 − β₁)g,  s ← β₂s + (1 − β₂)g²               Kingma & Ba 2015
               θ ← θ − η √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√s + ε)
    adamw      as adam, with separate decay: θ  ← θ − ηλθ               Loshchilov & Hutter 2019

All but adamw add λθ to g, the gradient of ½λ‖θ‖², where λ is alpha over the rows of the batch. Torch's fused kernels
make the step. Around them its optimizer classes do so much for every parameter that a small network would spend a tenth
of its time there, or more.

A model brings a module and its players, which are groups of parameters, each with the loss that it minimizes. A network
that classifies has one player; a generator and its critic are two. An epoch is a sweep of the loop that all models
share: history, callbacks, early stopping and checkpoints are the same. Randomness belongs to (seed, epoch), and weights
and the optimizer's memory are the state, so an epoch that is run again after a restart has the same bits.
Reference: Liu & Nocedal 1989 (L-BFGS).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor, nn
from torch.optim.adagrad import adagrad
from torch.optim.sgd import sgd

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.seeds import generator
from twofold.deep import _torch_shim
from twofold.deep._rows import NetworkRows

SOLVERS = {"sgd": 1, "adagrad": 1, "adam": 2, "adamw": 2}  # tensors of the shape of θ in the memory of each
FALLING: dict[str, Callable[[float], float]] = {  # the learning rate's factor when this share of the steps is done
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
}
SCHEDULES = ("constant", "invscaling", "adaptive", *FALLING)
MIN_LEARNING_RATE = 1e-6  # a learning rate that adapts is not divided any further
MAX_AUTO_BATCH = 200  # rows of a batch with batch_size="auto"
MAX_EVALUATIONS = 15_000  # of the loss, by L-BFGS
NO_WEIGHTS = np.zeros(0, np.float32)
COPY_CHUNK = 1_000_000  # numbers that are copied together
MIN_PRODUCTS_FOR_TWO_THREADS = 10_000_000  # weights times rows of a batch


class Group(NamedTuple):
    """Parameters with the same decay and the memory of their steps, each as one line of numbers."""

    parameters: list[Tensor]
    alpha: float
    memory: list[list[Tensor]]


class Optimizer:
    """An optimizer of some parameters; alpha shrinks matrices, not biases."""

    def __init__(
        self,
        solver: str,
        parameters: Sequence[Tensor],
        alpha: float = 0.0,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        momentum: float = 0.9,
        nesterov: bool = True,
    ):
        self.solver, self.betas, self.epsilon = solver, betas, epsilon
        self.momentum, self.nesterov = momentum, nesterov and momentum > 0
        matrices = [p for p in parameters if alpha and p.ndim > 1]
        others = [p for p in parameters if not alpha or p.ndim <= 1]
        self.parameters, self.groups = (*matrices, *others), []
        remembered = 0 if solver == "sgd" and not momentum else SOLVERS[solver]
        for part, weight in ((matrices, alpha), (others, 0.0)):
            lines = [line(p.detach()) for p in part]
            memory = [[torch.zeros_like(p) for p in lines] for _ in range(remembered)]
            if part:
                self.groups.append(Group(lines, weight, memory))
        self.one = torch.ones((), device=parameters[0].device, dtype=parameters[0].dtype)
        self.steps = torch.zeros((), device=parameters[0].device)  # made so far
        self.made = 0  # the same, where it costs nothing to ask

    @property
    def memory(self) -> list[Tensor]:
        """All tensors of the memory, in a fixed order."""
        return [*(t for group in self.groups for part in group.memory for t in part), self.steps]

    def squares(self) -> list[Tensor]:
        """‖W‖² of each matrix that alpha shrinks."""
        return [torch.dot(p, p) for group in self.groups if group.alpha for p in group.parameters]

    def step(self, loss: Tensor, rate: float, rows: float = 1.0) -> None:
        """Move the parameters along the gradient of the loss, a mean over `rows` rows."""
        start = self.one * rate if self.solver == "sgd" else self.one  # its velocity has the learning rate in it
        self.follow(_torch_shim.way.gradients(loss, start, self.parameters), rate, rows)

    def follow(self, gradients: Sequence[Tensor], rate: float, rows: float = 1.0) -> None:
        """Move the parameters along gradients that are known; those of sgd are times the rate already."""
        lines = [order_like(g, p) for g, p in zip(gradients, self.parameters, strict=True)]
        self.steps.add_(1)
        self.made += 1
        for group in self.groups:
            decay = group.alpha / rows if rows else 0.0
            self.move(group, lines[: len(group.parameters)], rate, decay)
            lines = lines[len(group.parameters) :]

    def move(self, group: Group, gradients: list[Tensor], rate: float, decay: float) -> None:
        options: dict[str, Any]
        if self.solver in ("adam", "adamw"):
            (m, s), (a, b) = group.memory, self.betas
            eps = self.epsilon / math.sqrt(1 - b**self.made)  # torch adds it to the root of the corrected s
            options = {"lr": rate, "beta1": a, "beta2": b, "eps": eps, "weight_decay": decay}
            _torch_shim.way.adam(group.parameters, gradients, m, s, self.steps, self.solver == "adamw", **options)
        elif self.solver == "adagrad":
            # it counts in the copies of the steps; without lr_decay they play no part
            options = {"lr": rate, "weight_decay": decay, "lr_decay": 0.0, "eps": 1e-10, "maximize": False}
            steps = [self.steps.clone() for _ in gradients]
            fused = self.steps.device.type == "cpu"
            adagrad(group.parameters, gradients, group.memory[0], steps, fused=fused, **options)
        else:
            velocity: list[Tensor | None] = [*group.memory[0]] if group.memory else [None] * len(gradients)
            options = {"lr": 1.0, "weight_decay": rate * decay, "dampening": 0.0, "maximize": False, "fused": True}
            sgd(group.parameters, gradients, velocity, momentum=self.momentum, nesterov=self.nesterov, **options)


def line(t: Tensor) -> Tensor:
    """The numbers of a tensor in the order that they have in memory, of which fused kernels are fastest."""
    return t.as_strided((t.numel(),), (1,))


def order_like(gradient: Tensor, parameter: Tensor) -> Tensor:
    """The line of a gradient in the order of its parameter's: differentiation may have left it in another."""
    if gradient.stride() != parameter.stride():
        gradient = torch.empty_like(parameter).copy_(gradient)
    return line(gradient)


class Player(NamedTuple):
    """Parameters of one optimizer and the loss it minimizes: ``loss(*batch, done)`` gives a mean and parts to note.

    `done` is the finished share of the training, for what grows slowly. For rows with weights the parts contain their
    sum, as "rows".
    """

    parameters: list[nn.Parameter]
    loss: Callable[..., tuple[Tensor, dict[str, Tensor]]]
    betas: tuple[float, float] | None = None  # instead of the model's
    penalized: bool = False  # whether the objective that is noted has alpha's part in it


class State(NamedTuple):
    """Everything that an epoch changes."""

    weights: np.ndarray  # all parameters and buffers, one after the other
    memory: np.ndarray  # of the optimizers
    rate: float = 0.0  # the learning rate, where it does not fall by a plan
    best: float = math.inf  # the least objective of an epoch, or minus the best score on rows held out
    stale: int = 0  # epochs in a row that were not better by tol
    kept: np.ndarray = NO_WEIGHTS  # the weights of the best score


class PreviousFit(NamedTuple):
    """Values of earlier fits, for one that continues from there."""

    epochs: int = 0
    rows: int = 0  # read in training, each as often as it was
    state: State | None = None


NEW_FIT = PreviousFit()


def train(
    model: Any,
    module: nn.Module,
    players: list[Player],
    data: tuple[Any, ...],
    *,
    seed: int,
    note: Callable[[dict[str, float]], dict[str, float]] | None = None,
    judge: Callable[[], float] | None = None,
    before: PreviousFit = NEW_FIT,
    once: bool = False,
    unit: float = 1.0,
    **run: Any,
) -> State:
    """Train for up to ``model.max_iter`` epochs on rows, targets and weights, and set ``weights_`` and the history.

    `note` receives the parts of an epoch and returns more columns of the history. `judge` scores the module on rows
    held out, of which the best epoch is kept. `once` is a single epoch of a stream: a learning rate that falls by
    a plan stays where it begins. The reported objective is multiplied by `unit`. `run` goes to the loop.
    """
    n, feed = len(data[0]), make_feed(model, module, data)
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

    def sweep(state: State, t: int) -> loop.Sweep:
        restore_state(state, module, optimizers)
        rate = (lambda done: model.learning_rate_init * plan(done)) if plan else (lambda done: state.rate)
        parts = run_epoch(model, module, players, optimizers, feed, seed, t, rate, before.epochs, once)
        objective = parts["objective"] = parts["objective"] * unit
        if not all(map(math.isfinite, parts.values())):
            name = f"learning_rate_init={model.learning_rate_init:g}"
            raise InputError(f"{type(model).__name__} diverged in epoch {t + 1} with {name}. Give a smaller one.")
        extra = parts | (note(parts) if note else {}) | ({"validation": judge()} if judge else {})
        del extra["objective"]
        value = -extra["validation"] if judge else objective
        tol = model.tol if judge else model.tol * min(1.0, unit)
        new, stop = compare_with_best(model, state, value, tol, before.rows + (t + 1) * n)
        now = copy_state(module, optimizers)
        new = new._replace(weights=now.weights, memory=now.memory)
        if judge and value < state.best:
            new = new._replace(kept=new.weights)
        planned = once or plan is not None or model.n_iter_no_change == math.inf
        return loop.Sweep(new, objective, extra, done=stop or t == epochs - 1, converged=stop or planned)

    start = copy_state(module, optimizers)._replace(rate=float(model.learning_rate_init))
    if before.state is not None:
        start = start._replace(best=before.state.best, stale=before.state.stale)
        if len(before.state.memory) == len(start.memory):  # a stream continues, other fits begin again
            start = start._replace(memory=before.state.memory, rate=before.state.rate)
    with limit_threads(batch_rows(model, n) * len(flatten(list(module.parameters())))):
        return loop.run(
            model,
            sweep,
            start,
            max_iter=epochs,
            tol=-math.inf,  # `compare_with_best` decides: one epoch of a noisy objective does not show convergence
            fitted=lambda state: {"weights_": name_weights(state.kept if len(state.kept) else state.weights, module)},
            seed=seed,
            advice="Raise max_iter or tol",
            **run,
        )


def compare_with_best(model: Any, state: State, value: float, tol: float, rows: int) -> tuple[State, bool]:
    """The best value so far, the epochs since then, the learning rate that follows from it, and whether to stop."""
    stale = state.stale + 1 if value > state.best - tol else 0
    rate, stop = state.rate, stale > model.n_iter_no_change
    if model.solver == "sgd" and model.learning_rate == "invscaling":
        rate = model.learning_rate_init / (rows + 1) ** model.power_t
    elif stop and model.solver == "sgd" and model.learning_rate == "adaptive" and rate > MIN_LEARNING_RATE:
        rate, stale, stop = rate / 5, 0, False
    return state._replace(rate=rate, best=min(value, state.best), stale=stale), stop


def batch_rows(model: Any, n: int) -> int:
    """Rows of a batch."""
    return min(MAX_AUTO_BATCH if model.batch_size == "auto" else int(model.batch_size), n)


def run_epoch(
    model: Any,
    module: nn.Module,
    players: list[Player],
    optimizers: list[Optimizer],
    feed: Feed,
    seed: int,
    t: int,
    rate: Callable[[float], float],
    before: int = 0,
    once: bool = False,
) -> dict[str, float]:
    """Train on every row once; the mean of each part, of which "objective" is the first player's loss.

    The random numbers are those of epoch `t`, after as many as there were `before`; `once`, these are a part of the
    training as well.
    """
    n = len(feed.rows)
    size = batch_rows(model, n)
    steps = -(-n // size)
    noted: dict[str, list[Any]] = {}
    on_cpu = feed.device.type == "cpu"
    squares: list[Tensor] = []
    pulls: list[float] = []
    module.train()
    with seed_torch(seed, before + t):
        for i, batch in enumerate(feed.iterate(size, model.shuffle)):
            done = (t + before * once + i / steps) / model.max_iter
            for j, (player, optimizer) in enumerate(zip(players, optimizers, strict=True)):
                loss, parts = player.loss(*batch, done)
                rows = float(parts.pop("rows")) if "rows" in parts else len(batch[0])
                if player.penalized and model.alpha:
                    squares += optimizer.squares()
                    pulls.append(0.5 * model.alpha / rows if rows else 0.0)
                optimizer.step(loss, rate(done), rows)
                for name, value in (parts if j else {"objective": loss, **parts}).items():
                    # a number where it costs nothing: a tensor that stays, between large ones that go, splits the heap
                    noted.setdefault(name, []).append(value.item() if on_cpu else value.detach())
    module.eval()
    shares = torch.tensor([min(size, n - start) / n for start in range(0, n, size)], dtype=torch.float64)
    means = {name: float(torch.tensor(values, dtype=torch.float64) @ shares) for name, values in noted.items()}
    if pulls:
        each = torch.stack(squares).cpu().double().reshape(steps, -1).sum(dim=1)
        means["objective"] += float(each @ (shares * torch.tensor(pulls, dtype=torch.float64)))
    return means


class Feed(NamedTuple):
    """The rows of a training with their targets and weights, on their device or on their way to it."""

    rows: NetworkRows
    tensors: tuple[Tensor, ...]  # of all rows: those themselves, if they are held, and what belongs to each
    device: torch.device

    def iterate(self, size: int, shuffle: bool) -> Iterator[tuple[Tensor, ...]]:
        """Batches of `size` rows, in a new order with `shuffle`."""
        order = fill_batches(self.rows.draw_order() if shuffle else self.rows.own_order(), size)
        if self.rows.array is None:
            for rows, numbers in self.rows.read_windows(order):
                others = (D.index_select(0, numbers.to(self.device)) for D in self.tensors)
                x = torch.from_numpy(rows).to(self.device)
                yield from zip(*(D.split(size) for D in (x, *others)), strict=True)
        elif not shuffle:
            yield from zip(*(D.split(size) for D in self.tensors), strict=True)
        else:  # copying has a cost of its own: small batches are copied together, as many as a cache holds
            together = max(1, COPY_CHUNK // (size * self.tensors[0][0].numel()))
            for window in order:
                for numbers in window.to(self.device).split(together * size):
                    yield from zip(*(D.index_select(0, numbers).split(size) for D in self.tensors), strict=True)


def fill_batches(order: Iterator[Tensor], size: int) -> Iterator[Tensor]:
    """The same numbers in the same order, as many whole batches at a time as there are."""
    left = torch.empty(0, dtype=torch.int64)
    for numbers in order:
        numbers = torch.cat([left, numbers])
        whole = len(numbers) // size * size
        left = numbers[whole:]
        if whole:
            yield numbers[:whole]
    if len(left):
        yield left


def train_by_lbfgs(
    model: Any,
    module: nn.Module,
    players: list[Player],
    data: tuple[Any, ...],
    *,
    seed: int,
    before: PreviousFit,
    unit: float,
    **run: Any,
) -> State:
    """Train to the end in one sweep, whose iterations are the history; the objective is multiplied by `unit`."""
    (player,) = players
    if data[0].array is None:
        raise InputError(
            f'solver="lbfgs" uses all rows in every step, and {len(data[0]):,} of them exceed the memory budget. Use '
            '"adam", or raise the budget with ⟨memory⟩.'
        )
    tensors = make_feed(model, module, data).tensors
    parameters = list(player.parameters)
    matrices = [p for p in parameters if p.ndim > 1]
    losses: list[float] = []
    seconds: list[float] = []
    began, last = time.perf_counter(), {}

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        fill_tensors(parameters, theta)
        loss, parts = player.loss(*tensors, 0.0)
        rows = float(parts.pop("rows")) if "rows" in parts else len(tensors[0])
        penalty = (0.5 * model.alpha / rows) * torch.stack([p.square().sum() for p in matrices]).sum()
        last["objective"] = unit * float(parts.get("objective", loss).detach() + penalty.detach())
        whole = loss + penalty
        return float(whole.detach()), flatten(list(torch.autograd.grad(whole, parameters)))

    def note(intermediate_result: OptimizeResult) -> None:
        losses.append(last["objective"])
        seconds.append(time.perf_counter() - began)

    def sweep(state: State, t: int) -> loop.Sweep:
        options = {"maxiter": model.max_iter, "maxfun": MAX_EVALUATIONS, "gtol": model.tol}
        end = minimize(evaluate, flatten(parameters), jac=True, method="L-BFGS-B", callback=note, options=options)
        objective, _ = evaluate(end.x)
        if not np.isfinite(objective):
            raise InputError(f"{type(model).__name__} diverged. Scale the columns of X, or raise alpha.")
        if not losses:  # it began where it ends
            note(end)
        weights = flatten(list(module.state_dict().values()))
        return loop.Sweep(state._replace(weights=weights), losses[-1], done=True, converged=end.success)

    module.train()
    with limit_threads(len(data[0]) * sum(p.numel() for p in parameters)):
        end = loop.run(
            model,
            sweep,
            State(np.zeros(0), np.zeros(0)),
            tol=0.0,
            fitted=lambda state: {"weights_": name_weights(state.weights, module)},
            seed=seed,
            advice="Raise max_iter or tol",
            **run,
        )
    model.history_, model.n_iter_ = {"objective": losses, "seconds": seconds}, len(losses)
    return end._replace(best=min([*losses, before.state.best if before.state else np.inf]))


# ---- state ---------------------------------------------------------------------------------------------------------


def copy_state(module: nn.Module, optimizers: list[Optimizer]) -> State:
    """A copy of all weights, and of the memory of the optimizers."""
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


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is the graphics card if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def check_device(name: str) -> None:
    """Refuse a device that this machine, or this torch, does not have."""
    try:
        torch.empty(1, device=choose_device(name)).add_(1)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise InputError(f'device="{name}" is not there ({why}). Use "auto", which takes what there is.') from None


def make_feed(model: Any, module: nn.Module, data: tuple[Any, ...]) -> Feed:
    """The data on the model's device, to which the module is moved, too; rows that are not held are read later."""
    device, (rows, *others) = choose_device(model.device), data
    module.to(device)
    held = [] if rows.array is None else [rows.array]
    return Feed(rows, tuple(torch.from_numpy(np.ascontiguousarray(D)).to(device) for D in [*held, *others]), device)


LOADED_IN = os.getpid()  # torch's threads live in the process that loaded it
if hasattr(os, "register_at_fork"):  # a forked child would wait for them and never end
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@contextmanager
def limit_threads(work: int) -> Iterator[None]:
    """The threads of the configuration in torch, or one if the work of a batch is too little to be shared."""
    before = torch.get_num_threads()
    shared = work > MIN_PRODUCTS_FOR_TWO_THREADS and os.getpid() == LOADED_IN
    torch.set_num_threads(config().threads if shared else 1)
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
