"""From texts to counts: newsgroups20, every word of two letters or more, against scikit-learn's CountVectorizer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from bench.harness import Bar, Contestant, Event, Missing
from twofold import BagOfWords, InputError, datasets
from twofold.core.data.blocks import as_blocks

WORDS = r"(?u)\b[^\W\d_][^\W\d_]+\b"  # in this text, which has no digits and no apostrophes, our words exactly


def newsgroups(quick: bool) -> list[str] | Missing:
    try:
        found = datasets.fetch("newsgroups20")
    except InputError as why:
        return Missing("topics_words", str(why))
    texts = [*found.train.documents, *found.test.documents]
    return texts[:1000] if quick else texts


def _fit(texts: list[str]) -> tuple[Any, Any]:
    bag = BagOfWords(stop_words=None)
    return bag.fit_transform(texts), bag.vocabulary_


def _peer(texts: list[str]) -> tuple[Any, Any]:
    bag = CountVectorizer(token_pattern=WORDS)
    return bag.fit_transform(texts), bag.get_feature_names_out()


def counting(quick: bool) -> Event | Missing:
    texts = newsgroups(quick)
    if isinstance(texts, Missing):
        return texts
    expected, names = _peer(texts)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "texts.txt"
    path.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")

    def count_streamed() -> tuple[Any, Any]:
        bag = BagOfWords(stop_words=None)
        return bag.fit_transform(path, to=Path(folder.name) / "counts.csr"), bag.vocabulary_

    def quality(made: tuple[Any, Any]) -> dict[str, float]:
        X, words = made
        X = sparse.vstack(list(as_blocks(X))) if isinstance(X, str) else X
        same = list(words) == list(names) and X.shape == expected.shape
        wrong = float(abs(X.astype(np.int64) - expected).sum()) if same else float(expected.sum())
        return {"wrong counts": wrong, "words": float(X.sum())}

    return Event(
        "topics_words",
        f"counts of {expected.sum():,} words, {len(names):,} distinct, in {len(texts):,} documents of newsgroups20",
        [
            Contestant("twofold", lambda: _fit(texts), ours=True),
            Contestant("twofold, file to file", count_streamed, ours=True, counts=False, note="two passes, to disk"),
            Contestant("scikit-learn CountVectorizer", lambda: _peer(texts)),
        ],
        quality=quality,
        as_good=lambda a, b: a["wrong counts"] <= b["wrong counts"],
        bar=Bar("at least as fast as CountVectorizer at equal counts", ratio=1.0),
        close=folder.cleanup,
    )


EVENTS = (counting,)
