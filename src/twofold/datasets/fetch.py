"""The standard data sets: one reader for each, from a folder of the set's name.

The folder lies in the one that the environment variable ``TWOFOLD_DATA`` names, or in the user's cache, where
a set with a stable public address is downloaded to on first use. Files may be plain or packed.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from PIL import Image
from scipy import sparse
from sklearn.utils import Bunch

from twofold.core.checks import InputError
from twofold.io.image_sets import idx_array
from twofold.io.open import read_bytes

_MOVIELENS = "https://files.grouplens.org/datasets/movielens/"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"


class _File(NamedTuple):
    """What is at an address, so that anything else is refused."""

    sha256: str
    size: int


_URLS = {
    "movielens100k": {
        f"{_MOVIELENS}ml-100k.zip": _File("50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229", 4924029),
    },
    "mnist": {
        f"{_MNIST}{name}-ubyte.gz": _File(sha256, size)
        for name, sha256, size in (
            ("train-images-idx3", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9912422),
            ("train-labels-idx1", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28881),
            ("t10k-images-idx3", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1648877),
            ("t10k-labels-idx1", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4542),
        )
    },
}
_SCHEME = "https"  # wherever an address leads
_TIMEOUT = 30.0  # seconds without an answer
_TIMEOUT_SECONDS = 600.0  # seconds for a file


def fetch(name: str) -> Bunch:
    """Read a standard data set, downloading it first if need be and possible.

    ``movielens100k``, ``anime``, ``flixster`` (ratings, films and titles), ``wikipedia_en`` (articles), ``words``
    (analogy and similarity questions), ``newsgroups20``, ``reuters`` (documents with classes), ``mnist``, ``images``,
    ``cbcl_faces``, ``kdd_bio``, ``clusters``.

    The set is looked for in the folder of its name under ``TWOFOLD_DATA``, then in the cache. Only movielens100k and
    mnist can be downloaded; what arrives is checked by its size and SHA-256.

    Parameters
    ----------
    name : str

    Returns
    -------
    Bunch
        What it holds depends on the set; ``list(fetch(name))`` tells.

    Raises
    ------
    InputError
        If there is no such set, or it is neither on this machine nor within reach.

    Examples
    --------
    >>> fetch("netflix")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    twofold.core.checks.InputError: There is no data set 'netflix'. Choose one of anime, cbcl_faces, ...
    """
    if name not in _READERS:
        raise InputError(f"There is no data set {name!r}. Choose one of {', '.join(sorted(_READERS))}.")
    homes = [Path(home) for home in (os.environ.get("TWOFOLD_DATA"), _cache()) if home]
    folder = next((home / name for home in homes if (home / name).is_dir()), None) or _download(name)
    try:
        return _READERS[name](folder)
    except (OSError, LookupError, ValueError, zipfile.BadZipFile, tarfile.TarError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{folder} does not hold the data set {name!r}: {error}. Delete or replace it.") from error


def _cache() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "twofold")


def _download(name: str) -> Path:
    """Fill the cache's folder for a set; it appears complete or not at all."""
    remedy = f"Put its files into a folder {name!r} and set TWOFOLD_DATA to the folder around it"
    if name not in _URLS:
        raise InputError(f"The data set {name!r} is not on this machine and cannot be downloaded. {remedy}.")
    home = Path(_cache())
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        part = Path(scratch, name)
        part.mkdir()
        for url, file in _URLS[name].items():
            try:
                data = _receive(url, file.size)
            except OSError as error:
                raise InputError(f"Cannot download {url}: {error}. {remedy}, or go online.") from error
            found = hashlib.sha256(data).hexdigest()
            if found != file.sha256:
                size = f"{len(data):,} bytes" if len(data) <= file.size else f"more than {file.size:,} bytes"
                raise InputError(
                    f"{url} is not the file it was: it has {size} and SHA-256 {found[:12]}..., not {file.size:,} and "
                    f"{file.sha256[:12]}.... Try again later, or do without the download. {remedy}."
                )
            (part / Path(url).name).write_bytes(data)
        part.replace(home / name)
    return home / name


