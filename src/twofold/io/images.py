"""Pictures on disk: `read_image("photo.jpg")` and `write_image("clean.png", pixels)`. Nothing is lost in silence.

A picture is an array in its own depth, (h,w) grey or (h,w,3) color, upright whatever its EXIF says; transparency
is kept beside it. What the file held and the array does not is a line in `notes`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageColor, ImageOps

from twofold.core.checks import InputError
from twofold.core.files.atomic import write_bytes
from twofold.io.open import check_budget, read_bounded
from twofold.io.tables.read import missing_message

# What is opened: formats that hold pixels and nothing else (PostScript, say, is a program and is not run).
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF", "PPM", "JPEG2000", "TGA", "AVIF", "MPO")
READ = "PNG, JPEG, TIFF, WebP, BMP, GIF, PGM"
ENDINGS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".pgm", ".ppm")
WITH_ALPHA = (".png", ".tif", ".tiff", ".webp")
DEEP = (".png", ".tif", ".tiff", ".pgm")  # grey with 16 bits
OPTIONS: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"lossless": True},
    "TIFF": {"compression": "tiff_adobe_deflate"},
}


@dataclass
class Picture:
    """Pixels (h,w) or (h,w,3), uint8 or uint16; alpha (h,w) of the same type, or None; what was said on the way."""

    pixels: np.ndarray
    alpha: np.ndarray | None = None
    info: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    source: str = ""

    @property
    def peak(self) -> int:
        """The value of white."""
        return int(np.iinfo(self.pixels.dtype).max)

    @property
    def transparent(self) -> bool:
        """True if any pixel is."""
        return self.alpha is not None and bool(self.alpha.min() < self.peak)

    def describe(self) -> str:
        """Source, size and kind, on one line."""
        h, w = self.pixels.shape[:2]
        kind = "color" if self.pixels.ndim == 3 else "gray"
        bits = ", 16 bits" if self.peak > 255 else ""
        return f"{self.source}: {w:,} × {h:,} pixels, {kind}{bits}{', with transparency' if self.transparent else ''}"

    def facts(self) -> dict[str, Any]:
        """Size and kind, for programs."""
        h, w = self.pixels.shape[:2]
        channels, bits = 3 if self.pixels.ndim == 3 else 1, 8 * self.pixels.dtype.itemsize
        return {"width": w, "height": h, "channels": channels, "bits": bits, "transparency": self.transparent}


def read_image(path: str | Path) -> Picture:
    """Read a picture, turned upright; `-` is standard input.

    Parameters
    ----------
    path : str or Path
        PNG, JPEG, TIFF, WebP, BMP, GIF, PGM and a few more.

    Returns
    -------
    Picture
        Palettes and bits become grey or color; 16-bit grey stays so. ``info`` has the format and the color profile.

    Examples
    --------
    >>> pixels = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    >>> write_image("deep.png", pixels)
    >>> read_image("deep.png").pixels.max()
    np.uint16(55000)
    """
    name = "standard input" if str(path) == "-" else str(path)
    data = bytes_of(path, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # large is fine, absurd is refused; odd metadata is no news
            return decode_image(io.BytesIO(data), name)
    except (InputError, MemoryError):
        raise
    except Image.DecompressionBombError:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) / 1e6
        raise InputError(f"{name} has more than {most:.0f} million pixels. Scale it down, or cut it up.") from None
    except Image.UnidentifiedImageError:
        raise InputError(f"{name} is not a picture that can be read ({READ}). Export it as PNG, give that.") from None
    except Exception as error:  # decoders fail in many ways on damaged files
        raise InputError(f"{name} is damaged or incomplete ({reason(error)}). Fetch or save it again.") from None


def bytes_of(path: str | Path, name: str) -> bytes:
    if str(path) != "-" and not Path(path).is_file():
        raise InputError(f"{name} is a folder. Name a file in it." if Path(path).is_dir() else missing_message(name))
    with contextlib.nullcontext(sys.stdin.buffer) if str(path) == "-" else open(path, "rb") as file:
        data = read_bounded(file, name)
    if not data:
        raise InputError(f"{name} is empty (0 bytes). Was it written completely?")
    return data


def decode_image(file: io.BytesIO, name: str) -> Picture:
    """The picture in a file, whatever Pillow may raise on the way."""
    Image.init()
    image = Image.open(file, formats=[one for one in FORMATS if one in Image.OPEN])
    bytes_a_pixel = 4 if image.mode[0] in "IF" else len(image.getbands())
    check_budget(image.width * image.height * bytes_a_pixel, f"{name}, {image.width:,} by {image.height:,} pixels,")
    notes = []
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # what phones write: the photograph, then small copies of it
        notes.append(f"{name} holds {frames} pictures: the first is used")
    raw, profile = raw_mode(image), image.info.get("icc_profile")
    if ";16" in raw and not image.mode.startswith("I"):
        notes.append(f"{name} has 16 bits a color, of which the upper 8 are read; 16-bit grey is read whole")
    info = {"format": image.format, "mode": image.mode}
    if profile and image.mode in ("L", "LA", "RGB", "RGBA", "P"):
        info["icc_profile"] = profile
    pixels, alpha = arrays_of(ImageOps.exif_transpose(image), name, raw, notes)
    return Picture(pixels, alpha, info, notes, name)


def reason(error: Exception) -> str:
    """The decoder's own words, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def raw_mode(image: Image.Image) -> str:
    """Return how the file stores a pixel, which can be deeper than what Pillow makes of it."""
    tiles = getattr(image, "tile", [])
    args = tiles[0].args if tiles else ""
    return str(args[0] if isinstance(args, tuple) and args else args)


