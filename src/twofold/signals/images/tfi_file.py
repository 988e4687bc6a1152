"""The file of a compressed image or of signals: what is in it, how it is written, and how it is read.

    "TFI" or "TFS"     3 bytes, and one for the version
    head               method, dtype, shape, quantization step, PSNR, and how long what follows is
    coefficients       whole numbers, arithmetically coded
    extra              alpha as it was, packed by LZMA or zlib, whichever is shorter; or the labels of signals
    checksum           4 bytes, CRC-32 of all before

A coefficient c is stored as q = ±⌊|c| / step + 0.38⌋, rounded a little towards zero since small ones are common, and
read as ±(|q| + shift) step, where the shift is how far those that became 1, 2, or more were off in the mean.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.io.open import check_budget
from twofold.kernels.arithmetic_coder import CONTEXTS, EVEN_CHANCE, LENGTHS, PLANE_KINDS, WORD_MASK, code_plane
from twofold.signals.images._planes import (
    SIDE,
    Blocks,
    Lapped,
    Pyramid,
    find_principal_atoms,
    make_cosine_blocks,
    make_learned_blocks,
)
from twofold.signals.images.channels import join_channels, split_channels

METHODS = "dct", "wavelet", "pca"  # for images
STORED = (*METHODS, "lapped")  # in the order of their numbers in a file
DTYPES = "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"
ROUND_UP = 0.38
VERSION = 1
HEAD = struct.Struct("<3sBBBBIIddbbbBI")
CHECK = struct.Struct("<I")
MAX_PIXELS_PER_BYTE = 1 << 14  # of the coder: a file with more is not genuine
ORDINARY, SMOOTH, ATOMS = range(PLANE_KINDS)


class Head(NamedTuple):
    """The start of a file."""

    magic: bytes
    version: int
    method: int
    dtype: int
    depth: int  # of the last axis; 0 if the image has two
    height: int
    width: int
    step: float
    psnr: float
    shift1: int  # in steps of 1 / 128
    shift2: int
    shift3: int
    planes: int  # a channel; those after are zero
    extra: int  # bytes

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, self.width, self.depth)[: 3 if self.depth else 2]

    @property
    def channels(self) -> int:
        return 3 if self.depth >= 3 else 1


class Quantized(NamedTuple):
    """The coefficients of an image as whole numbers, planes one after the other."""

    numbers: list[np.ndarray]  # for each channel, int32
    shapes: list[tuple[int, int]]  # of the planes
    shifts: tuple[int, int, int]  # in steps of 1 / 128
    step: float
    atoms: np.ndarray | None  # of a learned basis


def quantize(
    coefficients: list[np.ndarray], shapes: list[tuple[int, int]], step: float, atoms: np.ndarray | None
) -> Quantized:
    """Round; planes at the end that are zero in all channels are left out."""
    numbers, last, counts, rests = list[np.ndarray](), 0, np.zeros(4), np.zeros(4)
    for c in coefficients:
        size = np.abs(c) / c.dtype.type(step)
        q = np.floor(size + c.dtype.type(ROUND_UP))
        there = np.flatnonzero(q)
        kind = np.minimum(q[there], 3).astype(np.intp)
        counts += np.bincount(kind, minlength=4)
        rests += np.bincount(kind, size[there] - q[there], minlength=4)
        last = max(last, int(there[-1]) if len(there) else 0)
        numbers.append(np.copysign(q, c).astype(np.int32))
    ends = np.cumsum([h * w for h, w in shapes])
    used = int(np.searchsorted(ends, last, side="right")) + 1
    one, two, more = (round(128 * rests[k] / max(counts[k], 1)) for k in (1, 2, 3))
    atoms = None if atoms is None else np.ascontiguousarray(atoms[:used])
    return Quantized([q[: ends[used - 1]] for q in numbers], shapes[:used], (one, two, more), step, atoms)


def dequantize(q: np.ndarray, shifts: tuple[int, int, int], step: float, dtype: Any) -> np.ndarray:
    """Coefficients from whole numbers."""
    size = np.abs(q)
    moved = np.array([0, *shifts], dtype)[np.minimum(size, 3)] / dtype.type(128)
    return np.copysign((size + moved) * dtype.type(step), q.astype(dtype))


def split_planes(flat: np.ndarray, shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """Views of the planes, which lie one after the other."""
    ends = np.cumsum([h * w for h, w in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]


def choose_transform(method: str, atoms: np.ndarray | None) -> Blocks | Pyramid | Lapped:
    if method in ("wavelet", "lapped"):
        return Pyramid() if method == "wavelet" else Lapped()
    return make_cosine_blocks() if atoms is None else make_learned_blocks(atoms)


def learn_atoms(method: str, channels: list[np.ndarray]) -> np.ndarray | None:
    """The image's own basis as it is stored, if the method learns one."""
    return find_principal_atoms(channels) if method == "pca" else None


def decode_channels(quantized: Quantized, method: str, shape: tuple[int, int], dtype: np.dtype) -> list[np.ndarray]:
    """The channels (h,w) from quantized coefficients."""
    transform = choose_transform(method, quantized.atoms)
    back = [dequantize(q, quantized.shifts, quantized.step, dtype) for q in quantized.numbers]
    return [transform.channel(split_planes(c, quantized.shapes), shape) for c in back]


