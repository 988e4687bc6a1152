"""The answers of `compress`: compressed images and signals, and what a compressed file holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses.common.answer import DRAWN, Answer, Grid
from twofold.analyses.common.images import ComparedAnswer, ImageAnswer, decibels, split_alpha, with_alpha
from twofold.analyses.common.signals import SignalAnswer, is_signal
from twofold.analyses.common.targets import Writer
from twofold.analyses.compress.standards import STANDARDS, measure_quality
from twofold.core.checks import InputError
from twofold.io.images import Picture
from twofold.io.recordings import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGE_METHODS = {"dct": "DCT blocks", "wavelet": "wavelets", "pca": "PCA of patches"}
SIGNAL_METHODS = {"lapped": "lapped cosines", "wavelet": "wavelets"}
NAMES = IMAGE_METHODS | SIGNAL_METHODS | STANDARDS | {"gzip": "gzip, without loss"}


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
    standards: dict[str, bytes]  # ending -> a file of as many bytes

    unit = "pixel"
    endings: ClassVar[tuple[str, ...]] = (".tfi", *STANDARDS, *DRAWN)

    @property
    def hint(self) -> str:
        name = Path(self.source).stem if Path(self.source).suffix else "photo"
        return f"add ⟨out={name}.tfi⟩ to keep it, ⟨out={name}.html⟩ for quality against size"

    @property
    def image(self) -> np.ndarray:
        """The decoded image, of the type that was given."""
        return self.best.decode()

    def other_files(self) -> list[tuple[str, int, float]]:
        return [(name, len(data), measure_quality(self.before, data)) for name, data in self.standards.items()]

    def facts(self) -> dict[str, Any]:
        facts, own = super().facts(), len(self.tried)
        return facts | {"methods": facts["methods"][:own], "same_size": facts["methods"][own:]}

    def plot(self) -> Figure:
        from twofold.plots.models.images import rate_distortion_figure
        from twofold.signals.images.compress import rate_distortion

        found = rate_distortion(with_alpha(self.before))
        after = f"{self.best.size:,} bytes, {decibels(self.best.psnr)}", split_alpha(self.image)[0]
        marks = {NAMES[name]: (one.bits_per_pixel, one.psnr) for name, one in self.tried.items()}
        curves = {title: found[name] for name, title in IMAGE_METHODS.items()}
        return rate_distortion_figure(curves, marks, [("original", self.before.pixels), after], self.title)

    def writer(self, path: Path) -> Writer:
        ending = path.suffix.lower()
        if ending not in STANDARDS:
            return super().writer(path)
        if ending not in self.standards:
            raise InputError(
                f"{path}: {STANDARDS[ending]} cannot hold this image in {self.best.size:,} bytes. Allow more, or use "
                ".tfi."
            )
        data = self.standards[ending]
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
