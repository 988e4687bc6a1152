"""What `twofold embed` does between reading and writing: choose settings, learn, hold out, ask questions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from twofold.analyses._corpus import HeldOut, Text
from twofold.analyses._tables import warnings_as_notes
from twofold.analyses._telling_words import examples
from twofold.analyses._word_heldout import told_apart
from twofold.analyses._word_questions import agreed, solved
from twofold.cli._console import waiting
from twofold.cli._word_progress import progress
from twofold.core.checks import InputError
from twofold.text.vocabulary import Vocabulary
from twofold.words.glove.glove import GloVe
from twofold.words.pmi import PMIEmbedding
from twofold.words.skip_gram.skip_gram import SkipGram
from twofold.words.word_vectors.word_vectors import WordVectors

SMALL = 12e6  # letters up to which words are counted first, to choose by
LETTERS = 6.0  # a word and the space behind it, about
TWICE = 1_000_000  # words up to which a second fit, for the figure alone, is no trouble
FEWEST = 20  # texts of which some can be held out
ONE_IN = (10, 200)  # texts are held out, of little text and of much
FEW_WORDS = 10  # below which rare ones are taken, too
# words of text from which on: numbers a word, least count, epochs of skip-gram
SIZES = ((5_000_000, 100, 5, 5), (1_000_000, 100, 5, 8), (200_000, 50, 5, 12), (30_000, 50, 3, 25), (0, 25, 2, 50))
OPTIONS = {"k": "-k", "min_count": "--min-count", "epochs": "--epochs"}
SAID = {"k": "{} numbers a word", "min_count": "words seen {} times or more", "epochs": "{} epochs"}
X_MAX = ((100_000_000, 100.0), (0, 10.0))  # words of text from which on: how often seen pairs weigh fully in GloVe
SHOWN, NEAR = 8, 5  # words with their neighbours, and how many of these


class Settings(NamedTuple):
    """Of a fit; None leaves the model's own default."""

    k: int
    min_count: int
    epochs: int | None
    window: int | None
    x_max: float


