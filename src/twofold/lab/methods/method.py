"""What a method of the lab is: an estimator, its settings, and what is seen of it after every sweep.

To add one, write a subclass in the file of its family and put it into that file's ``METHODS``:

    class KMeansMethod(Points):                         # Points: the view, with what it draws
        id, title, estimator = "kmeans", "k-means", "KMeans"
        objective = "cost"
        settings = (setting("KMeans", "n_clusters", label="clusters", default=10, min=1, max=30,
                            about="How many centers there are."), SPACE, tables.STANDARDIZE, seed("KMeans"))

and, if no view fits, a view: a subclass of `Method` with `look`, which returns a `Sight`. Its `first` is what is
drawn before the first sweep, its ``frame(model)`` what is drawn of a model after a sweep. Nothing is computed here that
the library can compute: the fit is the estimator's own, watched by one callback, `Watch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.data import Data
from twofold.lab.methods import docs

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from twofold.lab.script import Script

Arrays = dict[str, np.ndarray]
Frame = tuple[Arrays, dict[str, Any]]
CLOSE = 60  # sweeps of which every one is drawn; then fewer and fewer
LIMITS = {"int": (int,), "float": (float, int), "bool": (bool,)}


class Cancelled(Exception):
    """Raised by `emit` when the run is to end; nothing catches it on the way out of a fit."""


class Emit(Protocol):
    """Where frames go; it blocks while the run is paused, and raises `Cancelled`."""

    def __call__(
        self, sweep: int, objective: float | None, arrays: Arrays, meta: dict[str, Any], final: bool = False
    ) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One control: what it is called, what it does, and which values it takes."""

    name: str
    label: str
    about: str
    type: str  # int, float, choice, bool, mask
    default: Any
    min: float | None = None
    max: float | None = None
    step: float | None = None
    log: bool = False
    choices: tuple[str, ...] = ()
    advanced: bool = False

    def check(self, value: Any) -> Any:
        """The value, or an error that says what is allowed."""
        if value is None and self.default is None:
            return None
        if self.type == "choice":
            if value not in self.choices:
                raise InputError(f"{self.label} is {value!r}; choose {', '.join(self.choices)}.")
            return value
        if self.type == "mask":
            return value
        right = isinstance(value, LIMITS[self.type]) and (self.type == "bool" or not isinstance(value, bool))
        if self.type == "int" and isinstance(value, float) and value.is_integer():
            value, right = int(value), True
        if not right or (self.type != "bool" and not np.isfinite(value)):
            needed = "it is on or off" if self.type == "bool" else "a number is needed"
            raise InputError(f"{self.label} is {value!r}; {needed}.")
        low, high = self.min, self.max
        if (low is not None and value < low) or (high is not None and value > high):
            raise InputError(f"{self.label} is {value:g}; choose from {low:g} to {high:g}.")
        return float(value) if self.type == "float" else value


def setting(source: str, name: str, **given: Any) -> Setting:
    """A parameter of an estimator, or of an analysis, explained by its docstring; `about` is for one without any."""
    default = given["default"]
    kind = {bool: "bool", int: "int", float: "float"}.get(type(default), "choice" if given.get("choices") else "float")
    about = docs.describe_parameter(source, name) or given.pop("about")
    given.pop("about", None)
    options: dict[str, Any] = {"label": name.replace("_", " "), "type": kind} | given
    return Setting(name=name, about=about, **options)


def loop_settings(source: str, tol: float, max_iter: int) -> tuple[Setting, ...]:
    """When the sweeps end, and the seed."""
    return (
        setting(source, "tol", label="tolerance", default=tol, min=0, max=1, log=True, advanced=True),
        setting(source, "max_iter", label="sweeps at most", default=max_iter, min=1, max=10_000, advanced=True),
        seed(source),
    )


def seed(source: str = "", name: str = "random_state") -> Setting:
    """The seed of everything random."""
    said = docs.describe_parameter(source, name) if source else ""
    about = f"{said} The same seed gives the same run." if said else "The same seed gives the same run."
    return Setting(name=name, label="seed", about=about, type="int", default=0, min=0, max=2**31 - 1, advanced=True)


@dataclass
class Result:
    """What a run leaves behind."""

    model: Any
    script: str
    table: pl.DataFrame | None
    figure: Callable[[], Figure] | None
    sight: Any  # what was looked at, for questions
    notes: list[str] = field(default_factory=list)
    picture: np.ndarray | None = None  # uint8, where the result is one


class Sight(Protocol):
    """A view of one run."""

    first: Frame  # before the first sweep; meta["static"] names what is sent this once

    def frame(self, model: Any) -> Frame:
        """Of a fitted model, after a sweep or at the end."""
        ...


