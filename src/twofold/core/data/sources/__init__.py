"""Where rows come from: one module for each kind of place, and `base` for what they share."""

from twofold.core.data.sources.base import Source, cuts_by_stored, even_rows, float_dtype, rows_per_block
from twofold.core.data.sources.csr import CsrSource
from twofold.core.data.sources.dense import DenseSource
from twofold.core.data.sources.files import FilesSource, find_table_files
from twofold.core.data.sources.npy import NpySource
from twofold.core.data.sources.parquet import ParquetSource
from twofold.core.data.sources.sparse import SparseSource, StoredRows, turn_in_memory
from twofold.core.data.sources.views import ChosenSource

__all__ = [
    "ChosenSource",
    "CsrSource",
    "DenseSource",
    "FilesSource",
    "NpySource",
    "ParquetSource",
    "Source",
    "SparseSource",
    "StoredRows",
    "cuts_by_stored",
    "even_rows",
    "find_table_files",
    "float_dtype",
    "rows_per_block",
    "turn_in_memory",
]
