"""Word vectors in and out: model files, word2vec's formats, tables, maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.answer import FRAMES, frame_writer
from twofold.analyses.common.targets import Writer
from twofold.core.checks import InputError, ModelFileError
from twofold.io.tables.read import kind, missing_message

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.words.word_vectors.word_vectors import WordVectors

WORD2VEC = (".txt", ".vec", ".bin")
EXPORTED = (*WORD2VEC, *FRAMES, ".png", ".twofold")
ON_MAP = 240  # words
GROUPS = 8  # colors


def read_vectors(path: str) -> WordVectors:
    """The vectors in a model file, or in a file that word2vec or its like has written."""
    if not Path(path).is_file():
        folder = " It is a folder: name a file in it." if Path(path).is_dir() else ""
        raise InputError(missing_message(path) if not folder else f"{path} is no file.{folder}")
    if kind(path) != ".twofold":
        if kind(path) not in WORD2VEC:
            endings = ", ".join(WORD2VEC)
            raise InputError(f"{path}: vectors are read from .twofold files and from word2vec's, {endings} (also .gz).")
        return twofold.WordVectors.load_word2vec(path)
    model = twofold.load(path)
    found = model if isinstance(model, twofold.WordVectors) else getattr(model, "vectors_", None)
    if not isinstance(found, twofold.WordVectors):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}, which has no word vectors. Make some: twofold embed."
        )
    return found


def writer(path: Path, vectors: WordVectors, safe_csv: bool = False) -> Writer:
    """A function that writes the vectors as the file's ending says."""
    ending = path.suffix.lower()
    if ending in WORD2VEC:
        return lambda to: vectors.save_word2vec(to, binary=ending == ".bin")
    if ending == ".twofold":
        return vectors.save
    if ending == ".png":
        from twofold.plots.style import as_png

        picture = as_png(word_map(vectors))
        return lambda to: to.write_bytes(picture)
    return frame_writer(ending, frame(vectors), safe_csv)


def frame(vectors: WordVectors) -> pl.DataFrame:
    """A row a word: the word, how often it occurs if that is known, and its vector."""
    columns: dict[str, Any] = {"word": [str(word) for word in vectors.words]}
    if vectors.counts_ is not None:
        columns["count"] = vectors.counts_
    X = vectors.vectors_
    return pl.DataFrame(columns | {f"x{c + 1}": X[:, c] for c in range(X.shape[1])})


def word_map(vectors: WordVectors, title: str = "") -> Figure:
    """The most frequent words that are not merely grammar, on a map, in colors of groups."""
    from twofold.analyses.words.examples import telling
    from twofold.plots.models.words import word_map_figure

    words = telling(vectors, ON_MAP)
    if len(words) < 3:
        raise InputError(f"{len(words)} words are too few for a map. Give more text, or vectors of more words.")
    at = np.asarray(vectors.map_2d(words, method="tsne"), dtype=np.float64)
    counts = vectors.counts_
    weights = None if counts is None else [float(counts[vectors.place(word)]) for word in words]
    return word_map_figure(at, words, groups_of(vectors, words), weights, title)


def groups_of(vectors: WordVectors, words: list[str]) -> list[int]:
    """Words by the direction they point in: k-means of the vectors at length one."""
    X = vectors[words].astype(np.float64)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    k = min(GROUPS, max(1, len(words) // 5))
    return twofold.KMeans(k, random_state=0).fit(X).labels_.tolist() if k > 1 else [0] * len(words)
