"""An image in fewer bytes, by the best of three bases, compared with files of other formats of as many bytes.

The files, which end in `.tfi`, are for teaching: only twofold reads them. `.jpg`, `.webp`, `.jp2` and `.avif` are for
everyone. Signals go to `.tfs` files, by the better of two bases, compared with gzip, which loses nothing.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import polars as pl
from PIL import Image, features

from twofold.analyses.common.analysis import OneFile, Reading, Seed, analysis, list_planned_files
from twofold.analyses.common.answer import DRAWN, Answer, Grid
from twofold.analyses.common.images import ComparedAnswer, ImageAnswer, decibels, split_alpha, with_alpha
from twofold.analyses.common.signals import SignalAnswer, as_image_or_signals, check_planned, is_signal
from twofold.analyses.common.targets import Writer
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing, part
from twofold.io.images import Picture
from twofold.io.recordings import Recording
from twofold.io.tables.read import missing_message
from twofold.io.tables.table import quote_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STANDARDS = {".jpg": "JPEG", ".webp": "WebP", ".jp2": "JPEG 2000", ".avif": "AVIF"}
CODECS = {".jpg": "jpg", ".webp": "webp", ".jp2": "jpg_2000", ".avif": "avif"}  # names in Pillow
MAX_AVIF_PIXELS = 1_000_000  # of an image whose AVIF file is made without being asked for
JP2_HEADER_BYTES = 120  # of a .jp2 file beside its pixels, about
MAX_JP2_TRIES = 6
IMAGE_METHODS = {"dct": "DCT blocks", "wavelet": "wavelets", "pca": "PCA of patches"}
SIGNAL_METHODS = {"lapped": "lapped cosines", "wavelet": "wavelets"}
NAMES = IMAGE_METHODS | SIGNAL_METHODS | STANDARDS | {"gzip": "gzip, without loss"}
PACKED = (".tfi", ".tfs")
UNITS = {"": 1, "k": 1000, "m": 1_000_000, "ki": 1024, "mi": 1024**2}


def check_standards(image: Picture) -> None:
    """Refuse, before anything is computed, a format that cannot hold this image in any number of bytes."""
    for path in list_planned_files():
        ending = path.suffix.lower().replace(".jpeg", ".jpg")
        lacks = "16 bits" if image.peak > 255 and ending in STANDARDS and ending != ".jp2" else ""
        lacks = lacks or ("transparency" if image.transparent and ending == ".jpg" else "")
        if ending in STANDARDS and not features.check(CODECS[ending]):
            raise InputError(f"{path}: Pillow has no codec for {STANDARDS[ending]} here. Use .tfi, .png or another.")
        if lacks:
            raise InputError(f"{path}: {STANDARDS[ending]} cannot hold {lacks}, which the image has. Use .tfi or .jp2.")


def make_standard_file(ending: str, pixels: np.ndarray, size: int) -> bytes | None:
    """The best file of that format with at most `size` bytes; None without one, or without the codec in Pillow."""
    if not features.check(CODECS[ending]) or (ending != ".jp2" and pixels.dtype != np.uint8):
        return None
    try:
        image = Image.fromarray(drop_opaque(pixels) if ending == ".jpg" else pixels)
        if ending == ".jp2":
            return find_best_jp2(image, pixels.nbytes, size)
        tries = [find_best_quality(image, options, size) for options in QUALITY_OPTIONS[ending]]
        return max(filter(None, tries), key=lambda data: measure_quality(pixels, data), default=None)
    except (OSError, TypeError, ValueError):  # the codec refuses few pixels, transparency, or three channels of 16 bits
        return None


def drop_opaque(pixels: np.ndarray) -> np.ndarray:
    """The pixels without a channel of transparency that says nothing."""
    colors, alpha = split_alpha(pixels)
    return pixels if alpha is None or alpha.min() < 255 else colors


QUALITY_OPTIONS: dict[str, list[dict[str, Any]]] = {  # for each, the quality is searched
    ".jpg": [{"format": "JPEG", "optimize": True, "subsampling": one} for one in ("4:2:0", "4:4:4")],
    ".webp": [{"format": "WEBP"}],
    ".avif": [{"format": "AVIF"}],
}


def find_best_quality(image: Image.Image, options: dict[str, Any], size: int) -> bytes | None:
    """The file of the highest quality that fits, by bisection: size rises with quality."""
    best, low, high = None, -1, 101
    while high - low > 1:
        middle = (low + high) // 2
        data = encode(image, **options, quality=middle)
        if len(data) <= size:
            best, low = data, middle
        else:
            high = middle
    return best


def find_best_jp2(image: Image.Image, raw: int, size: int) -> bytes | None:
    """The first of ever smaller files that fits."""
    levels = min(6, int(np.log2(max(min(image.size), 1))) + 1)
    ratio = raw / max(size - JP2_HEADER_BYTES, 1)
    for _ in range(MAX_JP2_TRIES):
        options = {"quality_mode": "rates", "quality_layers": [ratio], "irreversible": True, "num_resolutions": levels}
        data = encode(image, "JPEG2000", **options, mct=int(image.mode in ("RGB", "RGBA")))
        if len(data) <= size:
            return data
        ratio *= 1.02 * len(data) / size
    return None


def encode(image: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def measure_quality(pixels: np.ndarray, data: bytes) -> float:
    """PSNR of the image in a file, without its transparency."""
    from twofold.metrics import psnr

    before, peak = split_alpha(pixels)[0], float(np.iinfo(pixels.dtype).max)
    with Image.open(io.BytesIO(data)) as image:
        after = np.asarray(image if peak > 255 else image.convert("RGB" if before.ndim == 3 else "L"))
    return psnr(before, after, peak)


@dataclass(kw_only=True, repr=False, eq=False)
class CompressionAnswer(Answer):
    """Files by several methods, the best first: the base of `Compression` and `SignalCompression`."""

    before: Any
    tried: dict[str, Any]  # method -> twofold.signals.CompressedImage or CompressedSignal
    raw_bytes: int
    units: int  # pixels, or numbers

    unit: ClassVar[str]

    @property
    def best(self) -> Any:
        return next(iter(self.tried.values()))

    @property
    def heading(self) -> str:
        return self.before.describe()

    @property
    def outcome(self) -> str:
        return f"{self.best.size:,} bytes by {NAMES[self.best.method]}, {decibels(self.best.psnr)}"

    def other_files(self) -> list[tuple[str, int, float]]:
        """Method, bytes and PSNR of the files that are compared with these."""
        raise NotImplementedError

    @cached_property
    def table(self) -> pl.DataFrame:
        files = [(method, one.size, one.psnr) for method, one in self.tried.items()] + self.other_files()
        rows = [(method, size, self.raw_bytes / size, 8 * size / self.units, psnr) for method, size, psnr in files]
        return pl.DataFrame(rows, ["method", "bytes", "ratio", f"bits_per_{self.unit}", "psnr"], orient="row")

    def grids(self) -> list[Grid]:
        rows = [
            [NAMES[method], f"{size:,}", f"{ratio:.1f}", f"{bits:.3f}", decibels(psnr)]
            for method, size, ratio, bits, psnr in self.table.iter_rows()
        ]
        return [Grid(["method", "bytes", "ratio", f"bits a {self.unit}", "PSNR"], rows, right=(1, 2, 3, 4))]

    def lines(self) -> list[str]:
        path = Path(self.source)
        file = f", {self.source} {path.stat().st_size:,}" if path.is_file() else ""
        return [f"the {self.unit}s alone take {self.raw_bytes:,} bytes{file}"]

    def facts(self) -> dict[str, Any]:
        return self.before.facts() | {"method": self.best.method, "methods": self.table.to_dicts()}

    def writer(self, path: Path) -> Writer:
        data = self.best.data
        return super().writer(path) if path.suffix.lower() in DRAWN else lambda to: to.write_bytes(data)


@dataclass(kw_only=True, repr=False, eq=False)
class Compression(CompressionAnswer):
    """A compressed image."""

    before: Picture
    standards: dict[str, bytes]  # ending -> a file of at most as many bytes

    unit = "pixel"
    endings: ClassVar[tuple[str, ...]] = (".tfi", *STANDARDS, ".jpeg", *DRAWN)

    @property
    def hint(self) -> str:
        name = Path(self.source).stem if Path(self.source).suffix else "photo"
        return f"add ⟨out={name}.tfi⟩ to keep it, ⟨out={name}.html⟩ for quality against size"

    @property
    def image(self) -> np.ndarray:
        """The decoded image, of the type that was given."""
        return self.best.decode()

    def other_files(self) -> list[tuple[str, int, float]]:
        return [(name, len(data), measure_quality(self.before.pixels, data)) for name, data in self.standards.items()]

    def facts(self) -> dict[str, Any]:
        facts, own = super().facts(), len(self.tried)
        return facts | {"methods": facts["methods"][:own], "same_size": facts["methods"][own:]}

    def plot(self) -> Figure:
        from twofold.plots.models.images import rate_distortion_figure
        from twofold.signals.compression import rate_distortion

        found = rate_distortion(with_alpha(self.before))
        after = f"{self.best.size:,} bytes, {decibels(self.best.psnr)}", split_alpha(self.image)[0]
        marks = {NAMES[name]: (one.bits_per_pixel, one.psnr) for name, one in self.tried.items()}
        curves = {title: found[name] for name, title in IMAGE_METHODS.items()}
        return rate_distortion_figure(curves, marks, [("original", self.before.pixels), after], self.title)

    def writer(self, path: Path) -> Writer:
        ending = path.suffix.lower().replace(".jpeg", ".jpg")
        if ending not in STANDARDS:
            return super().writer(path)
        data = self.standards.get(ending) or make_standard_file(ending, with_alpha(self.before), self.best.size)
        if data is None:
            raise InputError(
                f"{path}: {STANDARDS[ending]} cannot hold it in {self.best.size:,} bytes. Allow more, or use .tfi."
            )
        self.standards[ending] = data
        return lambda to: to.write_bytes(data)


@dataclass(kw_only=True, repr=False, eq=False)
class SignalCompression(CompressionAnswer):
    """Compressed signals."""

    before: Recording

    unit = "number"
    endings: ClassVar[tuple[str, ...]] = (".tfs", *DRAWN)

    @classmethod
    def fits(cls, data: Any) -> bool:
        return is_signal(data)

    @property
    def hint(self) -> str:
        name = Path(self.source).stem if Path(self.source).suffix else "song"
        return f"add ⟨out={name}.tfs⟩ to keep it, ⟨out={name}.png⟩ to look at what comes back"

    @property
    def signals(self) -> np.ndarray:
        """The decoded signals (c,d), of the type that was given."""
        return self.best.decode()

    def other_files(self) -> list[tuple[str, int, float]]:
        return [("gzip", self.baseline["bytes"], np.inf)]

    def plot(self) -> Figure:
        from twofold.plots.models.signals import compare_signals_figure

        before = self.before
        return compare_signals_figure(before.signals, self.signals, before.names, before.rate, self.title)


@dataclass(kw_only=True, repr=False, eq=False)
class UnpackedAnswer(ComparedAnswer):
    """The content of a compressed file: the base of `Unpacked` and `UnpackedSignals`."""

    packed: Any

    compares: ClassVar[bool] = False

    @cached_property
    def table(self) -> pl.DataFrame:
        one = self.packed
        bits = {"bits_per_pixel": one.bits_per_pixel} if isinstance(self.after, Picture) else {}
        return pl.DataFrame({"method": [one.method], "bytes": [one.size], **bits, "psnr": [one.psnr]})

    def grids(self) -> list[Grid]:
        method, size, *bits, psnr = self.table.row(0)
        row = [NAMES[method], f"{size:,}", *(f"{value:.3f}" for value in bits), decibels(psnr)]
        return [
            Grid(["method", "bytes", *(["bits a pixel"] if bits else []), "PSNR when made"], [row], right=(1, 2, 3))
        ]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"method": self.packed.method}


@dataclass(kw_only=True, repr=False, eq=False)
class Unpacked(UnpackedAnswer, ImageAnswer):
    """The image in a .tfi file."""

    @classmethod
    def fits(cls, data: Any) -> bool:
        return str(data).lower().endswith(".tfi")

    @property
    def hint(self) -> str:
        return "add ⟨out=image.png⟩ to see the image"

    def panels(self) -> list[tuple[str, np.ndarray]]:
        return [("", self.after.pixels)]


@dataclass(kw_only=True, repr=False, eq=False)
class UnpackedSignals(UnpackedAnswer, SignalAnswer):
    """The signals in a .tfs file."""

    @classmethod
    def fits(cls, data: Any) -> bool:
        return str(data).lower().endswith(".tfs")

    @property
    def hint(self) -> str:
        return "add ⟨out=signals.wav⟩ or ⟨out=signals.csv⟩ to keep the signals"


def parse_bytes(text: str) -> int:
    """A size as people write it.

    >>> parse_bytes("40k"), parse_bytes("1.5 MB"), parse_bytes("900")
    (40000, 1500000, 900)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKmM]i?)?[bB]?\s*", text)
    value = float(found[1]) * UNITS[(found[2] or "").lower()] if found else 0
    if value < 1:
        raise InputError(f"⟨size={text}⟩: give bytes, such as 40000, 40k or 1.5M.")
    return int(value)


