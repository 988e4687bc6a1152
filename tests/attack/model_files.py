"""Model files that were changed: bytes at random, and arrays and numbers with the digest made right again."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import twofold
from tests.attack.child import is_refused, run
from tests.contract.registry import MODELS, table
from twofold.core.files.safetensors_file import read_file, write_file

LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog met on a mat"] * 20
METHODS = ("transform", "predict", "score", "complete", "recommend_all", "sample", "fold_in", "similar_items")


def models() -> dict[str, tuple[Any, Any]]:
    """One fitted model of every class that is quick to fit, and what to give its methods."""
    X, y = table()
    found = {case.model: (case.get_fitted(), X) for case in reversed(MODELS)}
    counts = np.random.default_rng(0).integers(0, 4, (30, 8)).astype(float)
    bag = twofold.BagOfWords(min_length=1, stop_words=None).fit(LINES)
    found["BagOfWords"] = bag, LINES
    for name in ("SkipGram", "GloVe", "PMIEmbedding"):
        found[name] = getattr(twofold, name)(2, random_state=0).fit(LINES), None
    found["MLPClassifier"] = twofold.MLPClassifier((4,), max_iter=2, random_state=0).fit(X, y), X
    found["Autoencoder"] = twofold.Autoencoder(2, max_iter=1, random_state=0).fit(X), X
    rows = [(int(i), int(j), float(counts[i, j])) for i, j in zip(*np.nonzero(counts), strict=True)]
    for model in (twofold.ALS(2, max_iter=3), twofold.EASE(), twofold.Neighborhood()):
        found[f"Recommender of {type(model).__name__}"] = twofold.Recommender(model).fit(rows), None
    return found


def use(path: Path, X: Any) -> None:
    """Load, and ask all there is to ask; what Python itself refuses harms no one, once the file has loaded."""
    model = twofold.load(path)
    for name in METHODS:
        if hasattr(model, name):
            with contextlib.suppress(Exception):
                given = {"recommend_all": (3,), "sample": (3,), "similar_items": (1, 3)}.get(name, (X,))
                answer = getattr(model, name)(*given)
                list(answer) if name == "recommend_all" else None
    if hasattr(model, "vectors_"):
        with contextlib.suppress(Exception):
            model.vectors_.nearest("cat", n=3)


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """One of the things that happen to files."""
    length = int.from_bytes(data[:8], "little")
    a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    junk = rng.bytes(int(rng.integers(1, 40)))
    match int(rng.integers(9)):
        case 0:  # flipped bits, mostly where the meaning is
            out = bytearray(data)
            for _ in range(int(rng.integers(1, 5))):
                at = int(rng.integers(len(data) if rng.random() < 0.3 else 8 + length))
                out[at] ^= 1 << int(rng.integers(8))
            return bytes(out)
        case 1:
            return data[:a]
        case 2:
            return data[:a] + data[b:]
        case 3:
            return data[:a] + junk + data[a:]
        case 4:
            return data[:a] + data[b:] + data[a:b]
        case 5:
            return data[:a] + bytes(b - a) + data[b:]
        case 6:  # any length of the table
            wrong = [0, 1, length - 1, length + 1, len(data), 2**31, 2**40, 2**63, 2**64 - 1]
            return wrong[int(rng.integers(len(wrong)))].to_bytes(8, "little") + data[8:]
        case 7:  # a number somewhere in the table, the JSON still valid
            text = data[8 : 8 + length].decode()
            digits = [i for i, c in enumerate(text) if c.isdigit()]
            at = digits[int(rng.integers(len(digits)))]
            text = text[:at] + str(rng.choice(["9", "0", "-1", "99999999999999999999", "1e9", "null"])) + text[at + 1 :]
            return len(text.encode()).to_bytes(8, "little") + text.encode() + data[8 + length :]
    table = json.loads(data[8 : 8 + length])  # two entries swapped, or one gone
    one, other = rng.choice([k for k in table if k != "__metadata__"], 2)
    table[one], table[other] = table[other], table[one]
    if rng.random() < 0.3:
        del table[one]
    text = json.dumps(table)
    return len(text).to_bytes(8, "little") + text.encode() + data[8 + length :]


def spoil_bytes(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(damage(path.read_bytes(), rng))


def spoil_meaning(path: Path, rng: np.random.Generator) -> str:
    """Change an array or a number of the header, and write a file that is sound in itself."""
    header, arrays = read_file(path)
    name = str(rng.choice(sorted(arrays))) if arrays else ""
    if name and rng.random() < 0.75:
        arrays[name] = spoil_array(arrays[name], rng)
    else:
        name = "header"
        header["model"] = spoil_tree(header["model"], rng)
    write_file(path, header, arrays)
    return name


def spoil_array(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    a = a.copy()
    kind = int(rng.integers(7))
    if kind == 0 and a.size:
        odd = [-1, 2**31 - 1, 0, 10**6] if a.dtype.kind in "iu" else [np.nan, np.inf, -1e300, 0.0]
        with np.errstate(all="ignore"):
            a.flat[rng.integers(a.size, size=1 + a.size // 10)] = np.array(rng.choice(odd)).astype(a.dtype)
    elif kind == 1 and a.ndim:
        a = a[: max(0, len(a) - 1 - int(rng.integers(3)))]
    elif kind == 2 and a.ndim:
        a = np.concatenate([a, a])
    elif kind == 3:
        a = a.T.copy()
    elif kind == 4:
        a = a.reshape(-1)
    elif kind == 5:
        a = a.astype(np.int32 if a.dtype.kind == "f" else np.float32)
    elif kind == 6 and a.ndim:
        a = a[:0]
    return np.ascontiguousarray(a)


def spoil_tree(tree: Any, rng: np.random.Generator) -> Any:
    """The tree of a header with one of its numbers changed."""
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                places.append((node, key))
            elif isinstance(value, (dict, list)):
                visit(value)

    tree = json.loads(json.dumps(tree))
    visit(tree)
    if places:
        node, key = places[int(rng.integers(len(places)))]
        odd: list[Any] = [0, -1, 2**31 - 1, 10**6, 1e308, -1e308, "x", None, [], 2**70]
        node[key] = odd[int(rng.integers(len(odd)))]
    return tree


def attack(count: int, spoil: Callable[[Path, np.random.Generator], Any], seed: int = 0) -> Iterator[tuple[str, str]]:
    """So many changed files, the models in turn: refused, or harmless."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, (model, X) in models().items():
            model.save(Path(folder, f"{name}.twofold"))
            use(Path(folder, f"{name}.twofold"), X)  # its kernels are loaded once, here, and not in every child
            found[name] = X
        for tried in range(count):
            name = list(found)[tried % len(found)]
            path = Path(folder, "changed.twofold")
            path.write_bytes(Path(folder, f"{name}.twofold").read_bytes())
            what = spoil(path, rng)
            said = run(lambda path=path, X=found[name]: use(path, X))
            yield f"{name}, {what or 'bytes'}", "" if said == "done" or is_refused(said) else said
            os.unlink(path)