@dataclass
class Embedding:
    """Word vectors and what is worth telling about them."""

    text: Text
    kind: str
    settings: Settings
    model: Any
    tested: dict[str, Any]
    analogies: dict[str, Any] = field(default_factory=dict)
    similarity: list[dict[str, Any]] = field(default_factory=list)
    near: list[tuple[str, int, list[tuple[str, float]]]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def vectors(self) -> WordVectors:
        return self.model.vectors_

    @property
    def vocabulary(self) -> Vocabulary:
        return self.model.vocabulary_

    @property
    def notes(self) -> list[str]:
        return self.text.notes


def analyse(text: Text, kind: str, given: dict[str, int | None], seed: int, quiet: bool = True) -> Embedding:
    """Word vectors of a text; settings that are not given are chosen by how much of it there is."""
    start = time.perf_counter()
    counted = None
    if text.size <= SMALL:
        with waiting("counting words", quiet):
            counted = named(text, lambda: Vocabulary(min_count=1).fit(text.lines))
    settings = choose(text, kind, given, counted)
    tested: dict[str, Any] = {}
    lines: Any = HeldOut(text.lines, ONE_IN[1], seed)
    if counted is not None and counted.n_tokens_ <= TWICE:
        tested = tested_apart(text, counted, kind, settings, seed, quiet)
        lines = text.lines
    model = named(text, lambda: fit(lines, kind, settings, seed, quiet, text.notes))
    if isinstance(lines, HeldOut):
        tested = told_apart(model, lines.held, seed)
        texts = f"{len(lines.held):,} texts, 1 in {ONE_IN[1]}, are"
        text.notes.append(f"{texts} not learned from, so that the rest can be tested" if tested else "nothing held out")
    found = Embedding(text, kind, settings, model, tested)
    found.near = neighbours(found.vectors)
    found.seconds = time.perf_counter() - start
    return found


def tested_apart(
    text: Text, counted: Vocabulary, kind: str, settings: Settings, seed: int, quiet: bool
) -> dict[str, Any]:
    """The held-out figure of a small text, by a fit for it alone: the vectors that are kept learn from all of it."""
    parts = HeldOut(text.lines, ONE_IN[0], seed)
    if counted.n_lines_ >= FEWEST:
        try:
            return told_apart(fit(parts, kind, settings, seed, quiet, []), parts.held, seed)
        except InputError:  # what is left is too little, which need not be so of the whole
            pass
    text.notes.append(f"too little text ({counted.n_lines_:,} lines) to hold any out")
    return {}


def choose(text: Text, kind: str, given: dict[str, int | None], counted: Vocabulary | None) -> Settings:
    """Fewer numbers a word, rarer words and more epochs where there is little text."""
    tokens = counted.n_tokens_ if counted is not None else int(text.size / LETTERS)
    usual = dict(zip(("k", "min_count", "epochs"), next(own[1:] for own in SIZES if tokens >= own[0]), strict=True))
    if kind != "skipgram":
        del usual["epochs"]  # the model's own
    chosen = usual | {name: value for name, value in given.items() if value is not None}
    if counted is not None:
        kept = int((counted.counts_ >= chosen["min_count"]).sum())
        if kept < FEW_WORDS and given.get("min_count") is None:
            chosen["min_count"], kept = 1, len(counted)
        check_words(text, chosen["min_count"], kept, given)
        if chosen["k"] >= kept and given.get("k") is None:
            chosen["k"] = max(1, kept // 4)
    own = [name for name in usual if given.get(name) is None]
    if own:
        about = f"{tokens:,} words of text" if counted is not None else f"about {tokens / 1e6:,.0f} million words"
        parts = ", ".join(SAID[name].format(chosen[name]) for name in own)
        text.notes.append(f"{parts}: chosen for {about}; {', '.join(OPTIONS[name] for name in own)} set others")
    if kind == "skipgram" and tokens < TWICE:
        text.notes.append("this is little text for skip-gram: compare it with --method pmi")
    x_max = next(weight for size, weight in X_MAX if tokens >= size)
    return Settings(chosen["k"], chosen["min_count"], chosen.get("epochs"), chosen.get("window"), x_max)


def check_words(text: Text, least: int, kept: int, given: dict[str, int | None]) -> None:
    if kept < 3:
        what = f"words seen {least} times or more" if least > 1 else "different words"
        raise InputError(f"{text.source}: there are {kept} {what}, too few to compare. Give more text.")
    k = given.get("k")
    if k is not None and k > kept:
        raise InputError(f"-k {k}: there are only {kept} words seen {least} times or more. Give at most {kept}.")


def named(text: Text, work: Callable[[], Any]) -> Any:
    """What `work` gives; if it refuses the text, with its name."""
    try:
        return work()
    except InputError as error:
        raise error if text.source in str(error) else InputError(f"{text.source}: {error}") from error


def fit(lines: Any, kind: str, own: Settings, seed: int, quiet: bool, notes: list[str]) -> Any:
    """A fitted model; what it warns of becomes a note."""
    options: dict[str, Any] = {"min_count": own.min_count, "random_state": seed}
    if own.window is not None:
        options["window"] = own.window
    if own.epochs is not None:
        options["max_iter"] = own.epochs
    if kind == "glove":
        options["x_max"] = own.x_max
    models: dict[str, Any] = {"skipgram": SkipGram, "glove": GloVe, "pmi": PMIEmbedding}
    model = models[kind](own.k, **options)
    model.set_callbacks(*progress("pairs" if kind == "glove" else "words", quiet))
    with warnings_as_notes(notes):
        model.fit(lines)
    return model.set_callbacks()


def neighbours(vectors: WordVectors) -> list[tuple[str, int, list[tuple[str, float]]]]:
    """Some frequent words, how often each occurs, and the words nearest to it."""
    counts = vectors.counts_
    return [
        (word, 0 if counts is None else int(counts[vectors.place(word)]), vectors.nearest(word, NEAR))
        for word in examples(vectors, SHOWN)
    ]


def ask(found: Embedding, analogies: Path | None, similarity: list[Path]) -> None:
    """Put the questions of files to the vectors."""
    if analogies is not None:
        found.analogies = solved(found.vectors, analogies)
    found.similarity = [agreed(found.vectors, path) for path in similarity]
