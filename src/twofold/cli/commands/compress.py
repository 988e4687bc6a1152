"""`twofold compress`: an image or signals in fewer bytes, as a .tfi or .tfs file; and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.common.answer import Answer
from twofold.analyses.common.images import check_formats
from twofold.analyses.common.signals import check_sound, is_signal
from twofold.analyses.common.tables import Reading
from twofold.analyses.compress import Compression, SignalCompression, Unpacked, UnpackedSignals, is_packed
from twofold.analyses.compress import compress as analyze
from twofold.cli import _options as options
from twofold.cli._run import Output, run
from twofold.core.checks import InputError
from twofold.io.images import READ

TAKES = f"An image ({READ}; - for stdin), signals (.wav, a column of a table, .npy), or a .tfi or .tfs file to decode."
RESULTS = (
    "photo.tfi or song.tfs (for teaching: only twofold reads them); .webp or .jp2 of the same size; quality against "
    "size as .png or .html. Of a .tfi file: the image; of a .tfs file: .wav, .npy, .csv. Repeatable."
)
METHOD = "auto (the best of all), dct, wavelet or pca; of signals lapped or wavelet."
UNITS = {"": 1, "k": 1000, "m": 1_000_000, "ki": 1024, "mi": 1024**2}


def compress(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=TAKES)],
    psnr: Annotated[float | None, typer.Option(min=5, max=120, metavar="DB", help="Quality to reach, in dB.")] = None,
    size: Annotated[str | None, typer.Option(metavar="BYTES", help="Size to stay under, such as 40k.")] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help=METHOD)] = "auto",
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="As everywhere; nothing here is random.")] = 0,
    safe_csv: options.SafeCsv = False,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    limit = None if size is None else bytes_in(size)
    back, signals, name = is_packed(source), is_signal(source), "photo" if source == "-" else Path(source).stem
    hint = f"nothing is written; add -o {name}.tfi to keep it, -o {name}.html for quality against size"
    if signals:
        hint = f"nothing is written; add -o {name}.tfs to keep it, -o {name}.png to look at what comes back"
    kind: type[Answer] = SignalCompression if signals else Compression
    if back:
        kind = UnpackedSignals if source.lower().endswith(".tfs") else Unpacked
        hint = f"nothing is written; add -o {name}.png to see the image"
        if kind is UnpackedSignals:
            hint = f"nothing is written; add -o {name}.wav or -o {name}.csv to keep the signals"
    reading: Reading = {"columns": columns or (), "drop": drop or (), "missing": missing or ()}

    def analysis() -> Answer:
        answer = analyze(source, psnr=psnr, size=limit, method=method, **reading)
        if isinstance(answer, Unpacked):
            check_formats(out or [], answer.after)
        if isinstance(answer, UnpackedSignals):
            check_sound(out or [], answer.after.rate, source)
        return answer

    run(analysis, Output(out or [], None, as_json, force, quiet, safe_csv=safe_csv), kind, [source], hint)


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
