"""Images and signals in few bytes: a transform that leaves few large numbers, rounding, and a coder that makes small
ones cheap.

    c = transform(channel)     q = round(c / step)     file = coded(q)     PSNR = 10 log₁₀(peak² / mean squared error)

One number decides: the larger the step, the shorter the file and the larger the error. It is searched for the target.
Signals are like an image with a signal in each row, in cosines under overlapping windows; the extra bytes of their file
hold the labels, as JSON: numbers a second, dtype, and names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.core.files.atomic import write_bytes
from twofold.metrics.image import find_peak, psnr
from twofold.signals import tfi_file
from twofold.signals.images.channels import cast_values, check_image, join_channels, split_channels
from twofold.signals.thresholding import check_signals

MAX_STEPS = 1 << 30  # of the largest coefficient
DEFAULT_IMAGE_PSNR = 36.0  # dB: hard to tell from the original
DEFAULT_SIGNAL_PSNR = 40.0  # dB: of sound, some 30 dB of signal over error
SIGNAL_METHODS = "lapped", "wavelet"
MAX_SIGNALS = 255  # in a file
DB_PER_OCTAVE = 20 * np.log10(2)  # by which PSNR falls when the error doubles
STEP_TOLERANCE = 0.002  # octaves of the step, about 0.01 dB or 0.1 % of the bytes


@dataclass(frozen=True)
class CompressedFile:
    """The bytes of a compressed file: the base of `CompressedImage` and `CompressedSignal`."""

    data: bytes = field(repr=False)
    name: str = field(default="the compressed data", repr=False, compare=False)  # in messages

    magic: ClassVar[bytes]
    noun: ClassVar[str]

    def __post_init__(self) -> None:
        _ = self._head  # refuses a damaged file

    @cached_property
    def _head(self) -> tfi_file.Head:
        return tfi_file.read_head(self.data, self.name, self.magic, self.noun)

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def psnr(self) -> float:
        return self._head.psnr

    @property
    def method(self) -> str:
        return tfi_file.STORED[self._head.method]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._head.shape

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, complete or not at all."""
        write_bytes(path, self.data)


@dataclass(frozen=True)
class CompressedImage(CompressedFile):
    """A compressed image, as the bytes of its file.

    Attributes
    ----------
    data : bytes
        The whole file.
    size : int
        Its bytes.
    psnr : float
        Against the original, measured when it was made, in decibels; infinite if it is exact.
    method : {"dct", "wavelet", "pca"}
    bits_per_pixel : float
    shape : tuple of int
    dtype : numpy.dtype
    """

    name: str = field(default="the compressed image", repr=False, compare=False)

    magic, noun = b"TFI", "an image"

    def __repr__(self) -> str:
        return f"<CompressedImage {self.shape} {self.dtype}: {self.size} bytes, {self.psnr:.2f} dB, {self.method}>"

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(tfi_file.DTYPES[self._head.dtype])

    @property
    def bits_per_pixel(self) -> float:
        return 8 * self.size / (self.shape[0] * self.shape[1])

    def decode(self) -> np.ndarray:
        """The image, of the shape and dtype it had."""
        return tfi_file.decode(self._head, self.data, self.name)


def open_image(path: str | os.PathLike[str]) -> CompressedImage:
    """A compressed image from its file; a damaged one is refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from twofold.signals import compress_image, open_image
    >>> image = np.add.outer(np.arange(40), np.arange(60)).astype(np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compress_image(image).save(pathlib.Path(folder) / "ramp.tfi")
    ...     again = open_image(pathlib.Path(folder) / "ramp.tfi")
    >>> again.decode().shape
    (40, 60)
    """
    return CompressedImage(read_file(path, ".tfi"), os.fspath(path))


def read_file(path: str | os.PathLike[str], ending: str) -> bytes:
    if not Path(path).is_file():
        raise InputError(f"{path} is not a file. Give the path of a {ending} file.")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


