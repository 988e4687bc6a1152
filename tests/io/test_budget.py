"""Small files that would take much memory: refused by name within the budget, and never held."""

from __future__ import annotations

import bz2
import gzip
import io
import sqlite3
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard
from numpy.lib import format as npy
from PIL import Image
from scipy import sparse

import twofold
from tests.attack.child import run
from twofold.io.documents import find_documents, read_documents
from twofold.io.image_sets import read_pictures
from twofold.io.images import read_image
from twofold.io.open import read_bytes
from twofold.io.tables.read import read_table
from twofold.signals import compress_image, open_image

ZEROS = b"0,0\n" * 30_000_000  # 120 MB
BUDGET, ROOM = "16MB", 100_000_000


def header(shape):
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def archive(path, **parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name.replace("_", "."), data)


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + size + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def endless(path):
    base = sqlite3.connect(path)
    rows = "with recursive c(x) as (select 1 union all select x + 1 from c) select x, x * 2 as y from c"
    base.execute(f"create view t as {rows}")
    base.commit()
    base.close()


def pictures(path):
    path.mkdir()
    for i in range(30):
        Image.new("L", (1000, 1000)).save(path / f"{i}.png", compress_level=1)


def hole(path):
    with open(path, "wb") as file:
        file.truncate(5 * 10**9)  # takes no room on disk


TABLES = {
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress(ZEROS, 1)),
    "a.csv.bz2": lambda path: path.write_bytes(bz2.compress(bytes(len(ZEROS)), 1)),
    "a.csv.zst": lambda path: path.write_bytes(zstandard.compress(ZEROS)),
    "a.csv.zip": lambda path: archive(path, a_csv=ZEROS),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b'{"a": 1}\n' * 3_000_000, 1)),
    "a.xlsx": lambda path: archive(path, xl_worksheets=ZEROS),
    "a.npz": lambda path: archive(path, a_npy=header((10**5, 10**5))),
    "columns.npz": lambda path: sparse.save_npz(path, sparse.csr_array((1, 10**10))),
    "a.mtx": lambda path: path.write_text("%%MatrixMarket matrix coordinate real general\n9 9 1000000000\n1 1 1\n"),
    "dense.mtx": lambda path: path.write_text("%%MatrixMarket matrix array real general\n1000000 1000000\n1\n"),
    "wide.mtx": lambda path: path.write_text("%%MatrixMarket matrix coordinate real general\n9 9999999999 1\n1 1 1\n"),
    "a.db": endless,
}
READERS = {name: (make, read_table) for name, make in TABLES.items()} | {
    "a.png": (lambda path: path.write_bytes(png(5000, 5000)), read_image),
    "b.npz": (lambda path: archive(path, images_npy=header((10**6, 28, 28))), read_pictures),
    "c-images-idx3.gz": (lambda path: path.write_bytes(gzip.compress(bytes(40_000_000), 1)), read_pictures),
    "folder": (pictures, read_pictures),
    "a.txt": (lambda path: path.write_bytes(b"a b " * 10_000_000), lambda path: read_documents([str(path)])),
    "b.txt": (lambda path: path.write_bytes(b"ab" * 10_000_000), lambda path: list(find_documents([str(path)]))),
    "c.txt.gz": (
        lambda path: path.write_bytes(gzip.compress(b"a b\n" * 10_000_000, 1)),
        lambda path: read_documents([str(path)]),
    ),
    "hole.txt": (hole, lambda path: read_documents([str(path)])),
    "hole.csv": (hole, read_table),
    "hole.png": (hole, read_image),
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit is set above what the process has")
@pytest.mark.parametrize("name", READERS)
def test_what_takes_more_than_the_budget_is_refused_by_name_and_never_held(tmp_path, name):
    make, read = READERS[name]
    path = tmp_path / name
    make(path)

    def call():
        with twofold.config(memory=BUDGET):
            read(path)

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    said = run(call, memory=pages * 4096 + ROOM)
    assert said.startswith("InputError")
    assert "the memory budget is 16 MB" in said or "not text" in said or "is no text" in said
    assert name in said or "document" in said


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.csv.zip", "a.csv"])
def test_within_the_budget_it_is_a_file_like_others(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sys.modules[__name__], "ZEROS", b"1,2\n" * 100_000)
    path = tmp_path / name
    own = {"a.csv": ZEROS, "a.csv.bz2": bz2.compress(ZEROS)}
    path.write_bytes(own[name]) if name in own else TABLES[name](path)
    assert read_bytes(path) == ZEROS
    with twofold.config(memory="1.1MB"):
        assert len(read_table(path).array()) == 100_000


def test_the_refusal_says_how_to_raise_the_budget(tmp_path):
    path = tmp_path / "a.csv.gz"  # plain text is read in blocks, packed text may be a bomb
    path.write_bytes(gzip.compress(b"1,2\n" * 750_000))
    with twofold.config(memory="2MB"), pytest.raises(twofold.InputError, match=r"memory='\d+MB'") as told:
        read_table(path)
    raised = str(told.value).split("memory='")[1].split("'")[0]
    with twofold.config(memory=raised):
        assert read_table(path).array().shape == (750_000, 2)


def test_a_table_of_text_that_is_larger_than_its_file_is_refused_too(tmp_path):  # polars does not run in a fork
    path, n = tmp_path / "a.parquet", 2_000_000
    pl.select(a=pl.repeat("x", n), b=pl.repeat(1, n)).write_parquet(path)
    with twofold.config(memory="16MB"), pytest.raises(twofold.InputError, match=r"a.parquet takes 32 MB at once"):
        read_table(path)


def test_standard_input_keeps_to_the_budget(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(ZEROS))))
    with twofold.config(memory="2MB"), pytest.raises(twofold.InputError, match="standard input takes more than 2 MB"):
        read_table("-")


def test_an_array_without_rows_may_not_claim_columns(tmp_path):
    (tmp_path / "a.npy").write_bytes(header((0, 10**12)))
    with pytest.raises(twofold.InputError, match="has no rows"):
        read_table(tmp_path / "a.npy")


def test_arrays_in_archives_are_told_by_their_heads(tmp_path):
    np.savez(tmp_path / "a.npz", names=np.array(["x"]), table=np.eye(3), flat=np.ones(4))
    assert read_table(tmp_path / "a.npz").array().shape == (3, 3)


def test_the_head_of_a_compressed_image_is_held_against_the_budget(tmp_path):
    image = compress_image(np.zeros((512, 512), np.uint8), psnr=30)
    image.save(tmp_path / "a.tfi")
    with twofold.config(memory="2MB"):
        assert open_image(tmp_path / "a.tfi").decode().shape == (512, 512)
    with twofold.config(memory="1.04MiB"), pytest.raises(twofold.InputError, match="memory budget"):
        data = bytearray((tmp_path / "a.tfi").read_bytes())[:-4]
        data[7:15] = struct.pack("<II", 512, 1024)
        (tmp_path / "b.tfi").write_bytes(bytes(data) + struct.pack("<I", zlib.crc32(bytes(data))))
        open_image(tmp_path / "b.tfi").decode()


def test_a_line_of_word_vectors_is_no_longer_than_its_numbers(tmp_path):
    (tmp_path / "a.txt").write_text("1 3\ncat " + "1 " * 1_000_000)
    with pytest.raises(twofold.InputError, match="line 2 is not a word and 3 numbers"):
        twofold.WordVectors.load_word2vec(tmp_path / "a.txt")
