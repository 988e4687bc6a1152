"""A method of the lab: an estimator, its settings, and the view that draws it after every sweep.

To add one, write a subclass in the file of its family:

    class KMeansMethod(Points):                         # Points: the family, with the view that draws it
        id, title, estimator, objective = "kmeans", "k-means", "KMeans", "cost"
        settings = (control("n_clusters", "clusters", default=10, max=30), SPACE, *loop_controls())

and, if no view fits, a view: a class with `first`, drawn before the first sweep, and ``frame(model)``, which draws a
model after a sweep. Methods are offered in the order of their classes. Nothing is computed here that the library can
compute: the fit is the estimator's own, with one callback, `SweepCallback`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from twofold.core.checks import InputError
from twofold.core.spelling import spell_parameters
from twofold.lab.data import Data
from twofold.lab.methods import tables
from twofold.lab.methods.setting import Control, Setting, seed, summarize, takes_blanks
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Values = Mapping[str, Any]  # of all settings of a run, by their names
Arrays = dict[str, np.ndarray]
Frame = tuple[Arrays, dict[str, Any]]
KIND_NAMES = {
    "table": "a table", "ratings": "ratings", "text": "text", "picture": "a picture", "pictures": "a set of pictures",
    "signal": "a signal", "none": "nothing",
}  # fmt: skip
MAX_EVERY_SWEEP = 60  # every sweep is drawn up to this one, then fewer and fewer


class Cancelled(Exception):
    """Raised by `emit` when the run is to end; nothing catches it on the way out of a fit."""


class Emit(Protocol):
    """Receives frames; it blocks while the run is paused, returns True if it is to stop, and raises `Cancelled`."""

    def __call__(
        self, sweep: int, objective: float | None, arrays: Arrays, meta: dict[str, Any], final: bool = False
    ) -> bool | None: ...


@dataclass
class Result:
    """The outcome of a run."""

    model: Any
    script: str
    make_table: Callable[[], pl.DataFrame] | None
    figure: Callable[[], Figure] | None
    view: Any  # answers questions
    notes: list[str] = field(default_factory=list)
    picture: np.ndarray | None = None  # uint8, where the result is one

    @cached_property
    def table(self) -> pl.DataFrame | None:
        """Return the table to take away."""
        return None if self.make_table is None else self.make_table()


class StopAfter:
    """Ends a fit after some sweeps, by scikit-learn's callbacks, so that a script stops where its run was stopped."""

    def __init__(self, sweeps: float):
        self.sweeps = sweeps

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.parent is not None and fitted_estimator is not None:
            self.see(fitted_estimator)
            return bool(fitted_estimator.n_iter_ >= self.sweeps)
        return False

    def see(self, model: Any) -> None:
        """Look at the model after a sweep."""


class SweepCallback(StopAfter):
    """Sends a frame after a sweep, and ends the fit if it is told to."""

    def __init__(self, view: Any, emit: Emit):
        super().__init__(math.inf)
        self.view, self.emit = view, emit

    def see(self, model: Any) -> None:
        sweep = model.n_iter_
        if sweep % max(1, sweep // MAX_EVERY_SWEEP) == 0 and self.emit(
            sweep, last_objective(model), *self.view.frame(model)
        ):
            self.sweeps = sweep


def last_objective(model: Any) -> float:
    return float(model.history_["objective"][-1])


