"""Vectors of words, by the company they keep.

Skip-gram, GloVe or PMI. Settings that are not given are chosen by how much text there is; how good the vectors are is
measured on texts held out, where the words around a hidden one must tell it from another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import Column, Count, Data, File, Seed, analysis
from twofold.analyses.common.answer import DRAWN, FRAMES, Answer, Grid
from twofold.analyses.common.corpus import (
    HeldOut,
    Text,
    cut_stretches,
    from_documents,
    hold_out,
    is_large,
    pieces,
    read_corpus,
)
from twofold.analyses.common.documents import as_documents, as_paths
from twofold.analyses.common.tables import warnings_as_notes
from twofold.analyses.common.targets import Writer
from twofold.analyses.words.vectors import (
    WORD2VEC,
    analogies_grid,
    compare_similarities,
    examples,
    frame,
    similarity_grid,
    solve_analogies,
    word_map,
    writer,
)
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.text.vocabulary import Vocabulary
    from twofold.words.word_vectors.word_vectors import WordVectors

METHODS = {"skipgram": "skip-gram", "cbow": "CBOW", "glove": "GloVe", "pmi": "PMI"}
MODELS = {"skipgram": "SkipGram", "cbow": "SkipGram", "glove": "GloVe", "pmi": "PMIEmbedding"}
MAX_COUNTED_LETTERS = 12e6  # of a text whose words are counted first, to choose by
LETTERS_PER_WORD = 6.0  # with the space behind it, about
MAX_WORDS_FOR_SECOND_FIT = 1_000_000  # for the figure alone
MIN_TEXTS = 20  # of which some can be held out
TEXTS_PER_HELD_OUT = (10, 200)  # of little text, and of much
MIN_VOCABULARY = 10  # with fewer words, rare ones are taken, too
# words of text from which on: numbers a word, least count, epochs of skip-gram
SIZES = ((5_000_000, 100, 5, 5), (1_000_000, 100, 5, 8), (200_000, 50, 5, 12), (30_000, 50, 3, 25), (0, 25, 2, 50))
SETTINGS = {"n_components": "{} numbers a word", "min_count": "words seen {} times or more", "epochs": "{} epochs"}
X_MAX = ((100_000_000, 100.0), (0, 10.0))  # words of text from which on: how often seen pairs weigh fully in GloVe
SHOWN_WORDS, NEIGHBORS_PER_WORD = 8, 5
CONTEXT_WORDS = 5  # on either side of a hidden word, which they must point to
MAX_TESTED_WORDS = 40_000
RARE_SHARE = 1e-3  # share of the text from which on words are tested less, and weigh less
CHANCE = {"method": "chance", "right": 0.5}


class Settings(NamedTuple):
    """Of a fit; None leaves the model's own default."""

    k: int
    min_count: int
    epochs: int | None
    window: int | None
    x_max: float


