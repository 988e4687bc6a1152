"""One frame of a run as bytes: what the page draws.

    u32 length of the header · header, JSON padded with spaces to 4 · arrays, each padded to 4      (little endian)

The header has job, index, sweep, seconds, objective, final, meta, and of each array name, dtype and shape. Arrays that
``meta.static`` of the first frame names are sent in that frame alone, and its meta is valid until a frame changes it;
`merge` puts both into another frame.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twofold.core.printable import plain

if TYPE_CHECKING:  # the server cuts and joins frames, and needs no numpy for that
    import numpy as np

SIZES = {"f4": 4, "u1": 1, "i4": 4}


def encode(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write a frame of arrays of 32-bit floats, 32-bit integers or bytes.

    >>> frame = encode({"job": "a", "index": 0}, {"points": np.zeros((3, 2), np.float32)})
    >>> head, arrays = decode(frame)
    >>> head["arrays"], len(arrays["points"])
    ([{'name': 'points', 'dtype': 'f4', 'shape': [3, 2]}], 24)
    """
    listed = [{"name": name, "dtype": one.dtype.str[1:], "shape": list(one.shape)} for name, one in arrays.items()]
    return join({**plain(header), "arrays": listed}, [one.tobytes() for one in arrays.values()])


def decode(frame: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header of a frame, and its arrays as bytes."""
    (length,) = struct.unpack_from("<I", frame)
    header = json.loads(frame[4 : 4 + length])
    return header, dict(_cut(frame, 4 + length, header["arrays"]))


def merge(first: bytes, frame: bytes) -> bytes:
    """Add to a frame the parts that only the first one has."""
    if frame is first:
        return frame
    there, arrays = decode(frame)
    header, own = decode(first)
    static = set(header["meta"].get("static", ()))
    added = [one for one in header["arrays"] if one["name"] in static and one["name"] not in arrays]
    there |= {"meta": header["meta"] | there["meta"], "arrays": added + there["arrays"]}
    return join(there, [*(own[one["name"]] for one in added), *arrays.values()])


def join(header: Mapping[str, Any], parts: list[bytes]) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    return b"".join([struct.pack("<I", len(text)), text, *(part + bytes(-len(part) % 4) for part in parts)])


def _cut(frame: bytes, at: int, listed: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    for one in listed:
        size = math.prod(one["shape"]) * SIZES[one["dtype"]]
        yield one["name"], frame[at : at + size]
        at += size + -size % 4
