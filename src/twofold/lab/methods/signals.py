"""Signals: a photograph cleaned, filled and compressed, as it gets better, and the diagram of compressive sensing.

A method of pictures damages the picture (`damage`) and lists calls of `twofold.signals` that repair it, from rough to
fine (`stages`): each is an expression of Python, the last of which is the one that the script keeps.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Values, pack, start_frame
from twofold.lab.methods.setting import Setting, control, seed
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

DENOISE, INPAINT = (f"signals.images.{verb}:{verb}_image" for verb in ("denoise", "inpaint"))
COMPRESS = "signals.compression:compress_image"
MAX_DECIBELS = 200.0  # shown of a picture that is exact
SIDE = Setting(
    "side",
    "pixels across",
    "A larger picture is thinned to at most this many pixels down and across, so that it is quick.",
    256,
    min=32,
    max=1024,
    advanced=True,
)
NOISE = Setting(
    "noise",
    "noise added",
    "Standard deviation of the noise that is added first, of values from 0 to 255; 0 takes the picture as it is.",
    25.0,
    min=0,
    max=100,
    step=1,
)
RATE = Setting(
    "rate",
    "bits a pixel",
    "The largest size of the file; 8 bits a pixel is a gray picture as it is.",
    0.5,
    min=0.02,
    max=8,
    log=True,
)
MASK = Setting("mask", "hole", "Paint the pixels that are missing; until you do, stripes are.", None, type="mask")
SIGMA = control("sigma", "noise taken away", min=0, max=200)
PATCH = control("patch", "pixels across a patch", owner=DENOISE, min=4, max=16, advanced=True)
ATOMS = partial(control, "n_atoms", "atoms", owner=DENOISE, min=16, max=512)


class Comparison:
    """The picture, the damaged one, and the repaired one."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.original = script["picture"]
        self.damaged = self.output = script["given"]
        self.facts: dict[str, Any] = {}
        self.sweep = 0
        self.file: Any = None  # of a picture that is compressed
        static = {"original": self.original, "input": self.damaged}
        self.first = start_frame(static, {"output": self.output}, **self.judge(self.output))

    def judge(self, output: np.ndarray) -> dict[str, Any]:
        from twofold.metrics import psnr

        before, now = (min(float(psnr(self.original, one, 255)), MAX_DECIBELS) for one in (self.damaged, output))
        return {"psnr": now, "psnr_input": before}

    def frame(self, model: Any = None) -> Frame:
        return pack(output=self.output), self.judge(self.output) | self.facts