class Method(ABC):
    """One entry of the catalog; see the module for how to add another."""

    id: ClassVar[str] = ""  # "" of a family, which is not offered itself
    title: ClassVar[str]
    family: ClassVar[str]
    view: ClassVar[str]  # its name on the page
    view_class: ClassVar[type[Any]]  # has `first`, a frame whose meta["static"] is sent this once, and `frame(model)`
    estimator: ClassVar[str]  # in twofold, or "signals.images.denoise:denoise_image"
    kinds: ClassVar[tuple[str, ...]] = ("table", "pictures")
    default_data: ClassVar[str]
    settings: ClassVar[tuple[Control, ...]] = ()
    seeded: ClassVar[bool] = True  # whether the seed is a setting, too: the last one
    objective: ClassVar[str] = "objective"
    fixed: ClassVar[Values] = {}  # parameters of the estimator that are no settings
    compare: ClassVar[tuple[str, ...]] = ()
    downloads: ClassVar[tuple[str, ...]] = ("model", "table", "figure", "python")
    call: ClassVar[str] = "model.fit(X)"
    needs_classes: ClassVar[bool] = False  # whether rows must have a class
    needs: ClassVar[str] = ""  # a package without which the method is not offered
    controls: ClassVar[dict[str, Setting]]  # the settings by their names, with all that the estimator declares

    def __init_subclass__(cls) -> None:
        if cls.id:
            made = [one if isinstance(one, Setting) else one(cls.estimator) for one in cls.settings]
            made += [seed(cls.estimator)] if cls.seeded else []
            cls.controls = {one.name: one for one in made}

    # ---- the catalog -------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return the entry of the catalog, as JSON."""
        from twofold.lab.methods import catalog

        plain = ("id", "title", "family", "view", "default_data", "objective")
        offered = {method.id for method in catalog()}
        return {
            **{name: getattr(self, name) for name in plain},
            "about": summarize(self.estimator),
            "kinds": list(self.kinds),
            "takes": list(self.downloads),
            "compare": [id for id in self.compare if id in offered],  # without torch some are not
            "settings": [asdict(one) for one in self.controls.values()],
        }

    def check(self, values: Values) -> dict[str, Any]:
        """Return all settings, those without a value at their defaults."""
        for name in values:
            if name not in self.controls:
                raise InputError(f"{self.title} has no setting {name!r}; it has {', '.join(self.controls)}.")
        return {name: one.check(values.get(name, one.default)) for name, one in self.controls.items()}

    def reason_against(self, entry: Values) -> str:
        """Say why the method cannot take data, from what is listed of it, as the end of a sentence; "" if it can."""
        if entry["kind"] not in self.kinds:
            takes = " or ".join(KIND_NAMES[kind] for kind in self.kinds)
            return f"is {KIND_NAMES[entry['kind']]}, and {takes} is needed"
        if entry["blanks"] and not takes_blanks(self.estimator):
            return "has blank cells, which it cannot use"
        return "has no column of classes, which it needs" if self.needs_classes and not entry["classes"] else ""

    # ---- a run -------------------------------------------------------------------------------------------------

    def run(self, data: Data, settings: Values, emit: Emit, rows: Sequence[int] | None = None) -> Result:
        """Fit, and send a frame after every sweep."""
        from twofold.analyses.common.tables import warnings_as_notes

        if reason := self.reason_against(data.describe_briefly()):
            raise InputError(f"{data.name} {reason}.")
        chosen: Values = self.check(settings)
        notes = list(data.notes)
        script = Script(data, rows)
        with warnings_as_notes(notes):
            self.prepare(script, data, chosen)
            view = self.view_class(script, data, chosen)
            emit(0, None, *view.first)  # before the estimator is imported, which may take a second
            chosen = self.settle(script, data, chosen, notes)
            self.fit(script, self.build(script, chosen), view, emit, chosen)
        model = script.names.get("model")
        arrays, meta = view.frame(model)
        sweeps, objective = self.count_sweeps(model, view), self.measure(model, view)
        notes = list(dict.fromkeys(map(spell_parameters, [*notes, *script.names.get("said", [])])))
        emit(sweeps, objective, arrays, meta | {"notes": notes}, final=True)
        self.keep_steps(script, data)
        kept, picture = script.names.get("model"), view.output if "picture" in self.downloads else None
        table = (lambda: self.table(script, data, kept)) if "table" in self.downloads else None
        return Result(kept, script.text, table, lambda: self.figure(view, data, model), view, notes, picture)

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        """Run the lines between the data and the model."""
        return

    def settle(self, script: Script, data: Data, chosen: Values, notes: list[str]) -> Values:
        """Return the settings with those found that were left open, after the first picture is shown."""
        return chosen

    def keep_steps(self, script: Script, data: Data) -> None:
        """Put the steps before the fit into the model, so that it takes the data as it came."""
        if data.kind in ("table", "pictures") and hasattr(script["model"], "fit"):
            tables.keep_steps(script, data)

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        """Return those of the estimator, and others, which it is not given; the choice "none" means None."""
        return {**self.fixed, **{name: None if value == "none" else value for name, value in chosen.items()}}

    def build(self, script: Script, chosen: Values) -> Any:
        """Bind `model`, with at most as many components as the data allows."""
        params = self.parameters(script, chosen)
        if isinstance(params.get("n_components"), int):
            params["n_components"] = max(1, min([params["n_components"], *self.find_limits(script)]))
        return script.build(self.estimator, params)

    def find_limits(self, script: Script) -> tuple[int, ...]:
        """Return the limits of the number of components."""
        return ()

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Fit the model, with a frame after every sweep."""
        callback = SweepCallback(view, emit)
        model.set_callbacks(callback)
        script.do(self.call)
        model.set_callbacks()
        if callback.sweeps < math.inf:
            script.use("twofold.lab.methods.method", "StopAfter")
            script.lines.insert(-1, f"model.set_callbacks(StopAfter({callback.sweeps}))")
            script.say("model.set_callbacks()")

    def count_sweeps(self, model: Any, view: Any) -> int:
        return int(self.inner_model(model).n_iter_)

    def measure(self, model: Any, view: Any) -> float:
        """Return the objective of a fitted model."""
        return last_objective(self.inner_model(model))

    def inner_model(self, model: Any) -> Any:
        """Return the model whose sweeps were drawn: the one within, of a model that holds another."""
        return model

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        """Return the result as a table: what the model gives of the data as it came."""
        return tables.apply_model(script, data, model)

    @abstractmethod
    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        """Draw the result."""

    # ---- afterwards --------------------------------------------------------------------------------------------

    def ask(self, result: Result, question: Values) -> dict[str, Any] | Frame:
        """Answer a question about a finished run; a method ``ask_NAME(result, **rest)`` answers question NAME."""
        answers = {name.removeprefix("ask_") for name in dir(self) if name.startswith("ask_")}
        name = question.get("question")
        if name not in answers:
            raise InputError(f"{self.title} has no answer to {name!r}; ask {', '.join(sorted(answers)) or 'nothing'}.")
        rest = {key: value for key, value in question.items() if key != "question"}
        try:
            return getattr(self, f"ask_{name}")(result, **rest)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            raise InputError(f"the question {name!r} does not fit: {error}.") from error


def start_frame(static: Mapping[str, Any], arrays: Mapping[str, Any], **meta: Any) -> Frame:
    """Make the frame before the first sweep; `static` is sent in it alone."""
    return pack(**static, **arrays), {"static": [*static], **meta}


def pack(**arrays: Any) -> Arrays:
    """Convert arrays to the types of frames: bytes, 32-bit integers, and 32-bit floats for all else."""
    kinds = {"b": np.uint8, "u": np.uint8, "i": np.int32}
    made = {name: np.asarray(array) for name, array in arrays.items()}
    return {name: np.ascontiguousarray(one, kinds.get(one.dtype.kind, np.float32)) for name, one in made.items()}


def as_bytes(labels: Any) -> np.ndarray:
    """Convert labels to bytes: small numbers, from which the page takes colors."""
    return (np.asarray(labels).astype(np.int64) % 256).astype(np.uint8)
