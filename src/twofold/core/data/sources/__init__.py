"""Where rows come from: `base` has what all sources share and those in memory, `files` and `parquet` the rest."""

from twofold.core.data.sources.base import (
    ChosenSource,
    ColumnsOf,
    DenseSource,
    Source,
    SparseSource,
    StoredRows,
    cuts_by_stored,
    even_rows,
    float_dtype,
    join_rows,
    rows_per_block,
    turn_in_memory,
)
from twofold.core.data.sources.files import CsrSource, FilesSource, NpySource, find_table_files
from twofold.core.data.sources.parquet import ParquetSource, write_down

__all__ = [
    "ChosenSource", "ColumnsOf", "CsrSource", "DenseSource", "FilesSource", "NpySource", "ParquetSource", "Source",
    "SparseSource", "StoredRows", "cuts_by_stored", "even_rows", "find_table_files", "float_dtype", "join_rows",
    "rows_per_block", "turn_in_memory", "write_down",
]  # fmt: skip
