"""Word vectors: read, asked, shown and written, in model files, in the formats of word2vec, as tables and maps."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.answer import FRAMES, Grid, frame_writer
from twofold.analyses.common.targets import Writer
from twofold.core.checks import InputError, ModelFileError
from twofold.io.tables.read import kind, missing_message

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.words.word_vectors.word_vectors import WordVectors

WORD2VEC = (".txt", ".vec", ".bin")
EXPORTED = (*WORD2VEC, *FRAMES, ".png", ".twofold")
MAP_WORDS = 240
MAP_COLORS = 8
COMMONEST = frozenset("the of and to in is it that for was on with as are this be".split())  # noqa: SIM905
MIN_COMMONEST = 8  # of these among the most frequent 60 words: the text is then English
GRAMMAR_SHARE = 0.45  # of a text in another language that the most frequent words, the small ones, make up
MIN_LETTERS = 3
MAX_COSINE = 0.55  # of two words that are both shown
COMMON_VOCABULARY = 30_000  # words that analogies are usually solved with


# ---- reading and writing ---------------------------------------------------------------------------------------


def read_vectors(path: str) -> WordVectors:
    """The vectors in a model file, or in a file that word2vec or its like has written."""
    if not Path(path).is_file():
        is_folder = Path(path).is_dir()
        raise InputError(
            f"{path} is no file. It is a folder: name a file in it." if is_folder else missing_message(path)
        )
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


# ---- words worth showing ---------------------------------------------------------------------------------------


def list_frequent(vectors: WordVectors, count: int) -> list[str]:
    """The most frequent words that say what the text is about."""
    words = [str(word) for word in vectors.words]
    skip = find_grammar(words, vectors.counts_)
    lengths = np.linalg.norm(np.asarray(vectors.vectors_, dtype=np.float64), axis=1)
    kept = (at for at, word in enumerate(words) if at not in skip and len(word) >= MIN_LETTERS and word.isalpha())
    return list(islice((words[at] for at in kept if lengths[at] > 0), count))


def find_grammar(words: list[str], counts: np.ndarray | None) -> set[int]:
    """Places of the words that are grammar: those of a list for English text, else the most frequent ones."""
    if sum(word in COMMONEST for word in words[:60]) >= MIN_COMMONEST:
        from twofold.text.stop_words import english

        known = english()
        return {at for at, word in enumerate(words) if word.lower() in known}
    if counts is None:
        return set(range(min(100, len(words) // 20)))
    share = np.cumsum(counts) / max(float(np.sum(counts)), 1.0)
    return set(range(min(int(np.searchsorted(share, GRAMMAR_SHARE)), len(words) // 10)))


def examples(vectors: WordVectors, count: int, max_cosine: float = MAX_COSINE) -> list[str]:
    """Frequent words, no two of which are too similar to show both."""
    out: list[str] = []
    for word in list_frequent(vectors, 40 * count):
        if len(out) < count and all(vectors.similarity(word, other) < max_cosine for other in out):
            out.append(word)
    return out


def word_map(vectors: WordVectors, title: str = "") -> Figure:
    """The most frequent words that are not merely grammar, on a map, in colors of groups."""
    from twofold.plots.models.words import word_map_figure

    words = list_frequent(vectors, MAP_WORDS)
    if len(words) < 3:
        raise InputError(f"{len(words)} words are too few for a map. Give more text, or vectors of more words.")
    at = np.asarray(vectors.map_2d(words, method="tsne"), dtype=np.float64)
    counts = vectors.counts_
    weights = None if counts is None else [float(counts[vectors.place(word)]) for word in words]
    return word_map_figure(at, words, group_words(vectors, words), weights, title)


def group_words(vectors: WordVectors, words: list[str]) -> list[int]:
    """Group words by the direction of their vectors: k-means of the vectors at length one."""
    X = vectors[words].astype(np.float64)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    k = min(MAP_COLORS, max(1, len(words) // 5))
    return twofold.KMeans(k, random_state=0).fit(X).labels_.tolist() if k > 1 else [0] * len(words)


# ---- questions in files: analogies, and pairs of words that people have judged -----------------------------------


def solve_analogies(vectors: WordVectors, path: Path) -> dict[str, Any]:
    """Analogies with the customary vocabulary, and with all words."""
    sizes = {f"the {COMMON_VOCABULARY:,} most frequent": COMMON_VOCABULARY} if len(vectors) > COMMON_VOCABULARY else {}
    out: dict[str, Any] = {"file": str(path), "vocabularies": {}}
    for name, size in {**sizes, "all": None}.items():
        score = vectors.evaluate_analogies(path, vocabulary=size)
        out["vocabularies"][name] = {key: value for key, value in score._asdict().items() if key != "sections"}
        out.setdefault("sections", score.sections.to_dicts())
    return out


def compare_similarities(vectors: WordVectors, path: Path) -> dict[str, Any]:
    """Compare how the vectors and how people rank pairs of words."""
    return {"file": str(path), **vectors.evaluate_similarity(path)._asdict()}


def analogies_grid(solved: dict[str, Any]) -> Grid:
    """Sections with the first vocabulary, totals with each."""
    rows = [[part["section"], *cells(part)] for part in solved["sections"]]
    rows += [[f"together, of {name} words", *cells(total)] for name, total in solved["vocabularies"].items()]
    return Grid(["analogies", "right", "asked", "not asked"], rows, right=(1, 2, 3), most=len(rows))


def cells(part: dict[str, Any]) -> list[str]:
    right = part["accuracy"]
    return [f"{right:.1%}" if right == right else "–", f"{part['asked']:,}", f"{part['skipped']:,}"]


def similarity_grid(files: list[dict[str, Any]]) -> Grid:
    rows = [[part["file"], f"{part['spearman']:.3f}", f"{part['asked']:,}", f"{part['skipped']:,}"] for part in files]
    return Grid(["similarity", "Spearman", "pairs", "not known"], rows, right=(1, 2, 3), most=len(rows))


def is_analogies(path: str | Path) -> bool:
    """Return whether a file asks for analogies: a line of four words, or the name of a section, comes first."""
    with open(path, encoding="utf-8", errors="replace") as file:
        first = next((line.strip() for line in file if line.strip() and not line.startswith("#")), "")
    fields = first.split()
    return first.startswith(":") or (len(fields) == 4 and not any(_is_number(field) for field in fields))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
