"""The base of every estimator: what may come in, how it is checked, how it is saved."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from twofold.core import checks, heldout, history
from twofold.core.callbacks import CallbackSupportMixin, with_callbacks
from twofold.core.checks import InputError
from twofold.core.data.blocks import (
    Blocks,
    as_blocks,
    choose_columns,
    is_dask,
    is_lazy_table,
    is_path,
    is_text_table,
)
from twofold.core.data.sources import SparseSource
from twofold.core.engine.local import engine_for, single_blas
from twofold.core.files import model_file
from twofold.core.params import check_parameters
from twofold.core.sklearn_shim import gives_arrays
from twofold.core.types import PathLike, Table, Weights

INSTEAD = {  # what is only about the inside of other libraries
    "copy": "what you pass is never changed. Leave it out.",
    "copy_x": "what you pass is never changed. Leave it out.",
    "n_jobs": "threads are set for everything at once. Use twofold.config(threads=...).",
    "verbose": "progress is a callback. Use model.set_callbacks(sklearn.callback.ProgressBar()).",
    "verbose_interval": "progress is a callback. Use model.set_callbacks(sklearn.callback.ProgressBar()).",
}
F = TypeVar("F", bound=Callable[..., Any])
NO_LABELS = object()  # y=None given to a classifier is an error, so None cannot mean "no y"


def fitting(method: F) -> F:
    """Decorates `fit`: parameters are checked, callbacks are torn down, and BLAS keeps to one thread, so that
    the shared half-step, too, has the same bits on any machine setting. A fit that fails leaves what was before."""
    called = with_callbacks(method)

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "columns" in kwargs:
            columns, X = kwargs.pop("columns"), kwargs.pop("X") if "X" in kwargs else args[0]
            args = (choose_columns(X, columns), *args[1:])
        if not get_config()["skip_parameter_validation"]:
            self._validate_params()
        nested = config_context(skip_parameter_validation=True)  # the models within were built here, not by the caller
        with nested, single_blas(), np.errstate(invalid="ignore", over="ignore"):  # refused by name, not by a warning
            before = _list_fitted(self)
            try:
                fitted = called(self, *args, **kwargs)
                if not _is_finite(self):
                    _refuse_extremes(self, method, args, kwargs)
                return fitted
            except BaseException as error:
                for name in _list_fitted(self):
                    delattr(self, name)
                vars(self).update(before)
                strange = isinstance(error, ValueError) and not isinstance(error, InputError)
                overflown = strange and "NaN" in str(error)  # chances that are inf / inf
                wrong = (ArithmeticError, np.linalg.LinAlgError)
                if isinstance(error, wrong) or overflown or "Arpack" in type(error).__name__:
                    _refuse_extremes(self, method, args, kwargs)
                if isinstance(error, np.linalg.LinAlgError):
                    raise InputError(_say_singular(self, error)) from error
                raise

    return cast(F, fit)


def writes_codes(method: F) -> F:
    """Decorates `transform`: with ``to="codes.parquet"`` codes go to that file, block by block, and its path is given.

    Files are .parquet, .csv, .tsv or .npy, and appear when they are complete.
    """

    @functools.wraps(method)
    def transform(self: Any, X: Any, *args: Any, to: PathLike | None = None, **kwargs: Any) -> Any:
        if to is None:
            return method(self, X, *args, **kwargs)
        check_is_fitted(self)
        if not gives_arrays(self):
            raise InputError(f'to="{to}" writes a file, and set_output asks for frames. Set it back to "default".')
        blocks, names = self._blocks(X), [str(name) for name in self.get_feature_names_out()]
        parts = (method(self, Blocks(as_blocks(block).source), *args, **kwargs) for block in blocks)
        writer = importlib.import_module("twofold.io.tables.write")  # io is above core
        return writer.write_codes(parts, to, names, blocks.shape[0])

    return cast(F, transform)


def _say_singular(model: Any, error: Exception) -> str:
    ridges = [name for name in ("reg_covar", "reg", "alpha") if name in model.get_params(deep=False)]
    return (
        f"{type(model).__name__} must solve with a matrix that is singular to rounding ({error}). Leave out columns "
        f"of X that repeat others, give it as float64{', or raise ' + ridges[0] if ridges else ''}."
    )


def _is_finite(model: Any) -> bool:
    """Return whether all numbers that a fit has set are finite."""
    values = [value for value in _list_fitted(model).values() if isinstance(value, (np.ndarray, np.floating))]
    return all(np.isfinite(value).all() for value in values if value.dtype.kind == "f")


def _refuse_extremes(model: Any, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A fit has gone wrong: if numbers of X or weights are at the edge of their range, say so."""
    given = inspect.signature(method).bind(model, *args, **kwargs).arguments
    if isinstance(given.get("X"), (np.ndarray, list, Blocks)) or sparse.issparse(given.get("X")):
        checks.refuse_extremes(type(model).__name__, as_blocks(given["X"]), given.get("sample_weight"))


