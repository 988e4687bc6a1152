"""Cells of text that a spreadsheet would take for formulas, made plain text by an apostrophe before them."""

from __future__ import annotations

import polars as pl

from twofold.io.tables.table import unique_names

BEGINS = "=+-@\t\r"  # what a formula, or something that hides one, may begin with


def escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before such cells and names; numbers stay as they are, also those in text columns.

    >>> escape_formulas(pl.DataFrame({"=a": ["=1+1", "-5", "plain"], "b": [-1, 2, 3]})).rows(named=True)[0]
    {"'=a": "'=1+1", 'b': -1}
    """
    text = pl.col(pl.String)
    begins = text.str.slice(0, 1).is_in(list(BEGINS)) & text.cast(pl.Float64, strict=False).is_null()
    frame = frame.with_columns(pl.when(begins).then("'" + text).otherwise(text).name.keep())
    names, _ = unique_names([f"'{name}" if name.startswith(tuple(BEGINS)) else name for name in frame.columns])
    return frame.rename(dict(zip(frame.columns, names, strict=True)))