class Coder:
    """Writes planes of whole numbers one after the other, or reads them."""

    def __init__(self, data: bytes | None = None):
        self.reading = data is not None
        self.buffer = np.frombuffer(data, np.uint8).copy() if data is not None else np.zeros(4096, np.uint8)
        word = int.from_bytes((data or b"")[:4].ljust(4, b"\0"), "big")
        self.state = np.array([0, WORD_MASK, word, 4 if self.reading else 0], np.int64)
        self.odds = np.full((PLANE_KINDS, CONTEXTS, CONTEXTS, LENGTHS, 2), EVEN_CHANCE, np.int64)
        self.second = np.full((LENGTHS, 2), EVEN_CHANCE, np.int64)

    def plane(self, q: np.ndarray, expected: np.ndarray, kind: int) -> np.ndarray:
        """Write q, or fill it with what is read; returns the magnitudes."""
        size = np.zeros(q.shape, np.int32)
        self.buffer = code_plane(q, size, expected, kind, self.odds, self.second, self.state, self.buffer, self.reading)
        return size

    def finish(self) -> bytes:
        """All bytes, with one more that ends the interval; zeros at the end are left out."""
        low, place = int(self.state[0]), int(self.state[3])
        return (self.buffer[:place].tobytes() + bytes([min((low >> 24) + 1, 255)])).rstrip(b"\0")


def encode(quantized: Quantized, method: str) -> bytes:
    coder = Coder()
    if quantized.atoms is not None:
        coder.plane(quantized.atoms, np.zeros(quantized.atoms.shape, np.int64), ATOMS)
    _code_planes(coder, choose_transform(method, quantized.atoms), quantized)
    return coder.finish()


def _code_planes(coder: Coder, transform: Blocks | Pyramid | Lapped, quantized: Quantized) -> None:
    for numbers in quantized.numbers:
        sizes = list[np.ndarray]()
        for k, q in enumerate(split_planes(numbers, quantized.shapes)):
            sizes.append(
                coder.plane(
                    q, transform.predict_sizes(sizes, q.shape), SMOOTH if transform.smooth and k == 0 else ORDINARY
                )
            )


def pack_alpha(alpha: np.ndarray) -> bytes:
    """Alpha without loss: a byte for the method, then the differences along the rows, packed."""
    whole = alpha.view(f"u{alpha.itemsize}")
    steps = whole.astype(f"<u{alpha.itemsize}")
    steps[:, 1:] -= whole[:, :-1]
    raw = steps.tobytes()
    return min(b"Z" + zlib.compress(raw, 9), b"X" + lzma.compress(raw, preset=9), key=len)


def unpack_alpha(data: bytes, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    count = shape[0] * shape[1] * dtype.itemsize
    if data[:1] == b"Z":
        raw = zlib.decompressobj().decompress(data[1:], count + 1)
    else:
        raw = lzma.LZMADecompressor().decompress(data[1:], count + 1)
    if len(raw) != count:
        raise ValueError("alpha is not as long as the image")
    steps = np.frombuffer(raw, f"<u{dtype.itemsize}").reshape(shape)
    return np.cumsum(steps, axis=1, dtype=f"u{dtype.itemsize}").view(dtype)


def seal(head: Head, coefficients: bytes, extra: bytes) -> bytes:
    """The bytes of the file."""
    data = HEAD.pack(*head) + coefficients + extra
    return data + CHECK.pack(zlib.crc32(data))


def read_head(data: bytes, name: str, magic: bytes, noun: str) -> Head:
    """The checked start of a file; `name` and `noun` are for messages."""
    if len(data) < HEAD.size + CHECK.size or data[:3] != magic:
        raise InputError(f"{name} is not {noun} that twofold compressed, or its start is damaged.")
    if data[3] > VERSION:
        raise InputError(f"{name} has version {data[3]}, this twofold reads up to {VERSION}. Upgrade twofold.")
    (check,) = CHECK.unpack(data[-CHECK.size :])
    if check != zlib.crc32(data[: -CHECK.size]):
        raise InputError(f"{name} is damaged or cut short: it does not match its checksum. Make it again.")
    head = Head(*HEAD.unpack(data[: HEAD.size]))
    known = head.method < len(STORED) and head.dtype < len(DTYPES) and head.depth <= 4 and head.planes >= 1
    pixels = head.height * head.width
    if not known or not 0 < pixels <= MAX_PIXELS_PER_BYTE * len(data) or not 0 < head.step < np.inf:
        raise InputError(f"{name} has a head that makes no sense. Make it again.")
    check_budget(4 * pixels * head.channels, f"{name}, {head.width:,} by {head.height:,} pixels,")
    return head


def decode(head: Head, data: bytes, name: str) -> np.ndarray:
    """The image in a file."""
    try:
        return _decode_body(head, data[HEAD.size : -CHECK.size])
    except (ValueError, IndexError, zlib.error, lzma.LZMAError, EOFError) as error:
        raise InputError(f"{name} cannot be read, although its checksum is right: {error}.") from error


def _decode_body(head: Head, body: bytes) -> np.ndarray:
    method, dtype, shape = STORED[head.method], np.dtype(DTYPES[head.dtype]), (head.height, head.width)
    coder, atoms = Coder(body[: len(body) - head.extra]), None
    if method == "pca":
        atoms = np.zeros((min(head.planes, SIDE * SIDE), SIDE * SIDE), np.int32)
        coder.plane(atoms, np.zeros(atoms.shape, np.int64), ATOMS)
    transform = choose_transform(method, atoms)
    shapes = transform.shapes(shape)[: head.planes]
    numbers = [np.zeros(sum(h * w for h, w in shapes), np.int32) for _ in range(head.channels)]
    quantized = Quantized(numbers, shapes, (head.shift1, head.shift2, head.shift3), head.step, atoms)
    _code_planes(coder, transform, quantized)
    like = np.zeros(head.shape, dtype)
    if head.depth in (2, 4):
        like[..., -1] = unpack_alpha(body[len(body) - head.extra :], shape, dtype)
    return join_channels(decode_channels(quantized, method, shape, split_channels(like[:1, :1])[0].dtype), like)