def _list_fitted(model: Any) -> dict[str, Any]:
    """The attributes that a fit has set on a model: those that end in "_"."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}


class Model(CallbackSupportMixin, BaseEstimator):
    """Base class: scikit-learn's manners, blocks of rows, callbacks, model files."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _records: ClassVar[tuple[Any, ...]] = ()  # NamedTuples that fitted attributes may hold
    _allow_nan: ClassVar[bool] = False
    _allow_sparse: ClassVar[bool] = True
    _allow_negative: ClassVar[bool] = True
    _takes_text: ClassVar[bool] = False  # in place of a table
    _instead: ClassVar[dict[str, str]] = {}  # parameters that others have and this class has not -> what to do instead
    n_features_in_: int
    feature_names_in_: Annotated[np.ndarray, "d, text"]
    history_: dict[str, list[float]]
    n_iter_: int
    converged_: bool
    get_feature_names_out: Callable[..., np.ndarray]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "transform" in vars(cls) and not cls._takes_text:
            cls.transform = writes_codes(vars(cls)["transform"])

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse a parameter that users bring from elsewhere, with the way to do it here."""
        for name in parameters:
            if name in cls._instead or (name in INSTEAD and name not in inspect.signature(cls).parameters):
                raise TypeError(f"{cls.__name__} has no parameter {name}: {cls._instead.get(name, INSTEAD.get(name))}")
        return super().__new__(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._allow_sparse
        tags.input_tags.allow_nan = self._allow_nan
        tags.input_tags.positive_only = not self._allow_negative
        tags.input_tags.string = self._takes_text
        tags.input_tags.two_d_array = not self._takes_text
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        set_before_fit = {"n_features_in_", "feature_names_in_"}
        return bool(_list_fitted(self).keys() - set_before_fit)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Show scikit-learn's view of the parameters in a notebook, and how the fit went."""
        shown = super()._repr_mimebundle_(**options)
        return shown | ({"text/html": shown["text/html"] + history.as_html(self)} if "text/html" in shown else {})

    @property
    def _repr_html_(self) -> Callable[[], str]:
        inner = super()._repr_html_  # an attribute only where scikit-learn is set to show diagrams
        return lambda: inner() + history.as_html(self)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one `.twofold` file: no pickle, no code, replaced atomically."""
        check_is_fitted(self)
        model_file.save(self, path)

    def to_sklearn(self) -> Any:
        """The fitted twin in scikit-learn, of models that have one; nothing is fitted again."""
        return importlib.import_module("twofold.interchange.sklearn_twins").to_sklearn(self)

    def to_onnx(self, path: PathLike) -> None:
        """Write linear maps, k-means, Gaussian mixtures and networks as an ONNX file (extra ``export``).

        Its input "X" is rows (n,d) of float32; its outputs are those of :mod:`twofold.interchange.onnx_graphs`, which
        agree with the model's own to 1e-5.
        """
        importlib.import_module("twofold.interchange.onnx_graphs").to_onnx(self, path)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a model of this class that `save` wrote; a file of another class is refused.

        The result has this class for editors and type checkers, which :func:`twofold.load` cannot give.
        """
        model = model_file.load(path)
        if not isinstance(model, cls):
            raise InputError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}. Use twofold.load(path).")
        return model

    def _blocks(self, X: Table, *, reset: bool = False, y: Any = NO_LABELS, min_rows: int = 1) -> Any:
        """X as row blocks, its shape and names checked; with y, the pair. Values are checked where they are read."""
        if is_path(X) or is_dask(X) or is_lazy_table(X) or isinstance(X, Blocks):
            text = is_path(X) and not reset and hasattr(self, "feature_names_in_") and is_text_table(X)
            blocks = as_blocks(X, list(self.feature_names_in_) if text else None)  # found by their names
            if blocks.is_sparse and not self._allow_sparse:
                raise InputError(
                    f"X is sparse, which {type(self).__name__} does not take. Make it dense: of a dask array, "
                    "X.map_blocks(lambda chunk: chunk.toarray())."
                )
            names = blocks.source.columns
            if reset:
                validate_data(self, blocks, skip_check_array=True)  # n_features_in_; names of an earlier fit go
                if names is not None:
                    self.feature_names_in_ = np.asarray(names, dtype=object)
            else:
                self._check_width(blocks.shape[1])
                if names is not None and hasattr(self, "feature_names_in_"):
                    self._check_names(names)
            if y is not NO_LABELS:
                y = column_or_1d(y, warn=True)
                check_consistent_length(blocks, y)
        else:
            options = {"accept_sparse": "csr" if self._allow_sparse else False, "dtype": [np.float64, np.float32]}
            if sparse.issparse(X):
                checks.check_sparse(X)  # before its indices are followed
            labels = () if y is NO_LABELS else (y,)
            try:
                checked = validate_data(self, X, *labels, reset=reset, ensure_all_finite=False, **options)
            except (TypeError, ValueError) as error:
                reason = checks.explain_refusal(type(self).__name__, X)
                if reason:
                    raise InputError(reason) from error
                raise
            X, y = checked if labels else (checked, y)
            blocks = Blocks(SparseSource(X)) if sparse.issparse(X) else as_blocks(X)
        if reset and self._allow_nan and not (is_dask(X) or isinstance(X, Blocks)):
            checks.refuse_nothing_known(blocks)
        if blocks.shape[0] < min_rows:
            raise InputError(
                f"Found array with {blocks.shape[0]} sample(s) (shape={blocks.shape}) while a minimum of {min_rows} "
                f"is required by {type(self).__name__}: one sample has no spread to describe."
            )
        return blocks if y is NO_LABELS else (blocks, y)

    def _validate_params(self) -> None:
        """Refuse a constructor parameter that is not what `_parameter_constraints` allows."""
        check_parameters(self._parameter_constraints, self.get_params(deep=False), type(self).__name__)

    # ---- held-out scores -------------------------------------------------------------------------------------------

    _turns: ClassVar[bool] = False  # whether directions may be hidden in place of columns: see core/heldout.py
    _heldout_unit: ClassVar[str] = ""  # what `heldout_score` counts, if it is not `score`

    def _hiding(self) -> tuple[Any, ...] | None:
        """Return how hidden cells are scored: a plain function ``costs(X, split, *state) -> (m,2)`` and its state.

        It gives the cost of the hidden cells of every row, and their number. None where `score` looks at no code.
        """
        return None

    @available_if(lambda self: hasattr(self, "score") or type(self)._hiding is not Model._hiding)
    def heldout_score(self, X: Table, y: Any = None) -> float:
        """Score the prediction of hidden cells in rows that were not in the fit: higher is better.

        :func:`twofold.select` and :class:`EarlyStopping` use it. A model that finds a code for every row gets some
        columns of it at a time, finds the code from these, and is scored on the others: minus the mean loss of a hidden
        cell. Where ``score`` needs no code, such as a likelihood, or hides cells by itself, the two are the same.
        """
        check_is_fitted(self)
        how = self._hiding()
        if how is None:
            model: Any = self
            return float(model.score(X) if y is None else model.score(X, y))
        blocks = self._blocks(X)
        costs, *state = how
        splits = heldout.split_columns(blocks.shape[1], self._turns and not blocks.is_sparse, type(self).__name__)
        found = sum(np.asarray(self._rowwise(costs, X, split, *state)).sum(axis=0) for split in splits)
        return -float(found[0] / max(found[1], 1))

    # ---- what may come in ------------------------------------------------------------------------------------------

    def _check_width(self, d: int) -> None:
        """New rows must have as many columns as those of the fit."""
        wanted = getattr(self, "n_features_in_", d)
        if d != wanted:
            raise InputError(
                f"X has {d} features, but {type(self).__name__} is expecting {wanted} features as input. Give it the "
                "columns it was fitted with."
            )

    def _check_names(self, names: list[str]) -> None:
        """A file's columns must be those of the fit, in their order."""
        for j, (here, there) in enumerate(zip(names, self.feature_names_in_, strict=False)):
            if here != there:
                raise InputError(
                    f'column {j} of the file is "{here}"; {type(self).__name__} was fitted with "{there}" there. The '
                    "feature names should match those that were passed during fit: select the columns in that order."
                )

    def _check_codes(self, U: Any) -> np.ndarray:
        """Codes to be turned back into rows: an array (n,k)."""
        check_is_fitted(self)
        U, k = np.asarray(U), len(self.get_feature_names_out())
        if U.ndim != 2 or U.shape[1] != k or U.dtype.kind not in "biuf":
            raise InputError(f"the codes have shape {U.shape}, dtype {U.dtype}; this model makes numbers (n, {k}).")
        return U

    def _weights(self, blocks: Blocks, sample_weight: Weights) -> np.ndarray | None:
        return checks.check_weights(sample_weight, blocks.shape[0])

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        """Look for the first cell that is not a usable number and raise with its place."""
        checks.refuse(type(self).__name__, blocks, self._allow_nan if allow_nan is None else allow_nan)

    def _rowwise(self, fn: Callable[..., Any], X: Table, *state: Any, opaque: bool = False) -> Any:
        """fn(block, *state) for every block of new rows, the results stacked: what transform and predict are made of.

        A dask array gives a dask array back; everything else an array. Cells that cannot be used show in the
        result, unless it is `opaque`, like a label.
        """
        blocks = self._blocks(X)
        if is_dask(X):
            from twofold.core.engine.dask_sources import lazily

            return lazily(fn, blocks, state)
        engine = engine_for(blocks)
        out = engine.stack(engine.map(fn, blocks, *(engine.broadcast(s) for s in state)))
        first = out[0] if isinstance(out, tuple) else out
        with np.errstate(invalid="ignore", over="ignore"):
            usable = not opaque and np.isfinite(first.sum())
        if not usable:
            self._refuse(blocks)
            values = first.data if sparse.issparse(first) else first
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                checks.refuse_extremes(type(self).__name__, blocks)
        return out


