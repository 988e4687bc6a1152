"""Signals in few bytes: like an image, with cosines under overlapping windows in the place of blocks.

"TFS", version     4 bytes
head               numbers a second, dtype, how long the names are
names              of the signals, as JSON
checksum           4 bytes, CRC-32 of all before
signals            (c,d), as the file of a compressed image with c rows
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.files.atomic import write_bytes
from twofold.signals.images.channels import cast_values
from twofold.signals.images.compress import CompressedImage, check_target, compress_best
from twofold.signals.images.tfi_file import CHECK, DTYPES
from twofold.signals.thresholding import check_signals

METHODS = "lapped", "wavelet"
MAGIC, VERSION = b"TFS", 1
HEAD = struct.Struct("<3sBIBH")
MOST = 255  # signals in a file
USUAL = 40.0  # dB: of what spreads over its range as sound does, some 30 dB of signal over error


@dataclass(frozen=True)
class CompressedSignal:
    """Compressed signals: the bytes of their file, and what they say.

    Attributes
    ----------
    data, size, psnr
        As of :class:`CompressedImage`; the peak is the range of the signals.
    method : {"lapped", "wavelet"}
    rate : int or None
        Numbers a second, if it is sound.
    names : list of str
    shape : tuple of int
        (c, d).
    """

    data: bytes = field(repr=False)
    name: str = field(default="the compressed signal", repr=False, compare=False)  # what complaints call it

    def __post_init__(self) -> None:
        _ = self._parts

    def __repr__(self) -> str:
        return f"<CompressedSignal {self.shape}: {self.size} bytes, {self.psnr:.2f} dB, {self.method}>"

    @cached_property
    def _parts(self) -> tuple[int, np.dtype, list[str], CompressedImage]:
        try:
            magic, version, rate, dtype, length = HEAD.unpack(self.data[: HEAD.size])
            end = HEAD.size + length
            (check,) = CHECK.unpack(self.data[end : end + CHECK.size])
        except struct.error:
            magic, version, rate, dtype, end, check = b"", 0, 0, 0, 0, -1
        if magic != MAGIC:
            raise InputError(f"{self.name} is not a signal that twofold compressed, or its start is damaged.")
        if version > VERSION:
            raise InputError(f"{self.name} has version {version}, this twofold reads up to {VERSION}. Upgrade twofold.")
        if check != zlib.crc32(self.data[:end]) or dtype >= len(DTYPES):
            raise InputError(f"{self.name} is damaged or cut short: it does not match its checksum. Make it again.")
        inside = CompressedImage(self.data[end + CHECK.size :], self.name)
        try:
            names = json.loads(self.data[HEAD.size : end])
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or len(names) != inside.shape[0] or not all(isinstance(n, str) for n in names):
            raise InputError(f"{self.name} is damaged: its names are not those of {inside.shape[0]} signals.")
        return rate, np.dtype(DTYPES[dtype]), names, inside

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def psnr(self) -> float:
        return self._parts[3].psnr

    @property
    def method(self) -> str:
        return self._parts[3].method

    @property
    def rate(self) -> int | None:
        return self._parts[0] or None

    @property
    def names(self) -> list[str]:
        return list(self._parts[2])

    @property
    def shape(self) -> tuple[int, ...]:
        return self._parts[3].shape

    def decode(self) -> np.ndarray:
        """The signals (c, d), of the dtype they had."""
        return cast_values(self._parts[3].decode(), self._parts[1])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, usually called ``.tfs``: complete or not at all."""
        write_bytes(path, self.data)


def open_signal(path: str | os.PathLike[str]) -> CompressedSignal:
    """Compressed signals from their file; a damaged one is refused."""
    if not Path(path).is_file():
        raise InputError(f"{path} is not a file. Give the path of a .tfs file.")
    return CompressedSignal(Path(path).read_bytes(), os.fspath(path))


def compress_signal(
    x: Any,
    *,
    psnr: float | None = None,
    size: int | None = None,
    method: str = "auto",
    rate: int | None = None,
    names: Sequence[str] | None = None,
) -> CompressedSignal:
    """Signals in few bytes, for a quality or for a size.

    As in :func:`compress_image`, coefficients are rounded to multiples of a step, which is searched, and coded by an
    arithmetic coder.

    Parameters
    ----------
    x : array of shape (d,) or (c, d)
        One signal, or several in the same units: what one is like tells about the next, as in stereo sound.
    psnr : float, optional
        Quality to reach, in decibels: the range of the signals over the root of the mean squared error. With neither
        this nor `size`: 40.
    size : int, optional
        Bytes the file may have, used for the best quality.
    method : {"auto", "lapped", "wavelet"}, default="auto"
        Cosines under windows of 1024 numbers that overlap, which suit sound; wavelets, which suit steps; or the better.
    rate : int, optional
        Numbers a second, kept in the file.
    names : sequence of str, optional
        Of the signals, kept in the file.

    Returns
    -------
    CompressedSignal
        With ``decode()``, ``save(path)``, ``data``, ``size``, ``psnr``, ``method``.

    References
    ----------
    Princen & Bradley (1986), *IEEE Trans. Acoustics, Speech and Signal Processing* 34, 1153-1161.

    Examples
    --------
    >>> from twofold.signals import compress_signal
    >>> t = np.arange(8000) / 8000
    >>> x = (9000 * np.sin(2 * np.pi * 440 * t) * np.exp(-3 * t)).astype(np.int16)
    >>> small = compress_signal(x, psnr=50, rate=8000)
    >>> small.size < x.nbytes / 20, small.decode().dtype, small.method
    (True, dtype('int16'), 'lapped')
    """
    X = np.atleast_2d(check_signals(x))
    given = np.asarray(x).dtype
    if X.ndim != 2 or len(X) > MOST or given.name not in DTYPES:
        raise InputError(f"x has shape {X.shape} of {given}; a file holds one signal (d,), or (c, d) with c <= {MOST}.")
    if method not in ("auto", *METHODS):
        raise InputError(f'method="{method}": choose "auto", "lapped" or "wavelet".')
    check_target(psnr, size)
    if given.kind in "iu" and given.itemsize <= 2:
        X = X.astype(np.float32)  # holds them exactly
    said = json.dumps([f"signal {i + 1}" for i in range(len(X))] if names is None else list(names)).encode()
    head = HEAD.pack(MAGIC, VERSION, rate or 0, DTYPES.index(given.name), len(said)) + said
    head += CHECK.pack(zlib.crc32(head))
    goal = USUAL if psnr is None and size is None else psnr
    found = compress_best(X, goal, size, METHODS if method == "auto" else (method,), "signal", len(head))
    return CompressedSignal(head + found.data)
