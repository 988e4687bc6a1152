"""`twofold compress`: a picture in fewer bytes, as a .tfi file; and back."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from twofold.cli._console import Writer, check_targets, waiting
from twofold.cli._pictures import (
    DRAWN,
    AsJson,
    Force,
    Fraction,
    Outcome,
    Quiet,
    check_pictures,
    decibels,
    deliver,
    figure_writer,
    fraction_bar,
    picture_writer,
    size_facts,
    size_line,
    void,
)
from twofold.core.checks import InputError
from twofold.io.images import ENDINGS, READ, Picture, read_image
from twofold.io.tables.read import missing_message

METHODS = ("dct", "wavelet", "pca")
NAMES = {"dct": "DCT blocks", "wavelet": "wavelets", "pca": "PCA of patches"}
TAKES = f"A picture ({READ}; - for stdin), or a .tfi file to decode."
RESULTS = "photo.tfi, or quality against size as .png .html; of a .tfi file: the picture; repeatable."
METHOD = "auto (the best of all), dct, wavelet or pca."
UNITS = {"": 1, "k": 1000, "m": 1_000_000, "ki": 1024, "mi": 1024**2}


def compress(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    psnr: Annotated[float | None, typer.Option(min=5, max=120, metavar="DB", help="Quality to reach, in dB.")] = None,
    size: Annotated[str | None, typer.Option(metavar="BYTES", help="Size to stay under, such as 40k.")] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help=METHOD)] = "auto",
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="As everywhere; nothing here is random.")] = 0,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    out = out or []
    if method not in ("auto", *METHODS):
        raise InputError(f"--method {method}: choose auto, {', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    if psnr is not None and size is not None:
        raise InputError("--psnr and --size both set the target. Give one of them.")
    limit = None if size is None else bytes_in(size)
    back = Path(source).suffix.lower() == ".tfi"
    check_targets(out, ENDINGS if back else (".tfi", *DRAWN), force, [source])
    if back and (psnr or size or method != "auto"):
        raise InputError(
            f"{source} is compressed already: --psnr, --size and --method are for pictures. Leave them out."
        )
    outcome, writers = decoded(source, out, quiet) if back else encoded(source, psnr, limit, method, out, quiet)
    deliver(outcome, writers, as_json, quiet)


def bytes_in(text: str) -> int:
    """A size as people write it.

    >>> bytes_in("40k"), bytes_in("1.5 MB"), bytes_in("900")
    (40000, 1500000, 900)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKmM]i?)?[bB]?\s*", text)
    value = float(found[1]) * UNITS[(found[2] or "").lower()] if found else 0
    if value < 1:
        raise InputError(f"--size {text}: give bytes, such as 40000, 40k or 1.5M.")
    return int(value)


def encoded(
    source: str, psnr: float | None, limit: int | None, method: str, out: list[Path], quiet: bool
) -> tuple[Outcome, dict[Path, Writer]]:
    """The picture in fewer bytes, by the best method."""
    with waiting("reading", quiet):
        picture = read_image(source)
        from twofold.signals.images.compress import USUAL, rate_distortion  # takes seconds to import

    start = time.perf_counter()
    notes = picture.notes
    if psnr is None and limit is None:
        psnr = USUAL
        notes.append(f"aimed at {USUAL:g} dB, hard to tell from the original (--psnr or --size sets the target)")
    if "icc_profile" in picture.info:
        notes.append("the colour profile is not kept in a .tfi file")
    drawn = [path for path in out if path.suffix.lower() in DRAWN]
    pixels = picture.pixels if picture.alpha is None else np.dstack([picture.pixels, picture.alpha])
    with fraction_bar("compressing", quiet) as progress:
        tried = attempts(pixels, psnr, limit, METHODS if method == "auto" else (method,), notes, progress)
    if not out:
        name = "photo" if source == "-" else Path(source).stem
        notes.append(f"nothing is written; add -o {name}.tfi to keep it, -o {name}.html for quality against size")
    outcome = told(picture, pixels, tried, source)
    outcome.facts["seconds"] = round(time.perf_counter() - start, 3)
    best = next(iter(tried.values()))
    writers: dict[Path, Writer] = {
        path: lambda to: void(to.write_bytes(best.data)) for path in out if path not in drawn
    }
    if drawn:
        with waiting("drawing", quiet):
            figure = curves(picture, tried, rate_distortion(pixels), outcome)
            writers |= {path: figure_writer(path, figure, outcome) for path in drawn}
    return outcome, {path: writers[path] for path in out}


