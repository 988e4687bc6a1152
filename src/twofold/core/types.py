"""The kinds of values that many signatures share.

scikit-learn, SciPy, polars and dask have no types that a checker could use here, so their arrays and tables are told by
what they have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from twofold.core.data.blocks import Blocks


class Sparse(Protocol):
    """A SciPy sparse array or matrix."""

    shape: tuple[int, ...]

    def tocsr(self) -> Any: ...


class Frame(Protocol):
    """A pandas or polars table."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def columns(self) -> Any: ...


class Lazy(Protocol):
    """A dask array or frame."""

    def __dask_graph__(self) -> Any: ...


PathLike: TypeAlias = str | os.PathLike[str]
Documents: TypeAlias = Iterable[str] | Iterable[Iterable[str]] | PathLike  # or their tokens, or a file of them
Table: TypeAlias = "npt.ArrayLike | Sparse | Frame | Lazy | PathLike | Blocks"  # X, as a caller may give it: (n,d)
Matrix: TypeAlias = npt.ArrayLike | Sparse  # in memory
Block: TypeAlias = Any  # some rows of X, as a kernel sees them: a C-contiguous ndarray or a SciPy csr_array
Weights: TypeAlias = npt.ArrayLike | None  # one number a row of X, or one for all
Seed: TypeAlias = int | np.integer | np.random.RandomState | np.random.Generator | None
State: TypeAlias = Any  # what a sweep changes: a NamedTuple of arrays and numbers
