"""The file of a compressed image or of signals: what is in it, how it is written, and how it is read.

    "TFI" or "TFS"     3 bytes, and one for the version
    head               method, dtype, shape, quantization step, PSNR, and how long what follows is
    coefficients       whole numbers, arithmetically coded
    extra              alpha as it was, packed by LZMA or zlib, whichever is shorter; or the labels of signals
    checksum           4 bytes, CRC-32 of all before

The coefficients are those of a channel as planes, which hold few large numbers:

    blocks     every 8 x 8 block in an orthonormal basis; plane k is the k-th coefficient of all blocks
               the basis: cosines, or the principal directions of the image's own blocks
    wavelets   averages and differences of neighbors, halving the averages again and again; a plane is a band
    lapped     for signals as rows: cosines under overlapping windows; a plane is a signal, windows by frequencies

Each predicts the magnitude of a coefficient: from frequencies close by, or from the next coarser band.
A coefficient c is stored as q = ±⌊|c| / step + 0.38⌋, rounded a little towards zero since small ones are common, and
read as ±(|q| + shift) step, where the shift is how far those that became 1, 2, or more were off in the mean.
References: Wallace 1992 (JPEG); Cohen, Daubechies & Feauveau 1992 (the 9/7 wavelet); Daubechies & Sweldens 1998 (its
four steps); Princen & Bradley 1986 (lapped cosines).
"""

from __future__ import annotations

import lzma
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import fft

from twofold.core.checks import InputError
from twofold.core.engine.local import single_blas
from twofold.io.open import check_budget
from twofold.kernels.arithmetic_coder import CONTEXTS, EVEN_CHANCE, LENGTHS, PLANE_KINDS, WORD_MASK, code_plane
from twofold.signals.bases import DCT, apply_along_each
from twofold.signals.images.channels import join_channels, split_channels

SIDE = 8
ATOM_STEPS = 16  # a learned atom is stored in multiples of 1 / ATOM_STEPS
LIFTING_WEIGHTS = (
    -1.586134342059924,
    -0.052980118572961,
    0.882911075530934,
    0.443506852043971,
)  # difference, average, again
AVERAGE_SCALE = 1.149604398860241  # of averages, which makes the wavelet almost orthonormal
WINDOW = 512  # numbers of a signal from one window to the next
MIN_SIDE_TO_HALVE = 16  # pixels
METHODS = "dct", "wavelet", "pca"  # for images
STORED = (*METHODS, "lapped")  # in the order of their numbers in a file
DTYPES = "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"
ROUND_UP = 0.38
VERSION = 1
HEAD = struct.Struct("<3sBBBBIIddbbbBI")
CHECK = struct.Struct("<I")
MAX_PIXELS_PER_BYTE = 1 << 14  # of the coder: a file with more is not genuine
ORDINARY, SMOOTH, ATOMS = range(PLANE_KINDS)


