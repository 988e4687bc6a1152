"""An image in fewer bytes, by the best of three bases, compared with WebP and JPEG 2000 files of as many bytes.

The files, which end in `.tfi`, are for teaching: only twofold reads them. `.webp` and `.jp2` are for everyone. Signals
go to `.tfs` files, by the better of two bases, compared with gzip, which loses nothing.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np

from twofold.analyses.common.analysis import OneFile, Reading, Seed, analysis
from twofold.analyses.common.images import split_alpha, with_alpha
from twofold.analyses.common.signals import as_image_or_signals, check_planned, is_signal
from twofold.analyses.compress.answer import (
    IMAGE_METHODS,
    NAMES,
    SIGNAL_METHODS,
    Compression,
    SignalCompression,
    Unpacked,
    UnpackedSignals,
)
from twofold.analyses.compress.standards import STANDARDS, make_standard_file
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing, part
from twofold.io.images import Picture
from twofold.io.recordings import Recording
from twofold.io.tables.read import missing_message
from twofold.io.tables.table import quote_names

PACKED = (".tfi", ".tfs")


UNITS = {"": 1, "k": 1000, "m": 1_000_000, "ki": 1024, "mi": 1024**2}


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
    """Put an image in fewer bytes, as a .tfi file (for teaching), .webp or .jp2; or signals as .tfs; and back.

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
    if is_packed(data):
        if psnr is not None or size is not None or method != "auto":
            raise InputError(
                f"{data} is compressed already: ⟨psnr⟩, ⟨size⟩ and ⟨method⟩ are for images. Leave them out."
            )
        answer = unpack(os.fspath(data))
        check_planned(answer.after)
        return answer
    known = SIGNAL_METHODS if is_signal(data) else IMAGE_METHODS
    if method not in ("auto", *known):
        *others, last = known
        raise InputError(f"⟨method={method}⟩: choose auto, {', '.join(others)} or {last}.")
    with doing("reading"):
        before = as_image_or_signals(data, reading)
        from twofold.signals import compression
        from twofold.signals.images import compress as images

    notes = before.notes
    if isinstance(before, Recording):
        if before.table is not None and len(before.names) > 1:
            raise InputError(
                f"{before.source} has {len(before.names)} columns, which need not have one unit: "
                f"{quote_names(before.names)}. Name one: ⟨columns={before.names[0]}⟩."
            )
        values, usual, meaning = before.signals, compression.DEFAULT_PSNR, " of the signal's range"
        make: Any = partial(compression.compress_signal, values, rate=before.rate, names=before.names)
    else:
        values, usual, meaning = with_alpha(before), images.DEFAULT_PSNR, ", hard to tell from the original"
        make = partial(images.compress_image, values)
    if psnr is None and size is None:
        psnr = usual
        notes.append(f"aimed at {usual:g} dB{meaning} (⟨psnr⟩ or ⟨size⟩ sets the target)")
    if isinstance(before, Picture) and "icc_profile" in before.info:
        notes.append("the color profile is not kept")
    with doing("compressing"):
        methods = tuple(known) if method == "auto" else (method,)
        tried = compress_by_each(partial(make, psnr=psnr, size=size), methods, size, notes)
    best, raw = next(iter(tried.values())), values.nbytes
    common: dict[str, Any] = {
        "source": before.source,
        "notes": notes,
        "chosen": {"psnr": psnr},
        "before": before,
        "tried": tried,
        "raw_bytes": raw,
    }
    if isinstance(before, Recording):
        return SignalCompression(
            **common,
            figures={
                "what": "bytes of the file, and PSNR in dB of the signals in it",
                "bytes": best.size,
                "psnr": best.psnr,
            },
            baseline={"method": "gzip, without loss", "bytes": len(gzip.compress(values.tobytes(), 9)), "psnr": np.inf},
            units=values.size,
        )
    with doing("comparing with WebP and JPEG 2000"):
        standards = {ending: file for ending in STANDARDS if (file := make_standard_file(ending, values, best.size))}
    bits = best.bits_per_pixel
    return Compression(
        **common,
        figures={
            "what": "bytes of the file, and PSNR in dB of the image in it",
            "bytes": best.size,
            "bits_per_pixel": bits,
            "psnr": best.psnr,
        },
        baseline={
            "method": "the pixels alone",
            "bytes": raw,
            "bits_per_pixel": bits * raw / best.size,
            "psnr": np.inf,
        },
        units=before.pixels.shape[0] * before.pixels.shape[1],
        standards=standards,
    )


def is_packed(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in PACKED


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