class Trial:
    """An image in the coefficients of one method; `quality`, `size` and `file` depend on the quantization step 2^x."""

    def __init__(self, image: np.ndarray, channels: list[np.ndarray], method: str, extra: bytes = b""):
        self.image, self.method = image, method
        self.shape, self.dtype = channels[0].shape, channels[0].dtype
        self.colors = image if image.ndim == 2 else image[..., : 3 if image.shape[2] >= 3 else 1]
        self.atoms = tfi_file.learn_atoms(method, channels)
        transform = tfi_file.choose_transform(method, self.atoms)
        self.shapes = transform.shapes(self.shape)
        self.coefficients = [np.concatenate([c.ravel() for c in transform.planes(channel)]) for channel in channels]
        self.extra = tfi_file.pack_alpha(image[..., -1]) if image.ndim == 3 and image.shape[2] in (2, 4) else extra
        self.peak = find_peak(self.colors)
        top = max(float(np.abs(c).max()) for c in self.coefficients)
        exact = self.peak / MAX_STEPS if image.dtype.kind == "f" else 1 / 16  # smaller steps change no integer
        self.steps = np.log2([max(top / MAX_STEPS, exact), max(2 * top, 2 * exact)])  # from the finest to all is zero

    def quantize(self, x: float) -> tfi_file.Quantized:
        return tfi_file.quantize(self.coefficients, self.shapes, 2.0**x, self.atoms)

    def quality(self, x: float) -> float:
        channels = tfi_file.decode_channels(self.quantize(x), self.method, self.shape, self.dtype)
        out = join_channels(channels, self.image)
        return psnr(self.colors, out[..., : self.colors.shape[-1]], self.peak)

    def size(self, x: float) -> int:
        coefficients = tfi_file.encode(self.quantize(x), self.method)
        return tfi_file.HEAD.size + len(coefficients) + len(self.extra) + tfi_file.CHECK.size

    def file(self, x: float, magic: bytes) -> bytes:
        found = self.quantize(x)
        head = tfi_file.Head(
            magic,
            tfi_file.VERSION,
            tfi_file.STORED.index(self.method),
            tfi_file.DTYPES.index(self.image.dtype.name),
            self.image.shape[2] if self.image.ndim == 3 else 0,
            self.image.shape[0],
            self.image.shape[1],
            2.0**x,
            self.quality(x),
            *found.shifts,
            len(found.shapes),
            len(self.extra),
        )
        return tfi_file.seal(head, tfi_file.encode(found, self.method), self.extra)


def _search_step(slack: Callable[[float], float], x: float, good: float, bad: float) -> float | None:
    """The x nearest to `bad` with slack(x) >= 0, which falls by about 1 an octave; None if slack(good) < 0."""
    first, sign = good, 1 if bad > good else -1
    while abs(bad - good) > STEP_TOLERANCE:
        spare = slack(x)
        good, bad = (x, bad) if spare >= 0 else (good, x)
        if 0 <= spare <= STEP_TOLERANCE:
            break
        x = x + sign * spare
        if not min(good, bad) < x < max(good, bad):
            x = (good + bad) / 2
    return None if good == first and slack(good) < 0 else good


def compress_image(
    image: Any, *, psnr: float | None = None, size: int | None = None, method: str = "auto"
) -> CompressedImage:
    """An image in few bytes, for a quality or for a size.

    Coefficients are rounded to multiples of a step, ``q = ±⌊|c| / step + 0.38⌋``, the same for all, and coded by an
    arithmetic coder that learns how large they are from those around them. The step is searched.

    Parameters
    ----------
    image : array of shape (h, w) or (h, w, c)
        Integers or floats; of 2 or 4 channels the last is alpha, which is kept exactly.
    psnr : float, optional
        Quality to reach, in decibels, with as few bytes as possible. The peak is the range of the integer type, or
        that of the image if it holds floats. With neither this nor `size`: 36.
    size : int, optional
        Bytes the file may have, used for the best quality.
    method : {"auto", "dct", "wavelet", "pca"}, default="auto"
        Cosines in blocks of 8 x 8, the 9/7 wavelet, or the principal directions of the image's own blocks, which are
        stored with it; auto takes the best of the three.

    Returns
    -------
    CompressedImage
        With ``decode()``, ``save(path)``, ``data``, ``size``, ``psnr``, ``method``, ``bits_per_pixel``.

    References
    ----------
    Wallace (1992), *IEEE Trans. Consumer Electronics* 38, xviii-xxxiv. Antonini, Barlaud, Mathieu & Daubechies (1992),
    *IEEE Trans. Image Processing* 1, 205-220.

    Examples
    --------
    >>> from sklearn.datasets import load_sample_image
    >>> from twofold.signals import compress_image
    >>> image = load_sample_image("flower.jpg")[100:228, 200:328]
    >>> small = compress_image(image, psnr=36)
    >>> error = np.mean((small.decode().astype(float) - image) ** 2)
    >>> bool(10 * np.log10(255**2 / error) >= 36), small.size < image.nbytes / 7
    (True, True)
    """
    image = _check_dtype(image)
    if method not in ("auto", *tfi_file.METHODS):
        raise InputError(f'method="{method}": choose "auto", "dct", "wavelet" or "pca".')
    check_target(psnr, size)
    return compress_best(image, psnr, size, tfi_file.METHODS if method == "auto" else (method,))


def check_target(psnr: float | None, size: int | None) -> None:
    if psnr is not None and size is not None:
        raise InputError("psnr and size both set the target. Give one of them.")
    if psnr is not None and not psnr > 0:
        raise InputError(f"⟨psnr={psnr!r}⟩: a quality is a number of decibels > 0, such as 36.")
    if size is not None and not size >= 1:
        raise InputError(f"⟨size={size!r}⟩: a file has one byte or more. Give a number of bytes, such as 40_000.")


