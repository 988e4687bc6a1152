"""Many pictures at once: `read_pictures("folder")`, a `.npy` or `.npz` array, or idx files as MNIST has them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from twofold.core.checks import DAMAGED_ARRAY, InputError, reason_of
from twofold.io.images import read_image
from twofold.io.open import check_budget, read_bytes
from twofold.io.tables.arrays import check_npz
from twofold.io.tables.read import missing_message

SEEN = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".pgm", ".ppm")
IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
TAKES = "a folder of pictures (subfolders are classes), .npy, .npz, or idx files as MNIST has them"


@dataclass
class PictureSet:
    """Pictures (n,h,w), (n,h,w,c), or rows (n,d); their classes and the names of their files, if they have any."""

    pixels: np.ndarray
    labels: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    source: str = ""
    names: list[str] | None = None


def read_pictures(path: str | Path, size: int | None = None) -> PictureSet:
    """Read many pictures of one size.

    Parameters
    ----------
    path : str or Path
        A folder of pictures, whose subfolders are classes; a folder with idx files, or such a file, plain or gzipped,
        with its labels beside it; a `.npy` of pictures or rows; a `.npz` with ``images`` (or ``X``) and, if there are
        classes, ``labels`` (or ``y``).
    size : int, optional
        Scale the pictures of a folder to squares of this side, cut from their middle.
    """
    path = Path(path)
    if path.is_dir():
        idx = sorted(p for p in path.iterdir() if "images-idx3" in p.name)
        if idx:
            first = next((p for p in idx if p.name.startswith("train")), idx[0])
            found = from_idx(first)
            found.notes.append(f"{first.name} is used, of {len(idx)} files with pictures") if len(idx) > 1 else None
        else:
            found = from_folder(path, size)
    elif not path.is_file():
        raise InputError(missing_message(str(path)))
    elif path.suffix in (".npy", ".npz"):
        found = from_array(path)
    else:
        found = from_idx(path)
    found.source = str(path)
    if found.pixels.ndim not in (2, 3, 4) or 0 in found.pixels.shape:
        raise InputError(f"{path} holds numbers of shape {found.pixels.shape}; pictures are (n, h, w) or (n, h, w, c).")
    if found.labels is not None and len(found.labels) != len(found.pixels):
        raise InputError(f"{path} has {len(found.pixels)} pictures and {len(found.labels)} labels. They must agree.")
    return found


def from_folder(path: Path, size: int | None) -> PictureSet:
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in SEEN and not p.name.startswith("."))
    if not files:
        raise InputError(f"{path} has no pictures in it ({', '.join(SEEN)}). Give {TAKES}.")
    pictures, taken = [], 0
    for file in files:
        pictures.append(crop_square(read_image(file).pixels, size))
        taken += pictures[-1].nbytes
        check_budget(taken, f"{path}, {len(files):,} pictures,", at_least=True, remedy="Scale them: ⟨size=28⟩. ")
    color = any(p.ndim == 3 for p in pictures)
    if color:
        pictures = [p if p.ndim == 3 else np.repeat(p[:, :, None], 3, axis=2) for p in pictures]
    for file, one in zip(files, pictures, strict=True):
        if one.shape != pictures[0].shape:
            (h, w), (there_h, there_w) = one.shape[:2], pictures[0].shape[:2]
            raise InputError(
                f"{file} is {w} × {h}, {files[0].name} {there_w} × {there_h}: all must be of one size. Add ⟨size=28⟩."
            )
    classes = [file.relative_to(path).parts[0] if file.parent != path else "" for file in files]
    labels = np.array(classes) if all(classes) and len(set(classes)) > 1 else None
    notes = [f"{len(files):,} pictures, {'color' if color else 'grey'}"]
    return PictureSet(np.stack(pictures), labels, notes, names=[file.relative_to(path).as_posix() for file in files])


def crop_square(pixels: np.ndarray, size: int | None) -> np.ndarray:
    """A square from the middle, scaled."""
    if size is None:
        return pixels
    h, w = pixels.shape[:2]
    side = min(h, w)
    top, left = (h - side) // 2, (w - side) // 2
    square = Image.fromarray(pixels[top : top + side, left : left + side])
    return np.asarray(square.resize((size, size), Image.Resampling.LANCZOS))


def from_array(path: Path) -> PictureSet:
    try:
        if path.suffix == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            check_budget(array.nbytes, str(path))
            return PictureSet(np.array(array))
        check_npz(str(path))
        with np.load(path, allow_pickle=False) as found:
            held = {name: found[name] for name in found.files}
    except InputError:
        raise
    except DAMAGED_ARRAY as error:
        raise InputError(f"{path} is no readable array ({reason_of(error)}). Save it again with np.save.") from None
    pixels = next((held[name] for name in ("images", "X", "data", "faces") if name in held), None)
    if pixels is None:
        raise InputError(f"{path} holds {', '.join(sorted(held))}. Name the pictures images, or X.")
    return PictureSet(pixels, next((held[name] for name in ("labels", "y", "target") if name in held), None))


def from_idx(path: Path) -> PictureSet:
    pixels = read_idx(path)
    labels = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
    return PictureSet(pixels, read_idx(labels) if labels != path and labels.is_file() else None)


def read_idx(path: Path) -> np.ndarray:
    data = read_bytes(path)
    try:
        return idx_array(data)
    except (ValueError, IndexError, struct.error, EOFError, OSError) as error:
        raise InputError(f"{path} cannot be read as pictures ({error}). Give {TAKES}.") from None


def idx_array(data: bytes) -> np.ndarray:
    """The array in an idx file: two zeros, the type, the number of axes, their lengths, the numbers."""
    if data[:2] != b"\0\0" or data[2] not in IDX_TYPES:
        raise ValueError("its first bytes are not those of an idx file")
    shape = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return np.frombuffer(data, IDX_TYPES[data[2]], offset=4 + 4 * len(shape)).reshape(shape).copy()
