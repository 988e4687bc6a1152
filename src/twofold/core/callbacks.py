"""Callbacks: scikit-learn's protocol, and the two that twofold adds."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.files.model_file import read_file, write_file
from twofold.core.sklearn_shim import CallbackSupportMixin, ProgressBar, callbacks_of, open_fit, with_callbacks
from twofold.core.types import Documents, PathLike, State, Table

__all__ = ["CallbackSupportMixin", "Checkpoint", "EarlyStopping", "ProgressBar", "Task", "with_callbacks"]


FORMAT = 1  # of checkpoint files: what another version wrote is refused, not misread


class Task:
    """One fit as its callbacks see it: a root task with one subtask a sweep."""

    def __init__(self, model: Any, max_iter: int, X: Table | Documents | None, y: Any):
        self.model, self.seen = model, {"X": X, "y": y}
        self.root = open_fit(model, max_iter)
        self.root.call_on_fit_task_begin(estimator=model, **self.seen)

    @property
    def callbacks(self) -> list[Any]:
        return callbacks_of(self.model)

    def begin(self) -> None:
        self.sweep = self.root.subcontext(task_name="sweep").call_on_fit_task_begin(estimator=self.model, **self.seen)

    def end(self, attributes: Any) -> bool:
        """Tell the callbacks that a sweep is over; True if one of them asks to stop."""
        return self.sweep.call_on_fit_task_end(estimator=self.model, reconstruction_attributes=attributes, **self.seen)

    def finish(self, attributes: Any) -> None:
        self.root.call_on_fit_task_end(estimator=self.model, reconstruction_attributes=attributes, **self.seen)


class _Quiet:
    """The hooks a callback must have, doing nothing."""

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def __repr__(self) -> str:
        plain = (f"{name}={value!r}" for name, value in vars(self).items() if isinstance(value, int | float | str))
        return f"{type(self).__name__}({', '.join(plain)})"


class EarlyStopping(_Quiet):
    """Stop when the score on held-out data has not risen for some sweeps, and keep the best sweep.

    Parameters
    ----------
    X : array-like, optional
        Held-out rows, never seen in fitting.
    y : array-like, optional
        Their targets, for supervised models.
    patience : int, default=5
        Sweeps without a better score before stopping.
    min_delta : float, default=0
        How much better counts as better.
    score : callable, optional
        ``score(model) -> float``, higher is better, in place of ``model.heldout_score(X, y)``: the accuracy of word
        vectors on a file of analogies, say.

    Attributes
    ----------
    scores_ : list of float
        The held-out score after each sweep.
    best_score_, best_sweep_ : float, int
        The best of them, and when.

    Examples
    --------
    >>> from twofold import EarlyStopping, PPCA, datasets
    >>> X = datasets.digits().data
    >>> stop = EarlyStopping(X[1500:], patience=2)
    >>> model = PPCA(10, solver="em", tol=0, random_state=0).set_callbacks(stop).fit(X[:1500])
    >>> len(stop.scores_) == model.n_iter_
    True
    """

    def __init__(
        self,
        X: Table | Documents | None = None,
        y: Any = None,
        *,
        patience: int = 5,
        min_delta: float = 0.0,
        score: Callable[[Any], float] | None = None,
    ):
        self.X, self.y, self.patience, self.min_delta, self.score = X, y, patience, min_delta, score

    def setup(self, estimator: Any, context: Any) -> None:
        if self.score is None and self.X is None:
            raise InputError("EarlyStopping needs held-out rows, X, or a function, score=. Give it one of them.")
        if self.score is None and not hasattr(estimator, "heldout_score"):
            raise InputError(f"EarlyStopping needs a model with a score; {type(estimator).__name__} has none.")
        self.scores_: list[float] = []
        self.best_score_, self.best_sweep_, self.best_state = -np.inf, -1, None

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.parent is None or fitted_estimator is None:
            return False
        score = self._judge(fitted_estimator)
        self.scores_.append(score)
        if score > self.best_score_ + self.min_delta:
            self.best_score_, self.best_sweep_ = score, len(self.scores_) - 1
            self.best_state = estimator._progress.state
        return len(self.scores_) - 1 - self.best_sweep_ >= self.patience

    def _judge(self, model: Any) -> float:
        if self.score is not None:
            return float(self.score(model))
        return float(model.heldout_score(self.X) if self.y is None else model.heldout_score(self.X, self.y))


class Checkpoint(_Quiet):
    """Write the state of a fit to a file every few sweeps, and go on from there if the file is found.

    A fit that was killed, even with SIGKILL, and is started again with the same data and parameters ends with
    the same bits as one that never stopped. The file goes away when the fit is complete.

    Parameters
    ----------
    path : str or path
        The file; replaced atomically at each writing.
    every : int, default=1
        Sweeps between writings.

    Examples
    --------
    >>> from twofold import Checkpoint, PPCA, datasets
    >>> model = PPCA(10, solver="em", random_state=0).set_callbacks(Checkpoint("digits.checkpoint"))
    >>> model.fit(datasets.digits().data).converged_
    True
    """

    def __init__(self, path: PathLike, *, every: int = 1):
        self.path, self.every = path, every

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Nothing: the loop writes, once every other callback has had its say."""

    def write(self, progress: Any, stoppers: list[EarlyStopping]) -> None:
        """Write the state after a sweep, and where each EarlyStopping stands."""
        if len(progress.history) % self.every:
            return
        arrays: dict[str, np.ndarray] = {}
        header = {
            "kind": "checkpoint",
            "fit": progress.sign,
            "history": progress.history.columns,
            "state": pack(progress.state, "state", arrays),
            "stopping": [
                {"scores": c.scores_, "best": c.best_sweep_, "state": pack(c.best_state, f"stop{i}", arrays)}
                for i, c in enumerate(stoppers)
            ],
        }
        write_file(self.path, header, arrays)

    def restore(self, sign: str, empty: State, stoppers: list[EarlyStopping]) -> tuple[State, dict[str, Any]] | None:
        """The saved state and history of this very fit, or None when there is no file."""
        if not Path(self.path).exists():
            return None
        header, arrays = read_file(self.path)
        if header.get("kind") != "checkpoint" or header.get("fit") != sign:
            raise InputError(
                f"{os.fspath(self.path)} is the checkpoint of another fit (other data, parameters or version). "
                "Delete it, or give Checkpoint another path."
            )
        for i, (c, saved) in enumerate(zip(stoppers, header["stopping"], strict=False)):
            c.scores_, c.best_sweep_ = saved["scores"], saved["best"]
            c.best_score_ = c.scores_[c.best_sweep_]
            c.best_state = unpack(empty, saved["state"], f"stop{i}", arrays)
        return unpack(empty, header["state"], "state", arrays), header["history"]

    def remove(self) -> None:
        Path(self.path).unlink(missing_ok=True)


