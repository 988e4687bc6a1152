"""A photograph cleaned, filled and compressed, shown as it gets better.

A method of this file says how the picture is spoiled (`spoil`), and with which calls of `twofold.signals` it is mended,
from rough to fine (`stages`): each is an expression of Python, the last of which is the one that the script keeps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Setting, seed, setting
from twofold.lab.script import Script

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DENOISE, INPAINT, COMPRESS = (f"signals.images.{verb}:{verb}_image" for verb in ("denoise", "inpaint", "compress"))
MOST = 200.0  # decibels that are shown of a picture that is exact
SIDE = Setting(
    name="side",
    label="pixels across",
    about="A larger picture is thinned to at most so many pixels down and across, so that it is quick.",
    type="int",
    default=256,
    min=32,
    max=1024,
    advanced=True,
)
NOISE = Setting(
    name="noise",
    label="noise added",
    about="Standard deviation of the noise that is added first, of values from 0 to 255; 0 takes the picture as it is.",
    type="float",
    default=25.0,
    min=0,
    max=100,
    step=1,
)
RATE = Setting(
    name="rate",
    label="bits a pixel",
    about="How large the file may be: 8 bits a pixel is a grey picture as it is.",
    type="float",
    default=0.5,
    min=0.02,
    max=8,
    log=True,
)
MASK = Setting(
    name="mask",
    label="hole",
    about="Paint what is missing; until you do, stripes are.",
    type="mask",
    default=None,
)


class Shown:
    """The picture, what was made of it, and what came back."""

    def __init__(self, original: np.ndarray, given: np.ndarray):
        self.original, self.given, self.output = original, given, given
        self.file: Any = None  # of a picture that is compressed
        static = {"original": original, "input": given}
        self.first: Frame = {**static, "output": given}, {"static": [*static], **self.judge(given)}

    def judge(self, output: np.ndarray) -> dict[str, Any]:
        from twofold.metrics import psnr

        before, now = (min(float(psnr(self.original, one, 255)), MOST) for one in (self.given, output))
        return {"psnr": now, "psnr_input": before}

    def error(self) -> float:
        """The mean squared error."""
        return float(np.mean((self.output.astype(np.float64) - self.original) ** 2))

    def frame(self, output: np.ndarray) -> Frame:
        self.output = output
        return {"output": np.ascontiguousarray(output)}, self.judge(output)


class Pictures(Method):
    """One photograph."""

    family, view = "pictures", "picture"
    kinds = ("picture",)
    default_data = "camera"
    objective = "mean squared error"
    takes = ("picture", "figure", "python")

    def run(self, data: Data, settings: Mapping[str, Any], emit: Emit, rows: Sequence[int] | None = None) -> Result:
        """Mend the picture, from rough to fine."""
        self.check_kind(data)
        chosen, script = self.check(settings), Script(data)
        side = max(script["picture"].shape[:2])
        step = -(-side // chosen["side"])
        if step > 1:
            script.do(f"picture = np.ascontiguousarray(picture[::{step}, ::{step}])")
        self.spoil(script, chosen, step)
        sight = Shown(script["picture"], script["given"])
        emit(0, None, *sight.first)
        *rough, (last, finest) = self.stages(script, chosen)
        for sweep, expression in rough:
            self.show(script, sight, emit, sweep, expression)
        script.do(f"result = {finest}")
        self.show(script, sight, emit, last, "result", final=True)
        return Result(None, script.text, None, lambda: self.figure(sight, data, None), sight, picture=sight.output)

    def show(self, script: Script, sight: Shown, emit: Emit, sweep: int, expression: str, final: bool = False) -> None:
        arrays, meta = sight.frame(self.decode(script, expression))
        notes: dict[str, Any] = {"notes": []} if final else {}
        emit(sweep, sight.error(), arrays, meta | self.facts(script, sight) | notes, final=final)

    def decode(self, script: Script, expression: str) -> np.ndarray:
        return script.value(expression)

    def facts(self, script: Script, sight: Shown) -> dict[str, Any]:
        return {}

    @abstractmethod
    def spoil(self, script: Script, chosen: Mapping[str, Any], step: int) -> None:
        """Bind `given`, what is to be mended."""

    @abstractmethod
    def stages(self, script: Script, chosen: Mapping[str, Any]) -> list[tuple[int, str]]:
        """Numbers and expressions, from rough to fine."""

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Shown:
        return Shown(script["picture"], script["given"])

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.images import comparison_figure

        found = sight.judge(sight.output)
        panels = [("original", sight.original), (f"{self.title}, {found['psnr']:.1f} dB", sight.output)]
        if sight.given is not sight.original:
            panels.insert(1, (f"given, {found['psnr_input']:.1f} dB", sight.given))
        return comparison_figure(panels, data.name)


def count_up(most: int) -> list[int]:
    """0, 1, 2, 4, … and the number itself."""
    return sorted({0, *(2**i for i in range(12) if 2**i < most), most})


class Denoising(Pictures):
    """Noise, added and taken away."""

    def spoil(self, script: Script, chosen: Mapping[str, Any], step: int) -> None:
        if chosen["noise"]:
            draw = f"np.random.default_rng({chosen['random_state']}).normal(0, {chosen['noise']}, picture.shape)"
            script.do(f"given = np.clip(np.rint(picture + {draw}), 0, 255).astype(np.uint8)")
        else:
            script.do("given = picture")
        script.use("twofold.signals", "denoise_image")


class DenoiseMethod(Denoising):
    id, title, estimator = "denoise", "Denoising by K-SVD", DENOISE
    compare = ("denoise_dct", "denoise_threshold")
    settings = (
        NOISE,
        setting(DENOISE, "sigma", label="noise taken away", default=None, min=0, max=200),
        setting(DENOISE, "max_iter", label="sweeps", default=8, min=0, max=50),
        setting(
            DENOISE, "n_atoms", label="atoms", default=256, min=16, max=512, about="Of the dictionary.", advanced=True
        ),
        setting(DENOISE, "patch", label="pixels across a patch", default=8, min=4, max=16, advanced=True),
        SIDE,
        seed(DENOISE),
    )

    def stages(self, script: Script, chosen: Mapping[str, Any]) -> list[tuple[int, str]]:
        fixed = f"patch={chosen['patch']}, n_atoms={chosen['n_atoms']}, random_state={chosen['random_state']}"
        call = f"denoise_image(given, {chosen['sigma']}, {fixed}, max_iter="
        return [(t + 1, f"{call}{t})") for t in count_up(chosen["max_iter"])]


class CosinesMethod(Denoising):
    id, title, estimator = "denoise_dct", "Denoising by cosines", DENOISE
    compare = ("denoise", "denoise_threshold")
    settings = (
        NOISE,
        setting(DENOISE, "sigma", label="noise taken away", default=None, min=0, max=200),
        setting(
            DENOISE, "n_atoms", label="atoms", default=256, min=16, max=512, about="Cosines, more than pixels or not."
        ),
        setting(DENOISE, "patch", label="pixels across a patch", default=8, min=4, max=16, advanced=True),
        SIDE,
        seed(DENOISE),
    )

    def stages(self, script: Script, chosen: Mapping[str, Any]) -> list[tuple[int, str]]:
        sizes = [max(1, round(chosen["n_atoms"] * share)) for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)]
        call = f"denoise_image(given, {chosen['sigma']}, patch={chosen['patch']}, max_iter=0, n_atoms="
        return [(i + 1, f"{call}{size})") for i, size in enumerate(sizes)]


class ThresholdMethod(Denoising):
    id, title, estimator = "denoise_threshold", "Denoising by a threshold", DENOISE
    compare = ("denoise", "denoise_dct")
    settings = (
        NOISE,
        setting(DENOISE, "sigma", label="noise taken away", default=None, min=0, max=200),
        setting(DENOISE, "method", label="threshold", default="hard", choices=("hard", "soft")),
        setting(DENOISE, "basis", default="Wavelet", choices=("Wavelet", "Haar", "DCT")),
        setting(DENOISE, "shifts", default=8, min=1, max=16, advanced=True),
        SIDE,
        seed(DENOISE),
    )

    def stages(self, script: Script, chosen: Mapping[str, Any]) -> list[tuple[int, str]]:
        script.use("twofold.signals", chosen["basis"])
        call = (
            f"denoise_image(given, {chosen['sigma']}, method={chosen['method']!r}, basis={chosen['basis']}(2), shifts="
        )
        return [(t, f"{call}{t})") for t in count_up(chosen["shifts"])[1:]]


class InpaintMethod(Pictures):
    id, title, estimator = "inpaint", "Inpainting", INPAINT
    settings = (
        MASK,
        setting(DENOISE, "max_iter", label="sweeps", default=4, min=1, max=50),
        setting(
            DENOISE, "n_atoms", label="atoms", default=128, min=16, max=512, about="Of the dictionary.", advanced=True
        ),
        setting(DENOISE, "patch", label="pixels across a patch", default=8, min=4, max=16, advanced=True),
        replace(SIDE, default=128),
        seed(DENOISE),
    )

    def spoil(self, script: Script, chosen: Mapping[str, Any], step: int) -> None:
        painted = chosen["mask"]
        if painted:
            width, height, runs = read_mask(painted)
            script.do(f"mask = np.zeros({height} * {width}, dtype=bool)")
            script.do(f"for start, length in {runs}:\n    mask[start : start + length] = True")
            small = "" if (height, width) == script["picture"].shape[:2] else f"[::{step}, ::{step}]"
            script.do(f"mask = mask.reshape({height}, {width}){small}")
            if script["mask"].shape != script["picture"].shape[:2]:
                raise InputError(f"the hole was painted on {width} x {height} pixels, which is not the picture's size.")
        else:
            script.do("rows, columns = np.indices(picture.shape[:2])")
            script.do("mask = (rows + 2 * columns) % 29 < 4")
        script.do("given = picture.copy()")
        script.do("given[mask] = 0")
        script.use("twofold.signals", "inpaint_image")

    def stages(self, script: Script, chosen: Mapping[str, Any]) -> list[tuple[int, str]]:
        fixed = f"patch={chosen['patch']}, n_atoms={chosen['n_atoms']}, random_state={chosen['random_state']}"
        sweeps = sorted({0, 1, chosen["max_iter"]})
        return [(t + 1, f"inpaint_image(given, mask, {fixed}, max_iter={t})") for t in sweeps]

    def facts(self, script: Script, sight: Shown) -> dict[str, Any]:
        return {"missing": float(script["mask"].mean())}


def read_mask(painted: Any) -> tuple[int, int, list[list[int]]]:
    """Width, height and runs (start, length) of a hole that was painted."""
    try:
        width, height = int(painted["width"]), int(painted["height"])
        runs = [[int(start), int(length)] for start, length in painted["runs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("the hole is not one that was painted: width, height and runs are needed.") from error
    inside = all(start >= 0 and length > 0 and start + length <= width * height for start, length in runs)
    if not (0 < width * height <= 2**26) or not runs or not inside:
        raise InputError(f"the hole does not fit in {width} x {height} pixels. Paint it again.")
    return width, height, runs


class CompressMethod(Pictures):
    id, title, estimator = "compress", "Compression", COMPRESS
    settings = (
        RATE,
        setting(COMPRESS, "method", default="auto", choices=("auto", "dct", "wavelet", "pca")),
        SIDE,
    )

    def spoil(self, script: Script, chosen: Mapping[str, Any], step: int) -> None:
        script.names["given"] = script["picture"]
        script.use("twofold.signals", "compress_image")

    def stages(self, script: Script, chosen: Mapping[str, Any]) -> list[tuple[int, str]]:
        h, w = script["picture"].shape[:2]
        sizes = [max(1, int(rate * h * w / 8)) for rate in chosen["rate"] * np.array([0.25, 0.35, 0.5, 0.7, 1.0])]
        fit = [size for size in sizes[:-1] if size > 400] + sizes[-1:]
        call = f"compress_image(picture, method={chosen['method']!r}, size="
        return [(i + 1, f"{call}{size})") for i, size in enumerate(fit)]

    def decode(self, script: Script, expression: str) -> np.ndarray:
        script.names["file"] = script.value(expression)
        return script["file"].decode()

    def facts(self, script: Script, sight: Shown) -> dict[str, Any]:
        file = script["file"]
        sight.file = file
        return {"bytes": file.size, "ratio": sight.original.nbytes / file.size, "method": file.method}

    def ask_compress(self, result: Result, rate: float) -> Frame:
        """The picture at another rate, by the same method."""
        from twofold.signals import compress_image

        sight = result.sight
        h, w = sight.original.shape[:2]
        size = max(1, int(RATE.check(rate) * h * w / 8))
        file = compress_image(sight.original, size=size, method=sight.file.method)
        output = file.decode()
        facts = {"bytes": file.size, "ratio": sight.original.nbytes / file.size, "method": file.method}
        return {"output": np.ascontiguousarray(output)}, sight.judge(output) | facts


METHODS = (DenoiseMethod(), CosinesMethod(), ThresholdMethod(), InpaintMethod(), CompressMethod())