def compress_best(
    image: np.ndarray,
    psnr: float | None,
    size: int | None,
    methods: tuple[str, ...],
    kind: type[Any] = CompressedImage,
    extra: bytes = b"",
) -> Any:
    """By the best of the methods: the fewest bytes for a quality, or the best quality for a size."""
    channels, noun = split_channels(image), kind.noun.split()[-1]
    files, limits = list[CompressedFile](), list[float]()
    for name in methods:
        trial = Trial(image, channels, name, extra)
        if size is None:
            goal = DEFAULT_IMAGE_PSNR if psnr is None else float(psnr)
            x = _find_step_for_quality(trial, goal)
            limits.append(trial.quality(trial.steps[0]) if x is None else np.inf)
        else:
            x = _find_step_for_size(trial, size)
            limits.append(trial.size(trial.steps[1]) if x is None else 0)
        if x is not None:
            files.append(kind(trial.file(x, kind.magic)))
    if files:
        return min(files, key=lambda file: (file.size, -file.psnr) if size is None else (-file.psnr, file.size))
    if size is None:
        raise InputError(f"⟨psnr={psnr}⟩: the best for this {noun} is {max(limits):.1f} dB. Ask for less.")
    raise InputError(f"⟨size={size}⟩: the smallest file of this {noun} has {min(limits):.0f} bytes. Allow more.")


def _check_dtype(image: Any) -> np.ndarray:
    image = check_image(image)
    if image.dtype.name not in tfi_file.DTYPES:
        raise InputError(f"the image holds {image.dtype}; a file holds {', '.join(tfi_file.DTYPES)}. Convert it first.")
    return image.astype(image.dtype.newbyteorder("="), copy=False)


def _find_step_for_quality(trial: Trial, goal: float) -> float | None:
    fine, coarse = trial.steps
    guess = np.log2(trial.peak) + (10.8 - goal) / DB_PER_OCTAVE  # an error spread over a step: its square / 12
    start = guess if fine < guess < coarse else (fine + coarse) / 2

    def slack(x: float) -> float:
        found = trial.quality(x)
        return found if found == np.inf else (found - goal) / DB_PER_OCTAVE

    return _search_step(slack, start, fine, coarse)


def _find_step_for_size(trial: Trial, goal: float) -> float | None:
    fine, coarse = trial.steps
    found = _search_step(lambda x: np.log2(goal / trial.size(x)), (fine + coarse) / 2, coarse, fine)
    exact = found is not None and trial.quality(found) == np.inf
    return _find_step_for_quality(trial, np.inf) if exact else found  # more bytes would gain nothing


def rate_distortion(image: Any) -> dict[str, dict[str, np.ndarray]]:
    """Points of the curve of quality against size, for each method.

    Parameters
    ----------
    image : array of shape (h, w) or (h, w, c)

    Returns
    -------
    curves : dict of method to {"bits_per_pixel": array, "psnr": array}
        From coarse to fine, the step halved from point to point.

    Examples
    --------
    >>> from sklearn.datasets import load_sample_image
    >>> from twofold.signals import rate_distortion
    >>> curves = rate_distortion(load_sample_image("china.jpg")[:96, :96])
    >>> sorted(curves), bool((np.diff(curves["dct"]["psnr"]) > 0).all())
    (['dct', 'pca', 'wavelet'], True)
    """
    image = _check_dtype(image)
    channels, curves = split_channels(image), {}
    for method in tfi_file.METHODS:
        trial = Trial(image, channels, method)
        steps = np.log2(trial.peak) - np.arange(1.0, 8.0)
        bits = [8 * trial.size(x) / (image.shape[0] * image.shape[1]) for x in steps]
        curves[method] = {"bits_per_pixel": np.array(bits), "psnr": np.array([trial.quality(x) for x in steps])}
    return curves


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
        end, c = len(self.data) - tfi_file.CHECK.size, self.shape[0]
        try:
            rate, dtype, names = json.loads(self.data[end - self._head.extra : end])
            fits = len(names) == c and all(isinstance(n, str) for n in names) and dtype in tfi_file.DTYPES
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
        return cast_values(tfi_file.decode(self._head, self.data, self.name), self._labels[1])


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
    if X.ndim != 2 or len(X) > MAX_SIGNALS or given.name not in tfi_file.DTYPES:
        raise InputError(f"x has shape {X.shape} of {given}; a file holds (d,), or (c, d) with c <= {MAX_SIGNALS}.")
    if method not in ("auto", *SIGNAL_METHODS):
        raise InputError(f'method="{method}": choose "auto", "lapped" or "wavelet".')
    check_target(psnr, size)
    if given.kind in "iu" and given.itemsize <= 2:
        X = X.astype(np.float32)  # holds them exactly
    labels = [f"signal {i + 1}" for i in range(len(X))] if names is None else list(names)
    extra = json.dumps([rate or None, given.name, labels]).encode()
    goal = DEFAULT_SIGNAL_PSNR if psnr is None and size is None else psnr
    return compress_best(X, goal, size, SIGNAL_METHODS if method == "auto" else (method,), CompressedSignal, extra)