class Pictures(Method):
    """One photograph."""

    family, view, view_class = "pictures", "picture", Comparison
    kinds = ("picture",)
    default_data = "camera"
    objective = "mean squared error"
    downloads = ("picture", "figure", "python")

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        step = -(-max(script["picture"].shape[:2]) // chosen["side"])
        if step > 1:
            script.do(f"picture = np.ascontiguousarray(picture[::{step}, ::{step}])")
        self.damage(script, chosen, step)

    def build(self, script: Script, chosen: Values) -> None:
        """Build nothing: the pictures are those of functions."""

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Repair the picture, from rough to fine."""
        *rough, (view.sweep, finest) = self.stages(script, chosen)
        for sweep, expression in rough:
            self.show(script, view, expression)
            if emit(sweep, self.measure(None, view), *view.frame()):
                view.sweep, finest = sweep, expression
                break
        script.do(f"result = {finest}")
        self.show(script, view, "result")

    def show(self, script: Script, view: Comparison, expression: str) -> None:
        """Show a picture, and the facts of it that the page writes beside it."""
        view.output = self.decode(script, expression)
        view.facts = self.facts(script, view)

    def count_sweeps(self, model: Any, view: Any) -> int:
        return view.sweep

    def measure(self, model: Any, view: Any) -> float:
        """Return the mean squared error."""
        return float(np.mean((view.output.astype(np.float64) - view.original) ** 2))

    def decode(self, script: Script, expression: str) -> np.ndarray:
        return script.value(expression)

    def facts(self, script: Script, view: Comparison) -> dict[str, Any]:
        return {}

    @abstractmethod
    def damage(self, script: Script, chosen: Values, step: int) -> None:
        """Bind `given`, the damaged picture."""

    @abstractmethod
    def stages(self, script: Script, chosen: Values) -> list[tuple[int, str]]:
        """Return numbers and expressions, from rough to fine."""

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.images import comparison_figure

        quality = view.judge(view.output)
        panels = [("original", view.original), (f"{self.title}, {quality['psnr']:.1f} dB", view.output)]
        if view.damaged is not view.original:
            panels.insert(1, (f"given, {quality['psnr_input']:.1f} dB", view.damaged))
        return comparison_figure(panels, data.name)


def count_up(last: int) -> list[int]:
    """Return 0, 1, 2, 4, … and the last number itself."""
    return sorted({0, *(2**i for i in range(12) if 2**i < last), last})


class Denoising(Pictures):
    """Noise, added and taken away."""

    def damage(self, script: Script, chosen: Values, step: int) -> None:
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
        SIGMA,
        control("max_iter", "sweeps", default=8, min=0, max=50),
        ATOMS(about="Atoms of the dictionary.", advanced=True),
        PATCH,
        SIDE,
    )

    def stages(self, script: Script, chosen: Values) -> list[tuple[int, str]]:
        fixed = f"patch={chosen['patch']}, n_atoms={chosen['n_atoms']}, random_state={chosen['random_state']}"
        call = f"denoise_image(given, {chosen['sigma']}, {fixed}, max_iter="
        return [(t + 1, f"{call}{t})") for t in count_up(chosen["max_iter"])]


class CosinesMethod(Denoising):
    id, title, estimator = "denoise_dct", "Denoising by cosines", DENOISE
    compare = ("denoise", "denoise_threshold")
    settings = (
        NOISE,
        SIGMA,
        ATOMS(about="Cosines of the dictionary, more or fewer than pixels of a patch.", default=256),
        PATCH,
        SIDE,
    )

    def stages(self, script: Script, chosen: Values) -> list[tuple[int, str]]:
        sizes = [max(1, round(chosen["n_atoms"] * share)) for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)]
        call = f"denoise_image(given, {chosen['sigma']}, patch={chosen['patch']}, max_iter=0, n_atoms="
        return [(i + 1, f"{call}{size})") for i, size in enumerate(sizes)]


class ThresholdMethod(Denoising):
    id, title, estimator = "denoise_threshold", "Denoising by a threshold", DENOISE
    compare = ("denoise", "denoise_dct")
    settings = (
        NOISE,
        SIGMA,
        control("method", "threshold", default="hard", choices=("hard", "soft")),
        control("basis", default="Wavelet", choices=("Wavelet", "Haar", "DCT")),
        control("shifts", default=8, min=1, max=16, advanced=True),
        SIDE,
    )

    def stages(self, script: Script, chosen: Values) -> list[tuple[int, str]]:
        script.use("twofold.signals", chosen["basis"])
        options = f"method={chosen['method']!r}, basis={chosen['basis']}(2)"
        call = f"denoise_image(given, {chosen['sigma']}, {options}, shifts="
        return [(t, f"{call}{t})") for t in count_up(chosen["shifts"])[1:]]


class InpaintMethod(Pictures):
    id, title, estimator, seeded = "inpaint", "Inpainting", INPAINT, False
    settings = (
        MASK,
        control("max_iter", "sweeps", owner=DENOISE, default=4, min=1, max=50),
        ATOMS(about="Atoms of the dictionary.", default=128, advanced=True),
        control("patch", "pixels across a patch", default=8, min=4, max=16, advanced=True),
        replace(SIDE, default=128),
        seed(DENOISE),
    )

    def damage(self, script: Script, chosen: Values, step: int) -> None:
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

    def stages(self, script: Script, chosen: Values) -> list[tuple[int, str]]:
        fixed = f"patch={chosen['patch']}, n_atoms={chosen['n_atoms']}, random_state={chosen['random_state']}"
        sweeps = sorted({0, 1, chosen["max_iter"]})
        return [(t + 1, f"inpaint_image(given, mask, {fixed}, max_iter={t})") for t in sweeps]

    def facts(self, script: Script, view: Comparison) -> dict[str, Any]:
        return {"missing": float(script["mask"].mean())}


def read_mask(painted: Any) -> tuple[int, int, list[list[int]]]:
    """Return width, height and runs (start, length) of a painted hole."""
    try:
        width, height = int(painted["width"]), int(painted["height"])
        runs = [[int(start), int(length)] for start, length in painted["runs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("the hole is not one that was painted: width, height and runs are needed.") from error
    inside = all(start >= 0 and length > 0 and start + length <= width * height for start, length in runs)
    if not (0 < width * height <= 2**26) or not runs or not inside:
        raise InputError(f"the hole does not fit in {width} x {height} pixels. Paint it again.")
    return width, height, runs


def count_bytes(picture: np.ndarray, rate: float) -> int:
    """Return the size of a file at `rate` bits a pixel."""
    return max(1, int(rate * picture.shape[0] * picture.shape[1] / 8))


def describe_file(file: Any, original: np.ndarray) -> dict[str, Any]:
    return {"bytes": file.size, "ratio": original.nbytes / file.size, "method": file.method}


class CompressMethod(Pictures):
    id, title, estimator, seeded = "compress", "Compression", COMPRESS, False
    settings = (RATE, control("method"), SIDE)

    def damage(self, script: Script, chosen: Values, step: int) -> None:
        script.names["given"] = script["picture"]
        script.use("twofold.signals", "compress_image")

    def stages(self, script: Script, chosen: Values) -> list[tuple[int, str]]:
        rates = chosen["rate"] * np.array([0.25, 0.35, 0.5, 0.7, 1.0])
        sizes = [count_bytes(script["picture"], rate) for rate in rates]
        fit = [size for size in sizes[:-1] if size > 400] + sizes[-1:]
        call = f"compress_image(picture, method={chosen['method']!r}, size="
        return [(i + 1, f"{call}{size})") for i, size in enumerate(fit)]

    def decode(self, script: Script, expression: str) -> np.ndarray:
        script.names["file"] = script.value(expression)
        return script["file"].decode()

    def facts(self, script: Script, view: Comparison) -> dict[str, Any]:
        view.file = script["file"]
        return describe_file(view.file, view.original)

    def ask_compress(self, result: Result, rate: float) -> Frame:
        """Compress the picture at another rate, by the same method."""
        from twofold.signals import compress_image

        view = result.view
        size = count_bytes(view.original, RATE.check(rate))
        file = compress_image(view.original, size=size, method=view.file.method)
        output = file.decode()
        return pack(output=output), view.judge(output) | describe_file(file, view.original)


# --- compressive sensing ------------------------------------------------------------------------------------

PHASE = "signals.phase_diagram:phase_diagram"
CURVE_POINTS = 100  # of the theory
CELLS = Setting(
    "cells",
    "cells across",
    "Steps of the measurements for each unknown and of the numbers that are not zero for each measurement.",
    16,
    min=4,
    max=40,
)


class Diagram:
    """Success over the two ratios, NaN where it is not known yet; the first index is that of the measurements."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        from twofold.signals import donoho_tanner

        self.ratios = script["ratios"]
        self.success = np.full((len(self.ratios), len(self.ratios)), np.nan)
        fine, at = np.linspace(0.01, 0.99, CURVE_POINTS), self.ratios.tolist()
        theory = np.column_stack([fine, donoho_tanner(fine)])
        labels = ["measurements for each unknown", "numbers not zero for each measurement"]
        self.first = start_frame({"theory": theory}, {"success": self.success}, x=at, y=at, labels=labels)

    def frame(self, model: Any = None) -> Frame:
        return pack(success=self.success), {"done": float(np.isfinite(self.success).mean())}


class PhaseMethod(Method):
    id, title, estimator = "phase", "Compressive sensing: phase diagram", PHASE
    family, view, view_class = "sensing", "phase", Diagram
    kinds = ("none",)
    default_data = "none"
    objective = "share recovered"
    downloads = ("table", "figure", "python")
    settings = (
        control("n", "length of the signals", default=100, min=20, max=400),
        control("trials", "signals a cell", min=1, max=200),
        CELLS,
        control("method"),
    )

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        script.use("twofold.signals", "phase_diagram")
        script.do(f"ratios = (np.arange({chosen['cells']}) + 0.5) / {chosen['cells']}")

    def build(self, script: Script, chosen: Values) -> None:
        """Build nothing: the diagram is a function's."""

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Fill the diagram column by column, as one call would: every cell has a seed of its own."""
        options = ", ".join(f"{name}={chosen[name]!r}" for name in ("trials", "method", "random_state"))
        call = f"phase_diagram({chosen['n']}, delta={{}}, rho=ratios, {options})"
        parts = []
        for i, ratio in enumerate(view.ratios):
            parts.append(script.value(call.format([float(ratio)])))
            view.success[i] = parts[-1].success[0]
            if i + 1 < len(view.ratios) and emit(i + 1, self.measure(None, view), *view.frame()):
                break
        script.say("model = " + call.format("ratios" if len(parts) == len(view.ratios) else f"ratios[:{len(parts)}]"))
        columns = ("delta", "rho", "success", "curve50", "theory")
        whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        script.names["model"] = parts[0]._replace(**whole)

    def count_sweeps(self, model: Any, view: Any) -> int:
        return int(np.isfinite(view.success[:, 0]).sum())

    def measure(self, model: Any, view: Any) -> float:
        return float(np.nanmean(view.success))

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        delta = np.broadcast_to(model.delta[:, None], model.rho.shape)
        return pl.DataFrame({"delta": delta.ravel(), "rho": model.rho.ravel(), "success": model.success.ravel()})

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.signals import transition_figure

        return transition_figure({self.title: model})