class Watch:
    """The one callback, in scikit-learn's protocol: after a sweep, what is seen of the model is sent."""

    def __init__(self, sight: Sight, emit: Emit):
        self.sight, self.emit = sight, emit

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.parent is not None and fitted_estimator is not None:
            sweep = fitted_estimator.n_iter_
            if sweep % max(1, sweep // CLOSE) == 0:
                self.emit(sweep, last_objective(fitted_estimator), *self.sight.frame(fitted_estimator))
        return False


def last_objective(model: Any) -> float:
    return float(model.history_["objective"][-1])


class Method(ABC):
    """One entry of the catalog; see the module for how to add another."""

    id: ClassVar[str]
    title: ClassVar[str]
    family: ClassVar[str]
    view: ClassVar[str]
    estimator: ClassVar[str]  # in twofold, or "analyses.denoise"
    kinds: ClassVar[tuple[str, ...]] = ("table", "pictures")
    default_data: ClassVar[str]
    settings: ClassVar[tuple[Setting, ...]]
    objective: ClassVar[str] = "objective"
    fixed: ClassVar[Mapping[str, Any]] = {}  # parameters of the estimator that are no settings
    compare: ClassVar[tuple[str, ...]] = ()
    takes: ClassVar[tuple[str, ...]] = ("model", "table", "figure", "python")
    call: ClassVar[str] = "model.fit(X)"
    needs: ClassVar[str] = ""  # a package without which the method is not offered

    # ---- the catalog -------------------------------------------------------------------------------------------

    @property
    def about(self) -> str:
        return docs.summarize(self.estimator)

    def describe(self) -> dict[str, Any]:
        """The entry of the catalog, as JSON."""
        from twofold.lab.methods import catalog

        plain = ("id", "title", "family", "about", "view", "default_data", "objective")
        several = ("kinds", "takes", "compare")
        out = {name: getattr(self, name) for name in plain} | {name: list(getattr(self, name)) for name in several}
        offered = {method.id for method in catalog()}
        out["compare"] = [id for id in self.compare if id in offered]  # without torch some are not
        return out | {"settings": [asdict(one) | {"choices": list(one.choices)} for one in self.settings]}

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, those not given at their defaults."""
        known = {one.name: one for one in self.settings}
        for name in given:
            if name not in known:
                raise InputError(f"{self.title} has no setting {name!r}; it has {', '.join(known)}.")
        return {name: one.check(given.get(name, one.default)) for name, one in known.items()}

    def check_kind(self, data: Data) -> None:
        if data.kind not in self.kinds:
            raise InputError(f"{self.title} takes {' or '.join(self.kinds)}; {data.name} is {data.kind}.")

    # ---- a run -------------------------------------------------------------------------------------------------

    def run(self, data: Data, settings: Mapping[str, Any], emit: Emit, rows: Sequence[int] | None = None) -> Result:
        """Fit, sending a frame after every sweep."""
        from twofold.analyses._tables import warnings_as_notes
        from twofold.lab.script import Script

        self.check_kind(data)
        chosen, notes = self.check(settings), list(data.notes)
        script = Script(data, rows)
        with warnings_as_notes(notes):
            self.prepare(script, data, chosen)
            sight = self.look(script, data, chosen)
            emit(0, None, *sight.first)  # before the estimator is imported, which may take a second
            model = self.build(script, chosen)
            self.fit(script, model, sight, emit, chosen)
        model = script["model"]
        arrays, meta = sight.frame(model)
        sweeps, objective = self.count_sweeps(model, sight), self.measure(model, sight)
        emit(sweeps, objective, arrays, meta | {"notes": notes}, final=True)
        names = None if data.names is None or rows is None else [data.names[row] for row in rows]
        table = self.table(script, data, model, names if rows is not None else data.names)
        return Result(model, script.text, table, lambda: self.figure(sight, data, model), sight, notes)

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        """Lines between the data and the model."""
        return

    def parameters(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Of the estimator; the choice "none" means None."""
        return {**self.fixed, **{name: None if value == "none" else value for name, value in chosen.items()}}

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        """Bind `model`."""
        return script.build(self.estimator, self.parameters(chosen))

    def fit(self, script: Script, model: Any, sight: Sight, emit: Emit, chosen: Mapping[str, Any]) -> None:
        """Fit the model, watched."""
        model.set_callbacks(Watch(sight, emit))
        script.do(self.call)
        model.set_callbacks()

    def count_sweeps(self, model: Any, sight: Any) -> int:
        return int(self.watched(model).n_iter_)

    def measure(self, model: Any, sight: Any) -> float:
        """The objective of a fitted model."""
        return last_objective(self.watched(model))

    def watched(self, model: Any) -> Any:
        """The model whose sweeps were seen: the one within, of a model that holds another."""
        return model

    @abstractmethod
    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Sight:
        """What is seen of the run; the names that the script has bound so far are there, `model` not yet."""

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame | None:
        """The result as a table, one line a row."""
        return None

    @abstractmethod
    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        """The result as a figure."""

    # ---- afterwards --------------------------------------------------------------------------------------------

    def ask(self, result: Result, question: Mapping[str, Any]) -> dict[str, Any] | Frame:
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


def numbers(value: Any) -> np.ndarray:
    """An array of 32-bit floats, as frames hold them."""
    return np.ascontiguousarray(value, dtype=np.float32)


def marks(value: Any) -> np.ndarray:
    """An array of bytes: labels, colors."""
    return np.ascontiguousarray(np.asarray(value).astype(np.int64) % 256, dtype=np.uint8)
