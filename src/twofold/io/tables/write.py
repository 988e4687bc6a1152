"""Tables that are written as they are made, some rows at a time: never all of them are in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.lib import format as npy

from twofold.core.checks import InputError
from twofold.core.files.atomic import replacing


def write_frames(frames: Iterable[pl.DataFrame], path: str | os.PathLike) -> None:
    """Frames one after the other into a CSV, TSV or Parquet file, which appears when it is complete."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".csv", ".tsv", ".parquet", ".pq"):
        raise InputError(f"{path} ends in {ending!r}; tables are written to .csv, .tsv or .parquet.")
    with replacing(path) as whole:
        if ending in (".csv", ".tsv"):
            with open(whole, "wb") as file:
                for i, frame in enumerate(frames):
                    frame.write_csv(file, include_header=i == 0, separator="\t" if ending == ".tsv" else ",")
            return
        # Parquet cannot grow, so its parts are written and then streamed into one file
        with tempfile.TemporaryDirectory(prefix=".twofold-", dir=path.parent) as folder:
            parts = []
            for i, frame in enumerate(frames):
                parts.append(Path(folder) / f"{i}.parquet")
                frame.write_parquet(parts[-1])
            pl.scan_parquet(parts).sink_parquet(whole)


def write_rows(blocks: Iterable[np.ndarray], path: str | os.PathLike, shape: tuple[int, int], dtype: np.dtype) -> None:
    """Blocks of rows one below the other into a .npy file of this shape, which appears when it is complete."""
    head = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with replacing(path) as whole, open(whole, "wb") as file:
        npy.write_array_header_1_0(file, head)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)