class Reorderable:
    """For models whose components have no order of their own, such as clusters and topics.

    A name with a dot is a field of a record: "sums_.N". Of a tuple of arrays, every array is meant.
    """

    _component_axes: ClassVar[dict[str, int]]  # fitted attribute -> the axis along which its components lie
    _component_numbers: ClassVar[tuple[str, ...]] = ()  # fitted attributes that hold numbers of components

    def reordered(self, order: Any) -> Self:
        """A copy of the fitted model whose component c is this one's component ``order[c]``.

        Parameters
        ----------
        order : array of shape (k,)
            Every number from 0 to k − 1, once. Labels are renumbered to match.
        """
        check_is_fitted(self)
        order = np.asarray(order)
        name, axis = next(iter(self._component_axes.items()))
        k = getattr(self, name).shape[axis]
        if order.shape != (k,) or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(k)):
            raise InputError(
                f"order={order.tolist()} does not arrange the {k} components of {type(self).__name__}: every number "
                f"from 0 to {k - 1} is needed, once."
            )
        model = copy.copy(self)
        for name, axis in self._component_axes.items():
            _change(model, name, lambda a, axis=axis: np.take(a, order, axis=axis))
        place = np.argsort(order)
        for name in self._component_numbers:
            _change(model, name, lambda a: place[a].astype(a.dtype))
        return model


