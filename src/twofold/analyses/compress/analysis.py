"""An image in fewer bytes, by the best of three bases; beside it what WebP and JPEG 2000 make of as many bytes.

The files, which end in `.tfi`, are for teaching: only twofold reads them. `.webp` and `.jp2` are for everyone. Signals
go to `.tfs` files, by the better of two bases, beside what gzip makes of them without loss.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Unpack

import numpy as np
import polars as pl
from PIL import Image, features

from twofold.analyses._tables import Reading, data_in_code, in_call
from twofold.analyses._targets import Writer
from twofold.analyses.answer import DRAWN, Answer, Grid, analysis
from twofold.analyses.common.images import (
    ImageAnswer,
    as_image,
    decibels,
    image_in_code,
    size_facts,
    size_line,
    split_alpha,
    with_alpha,
)
from twofold.analyses.common.signals import (
    SignalAnswer,
    as_signals,
    is_signal,
    length_facts,
    length_line,
    refuse_reading,
)
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError
from twofold.io.images import Picture
from twofold.io.recordings import Recording
from twofold.io.tables.read import missing_message
from twofold.io.tables.table import quoted, shell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("dct", "wavelet", "pca")
NAMES = {"dct": "DCT blocks", "wavelet": "wavelets", "pca": "PCA of patches"}
SIGNAL_NAMES = {"lapped": "lapped cosines", "wavelet": "wavelets"}
PACKED = (".tfi", ".tfs")
STANDARDS = {".webp": "WebP", ".jp2": "JPEG 2000"}
CODECS = {".webp": "webp", ".jp2": "jpg_2000"}  # as Pillow calls them
BOXES = 120  # bytes of a .jp2 file beside its pixels, about
TRIES = 6  # searches for the size of a .jp2 file


class Row(NamedTuple):
    """One way to write the image."""

    method: str
    bytes: int
    ratio: float
    bits_per_pixel: float
    psnr: float

    def cells(self) -> list[str]:
        return [self.method, f"{self.bytes:,}", f"{self.ratio:.1f}", f"{self.bits_per_pixel:.3f}", decibels(self.psnr)]


@dataclass(kw_only=True, repr=False, eq=False)
class Compression(Answer):
    """A compressed image."""

    before: Picture
    tried: dict[str, Any]  # method -> twofold.signals.CompressedImage, the best first
    standards: dict[str, bytes]  # ending -> a file of as many bytes

    endings: ClassVar[tuple[str, ...]] = (".tfi", *STANDARDS, *DRAWN)

    @property
    def image(self) -> np.ndarray:
        """What comes back, of the type that was given."""
        return self.best.decode()

    @property
    def method(self) -> str:
        return next(iter(self.tried))

    @property
    def best(self) -> Any:
        return self.tried[self.method]

    @property
    def title(self) -> str:
        return (
            f"{size_line(self.before)} → {self.best.size:,} bytes by {NAMES[self.method]}, {decibels(self.best.psnr)}"
        )

    @cached_property
    def rows(self) -> list[Row]:
        made = [Row(name, one.size, *self._rates(one.size), one.psnr) for name, one in self.tried.items()]
        for ending, data in self.standards.items():
            made.append(Row(ending, len(data), *self._rates(len(data)), quality(self.before, data)))
        return made

    def _rates(self, size: int) -> tuple[float, float]:
        h, w = self.before.pixels.shape[:2]
        return self.baseline["bytes"] / size, 8 * size / (h * w)

    @cached_property
    def table(self) -> pl.DataFrame:
        return pl.DataFrame(self.rows, Row._fields, orient="row")

    def grids(self) -> list[Grid]:
        rows = [row._replace(method=(NAMES | STANDARDS)[row.method]).cells() for row in self.rows]
        return [Grid(["method", "bytes", "ratio", "bits a pixel", "PSNR"], rows, right=(1, 2, 3, 4))]

    def lines(self) -> list[str]:
        on_disk = Path(self.source)
        file = f", {self.source} {on_disk.stat().st_size:,}" if on_disk.is_file() else ""
        return [f"the pixels alone take {self.baseline['bytes']:,} bytes{file}"]

    def facts(self) -> dict[str, Any]:
        rows = [row._asdict() for row in self.rows]
        own = len(self.tried)
        return size_facts(self.before) | {"method": self.method, "methods": rows[:own], "same_size": rows[own:]}

    def plot(self) -> Figure:
        from twofold.plots.models.images import rate_distortion_figure
        from twofold.signals.images.compress import rate_distortion

        found = rate_distortion(with_alpha(self.before))
        panels = [
            ("original", self.before.pixels),
            (f"{self.best.size:,} bytes, {decibels(self.best.psnr)}", split_alpha(self.image)[0]),
        ]
        marks = {NAMES[name]: (one.bits_per_pixel, one.psnr) for name, one in self.tried.items()}
        return rate_distortion_figure({NAMES[name]: found[name] for name in METHODS}, marks, panels, self.title)

    def writer(self, path: Path) -> Writer:
        ending = path.suffix.lower()
        if ending in DRAWN:
            return super().writer(path)
        if ending != ".tfi" and ending not in self.standards:
            raise InputError(
                f"{path}: {STANDARDS[ending]} cannot hold this image in {self.best.size:,} bytes. Allow more, or use "
                ".tfi."
            )
        data = self.best.data if ending == ".tfi" else self.standards[ending]
        return lambda to: to.write_bytes(data)


@dataclass(kw_only=True, repr=False, eq=False)
class Unpacked(ImageAnswer):
    """The image in a .tfi file."""

    packed: Any

    @property
    def title(self) -> str:
        return size_line(self.after)

    @cached_property
    def table(self) -> pl.DataFrame:
        row = [self.packed.method, self.packed.size, self.packed.bits_per_pixel, self.packed.psnr]
        return pl.DataFrame([row], ["method", "bytes", "bits_per_pixel", "psnr"], orient="row")

    def grids(self) -> list[Grid]:
        one = self.packed
        row = [NAMES[one.method], f"{one.size:,}", f"{one.bits_per_pixel:.3f}", decibels(one.psnr)]
        return [Grid(["method", "bytes", "bits a pixel", "PSNR when made"], [row], right=(1, 2, 3))]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"method": self.packed.method}

    def plot(self) -> Figure:
        from twofold.plots.models.images import comparison_figure

        return comparison_figure([("", self.after.pixels)], self.title)


@dataclass(kw_only=True, repr=False, eq=False)
class SignalCompression(Answer):
    """Compressed signals."""

    before: Recording
    tried: dict[str, Any]  # method -> twofold.signals.CompressedSignal, the best first

    endings: ClassVar[tuple[str, ...]] = (".tfs", *DRAWN)

    @property
    def signals(self) -> np.ndarray:
        """What comes back (c,d), of the type that was given."""
        return self.best.decode()

    @property
    def best(self) -> Any:
        return next(iter(self.tried.values()))

    @property
    def title(self) -> str:
        made = f"{self.best.size:,} bytes by {SIGNAL_NAMES[self.best.method]}, {decibels(self.best.psnr)}"
        return f"{length_line(self.before)} → {made}"

    @cached_property
    def table(self) -> pl.DataFrame:
        sizes = [(name, one.size, one.psnr) for name, one in self.tried.items()]
        sizes.append(("gzip", self.baseline["bytes"], np.inf))
        raw, count = self.before.signals.nbytes, self.before.signals.size
        rows = [(name, size, raw / size, 8 * size / count, psnr) for name, size, psnr in sizes]
        return pl.DataFrame(rows, ["method", "bytes", "ratio", "bits_per_number", "psnr"], orient="row")

    def grids(self) -> list[Grid]:
        names = SIGNAL_NAMES | {"gzip": "gzip, without loss"}
        rows = [
            [names[method], f"{size:,}", f"{ratio:.1f}", f"{bits:.3f}", decibels(psnr)]
            for method, size, ratio, bits, psnr in self.table.iter_rows()
        ]
        return [Grid(["method", "bytes", "ratio", "bits a number", "PSNR"], rows, right=(1, 2, 3, 4))]

    def lines(self) -> list[str]:
        return [f"the numbers alone take {self.before.signals.nbytes:,} bytes"]

    def facts(self) -> dict[str, Any]:
        return length_facts(self.before) | {"method": self.best.method, "methods": self.table.to_dicts()}

    def plot(self) -> Figure:
        from twofold.plots.models.signals import compare_signals_figure

        return compare_signals_figure(
            self.before.signals, self.signals, self.before.names, self.before.rate, self.title
        )

    def writer(self, path: Path) -> Writer:
        data = self.best.data
        return super().writer(path) if path.suffix.lower() in DRAWN else lambda to: to.write_bytes(data)


@dataclass(kw_only=True, repr=False, eq=False)
class UnpackedSignals(SignalAnswer):
    """The signals in a .tfs file."""

    packed: Any

    @property
    def title(self) -> str:
        return length_line(self.after)

    @cached_property
    def table(self) -> pl.DataFrame:
        row = [self.packed.method, self.packed.size, self.packed.psnr]
        return pl.DataFrame([row], ["method", "bytes", "psnr"], orient="row")

    def grids(self) -> list[Grid]:
        one = self.packed
        row = [SIGNAL_NAMES[one.method], f"{one.size:,}", decibels(one.psnr)]
        return [Grid(["method", "bytes", "PSNR when made"], [row], right=(1, 2))]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"method": self.packed.method}

    def plot(self) -> Figure:
        from twofold.plots.models.signals import compare_signals_figure

        return compare_signals_figure(self.before.signals, self.signals, self.after.names, self.after.rate, self.title)


@analysis
def compress(
    data: Any,
    *,
    psnr: float | None = None,
    size: int | None = None,
    method: str = "auto",
    progress: Progress = SILENT,
    **reading: Unpack[Reading],
) -> Compression | Unpacked | SignalCompression | UnpackedSignals:
    """Put an image or signals in fewer bytes; or get them back from a `.tfi` or `.tfs` file.

    Parameters
    ----------
    data : path, array or frame
        An image: a file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel.
        Signals: a .wav file, one column of a table, a .npy file, an array (d,), or a frame. A file that ends in `.tfi`
        or `.tfs` is decoded, and takes no option.
    psnr : float or None
        Quality to reach, in dB. With neither this nor `size`: 36, hard to tell from the original; of signals 40, where
        the peak is their range.
    size : int or None
        Bytes to stay under, used for the best quality.
    method : {"auto", "dct", "wavelet", "pca"}, of signals {"auto", "lapped", "wavelet"}
        Cosines in blocks, wavelets, or the principal directions of the image's own blocks; cosines under overlapping
        windows; auto tries all.
    progress : Progress
        Told what goes on.
    missing, drop, columns
        How a table of signals is read, as everywhere.

    Returns
    -------
    Compression, Unpacked, SignalCompression or UnpackedSignals
        ``image`` or ``signals`` holds what comes back.

    Examples
    --------
    >>> ramp = np.add.outer(np.arange(48), np.arange(64)).astype(np.uint8)
    >>> answer = compress(ramp, psnr=40, method="dct")
    >>> bool(answer.figures["bytes"] < ramp.nbytes / 5), bool(answer.figures["psnr"] >= 40)
    (True, True)
    """
    if psnr is not None and size is not None:
        raise InputError("--psnr and --size both set the target. Give one of them.")
    if is_packed(data):
        if psnr is not None or size is not None or method != "auto":
            raise InputError(
                f"{data} is compressed already: --psnr, --size and --method are for images. Leave them out."
            )
        return unpack(os.fspath(data), progress)
    signals = is_signal(data)
    known = tuple(SIGNAL_NAMES) if signals else METHODS
    if method not in ("auto", *known):
        raise InputError(f"--method {method}: choose auto, {', '.join(known[:-1])} or {known[-1]}.")
    if signals:
        return compress_signals(data, psnr, size, known if method == "auto" else (method,), progress, reading)
    refuse_reading(reading)
    with progress.doing("reading"):
        before = as_image(data)
        from twofold.signals.images.compress import USUAL

    notes = before.notes
    if psnr is None and size is None:
        psnr = USUAL
        notes.append(f"aimed at {USUAL:g} dB, hard to tell from the original (--psnr or --size sets the target)")
    if "icc_profile" in before.info:
        notes.append("the color profile is not kept")
    pixels = with_alpha(before)
    with progress.share("compressing") as tell:
        from twofold.signals.images.compress import compress_image

        names = {one: NAMES[one] for one in (METHODS if method == "auto" else (method,))}
        tried = attempts(lambda one: compress_image(pixels, psnr=psnr, size=size, method=one), size, names, notes, tell)
    best = next(iter(tried.values()))
    with progress.doing("comparing with WebP and JPEG 2000"):
        standards = {ending: file for ending in STANDARDS if (file := of_size(ending, pixels, best.size))}
    raw = pixels.nbytes
    return Compression(
        source=before.source,
        figures={
            "what": "bytes of the file, and PSNR in dB of the image in it",
            "bytes": best.size,
            "bits_per_pixel": best.bits_per_pixel,
            "psnr": best.psnr,
        },
        baseline={
            "method": "the pixels alone",
            "bytes": raw,
            "bits_per_pixel": best.bits_per_pixel * raw / best.size,
            "psnr": np.inf,
        },
        notes=notes,
        call={"verb": "compress", "data": image_in_code(data), "psnr": psnr, "size": size, "method": method},
        before=before,
        tried=tried,
        standards=standards,
    )


def compress_signals(
    data: Any,
    psnr: float | None,
    size: int | None,
    methods: tuple[str, ...],
    progress: Progress,
    reading: Reading,
) -> SignalCompression:
    """Signals by the better method, all in one file."""
    with progress.doing("reading"):
        before = as_signals(data, **reading)
        from twofold.signals.compression import USUAL, compress_signal

    if before.table is not None and len(before.names) > 1:
        raise InputError(
            f"{before.source} has {len(before.names)} columns, which need not have one unit: {quoted(before.names)}. "
            f"Name one: --columns {shell(before.names[0])}."
        )
    notes = before.notes
    if psnr is None and size is None:
        psnr = USUAL
        notes.append(f"aimed at {USUAL:g} dB of the signal's range (--psnr or --size sets the target)")

    def make(method: str) -> Any:
        options: Any = {"rate": before.rate, "names": before.names}
        return compress_signal(before.signals, psnr=psnr, size=size, method=method, **options)

    with progress.share("compressing") as tell:
        tried = attempts(make, size, {one: SIGNAL_NAMES[one] for one in methods}, notes, tell)
    best, packed = next(iter(tried.values())), len(gzip.compress(before.signals.tobytes(), 9))
    return SignalCompression(
        source=before.source,
        figures={"what": "bytes of the file, and PSNR in dB of what is in it", "bytes": best.size, "psnr": best.psnr},
        baseline={"method": "gzip, without loss", "bytes": packed, "psnr": np.inf},
        notes=notes,
        call={
            "verb": "compress",
            "data": data_in_code(data),
            "psnr": psnr,
            "size": size,
            "method": methods[0] if len(methods) == 1 else "auto",
            **in_call(reading),
        },
        before=before,
        tried=tried,
    )


def is_packed(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in PACKED


def unpack(path: str, progress: Progress) -> Unpacked | UnpackedSignals:
    """The image in a .tfi file, or the signals in a .tfs file."""
    if not Path(path).is_file():
        raise InputError(f"{path} is a folder. Name a file in it." if Path(path).is_dir() else missing_message(path))
    if path.lower().endswith(".tfs"):
        return unpack_signals(path, progress)
    with progress.doing("decoding"):
        from twofold.signals.images.compress import open_image

        packed = open_image(path)
        pixels, alpha = split_alpha(packed.decode())
    found = Picture(pixels, alpha, source=path)
    return Unpacked(
        source=path,
        figures={"what": "PSNR in dB, when the file was made", "bytes": packed.size, "psnr": packed.psnr},
        baseline={"method": "the pixels alone", "bytes": pixels.nbytes, "psnr": np.inf},
        call={"verb": "compress", "data": repr(path)},
        before=found,
        after=found,
        packed=packed,
    )


def unpack_signals(path: str, progress: Progress) -> UnpackedSignals:
    with progress.doing("decoding"):
        from twofold.signals.compression import open_signal

        packed = open_signal(path)
        found = Recording(packed.decode(), packed.names, packed.rate, source=path)
    return UnpackedSignals(
        source=path,
        figures={"what": "PSNR in dB, when the file was made", "bytes": packed.size, "psnr": packed.psnr},
        baseline={"method": "the numbers alone", "bytes": found.signals.nbytes, "psnr": np.inf},
        call={"verb": "compress", "data": repr(path)},
        before=found,
        after=found,
        packed=packed,
    )


def attempts(
    make: Callable[[str], Any], size: int | None, methods: dict[str, str], notes: list[str], tell: Any
) -> dict[str, Any]:
    """What each method makes of it, the best first: the fewest bytes, or the best quality under a limit."""
    made, refused = dict[str, Any](), list[str]()
    for i, (method, name) in enumerate(methods.items()):
        try:
            made[method] = make(method)
        except InputError as error:
            refused.append(str(error).replace("psnr=", "--psnr ").replace("size=", "--size "))
            notes.append(f"{name}: {refused[-1]}")
        if tell is not None:
            tell((i + 1) / len(methods))
    if not made:
        raise InputError(refused[0])
    order = sorted(made, key=lambda name: made[name].size if size is None else -made[name].psnr)
    return {name: made[name] for name in order}


# --- the same size in formats that everyone reads ------------------------------------------------------------


def of_size(ending: str, pixels: np.ndarray, size: int) -> bytes | None:
    """The best file of that format with at most so many bytes; None where there is none, or no codec in Pillow."""
    if not features.check(CODECS[ending]) or (ending == ".webp" and pixels.dtype != np.uint8):
        return None
    files = webps if ending == ".webp" else jp2s
    try:
        fitting = [data for data in files(Image.fromarray(pixels), pixels.nbytes, size) if len(data) <= size]
    except (
        OSError,
        TypeError,
        ValueError,
    ):  # what a codec cannot do: an image of few pixels, 16 bits in three channels
        return None
    return fitting[-1] if fitting else None


def webps(image: Image.Image, raw: int, size: int) -> Iterator[bytes]:
    """Files of ever better quality that fit, found by halving: sizes rise with the quality."""
    low, high = -1, 101
    while high - low > 1:
        middle = (low + high) // 2
        data = encoded(image, "WEBP", quality=middle)
        fits = len(data) <= size
        low, high = (middle, high) if fits else (low, middle)
        if fits:
            yield data


def jp2s(image: Image.Image, raw: int, size: int) -> Iterator[bytes]:
    """Files of falling size, until one fits."""
    levels = min(6, int(np.log2(max(min(image.size), 1))) + 1)
    ratio = raw / max(size - BOXES, 1)
    for _ in range(TRIES):
        options = {"quality_mode": "rates", "quality_layers": [ratio], "irreversible": True, "num_resolutions": levels}
        data = encoded(image, "JPEG2000", **options)
        yield data
        if len(data) <= size:
            return
        ratio *= 1.02 * len(data) / size


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def quality(before: Picture, data: bytes) -> float:
    """PSNR of the image in a file."""
    from twofold.metrics import psnr

    with Image.open(io.BytesIO(data)) as image:
        mode = "RGB" if before.pixels.ndim == 3 else "L"
        after = np.asarray(image if before.peak > 255 else image.convert(mode))
    return psnr(before.pixels, after, before.peak)