def attempts(
    pixels: np.ndarray,
    psnr: float | None,
    limit: int | None,
    methods: tuple[str, ...],
    notes: list[str],
    progress: Fraction | None,
) -> dict[str, Any]:
    """What each method makes of the picture, the best first: the fewest bytes, or the best quality under a limit."""
    from twofold.signals.images.compress import compress_image

    made, refused = {}, []
    for i, method in enumerate(methods):
        try:
            made[method] = compress_image(pixels, psnr=psnr, size=limit, method=method)
        except InputError as error:
            refused.append(error)
            notes.append(f"{NAMES[method]}: {error}")
        if progress is not None:
            progress((i + 1) / len(methods))
    if not made:
        raise refused[0]
    order = sorted(made, key=lambda name: made[name].size if limit is None else -made[name].psnr)
    return {name: made[name] for name in order}


HEAD = ["method", "bytes", "ratio", "bits a pixel", "PSNR"]


def told(picture: Picture, pixels: np.ndarray, tried: dict[str, Any], source: str) -> Outcome:
    """The methods side by side."""
    raw = pixels.nbytes
    rows = [
        [NAMES[name], f"{one.size:,}", f"{raw / one.size:.1f}", f"{one.bits_per_pixel:.3f}", decibels(one.psnr)]
        for name, one in tried.items()
    ]
    chosen, best = next(iter(tried.items()))
    lines = [f"the pixels alone take {raw:,} bytes" + ("" if source == "-" else f", {source} {disk_size(source):,}")]
    methods = [
        {
            "method": name,
            "bytes": one.size,
            "ratio": raw / one.size,
            "bits_per_pixel": one.bits_per_pixel,
            "psnr": one.psnr,
        }
        for name, one in tried.items()
    ]
    facts = size_facts(picture) | {"method": chosen, "bytes": best.size, "psnr": best.psnr, "methods": methods}
    title = f"{size_line(picture)} → {best.size:,} bytes by {NAMES[chosen]}, {decibels(best.psnr)}"
    return Outcome(title, HEAD, rows, lines, facts | {"bytes_raw": raw}, picture.notes)


def disk_size(source: str) -> int:
    return Path(source).stat().st_size


def curves(picture: Picture, tried: dict[str, Any], found: Any, outcome: Outcome) -> Any:
    """Quality against size, and the picture before and after."""
    from twofold.plots.models.images import rate_distortion_figure

    best = next(iter(tried.values()))
    after = best.decode()
    shown = after if picture.alpha is None else after[..., :-1].reshape(picture.pixels.shape)
    panels = [("original", picture.pixels), (f"{best.size:,} bytes, {decibels(best.psnr)}", shown)]
    marks = {NAMES[name]: (one.bits_per_pixel, one.psnr) for name, one in tried.items()}
    return rate_distortion_figure({NAMES[name]: found[name] for name in METHODS}, marks, panels, outcome.title)


def decoded(source: str, out: list[Path], quiet: bool) -> tuple[Outcome, dict[Path, Writer]]:
    """The picture in a .tfi file."""
    if not Path(source).is_file():
        raise InputError(
            f"{source} is a folder. Name a file in it." if Path(source).is_dir() else missing_message(source)
        )
    with waiting("decoding", quiet):
        from twofold.signals.images.compress import open_image

        packed = open_image(source)
        pixels = packed.decode()
    alpha = None
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        pixels, alpha = pixels[..., :-1], pixels[..., -1]
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    picture = Picture(pixels, alpha, source=source)
    check_pictures(out, picture)
    row = [NAMES[packed.method], f"{packed.size:,}", f"{packed.bits_per_pixel:.3f}", decibels(packed.psnr)]
    notes = [] if out else [f"nothing is written; add -o {Path(source).stem}.png to see the picture"]
    facts = size_facts(picture) | {"method": packed.method, "bytes": packed.size, "psnr": packed.psnr}
    outcome = Outcome(
        size_line(picture), ["method", "bytes", "bits a pixel", "PSNR when made"], [row], [], facts, notes
    )
    return outcome, {path: picture_writer(path, picture) for path in out}
