"""What users bring: read as what it holds, kept without loss, and made again by the Python that is shown for it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from scipy.io import mmwrite, wavfile
from scipy.sparse import coo_array

from twofold.core.checks import InputError
from twofold.lab import data

RNG = np.random.default_rng(0)
PROSE = "A sentence that is long enough to be taken for prose, since it goes on and on."


def csv(text: str) -> bytes:
    return text.encode()


def save_bytes(write: Callable[[Any], Any]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def arrays(**named: np.ndarray) -> bytes:
    return save_bytes(lambda out: np.savez(out, **named))


def picture(*shape: int, deep: bool = False) -> bytes:
    pixels = RNG.integers(0, 2**16 if deep else 256, shape)
    return save_bytes(lambda out: Image.fromarray(pixels.astype(np.uint16 if deep else np.uint8)).save(out, "PNG"))


FILES = {
    "plain.csv": ("table", csv("a,b\n1,2\n3,4\n5,7\n")),
    "named.tsv": ("table", csv("name\ta\tb\nx\t1\t2\ny\t\t4\nz\t5\t7\n")),
    "blank.csv": ("table", csv("a,b,c,kind\n1,2,,red\n3,,,blue\n5,7,,red\n6,1,,blue\n")),
    "label.csv": ("table", csv("a,b,label\n1,2,x\n3,4,y\n5,7,x\n8,9,y\n")),
    "array.npy": ("table", save_bytes(lambda out: np.save(out, RNG.normal(size=(6, 3))))),
    "sparse.mtx": ("table", save_bytes(lambda out: mmwrite(out, coo_array(np.eye(4))))),
    "frame.parquet": ("table", save_bytes(pl.DataFrame({"a": [1.5, 2.5, 9.0], "b": [1, 2, 4]}).write_parquet)),
    "stars.csv": ("ratings", csv("user,item,rating\n1,a,5\n2,b,3\n1,b,4\n")),
    "clicks.csv": ("ratings", csv("user,item\n1,a\n2,b\n1,b\n")),
    "notes.txt": ("text", csv("one line\nanother line\n")),
    "news.csv": ("text", csv(f'id,text\n1,"{PROSE}"\n2,"{PROSE} And more."\n')),
    "grey.png": ("picture", picture(9, 12)),
    "color.png": ("picture", picture(9, 12, 3)),
    "deep.png": ("picture", picture(9, 12, deep=True)),
    "large.png": ("picture", picture(700, 300)),
    "cube.npy": ("pictures", save_bytes(lambda out: np.save(out, RNG.integers(0, 9, (5, 4, 3))))),
    "classes.npz": ("pictures", arrays(images=RNG.random((5, 4, 3)), labels=np.array([1, 0, 1, 0, 1]))),
    "wave.npy": ("signal", save_bytes(lambda out: np.save(out, np.arange(30)))),
    "sound.wav": ("signal", save_bytes(lambda out: wavfile.write(out, 8000, np.arange(50, dtype=np.int16)))),
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, pl.DataFrame):
        return a.equals(b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return a == b


def assert_same_data(first: data.Data, other: data.Data) -> None:
    for part in first.__dataclass_fields__:
        assert same(getattr(first, part), getattr(other, part)), part


@pytest.fixture(params=FILES)
def brought(request, tmp_path, monkeypatch) -> data.Data:
    monkeypatch.chdir(tmp_path)
    kind, content = FILES[request.param]
    Path(request.param).write_bytes(content)
    hidden = tmp_path / f"upload-1{Path(request.param).suffix}"
    hidden.write_bytes(content)
    found = data.read(str(hidden), request.param, "own-1")
    assert found.kind == kind
    return found


def test_the_code_that_is_shown_makes_the_same_data(brought):
    bound: dict[str, Any] = {}
    exec(brought.code, bound)
    assert "upload-1" not in brought.code + brought.about
    for part, name in data.PART_NAMES.items():
        there = getattr(brought, part)
        assert (there is None) == (name not in bound), name
        assert there is None or same(there, bound[name]), name


def test_what_is_kept_for_other_processes_is_the_same(brought, tmp_path):
    data.keep(brought, tmp_path)
    again = data.load("own-1", tmp_path)
    assert_same_data(brought, again)
    assert again.describe() == brought.describe()


@pytest.mark.parametrize(
    "id", [id for id in data.EXAMPLES if id not in ("docstrings", "none")]
)  # which take seconds to make
def test_examples_are_as_described_and_kept_without_loss(id, tmp_path):
    made, example = data.make(id), data.EXAMPLES[id]
    assert tuple(made.shape) == example.shape and made.describe()["kind"] == example.kind
    json.dumps(made.describe())
    data.keep(made, tmp_path)
    assert_same_data(made, data.load(id, tmp_path))


def test_a_wrong_kind_or_id_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError, match=r"mine\.csv"):
        data.read(str(path), "mine.csv", "own-1", "picture")
    with pytest.raises(InputError, match="no longer there"):
        data.load("own-2", tmp_path)