class Rescalable:
    """For models that can take the units of the columns into themselves.

    What cannot be told in the units of X, such as a distance or an isotropic noise, stays as it was, beside ``scale_``.
    """

    _column_axes: ClassVar[dict[str, tuple[int, ...]]]  # fitted attribute -> axes times the scale, twice for a square

    def rescaled(self, scale: Any) -> Self:
        """For a model fitted on ``X / scale``: a copy that takes X itself and gives the same answers.

        Labels and codes of X are those of ``X / scale`` before; rows that the copy gives, centers and means are in the
        units of X, and log-densities are lower by ``log(scale).sum()``. ``history_`` stays that of the fit.

        Parameters
        ----------
        scale : array of shape (d,)
            What column j was divided by, above 0.
        """
        check_is_fitted(self)
        d = self.n_features_in_  # type: ignore[attr-defined]
        scale = np.asarray(scale, dtype=np.float64)
        if scale.shape != (d,) or not (np.isfinite(scale) & (scale > 0)).all():
            raise InputError(f"scale has shape {scale.shape}; {d} finite numbers above 0 are needed, one a column.")
        model: Any = copy.copy(self)
        if "scale_" in self._column_axes and not hasattr(self, "scale_"):
            model.scale_ = np.ones(d)
        for name, axes in self._column_axes.items():
            _change(model, name, lambda a, axes=axes: _times(a, scale, axes))
        return model


def _change(model: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace a fitted attribute, or a field of one, by `change` of it; not every fit sets every attribute."""
    attribute, _, field = name.partition(".")
    if not hasattr(model, attribute):
        return
    value = getattr(model, attribute)
    if field:
        value = value._replace(**{field: change(getattr(value, field))})
    else:
        value = tuple(change(a) for a in value) if isinstance(value, tuple) else change(value)
    setattr(model, attribute, value)


def _times(a: np.ndarray, scale: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """`a` times the scale along some of its axes, in its own precision."""
    for axis in axes:
        a = (a * scale.reshape([-1 if i == axis else 1 for i in range(a.ndim)])).astype(a.dtype)
    return a
