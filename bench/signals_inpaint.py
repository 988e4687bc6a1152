"""Pictures with 50 % and 80 % of their pixels missing at random: PSNR beside linear interpolation and fixed cosines."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.interpolate import griddata

from bench.harness import Bar, Contestant, Event, Missing, Row
from bench.signals_compress import NAMES, photograph
from twofold.metrics import psnr
from twofold.signals import inpaint_image

SECONDS = 60.0  # for 256 x 256


def interpolate(image: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Linear between known pixels, the nearest outside their hull."""
    known, wanted = np.argwhere(~missing), np.argwhere(missing)
    linear, nearest = (griddata(known, image[~missing], wanted, method) for method in ("linear", "nearest"))
    out = image.astype(np.float64)
    out[missing] = np.where(np.isnan(linear), nearest, linear)
    return np.clip(np.rint(out), 0, 255)


def best(rows: list[Row]) -> bool:
    """Learned atoms above both, in time."""
    ours, *others = rows
    above = all(ours.quality["PSNR"] > row.quality["PSNR"] for row in others)
    return above and ours.median <= SECONDS * ours.quality["pixels"] / 256**2


def inpainting(name: str, share: float, quick: bool) -> Event | Missing:
    title = f"signals_inpaint {name} {share:.0%}"
    image = photograph(title, name, quick)
    if isinstance(image, Missing):
        return image
    missing = np.random.default_rng(0).random(image.shape) < share

    def entry(peer: str, sweeps: int, **more: bool | str) -> Contestant:
        def job(part: int) -> np.ndarray:
            return inpaint_image(image[:part, :part], missing[:part, :part], max_iter=sweeps, random_state=0)

        return Contestant(peer, partial(job, max(image.shape)), ours=True, warm=partial(job, 48), **more)

    def quality(result: np.ndarray) -> dict[str, float]:
        return {"PSNR": psnr(image, result, 255.0), "pixels": float(image.size)}

    return Event(
        title,
        f"{name}, {image.shape[0]} x {image.shape[1]}, {share:.0%} of the pixels missing at random",
        [
            entry("twofold", 10),
            entry("twofold, fixed cosines", 0, counts=False, note="the same without learning"),
            Contestant("linear interpolation (SciPy)", lambda: interpolate(image, missing), counts=False),
        ],
        quality=quality,
        as_good=lambda a, b: a["PSNR"] >= b["PSNR"],
        bar=Bar("above linear interpolation and fixed cosines", test=best) if share == 0.5 else None,
        notes=[] if share == 0.5 else ["No bar: so few pixels teach no atoms, and the cosines stay."],
        repeats=1,
    )


EVENTS = tuple(partial(inpainting, name, share) for share in (0.5, 0.8) for name in NAMES)