@dataclass(kw_only=True, repr=False, eq=False)
class Embedding(Answer):
    """Word vectors, their neighbors and their figures."""

    method: str
    settings: Settings
    near: list[tuple[str, int, list[tuple[str, float]]]]  # words, how often each is seen, and those nearest to it
    analogies: dict[str, Any] = field(default_factory=dict)
    similarity: list[dict[str, Any]] = field(default_factory=list)

    endings: ClassVar[tuple[str, ...]] = (*WORD2VEC, *FRAMES, *DRAWN, ".twofold")

    @property
    def vectors(self) -> WordVectors:
        return self.model.vectors_

    @property
    def heading(self) -> str:
        words = self.model.vocabulary_
        return f"{self.source}: {words.n_tokens_:,} words of text, {len(words):,} different ones with a vector"

    @property
    def outcome(self) -> str:
        return f"{self.vectors.vectors_.shape[1]} numbers a word by {METHODS[self.method]}"

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row a word: the word, how often it occurs, and its vector."""
        return frame(self.vectors)

    def grids(self) -> list[Grid]:
        rows = [
            [word, f"{seen:,}", ", ".join(f"{other} {cosine:.2f}" for other, cosine in near)]
            for word, seen, near in self.near
        ]
        grids = [Grid(["word", "seen", "nearest"], rows, right=(1,))]
        grids += [analogies_grid(self.analogies)] if self.analogies else []
        return grids + ([similarity_grid(self.similarity)] if self.similarity else [])

    def lines(self) -> list[str]:
        figures = self.figures
        if not figures:
            return ["held out: nothing"]
        return [
            f"held out: {figures['words']:,} words of {figures['texts']:,} texts not learned from; the words around a "
            f"hidden one tell it from one hidden elsewhere {figures['right']:.1%} of the time, by chance "
            f"{self.baseline['right']:.0%}"
        ]

    def facts(self) -> dict[str, Any]:
        history, words = getattr(self.model, "history_", {}), self.model.vocabulary_
        return {
            "lines": words.n_lines_,
            "tokens": words.n_tokens_,
            "words": len(words),
            "model": type(self.model).__name__,
            "n_components": self.vectors.vectors_.shape[1],
            "settings": self.settings._asdict(),
            "nearest": {word: dict(near) for word, _, near in self.near},
            "analogies": self.analogies or None,
            "similarity": self.similarity or None,
            "objective": history.get("objective"),
            "words_per_second": history.get("words_per_second"),
        }

    def plot(self) -> Figure:
        return word_map(self.vectors, self.heading)

    def writer(self, path: Path) -> Writer:
        return writer(path, self.vectors) if path.suffix.lower() in WORD2VEC else super().writer(path)


@analysis(streams=True)
def embed(
    data: Data,
    *,
    method: Literal["skipgram", "cbow", "glove", "pmi"] = "skipgram",
    n_components: Annotated[int | None, Flag("-k", "--dimensions", min=1, unit="N")] = None,
    window: Count = None,
    min_count: Count = None,
    epochs: Annotated[int | None, Flag(min=1, unit="N", sets="max_iter")] = None,
    phrases: bool = False,
    text: Column = None,
    analogies: File = None,
    similarity: Annotated[Sequence[str | os.PathLike], Flag(unit="FILE")] = (),
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Embedding:
    """Learn vectors of words from text: words with similar contexts get similar vectors.

    Parameters
    ----------
    data : path, list of paths, frame, or sequence of texts
        Text file (plain or .gz), folder or pattern of them, CSV, TSV, JSONL, Parquet, or - (stdin).
    method
        Model of the words.
    n_components
        Length of a word's vector. Default: by the size of the text.
    window
        Number of neighboring words on either side. Default: the method's own.
    min_count
        Leave out words seen less often. Default: by the size of the text.
    epochs
        Passes over the text; pmi has none. Default: by the size of the text.
    phrases
        Give phrases a vector, too, such as hong_kong: neighboring words that occur together far more than by chance.
    text
        Text column of a table. Default: the one with the longest texts.
    analogies
        File of questions to ask: a b c d a line, a is to b as c is to d.
    similarity
        File of people's judgements to compare with: two words and a number a line; repeatable.

    Returns
    -------
    Embedding
        ``table`` holds every word, how often it occurs, and its vector; ``vectors`` answers questions.

    Examples
    --------
    >>> answer = embed(["the cat sat", "the dog sat", "a cat and a dog", "the bird and the cat"] * 9, method="pmi")
    >>> answer.table.columns[:3]
    ['word', 'count', 'x1']
    """
    if method == "pmi" and epochs is not None:
        raise InputError("⟨epochs⟩: PMI has none, its vectors are computed at once. Leave it out.")
    for option, file in [("analogies", analogies), *(("similarity", one) for one in similarity)]:
        if file is not None and not os.path.isfile(file):
            raise InputError(f"⟨{option}={os.fspath(file)}⟩: there is no such file.")
    paths = as_paths(data)
    with doing("reading"):
        corpus = from_documents(as_documents(data, text)) if paths is None else read_corpus(paths, text)
    if phrases:
        corpus = with_phrases(corpus)
    wanted = {"n_components": n_components, "min_count": min_count, "epochs": epochs, "window": window}
    model, settings, figures = learn(corpus, method, wanted, seed)
    with doing("asking"):
        solutions = {} if analogies is None else solve_analogies(model.vectors_, Path(analogies))
        agreements = [compare_similarities(model.vectors_, Path(path)) for path in similarity]
    chosen = {"n_components": settings.k, "min_count": settings.min_count, "epochs": settings.epochs}
    chosen |= {"data": None} if paths is None else {}  # the texts are not written out
    return Embedding(
        source=corpus.source,
        model=model,
        figures=figures,
        baseline=dict(CHANCE) if figures else {},
        notes=corpus.notes,
        chosen=chosen,
        method=method,
        settings=settings,
        near=neighbors(model.vectors_),
        analogies=solutions,
        similarity=agreements,
    )


def with_phrases(text: Text) -> Text:
    """The text with its phrases as words."""
    from twofold.text.phrases import join_phrases

    if text.size > MAX_COUNTED_LETTERS:
        limit = f"{MAX_COUNTED_LETTERS / 1e6:.0f} million letters"
        raise InputError(
            f"⟨phrases⟩: {text.source} has more than {limit}, in which phrases are looked for. Leave it out."
        )
    with doing("looking for phrases"):
        lines, found = join_phrases(pieces(text.lines))
    shown = ", ".join(found[:4])
    text.notes.append(f"{len(found):,} phrases are words of their own{': ' + shown if found else ''}")
    return replace(text, lines=lines)


# --- the fit, and how good it is ----------------------------------------------------------------------------


def learn(text: Text, kind: str, wanted: dict[str, int | None], seed: int) -> tuple[Any, Settings, dict[str, Any]]:
    """A model of the text, its settings, and its figures on texts held out."""
    counted = None
    if text.size <= MAX_COUNTED_LETTERS:
        from twofold.text.vocabulary import Vocabulary

        with doing("counting words"):
            counted = name_errors(text, lambda: Vocabulary(min_count=1).fit(text.lines))
    settings = choose(text, kind, wanted, counted)
    if counted is not None and counted.n_tokens_ <= MAX_WORDS_FOR_SECOND_FIT:
        figures = measure_apart(text, counted, kind, settings, seed)
        return name_errors(text, lambda: fit(text.lines, kind, settings, seed, text.notes)), settings, figures
    passing = HeldOut(text.lines, TEXTS_PER_HELD_OUT[1], seed)
    lines, held = hold_out(text.lines) if is_large(text.lines) else (passing, None)
    model = name_errors(text, lambda: fit(lines, kind, settings, seed, text.notes))
    held = passing.held if held is None else held
    figures = measure_contexts(model, held, seed)
    what = f"1 in {TEXTS_PER_HELD_OUT[1]}, are" if lines is passing else "in stretches here and there, are"
    note = f"{len(held):,} texts, {what} not learned from, so that the rest can be tested"
    text.notes.append(note if figures else "nothing held out")
    return model, settings, figures


def measure_apart(text: Text, counted: Vocabulary, kind: str, settings: Settings, seed: int) -> dict[str, Any]:
    """The held-out figure of a small text, by a fit for it alone: the vectors that are kept learn from all of it."""
    lines, n = text.lines, counted.n_lines_
    if n < MIN_TEXTS:  # stretches of a few long texts stand for texts
        lines = cut_stretches(text.lines)
        n = len(lines)
    parts = HeldOut(lines, TEXTS_PER_HELD_OUT[0], seed)
    if n >= MIN_TEXTS:
        try:
            return measure_contexts(fit(parts, kind, settings, seed, []), parts.held, seed)
        except InputError:  # what is left is too little, which need not be so of the whole
            pass
    text.notes.append(f"too little text ({counted.n_lines_:,} lines) to hold any out")
    return {}


def measure_contexts(model: Any, texts: list[str], seed: int) -> dict[str, Any]:
    """The share of hidden words to which the words around them point nearer than to another word of the same texts.

    The other word is one that was hidden elsewhere, so that both are drawn in the same way and frequency says nothing.
    """
    if not texts:
        return {}
    from twofold.core.seeds import generator
    from twofold.words.corpus import encode_corpus

    with encode_corpus(texts, model.vocabulary_) as corpus:
        tokens, ends = np.array(corpus.tokens[:MAX_TESTED_WORDS]), np.asarray(corpus.ends)
    if len(tokens) < 2:
        return {}
    vectors = model.vectors_.vectors_
    W = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    f = model.vocabulary_.counts_ / model.vocabulary_.counts_.sum()
    weight = np.minimum(1.0, np.sqrt(RARE_SHARE / f))[tokens]
    line = np.searchsorted(ends, np.arange(len(tokens)), side="right")
    around = np.zeros((len(tokens), W.shape[1]))
    weighted = W[tokens] * weight[:, None]
    for step in range(1, CONTEXT_WORDS + 1):
        same = (line[step:] == line[:-step])[:, None]
        around[step:] += weighted[:-step] * same
        around[:-step] += weighted[step:] * same
    rng = generator(seed, 7)
    at = np.flatnonzero((rng.random(len(tokens)) < weight) & (np.abs(around).sum(axis=1) > 0))
    other = tokens[rng.permutation(at)]
    differ = other != tokens[at]
    at, other = at[differ], other[differ]
    if not len(at):
        return {}
    gap = np.einsum("ij,ij->i", around[at], W[tokens[at]] - W[other])
    return {
        "what": "share of hidden words that their neighbors tell from other ones hidden elsewhere",
        "texts": len(texts),
        "words": len(at),
        "right": float(np.mean(gap > 0) + 0.5 * np.mean(gap == 0)),
    }


def choose(text: Text, kind: str, wanted: dict[str, int | None], counted: Vocabulary | None) -> Settings:
    """Fewer numbers a word, rarer words and more epochs where there is little text."""
    tokens = counted.n_tokens_ if counted is not None else int(text.size / LETTERS_PER_WORD)
    sizes = next(size[1:] for size in SIZES if tokens >= size[0])
    usual = dict(zip(("n_components", "min_count", "epochs"), sizes, strict=True))
    if MODELS[kind] != "SkipGram":
        del usual["epochs"]  # the model's own
    chosen = usual | {name: value for name, value in wanted.items() if value is not None}
    if counted is not None:
        kept = int((counted.counts_ >= chosen["min_count"]).sum())
        if kept < MIN_VOCABULARY and wanted.get("min_count") is None:
            chosen["min_count"], kept = 1, len(counted)
        check_words(text, chosen["min_count"], kept, wanted)
        if chosen["n_components"] >= kept and wanted.get("n_components") is None:
            chosen["n_components"] = max(1, kept // 4)
    defaults = [name for name in usual if wanted.get(name) is None]
    if defaults:
        about = f"{tokens:,} words of text" if counted is not None else f"about {tokens / 1e6:,.0f} million words"
        parts = ", ".join(SETTINGS[name].format(chosen[name]) for name in defaults)
        text.notes.append(f"{parts}: chosen for {about}; {', '.join(f'⟨{name}⟩' for name in defaults)} set others")
    if MODELS[kind] == "SkipGram" and tokens < MAX_WORDS_FOR_SECOND_FIT:
        text.notes.append(f"this is little text for {METHODS[kind]}: compare it with ⟨method=pmi⟩")
    x_max = next(weight for size, weight in X_MAX if tokens >= size)
    return Settings(chosen["n_components"], chosen["min_count"], chosen.get("epochs"), chosen.get("window"), x_max)


def check_words(text: Text, min_count: int, kept: int, wanted: dict[str, int | None]) -> None:
    if kept < 3:
        what = f"words seen {min_count} times or more" if min_count > 1 else "different words"
        raise InputError(f"{text.source}: there are {kept} {what}, too few to compare. Give more text.")
    k = wanted.get("n_components")
    if k is not None and k > kept:
        raise InputError(
            f"⟨n_components={k}⟩: there are only {kept} words seen {min_count} times or more. Give at most {kept}."
        )


def name_errors(text: Text, work: Callable[[], Any]) -> Any:
    """Return the result of `work`; if it refuses the text, the message says which text."""
    try:
        return work()
    except InputError as error:
        message = error.args[0]
        raise InputError(message if text.source in message else f"{text.source}: {message}") from error


def fit(lines: Any, kind: str, settings: Settings, seed: int, notes: list[str]) -> Any:
    """A fitted model; what it warns of becomes a note."""
    k, min_count, epochs, window, x_max = settings
    options: dict[str, Any] = {"window": window, "max_iter": epochs, "x_max": x_max if kind == "glove" else None}
    options["architecture"] = "cbow" if kind == "cbow" else None
    options = {name: value for name, value in options.items() if value is not None}
    model = getattr(twofold, MODELS[kind])(k, min_count=min_count, random_state=seed, **options)
    with warnings_as_notes(notes):
        model.fit(lines)
    return model


def neighbors(vectors: WordVectors) -> list[tuple[str, int, list[tuple[str, float]]]]:
    """Some frequent words, how often each occurs, and the words nearest to it."""
    counts = vectors.counts_
    return [
        (word, 0 if counts is None else int(counts[vectors.place(word)]), vectors.nearest(word, NEIGHBORS_PER_WORD))
        for word in examples(vectors, SHOWN_WORDS)
    ]