def _receive(url: str, size: int) -> bytes:
    """Receive the bytes at an address, up to one byte more than there should be."""
    late, data = time.monotonic() + _TIMEOUT_SECONDS, bytearray()
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
        if urllib.parse.urlsplit(answer.url).scheme != _SCHEME:
            raise OSError(f"it leads to {answer.url}, which is no {_SCHEME} address")
        while len(data) <= size and (some := answer.read(min(2**16, size + 1 - len(data)))):
            data += some
            if time.monotonic() > late:
                raise OSError(f"only {len(data):,} of {size:,} bytes came in {_TIMEOUT_SECONDS:.0f} s")
    return bytes(data)


# --- reading one file ---------------------------------------------------------------------------------------


def _open(path: Path) -> bytes:
    """The content of a file, plain or with .gz added to its name."""
    packed = path.with_name(f"{path.name}.gz")
    return read_bytes(packed) if packed.exists() else path.read_bytes()


def _unpack(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its bare name, those in zip and tar archives included."""
    plain = {path.name.removesuffix(".gz") for path in folder.iterdir()}
    files = {name: _open(folder / name) for name in sorted(plain)}
    for name, data in list(files.items()):
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                files |= {Path(n).name: archive.read(n) for n in archive.namelist() if not n.endswith("/")}
        elif name.endswith(".tar"):
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                files |= {Path(m.name).name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
    return files


def _lines(path: Path) -> list[str]:
    return _open(path).decode().splitlines()


def _read_ratings(data: bytes, names: list[str]) -> pl.DataFrame:
    frame = pl.read_csv(data, separator="\t", has_header=False, new_columns=names, quote_char=None)
    return frame.with_columns(pl.col("rating").cast(pl.Float64))


def _read_labeled(path: Path, names: list[str]) -> Bunch:
    """Category, tab, text: after three lines of header."""
    pairs = [line.split("\t", 1) for line in _lines(path)[3:] if line]
    target = np.array([names.index(category) for category, _ in pairs])
    return Bunch(documents=[text for _, text in pairs], target=target)


def _documents(folder: Path, stem: str) -> Bunch:
    """Train and test documents with their classes."""
    names = sorted({line.split("\t", 1)[0] for line in _lines(folder / f"{stem}-train.tab")[3:] if line})
    parts = {part: _read_labeled(folder / f"{stem}-{part}.tab", names) for part in ("train", "test")}
    return Bunch(**parts, target_names=names)


# --- reading one set ----------------------------------------------------------------------------------------


def _movielens100k(folder: Path) -> Bunch:
    """Ratings, films with genres, and the five published splits (train, test)."""
    files = _unpack(folder)
    columns = ["user", "item", "rating", "time"]
    genres = [line.split("|")[0] for line in files["u.genre"].decode().split("\n") if "|" in line]
    rows = [line.split("|") for line in files["u.item"].decode("latin-1").splitlines() if line]
    films = pl.DataFrame(
        {
            "item": [int(row[0]) for row in rows],
            "title": [row[1] for row in rows],
            "genres": [[g for g, flag in zip(genres, row[5:], strict=True) if flag == "1"] for row in rows],
        }
    )
    names = [(f"u{i}.base", f"u{i}.test") for i in range(1, 6)]
    splits = [tuple(_read_ratings(files[n], columns) for n in pair) for pair in names if pair[0] in files]
    return Bunch(ratings=_read_ratings(files["u.data"], columns), films=films, splits=splits)


def _anime(folder: Path) -> Bunch:
    with zipfile.ZipFile(folder / "anime.zip") as archive:
        rows = archive.read("anime/anime_ratings.dat").split(b"\n", 1)[1]
        info = archive.read("anime/anime_info.dat").decode().splitlines()
    cells = [line.split("\t") for line in info[1:] if line]
    titles = pl.DataFrame({"item": [int(row[0]) for row in cells], "title": [row[1] for row in cells]})
    return Bunch(ratings=_read_ratings(rows, ["user", "item", "rating"]), titles=titles)


def _flixster(folder: Path) -> Bunch:
    """Ratings, the part ("train" or "test") of each beside it."""
    return Bunch(ratings=pl.read_csv(_open(folder / "flixster.tsv"), separator="\t"))


def _wikipedia_en(folder: Path) -> Bunch:
    path = folder / "wiki_en_100M.txt"
    return Bunch(documents=_lines(path), path=path if path.exists() else folder / "wiki_en_100M.txt.gz")


def _words(folder: Path) -> Bunch:
    """Analogies by section, and word pairs with the similarity people gave them."""
    analogies: dict[str, list[tuple[str, ...]]] = {}
    for line in _lines(folder / "questions-words.txt"):
        if line.startswith(":"):
            section = analogies.setdefault(line[1:].strip(), [])
        else:
            section.append(tuple(line.split()))

    def pairs(name: str) -> pl.DataFrame:
        rows = [line.split() for line in _lines(folder / name)]
        data = [(first, second, float(score)) for first, second, score in rows]
        return pl.DataFrame(data, schema=["first", "second", "score"], orient="row")

    return Bunch(analogies=analogies, wordsim353=pairs("EN-WS-353-ALL.txt"), simlex999=pairs("EN-SIMLEX-999.txt"))


def _reuters(folder: Path) -> Bunch:
    """The classes of R8, and the counts of the lda-c sample of 395 documents."""
    words = _lines(folder / "reuters.tokens")
    rows = [[cell.split(":") for cell in line.split()[1:]] for line in _lines(folder / "reuters.ldac")]
    starts = np.cumsum([0] + [len(row) for row in rows])
    ids, counts = np.array([cell for row in rows for cell in row], dtype=np.int64).T
    matrix = sparse.csr_array((counts.astype(np.float64), ids, starts), shape=(len(rows), len(words)))
    return Bunch(
        **_documents(folder, "reuters-r8"), counts=matrix, words=words, titles=_lines(folder / "reuters.titles")
    )


def _mnist(folder: Path) -> Bunch:
    def part(name: str) -> Bunch:
        images, labels = (idx_array(_open(folder / f"{name}-{what}-ubyte")) for what in ("images-idx3", "labels-idx1"))
        return Bunch(images=images, target=labels)

    return Bunch(train=part("train"), test=part("t10k"))


def _images(folder: Path) -> Bunch:
    pictures = {}
    for path in sorted(folder.glob("*.png")):
        with Image.open(path) as image:
            pictures[path.stem] = np.asarray(image)
    return Bunch(**pictures)


def _cbcl_faces(folder: Path) -> Bunch:
    with np.load(folder / "cbcl_faces_19x19.npz") as archive:
        return Bunch(images=archive["faces"].reshape(-1, 19, 19))


def _kdd_bio(folder: Path) -> Bunch:
    """The 74 features; which protein each row belongs to, and whether it matches."""
    frame = pl.read_parquet(folder / "bio_train.parquet.brotli")
    return Bunch(data=frame[:, 3:].to_numpy(), protein=frame[:, 0].to_numpy(), target=frame["target"].to_numpy())


def _clusters(folder: Path) -> Bunch:
    """Points with the cluster each was drawn from; spambase has its class in the last column."""
    sets = {}
    for path in sorted(folder.glob("*.data.gz")):
        name = path.name.removesuffix(".data.gz")
        rows = _open(path.with_suffix("")).decode()
        data = np.loadtxt(io.StringIO(rows), delimiter="," if "," in rows else None)
        labels = path.with_name(f"{name}.labels0")
        if labels.with_suffix(".labels0.gz").exists():
            sets[name] = Bunch(data=data, target=np.array(_lines(labels), dtype=np.int64))
        else:
            sets[name] = Bunch(data=data[:, :-1], target=data[:, -1].astype(np.int64))
    return Bunch(**sets)


_READERS: dict[str, Callable[[Path], Bunch]] = {
    "movielens100k": _movielens100k,
    "anime": _anime,
    "flixster": _flixster,
    "wikipedia_en": _wikipedia_en,
    "words": _words,
    "newsgroups20": lambda folder: _documents(folder, "20newsgroups"),
    "reuters": _reuters,
    "mnist": _mnist,
    "images": _images,
    "cbcl_faces": _cbcl_faces,
    "kdd_bio": _kdd_bio,
    "clusters": _clusters,
}
