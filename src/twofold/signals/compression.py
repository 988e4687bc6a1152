"""Signals in few bytes: like an image with a signal in each row, in cosines under overlapping windows.

The extra bytes of the file hold the labels, as JSON: numbers a second, dtype, and names of the signals.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.signals.images.channels import cast_values
from twofold.signals.images.compress import CompressedFile, check_target, compress_best, read_file
from twofold.signals.images.tfi_file import CHECK, DTYPES, decode
from twofold.signals.thresholding import check_signals

METHODS = "lapped", "wavelet"
MAX_SIGNALS = 255  # in a file
DEFAULT_PSNR = 40.0  # dB: of sound, some 30 dB of signal over error


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

    magic, noun = b"TFS", "a signal"

    def __repr__(self) -> str:
        return f"<CompressedSignal {self.shape}: {self.size} bytes, {self.psnr:.2f} dB, {self.method}>"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._labels  # refuses damaged ones

    @cached_property
    def _labels(self) -> tuple[int | None, np.dtype, list[str]]:
        """Rate, dtype and names."""
        end, c = len(self.data) - CHECK.size, self.shape[0]
        try:
            rate, dtype, names = json.loads(self.data[end - self._head.extra : end])
            fits = len(names) == c and all(isinstance(n, str) for n in names) and dtype in DTYPES
        except (ValueError, TypeError, RecursionError):
            fits = False
        if not fits or not (rate is None or (isinstance(rate, int) and rate > 0)):
            raise InputError(f"{self.name} is damaged: its names are not those of {c} signals.")
        return rate, np.dtype(dtype), names

    @property
    def rate(self) -> int | None:
        return self._labels[0]

    @property
    def names(self) -> list[str]:
        return list(self._labels[2])

    def decode(self) -> np.ndarray:
        """The signals (c, d), of the dtype they had."""
        return cast_values(decode(self._head, self.data, self.name), self._labels[1])


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
    labels = [f"signal {i + 1}" for i in range(len(X))] if names is None else list(names)
    extra = json.dumps([rate or None, given.name, labels]).encode()
    goal = DEFAULT_PSNR if psnr is None and size is None else psnr
    return compress_best(X, goal, size, METHODS if method == "auto" else (method,), CompressedSignal, extra)