@analysis()
def compress(
    data: OneFile,
    *,
    psnr: Annotated[float | None, Flag(min=5, max=120, unit="DB")] = None,
    size: Annotated[int | None, Flag(min=1, unit="BYTES", parse=parse_bytes)] = None,
    method: Literal["auto", "dct", "wavelet", "pca", "lapped"] = "auto",
    seed: Seed = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> UnpackedSignals | Unpacked | SignalCompression | Compression:
    """Put an image in fewer bytes, as .tfi (for teaching), .jpg, .webp, .jp2 or .avif; or signals as .tfs; and back.

    Parameters
    ----------
    data : path, array or frame
        An image: a file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel.
        Signals: a .wav file, one column of a table, a .npy file, an array (d,), or a frame. A file that ends in `.tfi`
        or `.tfs` is decoded, and takes no option.
    psnr
        Quality to reach, in dB. With neither this nor `size`: 36, hard to tell from the original; of signals 40, where
        the peak is their range.
    size
        Size to stay under, such as 40k, used for the best quality.
    method
        Of images cosines in blocks (dct), wavelets, or the principal directions of the image's own blocks (pca); of
        signals cosines under overlapping windows (lapped), or wavelets. auto tries all.
    seed
        Has no effect: nothing here is random.

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
        raise InputError("⟨psnr⟩ and ⟨size⟩ both set the target. Give one of them.")
    if isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in PACKED:
        if psnr is not None or size is not None or method != "auto":
            raise InputError(f"{data} is compressed already: leave out ⟨psnr⟩, ⟨size⟩ and ⟨method⟩.")
        unpacked = unpack(os.fspath(data))
        check_planned(unpacked.after)
        return unpacked
    known = SIGNAL_METHODS if is_signal(data) else IMAGE_METHODS
    if method not in ("auto", *known):
        *others, last = known
        raise InputError(f"⟨method={method}⟩: choose auto, {', '.join(others)} or {last}.")
    with doing("reading"):
        before = as_image_or_signals(data, reading)
        from twofold.signals import compression

    notes = before.notes
    if isinstance(before, Picture):
        check_standards(before)
    if isinstance(before, Recording):
        if before.table is not None and len(before.names) > 1:
            raise InputError(
                f"{before.source} has {len(before.names)} columns, which need not have one unit: "
                f"{quote_names(before.names)}. Name one: ⟨columns={before.names[0]}⟩."
            )
        values, usual, meaning = before.signals, compression.DEFAULT_SIGNAL_PSNR, " of the signal's range"
        make: Any = partial(compression.compress_signal, values, rate=before.rate, names=before.names)
    else:
        values, usual, meaning = with_alpha(before), compression.DEFAULT_IMAGE_PSNR, ", hard to tell from the original"
        make = partial(compression.compress_image, values)
    if psnr is None and size is None:
        psnr = usual
        notes.append(f"aimed at {usual:g} dB{meaning} (⟨psnr⟩ or ⟨size⟩ sets the target)")
    if isinstance(before, Picture) and "icc_profile" in before.info:
        notes.append("the color profile is not kept")
    with doing("compressing"):
        methods = tuple(known) if method == "auto" else (method,)
        tried = compress_by_each(partial(make, psnr=psnr, size=size), methods, size, notes)
    best, raw = next(iter(tried.values())), values.nbytes
    own: dict[str, Any]
    if isinstance(before, Recording):
        noun, bits, own, units = "signals", {}, {}, values.size
        baseline = {"method": "gzip, without loss", "bytes": len(gzip.compress(values.tobytes(), 9))}
    else:
        h, w = before.pixels.shape[:2]
        with doing("comparing with other formats"):
            kinds = [kind for kind in STANDARDS if kind != ".avif" or h * w <= MAX_AVIF_PIXELS]
            files = {kind: make_standard_file(kind, values, best.size) for kind in kinds}
        own = {"standards": {kind: file for kind, file in files.items() if file}}
        noun, bits, units = "image", {"bits_per_pixel": best.bits_per_pixel}, h * w
        baseline = {"method": "the pixels alone", "bytes": raw, "bits_per_pixel": best.bits_per_pixel * raw / best.size}
    what = f"bytes of the file, and PSNR in dB of the {noun} in it"
    answer: Any = SignalCompression if isinstance(before, Recording) else Compression
    return answer(
        source=before.source,
        figures={"what": what, "bytes": best.size, **bits, "psnr": best.psnr},
        baseline=baseline | {"psnr": np.inf},
        notes=notes,
        chosen={"psnr": psnr},
        before=before,
        tried=tried,
        raw_bytes=raw,
        units=units,
        **own,
    )


def unpack(path: str) -> Unpacked | UnpackedSignals:
    """The image in a .tfi file, or the signals in a .tfs file."""
    if not Path(path).is_file():
        raise InputError(f"{path} is a folder. Name a file in it." if Path(path).is_dir() else missing_message(path))
    signals = path.lower().endswith(".tfs")
    with doing("decoding"):
        from twofold.signals import open_image, open_signal

        packed: Any = (open_signal if signals else open_image)(path)
        values = packed.decode()
    found = Recording(values, packed.names, packed.rate) if signals else Picture(*split_alpha(values))
    found.source = path
    answer: Any = UnpackedSignals if signals else Unpacked
    return answer(
        source=path,
        figures={"what": "PSNR in dB, when the file was made", "bytes": packed.size, "psnr": packed.psnr},
        baseline={"method": f"the {'numbers' if signals else 'pixels'} alone", "bytes": values.nbytes, "psnr": np.inf},
        before=found,
        after=found,
        packed=packed,
    )


def compress_by_each(
    make: Callable[..., Any], methods: Sequence[str], size: int | None, notes: list[str]
) -> dict[str, Any]:
    """Files by each method, the best first: the fewest bytes, or the best quality under a limit."""
    made, refused = dict[str, Any](), list[str]()
    for i, method in enumerate(methods):
        try:
            with part(i, i + 1, len(methods), NAMES[method]):
                made[method] = make(method=method)
        except InputError as error:
            refused.append(error.args[0])
            notes.append(f"{NAMES[method]}: {refused[-1]}")
    if not made:
        raise InputError(refused[0])
    order = sorted(made, key=lambda name: made[name].size if size is None else -made[name].psnr)
    return {name: made[name] for name in order}
