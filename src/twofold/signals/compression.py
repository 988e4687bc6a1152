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
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.signals.images.channels import cast_values
from twofold.signals.images.compress import CompressedFile, CompressedImage, check_target, compress_best, read_file
from twofold.signals.images.tfi_file import CHECK, DTYPES, Head
from twofold.signals.thresholding import check_signals

METHODS = "lapped", "wavelet"
MAGIC, VERSION = b"TFS", 1
HEAD = struct.Struct("<3sBIBH")
MAX_SIGNALS = 255  # in a file
DEFAULT_PSNR = 40.0  # dB: of sound, some 30 dB of signal over error


class Parts(NamedTuple):
    """The contents of a file."""

    rate: int | None
    dtype: np.dtype
    names: list[str]
    image: CompressedImage  # the signals as its rows


@dataclass(frozen=True)
class CompressedSignal(CompressedFile):
    """Compressed signals, as the bytes of their file.

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

    name: str = field(default="the compressed signal", repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<CompressedSignal {self.shape}: {self.size} bytes, {self.psnr:.2f} dB, {self.method}>"

    @cached_property
    def _parts(self) -> Parts:
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
        image = CompressedImage(self.data[end + CHECK.size :], self.name)
        try:
            names = json.loads(self.data[HEAD.size : end])
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or len(names) != image.shape[0] or not all(isinstance(n, str) for n in names):
            raise InputError(f"{self.name} is damaged: its names are not those of {image.shape[0]} signals.")
        return Parts(rate or None, np.dtype(DTYPES[dtype]), names, image)

    @property
    def _head(self) -> Head:
        return self._parts.image._head

    @property
    def rate(self) -> int | None:
        return self._parts.rate

    @property
    def names(self) -> list[str]:
        return list(self._parts.names)

    def decode(self) -> np.ndarray:
        """The signals (c, d), of the dtype they had."""
        return cast_values(self._parts.image.decode(), self._parts.dtype)


def open_signal(path: str | os.PathLike[str]) -> CompressedSignal:
    """Compressed signals from their file; a damaged one is refused."""
    return CompressedSignal(read_file(path, ".tfs"), os.fspath(path))


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
    if X.ndim != 2 or len(X) > MAX_SIGNALS or given.name not in DTYPES:
        raise InputError(
            f"x has shape {X.shape} of {given}; a file holds one signal (d,), or (c, d) with c <= {MAX_SIGNALS}."
        )
    if method not in ("auto", *METHODS):
        raise InputError(f'method="{method}": choose "auto", "lapped" or "wavelet".')
    check_target(psnr, size)
    if given.kind in "iu" and given.itemsize <= 2:
        X = X.astype(np.float32)  # holds them exactly
    encoded_names = json.dumps([f"signal {i + 1}" for i in range(len(X))] if names is None else list(names)).encode()
    head = HEAD.pack(MAGIC, VERSION, rate or 0, DTYPES.index(given.name), len(encoded_names)) + encoded_names
    head += CHECK.pack(zlib.crc32(head))
    goal = DEFAULT_PSNR if psnr is None and size is None else psnr
    found = compress_best(X, goal, size, METHODS if method == "auto" else (method,), "signal", len(head))
    return CompressedSignal(head + found.data)