@dataclass(frozen=True)
class Blocks:
    """Blocks in a basis; close[k]: earlier planes, with weights, from which the magnitudes of plane k are predicted."""

    atoms: np.ndarray  # (k, 64)
    smooth: ClassVar[bool] = True  # the first plane, so that its numbers are guessed from their neighbors
    close: tuple[tuple[tuple[int, int], ...], ...]

    def planes(self, channel: np.ndarray) -> list[np.ndarray]:
        B = cut_blocks(channel)
        with single_blas():
            return list((self.atoms.astype(B.dtype) @ B.reshape(len(B), -1)).reshape(-1, *B.shape[1:]))

    def channel(self, planes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        C = np.stack(planes)
        with single_blas():
            B = self.atoms[: len(C)].T.astype(C.dtype) @ C.reshape(len(C), -1)
        B = B.reshape(SIDE, SIDE, *C.shape[1:]).transpose(2, 0, 3, 1)
        return B.reshape(C.shape[1] * SIDE, -1)[: shape[0], : shape[1]]

    def shapes(self, shape: tuple[int, int]) -> list[tuple[int, int]]:
        return [(-(-shape[0] // SIDE), -(-shape[1] // SIDE))] * len(self.atoms)

    def predict_sizes(self, sizes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """The likely magnitudes in the next plane, from those in the planes before."""
        total = np.zeros(shape, np.int64)
        for k, weight in self.close[len(sizes)]:
            total += weight * sizes[k]
        return total


def cut_blocks(channel: np.ndarray) -> np.ndarray:
    """Pixels by their place in a block: (64, blocks down, blocks across), the last row and column repeated."""
    h, w = channel.shape
    padded = np.pad(channel, ((0, -h % SIDE), (0, -w % SIDE)), mode="edge")
    down, across = (n // SIDE for n in padded.shape)
    return padded.reshape(down, SIDE, across, SIDE).transpose(1, 3, 0, 2).reshape(SIDE * SIDE, down, across)


@cache
def make_cosine_blocks() -> Blocks:
    """From low to high frequencies; the magnitude at (u,v) is predicted from the next lower ones."""
    order = sorted(np.ndindex(SIDE, SIDE), key=lambda f: (sum(f), f))
    place = {frequency: k for k, frequency in enumerate(order)}
    del place[0, 0]  # the mean predicts nothing
    steps = ((1, 0, 2), (0, 1, 2), (1, 1, 1), (2, 0, 1), (0, 2, 1))
    close = tuple(
        tuple((place[u - a, v - b], weight) for a, b, weight in steps if (u - a, v - b) in place) for u, v in order
    )
    atoms = DCT(ndim=2).matrix((SIDE, SIDE))
    return Blocks(atoms[[u * SIDE + v for u, v in order]], close)


def find_principal_atoms(channels: list[np.ndarray]) -> np.ndarray:
    """The principal directions of all blocks, as whole numbers: coefficients of cosines, in steps of 1 / ATOM_STEPS."""
    moment, cosine = np.zeros((SIDE * SIDE, SIDE * SIDE)), make_cosine_blocks().atoms
    largest = max(float(np.abs(channel).max()) for channel in channels) or 1.0
    for channel in channels:
        for top in range(0, len(channel), 32 * SIDE):  # a strip at a time
            B = cut_blocks(channel[top : top + 32 * SIDE]).reshape(SIDE * SIDE, -1) / np.float64(largest)
            with single_blas():
                moment += B @ B.T
    with single_blas():
        axes = np.linalg.eigh(cosine @ moment @ cosine.T)[1][:, ::-1].T
    return np.rint(axes * ATOM_STEPS).astype(np.int32)


def make_learned_blocks(whole: np.ndarray) -> Blocks:
    """Blocks in the basis of these whole numbers (k, 64), made orthonormal again."""
    with single_blas():
        Q, R = np.linalg.qr(whole.T / ATOM_STEPS)
        atoms = (Q * np.where(np.diag(R) < 0, -1, 1)).T @ make_cosine_blocks().atoms
    return Blocks(atoms, tuple(tuple((j, 1) for j in range(max(1, k - 6), k)) for k in range(len(whole))))


@dataclass(frozen=True)
class Pyramid:
    """Bands of the 9/7 wavelet, mirrored at the borders: the coarsest averages, then the details of every size."""

    smooth: ClassVar[bool] = True

    def planes(self, channel: np.ndarray) -> list[np.ndarray]:
        rest, bands = channel, list[np.ndarray]()
        for h, w in self._halve_sizes(channel.shape):
            both = apply_along_each(_split_level, rest, 2)
            bands = [both[:h, w:], both[h:, :w], both[h:, w:], *bands]
            rest = both[:h, :w]
        return [rest, *bands]

    def channel(self, planes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        shapes = self.shapes(shape)
        planes = planes + [np.zeros(s, planes[0].dtype) for s in shapes[len(planes) :]]
        rest = planes[0]
        for k in range(1, len(planes), 3):
            across, down, both = planes[k : k + 3]
            rest = apply_along_each(_join_level, np.block([[rest, across], [down, both]]), 2)
        return rest

    def shapes(self, shape: tuple[int, int]) -> list[tuple[int, int]]:
        found, last = list[tuple[int, int]](), shape
        for h, w in self._halve_sizes(shape):
            found = [(h, last[1] - w), (last[0] - h, w), (last[0] - h, last[1] - w), *found]
            last = h, w
        return [last, *found]

    def predict_sizes(self, sizes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """Twice the magnitude at the same place of the next coarser band."""
        coarse = sizes[-3] if len(sizes) > 3 else np.zeros((0, 0), np.int64)
        if 0 in coarse.shape:
            return np.zeros(shape, np.int64)
        i, j = (np.minimum(np.arange(n) // 2, m - 1) for n, m in zip(shape, coarse.shape, strict=True))
        return 2 * coarse[np.ix_(i, j)].astype(np.int64)

    def _halve_sizes(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        found, (h, w) = list[tuple[int, int]](), shape
        while max(h, w) >= MIN_SIDE_TO_HALVE:
            h, w = (h + 1) // 2, (w + 1) // 2
            found.append((h, w))
        return found


@dataclass(frozen=True)
class Lapped:
    """Signals (c,d) in cosines under windows of 2 WINDOW numbers, each half over the next: orthonormal, seamless."""

    smooth: ClassVar[bool] = False

    def planes(self, channel: np.ndarray) -> list[np.ndarray]:
        h, d = channel.shape
        frames = self.shapes((h, d))[0][0]
        long = np.pad(channel, ((0, 0), (WINDOW, frames * WINDOW - d)), "symmetric")
        pairs = np.lib.stride_tricks.sliding_window_view(long, 2 * WINDOW, axis=1)[:, ::WINDOW]
        a, b, c, e = np.split(pairs * make_window(channel.dtype), 4, axis=-1)  # halves of WINDOW
        folded = np.concatenate([-c[..., ::-1] - e, a - b[..., ::-1]], axis=-1)
        return list(fft.dct(folded, type=4, norm="ortho"))

    def channel(self, planes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        silent = np.zeros(self.shapes(shape)[0], planes[0].dtype)
        folded = fft.idct(np.stack(planes + [silent] * (shape[0] - len(planes))), type=4, norm="ortho")
        first, second = np.split(folded, 2, axis=-1)
        pairs = np.concatenate([second, -second[..., ::-1], -first[..., ::-1], -first], axis=-1)
        pairs = pairs * make_window(folded.dtype)
        long = pairs[:, 1:, :WINDOW] + pairs[:, :-1, WINDOW:]  # two windows overlap at each place
        return long.reshape(len(long), -1)[:, : shape[1]]

    def shapes(self, shape: tuple[int, int]) -> list[tuple[int, int]]:
        return [(-(-shape[1] // WINDOW) + 1, WINDOW)] * shape[0]

    def predict_sizes(self, sizes: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """Twice the magnitude in the signal before."""
        return 2 * sizes[-1].astype(np.int64) if sizes else np.zeros(shape, np.int64)


def make_window(dtype: np.dtype) -> np.ndarray:
    """The half period of a sine: its square and that of the next window add up to 1."""
    return np.sin(np.pi * (np.arange(2 * WINDOW) + 0.5) / (2 * WINDOW)).astype(dtype)


def _split_level(X: np.ndarray) -> np.ndarray:
    """One level along the last axis: the averages, then the differences."""
    if X.shape[-1] < 2:
        return X
    even, odd = X[..., ::2].copy(), X[..., 1::2].copy()
    for t, weight in enumerate(LIFTING_WEIGHTS):
        _lift(even, odd, weight, t)
    return np.concatenate([even * X.dtype.type(AVERAGE_SCALE), odd / X.dtype.type(AVERAGE_SCALE)], axis=-1)


def _join_level(C: np.ndarray) -> np.ndarray:
    """The reverse: every step undone, the last first."""
    n = C.shape[-1]
    if n < 2:
        return C
    scale = C.dtype.type(AVERAGE_SCALE)
    even, odd = C[..., : (n + 1) // 2] / scale, C[..., (n + 1) // 2 :] * scale
    for t, weight in reversed(list(enumerate(LIFTING_WEIGHTS))):
        _lift(even, odd, -weight, t)
    out = np.empty_like(C)
    out[..., ::2], out[..., 1::2] = even, odd
    return out


def _lift(even: np.ndarray, odd: np.ndarray, weight: float, step: int) -> None:
    """Add to the differences (even steps) or to the averages (odd steps) a multiple of both neighbors."""
    weight, short = even.dtype.type(weight), odd.shape[-1] - (even.shape[-1] - 1)  # 1 if the last one is odd
    if step % 2 == 0:
        odd += weight * even[..., : odd.shape[-1]]
        odd[..., : even.shape[-1] - 1] += weight * even[..., 1:]
        odd[..., odd.shape[-1] - short :] += weight * even[..., even.shape[-1] - short :]
    else:
        even[..., 1:] += weight * odd[..., : even.shape[-1] - 1]
        even[..., : odd.shape[-1]] += weight * odd
        even[..., :1] += weight * odd[..., :1]
        if not short:
            even[..., -1] += weight * odd[..., -1]


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