def arrays_of(image: Image.Image, name: str, raw: str, notes: list[str]) -> tuple[np.ndarray, np.ndarray | None]:
    """Pixels and alpha of a picture in any of Pillow's modes."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise InputError(f"{name} holds 32-bit numbers beyond 0 to 65535. Scale them, and save as 16-bit grey.")
        if "transparency" in image.info:
            notes.append(f"{name}: the grey value marked as transparent is read as any other")
        return values.astype(np.uint16), None
    if image.mode in ("F", "LAB", "HSV"):
        raise InputError(f"{name} holds {image.mode} pixels. Save it as 8-bit color, or 8- or 16-bit grey.")
    if image.mode in ("CMYK", "YCbCr"):
        notes.append(f"{name} is {image.mode} and is read as RGB")
    clear = "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBA", "RGBa")
    grey = image.mode in ("1", "L", "LA", "La") or raw.startswith("LA")
    pixels = np.asarray(image.convert(("LA" if grey else "RGBA") if clear else ("L" if grey else "RGB")))
    if not clear:
        return np.array(pixels), None
    return np.array(pixels[..., 0] if grey else pixels[..., :3]), np.array(pixels[..., -1])


def color_of(text: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of '#ff00ff', 'ff00ff' or a name.

    >>> color_of("#ff00ff"), color_of("white")
    ((255, 0, 255), (255, 255, 255))
    """
    bare = len(text) == 6 and all(letter in "0123456789abcdefABCDEF" for letter in text)
    try:
        red, green, blue, *_ = ImageColor.getrgb(f"#{text}" if bare else text)
    except ValueError:
        raise InputError(f"{text!r} is not a color. Write '#ff00ff' (in quotes), or a name such as red.") from None
    return red, green, blue


def encode_image(
    ending: str, pixels: np.ndarray, alpha: np.ndarray | None = None, icc_profile: bytes | None = None
) -> bytes:
    """The bytes of a picture file with that ending; refused when the format cannot hold the picture.

    >>> len(encode_image(".bmp", np.zeros((2, 2), np.uint8))) > 12
    True
    """
    ending = ending.lower()
    check_holds(ending, pixels, alpha)
    if alpha is not None and ending in WITH_ALPHA:
        pixels = np.dstack([pixels, alpha])
    file = io.BytesIO()
    kind = Image.registered_extensions()[ending]
    kept = {"icc_profile": icc_profile} if icc_profile and kind in ("PNG", "JPEG", "TIFF", "WEBP") else {}
    try:
        Image.fromarray(np.ascontiguousarray(pixels)).save(file, kind, **OPTIONS.get(kind, {}), **kept)
    except (OSError, ValueError) as error:
        raise InputError(f"{ending} cannot hold this picture ({reason(error)}). Use .png.") from None
    return file.getvalue()


def check_holds(ending: str, pixels: np.ndarray, alpha: np.ndarray | None) -> None:
    """Refuse a format that would lose something of the picture."""
    what = f"{pixels.dtype} of shape {pixels.shape}"
    if ending not in ENDINGS:
        raise InputError(f"A picture is not written as {ending or 'a name without ending'}. Use {', '.join(ENDINGS)}.")
    if pixels.dtype not in (np.uint8, np.uint16) or pixels.shape[2:] not in ((), (3,)) or not pixels.size:
        raise InputError(f"A picture is uint8 or uint16, (h,w) or (h,w,3); this is {what}. Round and clip it first.")
    if pixels.dtype == np.uint16 and (ending not in DEEP or pixels.ndim == 3 or alpha is not None):
        raise InputError(
            f"{ending} is not written with 16 bits here (only grey without transparency, as {', '.join(DEEP)}). "
            "Choose one of these, or turn the picture into 8 bits."
        )
    if pixels.ndim == 3 and ending == ".pgm":
        raise InputError("A .pgm file holds grey only. End the name with .ppm or .png.")
    if alpha is not None and (alpha.shape != pixels.shape[:2] or alpha.dtype != pixels.dtype):
        raise InputError(f"alpha is {alpha.dtype} of shape {alpha.shape}, the picture {what}. They must agree.")
    if alpha is not None and ending not in WITH_ALPHA and alpha.min() < np.iinfo(alpha.dtype).max:
        raise InputError(f"{ending} cannot hold transparency, which the picture has. Use {', '.join(WITH_ALPHA)}.")


def write_image(
    path: str | Path, pixels: np.ndarray, alpha: np.ndarray | None = None, icc_profile: bytes | None = None
) -> None:
    """Write a picture as its ending says, whole or not at all.

    Parameters
    ----------
    path : str or Path
        Ends in .png, .jpg, .tif, .webp, .bmp, .pgm or .ppm. JPEG is written with quality 95, WebP without loss.
    pixels : ndarray of shape (h, w) or (h, w, 3), uint8 or uint16
        16 bits are for grey, as PNG, TIFF or PGM.
    alpha : ndarray of shape (h, w), optional
        Transparency, of the same type. Refused where the format has none, unless nothing is transparent.
    icc_profile : bytes, optional
        What the colors mean, as `read_image` found it.
    """
    data = encode_image(Path(path).suffix, pixels, alpha, icc_profile)
    write_bytes(path, data)