def pack(state: State, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A state's numbers as JSON; its arrays go to `arrays`, also those that every block keeps."""
    out: dict[str, Any] = {}
    for field, value in state._asdict().items():
        key = f"{name}.{field}"
        if isinstance(value, np.ndarray):
            arrays[key] = value
        elif isinstance(value, Rows):
            items = list(value.local())
            out[field] = [None if item is None else len(item) for item in items]
            arrays.update({f"{key}.{i}.{j}": a for i, item in enumerate(items) for j, a in enumerate(item or ())})
        elif hasattr(value, "_fields"):
            out[field] = pack(value, key, arrays)
        else:
            out[field] = value
    return out


def unpack(like: State, numbers: dict[str, Any], name: str, arrays: dict[str, np.ndarray]) -> State:
    """The state that `pack` took apart, of the same kind as `like`."""
    fields = {}
    for field, there in like._asdict().items():
        key, value = f"{name}.{field}", numbers.get(field)
        if key in arrays:
            value = arrays[key]
        elif hasattr(there, "_fields"):
            value = unpack(there, value or {}, key, arrays)
        elif isinstance(value, list):
            value = Rows(
                None if n is None else tuple(arrays[f"{key}.{i}.{j}"] for j in range(n)) for i, n in enumerate(value)
            )
        fields[field] = value
    return type(like)(**fields)


def fit_sign(model: Any, fingerprint: str, seed: int | None) -> str:
    """Describe what must be equal for a checkpoint to be of use: the class, its parameters and the data."""
    params = {k: _describe(v) for k, v in model.get_params(deep=False).items()}
    if not isinstance(getattr(model, "random_state", None), (int, type(None))):
        params["random_state"] = f"seed {seed}"
    return json.dumps([FORMAT, type(model).__name__, params, fingerprint], sort_keys=True)


def _describe(value: Any) -> str:
    return f"array {zlib.crc32(value.tobytes()):08x}" if isinstance(value, np.ndarray) else repr(value)
