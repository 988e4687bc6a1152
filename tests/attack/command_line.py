"""Hostile inputs of the command line: odd files, odd options, odd targets, for every verb.

Bad is a traceback, an internal error, an exit code other than 0 and 2, death by a signal, a hang, a control character
on the terminal, and a file half-written or changed by a command that failed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile

from tests.attack.command import Ended, fault, make_data, snapshot, twofold
from twofold.kernels import find_cache

MAX_COMMAND_SECONDS = 60.0
EVIL = "a\x1b[31mred\x07\x9b2J\u202e"  # what a terminal would obey
NUMBERS = b"a,b,c\n" + b"".join(b"%d,%d,%d\n" % (i, i * i % 7, (i * 5) % 11) for i in range(30))
RATINGS = b"user,item,rating\n" + b"".join(b"%d,%d,%d\n" % (i % 9, (i * i) % 13, i % 5 + 1) for i in range(90))
TEXTS = b"text,date\n" + b"".join(
    b'"the %s sat on the %s and looked at the old moon",2020-01-%02d\n' % (a, b, i % 27 + 1)
    for i, (a, b) in enumerate([(b"cat", b"mat"), (b"dog", b"log"), (b"bird", b"wall"), (b"fish", b"ship")] * 8)
)


def file_of(write: Callable[..., Any], *args: Any, **options: Any) -> bytes:
    """The bytes that `write(file, ...)` writes."""
    with io.BytesIO() as whole:
        write(whole, *args, **options)
        return whole.getvalue()


array_file, arrays_file = partial(file_of, np.save), partial(file_of, np.savez_compressed)


def pack_zip(names: dict[str, bytes]) -> bytes:
    def write(whole: io.BytesIO) -> None:
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in names.items():
                archive.writestr(name, data)

    return file_of(write)


def picture(mode: str = "L", size: tuple[int, int] = (16, 12), kind: str = "PNG", value: int | None = None) -> bytes:
    from PIL import Image

    rng = np.random.default_rng(0)
    bands = len(Image.new(mode, (1, 1)).getbands())
    pixels = rng.integers(0, 256, (size[1], size[0], bands), dtype=np.uint8) if value is None else None
    image = Image.new(mode, size, value) if pixels is None else Image.frombytes(mode, size, pixels.tobytes())
    return file_of(image.save, kind)


def sound(frames: bytes = bytes(2000)) -> bytes:
    return file_of(lambda whole: wavfile.write(whole, 8000, np.frombuffer(frames, np.int16)))


def spoil(data: bytes, seed: int = 0) -> bytes:
    """Bytes in the middle changed."""
    rng, out = np.random.default_rng(seed), bytearray(data)
    for at in rng.integers(len(data) // 4, max(len(data) - 1, 1), 20):
        out[at] ^= int(rng.integers(1, 256))
    return bytes(out)


def halves(name: str, data: bytes) -> dict[str, bytes]:
    """A file cut short, and one with bytes changed."""
    stem, _, ending = name.partition(".")
    return {f"{stem}_cut.{ending}": data[: len(data) * 2 // 3], f"{stem}_spoiled.{ending}": spoil(data)}


def tables() -> dict[str, bytes]:
    """Tables, and what calls itself one."""
    few = "\n".join(["a,b,c", *(f"{i},{i * i},{-i}" for i in range(12))])
    return {
        "empty.csv": b"",
        "newlines.csv": b"\n" * 500,
        "blanks.csv": b" ,\t, \n" * 50,
        "header.csv": b"a,b,c\n",
        "one_cell.csv": b"7",
        "one_row.csv": b"a,b,c\n1,2,3\n",
        "one_column.csv": b"a\n" + b"1\n2\n3\n" * 9,
        "nul.csv": NUMBERS.replace(b"5", b"\x005"),
        "nuls.csv": bytes(5000),
        "binary.csv": np.random.default_rng(0).bytes(20_000),
        "latin.csv": "größe,länge,ü\n1,2,3\n4,5,7\n9,8,1\n".encode("latin-1"),
        "utf16.csv": few.encode("utf-16"),
        "utf16_cut.csv": few.encode("utf-16")[:-3],
        "utf32.csv": few.encode("utf-32"),
        "bad_utf8.csv": NUMBERS + b"\xff\xfe\xfa,1,2\n",
        "surrogate.csv": NUMBERS + b"\xed\xa0\x80,1,2\n",
        "bom_only.csv": b"\xef\xbb\xbf",
        "control.csv": f"{EVIL},b\x00,c\x1b]0;x\x07\n".encode() + NUMBERS[6:],
        "control_cells.csv": b"name,b,c\n" + b"".join(f"{EVIL}{i},{i},{i * i}\n".encode() for i in range(20)),
        "huge_numbers.csv": b"a,b\n" + b"".join(b"1e%d,-1e%d\n" % (300 + i % 9, 308 - i % 9) for i in range(20)),
        "beyond.csv": b"a,b\n" + b"".join(b"1e999,%s\n" % (b"9" * 400) for _ in range(20)),
        "tiny.csv": b"a,b\n" + b"".join(b"%de-320,%de-308\n" % (i, i * i) for i in range(20)),
        "infinite.csv": b"a,b,c\n" + b"inf,1,2\n-inf,2,3\nnan,3,5\n1,2,9\n" * 5,
        "nan_only.csv": b"a,b,c\n" + b"nan,nan,nan\n" * 20,
        "nan_column.csv": b"a,b,c\n" + b"".join(b"%d,nan,%d\n" % (i, i * i) for i in range(20)),
        "constant.csv": b"a,b,c\n" + b"3,3,3\n" * 20,
        "twice.csv": b"a,a,a\n" + NUMBERS[6:],
        "unnamed.csv": b",,\n" + NUMBERS[6:],
        "ragged.csv": NUMBERS + b"1\n1,2,3,4,5,6,7\n,,,\n",
        "quotes.csv": b'a,b\n"1,2\n3,4\n5,"6\n7,8\n' * 5,
        "quotes_open.csv": b'a,b\n1,2\n3,"4\n' + b"5,6\n" * 2000,
        "long_line.csv": b"a,b\n1," + b"9" * 2_000_000 + b"\n",
        "long_name.csv": b"x" * 500_000 + b",b\n" + b"1,2\n3,5\n8,1\n" * 5,
        "wide.csv": b",".join(b"c%d" % j for j in range(5000)) + b"\n" + (b"1," * 4999 + b"2\n") * 4,
        "wider.csv": b"1," * 600_000 + b"1\n",
        "formulas.csv": b"name,b,c\n" + b"".join(b"=cmd|' /C calc'!A%d,%d,%d\n" % (i, i, i * i) for i in range(20)),
        "text_only.csv": b"a,b\n" + b"x,y\nz,w\n" * 10,
        "dates.csv": b"a,b\n" + b"9999-99-99,1\n0000-00-00,2\n2020-02-30,3\n" * 6,
        "separators.csv": b"a;b,c\td|e\n1;2,3\t4|5\n" * 10,
        "carriage.csv": NUMBERS.replace(b"\n", b"\r"),
        "number_header.csv": b"1,2,3\n" + NUMBERS[6:],
        "ratings_no_ids.csv": b"user,item,rating\n" + b",,5\n,2,\n1,,\n" * 9,
        "ratings_text.csv": b"user,item,rating\n" + b"1,2,good\n2,3,bad\n" * 9,
        "ratings_huge.csv": RATINGS + b"1,2,1e308\n3,4,-1e308\n",
        "ratings_one.csv": b"user,item,rating\n1,1,1\n",
        "ratings_ids.csv": b"user,item,rating\n" + b"%s,1,5\n" % (b"9" * 60) + b"18446744073709551616,-1,3\n" * 9,
        "damaged.xlsx": b"PK\x03\x04" + bytes(200),
        "fake.xlsx": NUMBERS,
        "table.json": b'{"a": [1, 2, 3]}',
        "deep.jsonl": b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"\n",
        "odd.jsonl": b'{"a": 1, "b": [1, {"c": 2}]}\nnull\n3\n"x"\n{"a": "\\ud800"}\n',
        "cut.jsonl": b'{"a": 1, "b": 2}\n{"a": 3, "b"\n',
        "huge.jsonl": b'{"a": 1e999, "b": 99999999999999999999999999}\n' * 9,
        "damaged.db": b"SQLite format 3\0" + bytes(500),
        "fake.db": NUMBERS,
        "bad.mtx": b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 5.0\n9 9 1.0\n",
        "huge.mtx": b"%%MatrixMarket matrix coordinate real general\n999999999 999999999 1\n1 1 5.0\n",
        "negative.mtx": b"%%MatrixMarket matrix coordinate real general\n-3 3 2\n0 1 5.0\n1 1 1.0\n",
        "short.mtx": b"%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 5.0\n",
        "pickle.pkl": b"cos\nsystem\n(S'true'\ntR.",
        **halves("numbers.csv.gz", gzip.compress(NUMBERS * 30)),
        **halves("numbers.csv.bz2", bz2.compress(NUMBERS * 30)),
        **halves("numbers.zip", pack_zip({"numbers.csv": NUMBERS * 30})),
        "trailing.csv.gz": gzip.compress(NUMBERS) + b"garbage",
        "bomb.csv.gz": gzip.compress(b"0," * 4 * 10**7),
        "empty.csv.gz": gzip.compress(b""),
        "fake.csv.gz": NUMBERS,
        "frame.zst": b"\x28\xb5\x2f\xfd" + bytes(50),
        "none.zip": pack_zip({}),
        "two.zip": pack_zip({"a.csv": NUMBERS, "b.csv": NUMBERS}),
        "slip.zip": pack_zip({"../../slip.csv": NUMBERS}),
        "evil.zip": pack_zip({f"{EVIL}.csv": NUMBERS, "b.csv": NUMBERS}),
        **halves("numbers.npy", array_file(np.arange(60.0).reshape(20, 3))),
        **halves("numbers.npz", arrays_file(a=np.arange(60.0).reshape(20, 3))),
        "objects.npy": array_file(np.array([{}, []], dtype=object), allow_pickle=True),
        "huge_shape.npy": array_file(np.arange(4.0)).replace(b"(4,)", b"(9999999999999,)"[:4]),
        "text.npy": array_file(np.array([["a", "b"], ["c", "d"]])),
        "scalar.npy": array_file(np.float64(3)),
        "no_rows.npy": array_file(np.zeros((0, 5))),
        "no_columns.npy": array_file(np.zeros((5, 0))),
        "five_axes.npy": array_file(np.zeros((2, 2, 2, 2, 2))),
        "complex.npy": array_file(np.ones((20, 3)) * 1j),
        "half.npy": array_file(np.full((20, 3), 65504, dtype=np.float16)),
        "dates.npy": array_file(np.array(["2020-01-01"] * 9, dtype="datetime64[D]")),
        "record.npy": array_file(np.zeros(5, dtype=[("a", "f8"), ("b", "i4")])),
        "none.npz": arrays_file(),
        "several.npz": arrays_file(a=np.eye(3), b=np.eye(4)),
        "sparse_bad.npz": arrays_file(
            format=np.bytes_("csr"), shape=[3, 3], data=[1.0, 2.0], indices=[0, 99], indptr=[0, 1, 1, 2]
        ),
        "images_bad.npz": arrays_file(images=np.zeros((5, 3, 3)), labels=np.zeros(4)),
    }


def others() -> dict[str, bytes]:
    """Pictures, sounds, model files and vectors of words."""
    return {
        **halves("picture.png", picture("RGB", (40, 30))),
        **halves("photo.jpg", picture("RGB", (40, 30), "JPEG")),
        **halves("photo.webp", picture("RGB", (40, 30), "WEBP")),
        **halves("photo.tiff", picture("RGB", (40, 30), "TIFF")),
        **halves("photo.gif", picture("P", (40, 30), "GIF")),
        **halves("photo.bmp", picture("RGB", (40, 30), "BMP")),
        **halves("sound.wav", sound()),
        "sound.wav": sound(),
        "no_sound.wav": sound(b""),
        "one_pixel.png": picture("L", (1, 1)),
        "line.png": picture("L", (200, 1)),
        "clear.png": picture("RGBA", (16, 12), value=0),
        "black.png": picture("L", (16, 12), value=0),
        "bomb.png": picture("1", (30_000, 20_000), value=0),
        "fake.png": NUMBERS,
        "empty.png": b"",
        "idx-images-idx3-ubyte": b"\x00\x00\x08\x03" + b"\x7f\xff\xff\xff" * 3 + bytes(30),
        "empty.twofold": b"",
        "fake.twofold": NUMBERS,
        "pickle.twofold": b"cos\nsystem\n(S'true'\ntR.",
        "long_header.twofold": b"\xff" * 8 + b"{}",
        "nested.twofold": (60_000).to_bytes(8, "little") + b"[" * 60_000,
        "fake.tfi": b"TFI1" + bytes(100),
        "empty.tfi": b"",
        "vectors.txt": b"3 2\nthe 1 2\ncat 3 4\n",
        "vectors_huge.txt": b"99999999999 99999\nthe 1 2\n",
        "vectors_bad.txt": b"2 2\nthe 1 x\ncat nan inf\n",
        "vectors_huge.bin": b"2000000000 2000000000\nthe " + bytes(8),
        "vectors_cut.bin": b"3 2\nthe " + bytes(8) + b"cat " + bytes(3),
        "vectors_negative.bin": b"-3 -2\nthe " + bytes(8),
        "vectors_evil.txt": f"2 2\n{EVIL} 1 2\ncat 3 4\n".encode(),
        "words.txt": TEXTS,
        "one_word.txt": b"word " * 1000,
        "long_word.txt": b"w" * 3_000_000,
        "stop_only.txt": b"the and of the and\n" * 50,
        "emoji.txt": "😀 😀😀 \U000e0001 \u200b ﷽\n".encode() * 50,
    }


def build(folder: Path) -> None:
    """Every hostile file, some good ones, and what is no plain file."""
    import polars as pl

    import twofold as library

    def write(files: dict[str, bytes]) -> None:
        for name, data in files.items():
            (folder / name).write_bytes(data)

    write({**tables(), **others(), "fake.parquet": b"PAR1" + bytes(40) + b"PAR1"})
    write({"numbers.csv": NUMBERS, "ratings.csv": RATINGS, "texts.csv": TEXTS, "photo.png": picture("L", (24, 20))})
    write(dict.fromkeys((f"{EVIL}.csv", os.fsdecode(b"bad\xff.csv"), "secret.csv"), NUMBERS))
    frame = pl.read_csv(NUMBERS)
    write(halves("frame.parquet", file_of(frame.write_parquet)))
    frame.write_parquet(folder / "numbers.parquet")
    pl.DataFrame({"a": [[1], [2]], "b": [{"x": 1}, {"x": 2}]}).write_parquet(folder / "nested.parquet")
    pl.DataFrame({"a": pl.Series([], dtype=pl.Float64)}).write_parquet(folder / "no_rows.parquet")
    with sqlite3.connect(folder / "several.db") as base:
        base.execute("create table a (x, y)")
        base.execute('create table "b""; drop table a; --" (x blob, y text)')
        base.execute("insert into a values (x'00ff', 'z')")
    base.close()
    X = frame.to_numpy().astype(float)
    library.PCA(2).fit(X).save(folder / "pca.twofold")
    library.KMeans(2, random_state=0).fit(X).save(folder / "kmeans.twofold")
    library.Recommender(library.ALS(2, random_state=0)).fit(folder / "ratings.csv").save(folder / "recommender.twofold")
    write(halves("pca.twofold", (folder / "pca.twofold").read_bytes()))
    for name in ("empty_folder", "folder.csv", "mixed"):
        (folder / name).mkdir()
    for name in ("numbers.csv", "binary.csv", "fake.parquet", "one_pixel.png", "fake.png", "words.txt", "nul.csv"):
        shutil.copy(folder / name, folder / "mixed")
    for name, target in (("dangling", "nowhere.csv"), ("loop", "loop.csv"), ("zero", "/dev/zero")):
        (folder / f"{name}.csv").symlink_to(target)
    os.mkfifo(folder / "pipe.csv")
    (folder / "secret.csv").chmod(0)
    (folder / "locked").mkdir(mode=0)


ODD = ("empty_folder", "folder.csv", "mixed", "dangling.csv", "loop.csv", "zero.csv", "pipe.csv", "secret.csv")
ELSEWHERE = (
    *("/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem", "/proc/self/maps", "missing.csv", "no/folder/x.csv"),
    *("locked/x.csv", "x" * 5000, "a\x1b[2Jb.csv", "", "*.nothing", "[", "numbers.csv::x", "several.db::z"),
    *("several.db", 'several.db::b"; drop table a; --', "two.zip::a.csv", "two.zip::", "::", "several.npz::c"),
    *("~nobody/x.csv", "//"),
    *(f"{EVIL}.csv", os.fsdecode(b"bad\xff.csv"), "nested.parquet", "no_rows.parquet", "fake.parquet"),
    *("frame_cut.parquet", "frame_spoiled.parquet", "pca_cut.twofold", "pca_spoiled.twofold", "numbers.csv/x"),
)
VERBS = {  # how each verb is asked about a file
    "reduce": ["reduce", "FILE", "-o", "out.csv"],
    "cluster": ["cluster", "FILE", "-o", "out.html"],
    "complete": ["complete", "FILE", "-o", "out.csv"],
    "recommend": ["recommend", "FILE", "--time", "0.1", "-o", "out.csv"],
    "topics": ["topics", "FILE", "-k", "2", "-o", "out.csv"],
    "embed": ["embed", "FILE", "-k", "3", "--epochs", "1", "-o", "out.txt"],
    "words": ["words", "FILE", "nearest", "cat"],
    "compress": ["compress", "FILE", "-o", "out.tfi"],
    "decode": ["compress", "FILE", "-o", "out.png"],
    "denoise": ["denoise", "FILE", "-o", "out.png"],
    "inpaint": ["inpaint", "FILE", "-o", "out.png"],
    "mask": ["inpaint", "photo.png", "--mask", "FILE", "-o", "out.png"],
    "sense": ["sense", "FILE", "--simulate", "-o", "out.csv"],
    "train": ["train", "mlp", "FILE", "--epochs", "1", "--save", "out.twofold"],
    "images": ["train", "autoencoder", "FILE", "--epochs", "1", "--save", "out.twofold"],
    "generate": ["generate", "FILE", "-n", "2", "-o", "out.npy"],
    "apply": ["apply", "pca.twofold", "FILE", "-o", "out.csv"],
    "model": ["apply", "FILE", "numbers.csv", "-o", "out.csv"],
    "inspect": ["inspect", "FILE"],
    "json": ["reduce", "FILE", "--json"],
    "names": ["recommend", "ratings.csv", "--time", "0.1", "--names", "FILE", "--json"],
    "features": ["recommend", "ratings.csv", "--time", "0.1", "--items", "FILE", "-o", "out.csv"],
    "stop words": ["topics", "texts.csv", "-k", "2", "--stop-words", "FILE", "-o", "out.csv"],
    "questions": ["words", "vectors.txt", "evaluate", "FILE"],
}
OPTIONS = [  # odd values of options and odd targets, of files that are good
    *(["reduce", "numbers.csv", "-k", k] for k in ("0", "-1", "1e999", "nan", "99999999999999999999", "", "3%", "inf")),
    *(["reduce", "numbers.csv", option, EVIL] for option in ("-k", "--seed", "--drop", "--columns", "--nonsense")),
    *(["cluster", "numbers.csv", "-k", k] for k in ("0", "-5", "31", "9999999999", "2.5", EVIL)),
    *(["cluster", "numbers.csv", "--method", m] for m in ("", "KMEANS", "\x00", "mixture ")),
    *(["reduce", "numbers.csv", "--seed", s] for s in ("-1", "1e3", "4294967296", "99999999999999999999999")),
    *(["complete", "numbers.csv", "--missing", m, "-o", "out.csv"] for m in ("1", "", "1e999", EVIL, "nan")),
    *(["complete", "numbers.csv", "--method", m] for m in ("mean", "")),
    *(["recommend", "ratings.csv", "--user", u] for u in ("none", "", "1e9", EVIL)),
    *(["recommend", "ratings.csv", "--new", n] for n in ("", ":", "1:", "1:x", ":5", "1:5,", "1:1e999", "1:nan", EVIL)),
    *(["recommend", "ratings.csv", "--time", t] for t in ("0", "-1", "nan", "inf", "x")),
    *(["recommend", "ratings.csv", "-n", n] for n in ("0", "-1", "999999999999", "x")),
    *(["recommend", "ratings.csv", "--model", m] for m in ("", "als ", "PCA", "os.system", EVIL)),
    *(["recommend", "ratings.csv", "--split", s] for s in ("", "items", "RANDOM")),
    *(["recommend", "ratings.csv", o, "nothing"] for o in ("--user-column", "--item-column", "--rating-column")),
    ["recommend", "ratings.csv", "--user-column", "item", "--item-column", "item"],
    *(["topics", "texts.csv", "-k", k] for k in ("0", "-1", "999999")),
    *(["topics", "texts.csv", o, "nothing"] for o in ("--text", "--date", "--title", "--model", "--stop-words")),
    *(["embed", "texts.csv", o, v] for o in ("-k", "--window", "--min-count", "--epochs") for v in ("0", "-1", "x")),
    *(["embed", "texts.csv", "--min-count", "99999"], ["embed", "texts.csv", "--method", "bert"]),
    *(["embed", "texts.csv", "--epochs", "1", "-k", "999999999"], ["embed", "texts.csv", "--window", "999999999"]),
    *(["compress", "photo.png", "--size", s] for s in ("0", "-1", "1", "1e3", "k", "99999999999999G", EVIL)),
    *(["compress", "photo.png", "--psnr", p] for p in ("4", "121", "nan", "inf", "-1")),
    *(["denoise", "photo.png", "--sigma", s] for s in ("-1", "nan", "inf", "0", "1e300")),
    *(["denoise", "photo.png", "--add-noise", s] for s in ("-1", "nan", "inf", "1e300")),
    *(["inpaint", "photo.png", "--color", c] for c in ("", "#gg0000", "#ff", "red;", EVIL, "#ff00ff")),
    *(["inpaint", "photo.png", "--tolerance", t] for t in ("-1", "256", "x")),
    *(["sense", "numbers.csv", "--fraction", f] for f in ("0", "-1", "2", "nan", "1", "1e-9")),
    ["sense", "numbers.csv", "--simulate", "--kind", "nothing"],
    *(["train", kind, "numbers.csv", "--epochs", "1"] for kind in ("nothing", "vae", "gan", "cnn", "pixelcnn", "")),
    *(["train", "mlp", "numbers.csv", "--target", t, "--epochs", "1"] for t in ("z", "", "a", EVIL)),
    *(["train", "mlp", "numbers.csv", o, v] for o in ("-k", "--epochs", "--size") for v in ("0", "-1", "x", "1e99")),
    *(["train", "autoencoder", "numbers.npz", "--size", s, "--epochs", "1"] for s in ("2", "999999999")),
    *(["generate", "pca.twofold", "-n", n] for n in ("0", "-1", "99999999999", "1000000000000000000000")),
    *(["apply", "pca.twofold", "numbers.csv", "--what", w] for w in ("", "predict", "__class__", EVIL)),
    *(["apply", "pca.twofold", "ratings.csv", "-o", "out.csv"], ["apply", "kmeans.twofold", "texts.csv"]),
    *(["apply", "recommender.twofold", f, "-o", "out.csv"] for f in ("numbers.csv", "texts.csv", "ratings_no_ids.csv")),
    *(["words", "vectors.txt", *w] for w in (["nearest"], ["nearest", "x" * 9999], ["analogy", "a"], ["sing", "a"])),
    *(["words", "vectors.txt", "export", f] for f in ("vectors.txt", "no/x.txt", "x.exe", "mixed", "out.csv", "")),
    *(["words", "vectors_evil.txt", *w] for w in ([], ["nearest", "cat"], ["nearest", EVIL])),
    ["words", "vectors_evil.txt", "nearest", "dog", "--json"],
    *(["reduce", "numbers.csv", "-o", f] for f in ("numbers.csv", "./numbers.csv", "no/x.csv", "mixed", "x", "x.exe")),
    *(["reduce", "numbers.csv", "-o", f, "--force"] for f in ("numbers.csv", "/dev/full", "/dev/null", "dangling.csv")),
    *(["reduce", "numbers.csv", "-o", f] for f in ("", "x" * 300 + ".csv", f"{EVIL}.out.csv", "loop.csv", "a\0b.csv")),
    *(["reduce", "numbers.csv", "-o", f, "--force"] for f in ("pipe.csv", "folder.csv", "numbers.csv/x.csv")),
    ["reduce", "numbers.csv", "-o", "out.csv", "-o", "out.csv"],
    ["reduce", "numbers.csv", "--save", "out.csv"],
    ["reduce", "numbers.csv", "--save", "out.twofold", "-o", "no/x.csv"],
    *(["complete", "nan_column.csv", "-o", "out.png", "-o", "out.html"], ["cluster", "numbers.csv", "-o", "out.npy"]),
    *(["tour", "-o", f] for f in ("tour.csv", "no/tour.html", "mixed")),
    *([], [""], ["--version", "x"], ["reduce"], ["nothing"], [EVIL], ["reduce", "--", "-k"], ["--help", EVIL]),
    *(["reduce", "numbers.csv", "numbers.csv", "ratings.csv"], ["reduce", "numbers.csv", "two.zip"]),
]
STDIN = [  # (command, what it is given)
    *((["reduce", "-"], data) for data in (b"", b"\x00" * 100, b"\xff" * 100, gzip.compress(NUMBERS)[:40], NUMBERS)),
    *((["complete", "-", "-o", "out.csv"], data) for data in (b"", b'"', gzip.compress(b"0," * 4 * 10**7))),
    *((["topics", "-", "-k", "2"], data) for data in (b"", b"\xff\xfe", b"word\n" * 5)),
    *((["denoise", "-"], data) for data in (b"", b"\x89PNG\r\n\x1a\n", NUMBERS)),
    *((["compress", "-"], data) for data in (b"", picture()[:50])),
    *((["recommend", "-", "--time", "0.1"], data) for data in (b"", b"1,2\n", RATINGS)),
    *((["embed", "-"], data) for data in (b"", b"a" * 10**6)),
]


def commands(files: list[str]) -> Iterator[tuple[list[str], bytes]]:
    """Options and standard input first, then every file for every verb."""
    for args in OPTIONS:
        yield list(args), b""
    yield from STDIN
    for file in files:
        for args in VERBS.values():
            yield [file if part == "FILE" else part for part in args], b""


def attack(count: int | None = None) -> Iterator[tuple[str, str]]:
    """So many of all commands, evenly taken; all of them if not said."""
    with make_data(build) as folder:
        sizes = snapshot(folder)
        every = list(commands([*tables(), *others(), *ODD, *ELSEWHERE]))
        chosen = every if count is None else [every[i * len(every) // count] for i in range(count)]
        for args, given in chosen:
            rights = drop_rights if any("secret" in a or "locked" in a for a in args) else None
            folder.chmod(0o777)
            ended = twofold(*args, folder=folder, stdin=given, seconds=120, before=rights)
            changes = find_changes(folder, sizes, ended)
            slow = f"takes {ended.seconds:.0f} s" if ended.seconds > MAX_COMMAND_SECONDS else ""
            shown = " ".join(ascii(arg)[1:-1][:60] or "''" for arg in args)
            yield f"twofold {shown}", fault(ended) or changes or slow


def drop_rights() -> None:
    """To be somebody whom permissions concern."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        find_cache()  # as it would have been, had this process begun as that user


def find_changes(folder: Path, before: dict[str, tuple[int, int]], ended: Ended) -> str:
    """Return the fault of a command that changed files it should not have; remove new files."""
    after = snapshot(folder)
    lost = [name for name in before if after.get(name) != before[name]]
    new = sorted(after.keys() - before.keys())
    for name in new:
        (folder / name).unlink()
    drafts = [path for path in folder.glob(".*") if path.is_dir()]
    for path in drafts:
        shutil.rmtree(path, ignore_errors=True)
    if lost:
        before |= {name: after[name] for name in lost if name in after}
        return f"{lost} changed"
    if ended.code and new:
        return f"{new} left by a command that failed"
    if drafts or any(name.startswith(".") for name in new):
        return f"{new or drafts} left"
    return "" if all(after[name][1] for name in new) else f"{new}: empty"
