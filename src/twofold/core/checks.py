"""Input checks and their messages: every error names the object, the value, the place and the remedy."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.spelling import Speller, spell_parameters
from twofold.core.types import Block, Weights

if TYPE_CHECKING:
    from twofold.core.data.blocks import Blocks


# What NumPy raises of a damaged .npy or .npz file, whose heads it reads as Python.
DAMAGED_ARRAY = (
    ValueError,
    OSError,
    EOFError,
    OverflowError,
    SyntaxError,
    RuntimeError,  # too deep, a packing nobody knows, a password
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def reason_of(error: BaseException) -> str:
    """The first line of what an exception says, or its name if it says nothing."""
    return next(iter(str(error).splitlines()), type(error).__name__)


class InputError(ValueError):
    """An input that cannot be used; the message says where, and what to do instead.

    A parameter in the message stands between ⟨ and ⟩, so that each face writes it in its own way:
    see `twofold.core.spelling`.

    >>> print(InputError("⟨scale⟩ is for tables. Give ⟨method=kmeans⟩."))
    scale= is for tables. Give method='kmeans'.
    """

    def __str__(self) -> str:
        return self.render()

    def render(self, speller: Speller | None = None) -> str:
        """The message as the present face writes parameters, or as `speller` does."""
        return spell_parameters(super().__str__(), speller)


class ModelFileError(ValueError):
    """A model file that is damaged, truncated, newer than this program, or not a model file."""


def check_sparse(X: Any, name: str = "X") -> None:
    """Refuse a sparse array whose indices lead outside it: SciPy does not look, and compiled code would follow them.

    Formats that keep one index a stored value or a pointer a row are checked here; the others are checked by SciPy when
    they are turned into CSR, or have no indices.
    """
    if X.ndim != 2:
        raise InputError(f"{name} is a sparse array with {X.ndim} axis. Give it two: rows and columns.")
    if X.format == "coo":
        for axis, indices in (("row", X.row), ("column", X.col)):
            _check_indices(indices, X.shape[axis == "column"], name, axis, None)
    elif X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        axes = [("row", X.shape[0] // block[0]), ("column", X.shape[1] // block[1])]
        (major, count), (minor, size) = axes[::-1] if X.format == "csc" else axes
        _check_pointers(X, count, name)
        _check_indices(X.indices[: X.indptr[-1]], size, name, minor, (major, X.indptr))


def _check_pointers(X: Any, rows: int, name: str) -> None:
    """The pointers of a compressed array start at 0, never fall and end within what is stored."""
    indptr, stored = X.indptr, min(len(X.indices), len(X.data))
    if X.indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise InputError(f"{name} is damaged: its indices are of type {X.indices.dtype}. They must be integers.")
    if indptr.shape != (rows + 1,):
        raise InputError(f"{name} is damaged: indptr has {indptr.size} entries for shape {X.shape}; {rows + 1} belong.")
    if indptr[0] != 0:
        raise InputError(f"{name} is damaged: indptr starts at {indptr[0]}. It must start at 0.")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        raise InputError(f"{name} is damaged: indptr falls after entry {int(np.argmax(falls))}. It may never fall.")
    if indptr[-1] > stored:
        raise InputError(f"{name} is damaged: indptr ends at {indptr[-1]}, and {stored} values are stored.")


def _check_indices(indices: np.ndarray, size: int, name: str, axis: str, within: tuple[str, np.ndarray] | None) -> None:
    """Indices of a sparse array lie between 0 and size − 1; the message names the first that does not."""
    if not len(indices) or (indices.min() >= 0 and indices.max() < size):
        return
    at = int(np.argmax((indices < 0) | (indices >= size)))
    where = f" of {within[0]} {int(np.searchsorted(within[1], at, side='right')) - 1}" if within else ""
    raise InputError(
        f"{name} is damaged: {axis} {indices[at]}{where}, but the array has {size} {axis}s, 0 to {size - 1}."
        + _guess_base(indices, size)
    )


def _guess_base(indices: np.ndarray, size: int) -> str:
    """A question, where everything would be right if it were one lower."""
    return " Do your ids start at 1?" if indices.max() == size and indices.min() > 0 else ""


def check_places(places: Any, size: int, name: str, of: str) -> np.ndarray:
    """Whole numbers (m,) from 0 to size − 1, as int64: what code may follow into something that has `size` places.

    >>> check_places([0, 3], 3, "cols", "the fitted table has columns")
    Traceback (most recent call last):
        ...
    twofold.core.checks.InputError: cols[1] is 3; the fitted table has columns 0 to 2.
    """
    a = np.atleast_1d(np.asarray(places))
    if a.ndim != 1 or (a.dtype.kind not in "iu" and a.size):
        raise InputError(
            f"{name} is an array of {a.dtype} with shape {a.shape}; whole numbers, one a place, are needed."
        )
    bad = (a < 0) | (a >= size)
    if bad.any():
        at = int(np.argmax(bad))
        which = f"{name}[{at}]" if np.ndim(places) else name
        raise InputError(f"{which} is {a[at]}; {of} 0 to {size - 1}.{_guess_base(a, size)}")
    return a.astype(np.int64, copy=False)


def first_bad(X: Block, allow_nan: bool) -> tuple[int, int, float] | None:
    """Row, column and value of the first cell that is infinite (or NaN, unless allowed)."""
    values = X.data if hasattr(X, "indptr") else X
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return None
    at = int(np.argmax(bad))
    if hasattr(X, "indptr"):
        return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at]), float(X.data[at])
    row, column = divmod(at, X.shape[1])
    return row, column, float(X[row, column])


def finite_message(name: str, row: int, column: int, value: float, *, allow_nan: bool) -> str:
    """The one message for a cell that is NaN or infinite."""
    where = f"X[{row}, {column}] is {value}"
    if np.isnan(value):
        return (
            f"{where}: {name} does not accept NaN (missing values). Drop those rows, or fill the holes "
            "first, for example with twofold.PPCA(...).impute(X)."
        )
    remedy = "mark it as missing with NaN" if allow_nan else "replace or drop it"
    return f"{where}: {name} needs finite numbers and cannot use infinity (inf). Clip it, or {remedy}."


def refuse(name: str, blocks: Blocks, allow_nan: bool = False) -> None:
    """Look through the blocks for the first cell that is not a usable number, and raise with its place."""
    for i, start in enumerate(blocks.bounds[:-1]):
        bad = first_bad(blocks[i], allow_nan)
        if bad is not None:
            row, column, value = bad
            raise InputError(finite_message(name, int(start) + row, column, value, allow_nan=allow_nan))


def refuse_extremes(name: str, blocks: Blocks, sample_weight: Weights = None) -> None:
    """Refuse numbers or weights whose squares leave the range of their type, once something went wrong with them."""
    limits = np.finfo(blocks.dtype)
    largest = 0.0
    for i in range(len(blocks)):
        values = np.abs(blocks[i].data if blocks.is_sparse else blocks[i])
        largest = max(largest, float(np.nanmax(values, initial=0.0)))
    top, bottom = np.sqrt(float(limits.max)) / 1e3, np.sqrt(float(limits.tiny)) * 1e3
    if top < largest < np.inf or 0 < largest < bottom:
        what = "large" if largest > top else "small"
        raise InputError(
            f"the largest number of X is {largest:.3g}, too {what} for {name}: squares of {blocks.dtype} numbers must "
            f"stay between {float(limits.tiny):.0e} and {float(limits.max):.0e}. Divide X by {largest:.0e} first."
        )
    if sample_weight is not None and not hasattr(sample_weight, "indptr"):
        weights = np.asarray(sample_weight, dtype=np.float64)
        most = float(np.max(weights, initial=0.0))
        if most > 1e150 or most < 1e-150:
            raise InputError(f"the largest weight is {most:.3g}, which {name} cannot use. Divide the weights by it.")


def refuse_nothing_known(blocks: Blocks) -> None:
    """Refuse a table of NaN alone; looks no further than the first number."""
    for i in range(len(blocks)):
        X = blocks[i]
        if hasattr(X, "indptr") or (X.size and not np.isnan(X[0, 0])) or not np.isnan(X).all():
            return
    raise InputError(
        f"X of shape {blocks.shape} has no known cell: every one is NaN. Give at least one, and check how the table "
        "was read."
    )


def explain_refusal(name: str, X: Any) -> str:
    """Why X is no table of numbers, with the remedy; empty if no reason is found."""
    if X is None:
        return f"X is None: {name} needs rows of numbers. Pass an array (n, d), a frame, or the path of a file."
    try:
        shape = tuple(getattr(X, "shape", None) or np.shape(X))
    except ValueError:  # rows of different lengths
        shape = ()
    if len(shape) > 2:
        return (
            f"X has shape {shape}, dim {len(shape)}: {name} needs a table of dim 2, (n, d). Make every sample a row "
            "first, with X.reshape(len(X), -1)."
        )
    if len(shape) == 1 and len(X) and all(isinstance(text, str) for text in X):
        return (
            f"X is a list of texts, and {name} needs a table. Count their words first: BagOfWords().fit_transform(X)."
        )
    found = _first_text(X)
    if not found:
        return ""
    place, value = found
    return (
        f"{place} is {value!r}, which {name} cannot convert to a number. Drop the column, or turn it into numbers "
        "first, for example with sklearn.preprocessing.OneHotEncoder."
    )


def _first_text(X: Any) -> tuple[str, Any] | None:
    """Place and value of the first cell that is text or a date."""
    try:
        columns = getattr(X, "columns", None)
        if columns is not None:
            names, cut = list(columns), getattr(X, "iloc", X)
            cells = ((f'column "{c}" of X: row {{}}', np.asarray(cut[:, j])) for j, c in enumerate(names))
        else:
            table = np.asarray(X) if hasattr(X, "dtype") else np.asarray(X, dtype=object)
            cells = ((f"X[{{}}, {j}]", column) for j, column in enumerate(table.T if table.ndim == 2 else ()))
        for place, column in cells:
            for row, value in enumerate(column.tolist() if column.dtype.kind in "OUSTmM" else ()):
                if column.dtype.kind in "mM" or (isinstance(value, (str, bytes)) and not _is_number(value)):
                    return place.format(row), value if column.dtype.kind not in "mM" else str(column[row])
    except (TypeError, ValueError):  # no table at all: the reason that others gave must do
        return None
    return None


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_weights(sample_weight: Weights, n: int) -> np.ndarray | None:
    """Row weights as float64 (n,), or None when every row counts once."""
    if sample_weight is None:
        return None
    try:
        w = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight is no array of numbers ({error}). Give one weight a row.") from None
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        if w.ndim != 1:
            raise InputError(f"Sample weights must be 1D array or scalar, got an array of shape {w.shape}.")
        raise InputError(f"sample_weight.shape == {w.shape}, expected {(n,)}: one weight a row of X.")
    bad = ~np.isfinite(w) | (w < 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"sample_weight[{i}] is {w[i]}; weights must be finite and >= 0. Drop the row or set 0.")
    if not w.any():
        raise InputError("sample_weight is zero everywhere; at least one row must count.")
    return w
