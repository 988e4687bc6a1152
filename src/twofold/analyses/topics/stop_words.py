"""Which words are counted: neither stop words, nor rare ones, nor those spread evenly over all documents.

A word about something comes in bursts. One that is in as many documents as if its occurrences had been dealt at random
says nothing of what they are about, in any language; so stop words need no list, and one's own set phrases go, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import twofold
from twofold.analyses.common.tables import warnings_as_notes
from twofold.analyses.topics.streamed import CountsOnDisk, count_to_disk, usage
from twofold.analyses.words.vectors import COMMONEST
from twofold.core.checks import InputError
from twofold.io.documents import TextFiles

MIN_ENGLISH_SHARE = 0.15  # of the commonest words in English text; usually a quarter
LANGUAGE_SAMPLE_DOCUMENTS = 500
SPREAD_SAMPLE_DOCUMENTS = 20_000  # that show which words are spread evenly


def count_words(
    texts: Sequence[str], source: str, stop_words: list[str] | None, notes: list[str], files: TextFiles | None = None
) -> tuple[Any, Any]:
    """The table of counts (n,d), and the fitted `BagOfWords` whose `transform` gives it.

    If the texts are too large to be read, those in files are `files`, the others but a sample, and counts are on disk.
    """
    n = len(texts)
    rare = 1 if n < 20 else 2 if n < 1000 else 3 if n < 10_000 else 5
    options: dict[str, Any] = {"min_df": rare, "max_df": 1.0 if n < 20 else 0.5}
    english = share_of_commonest(texts) >= MIN_ENGLISH_SHARE
    if stop_words is not None:
        options["stop_words"] = stop_words
        notes.append(f"{len(stop_words):,} stop words left out")
    elif english:
        notes.append("the text is English: its stop words (the, of, and, ...) are left out; ⟨stop_words⟩ names others")
    else:
        notes.append("few English stop words are found, so words are left out that are spread evenly instead")
    X, bag = count(texts, source, options, notes, files)
    even = spread_evenly(X, *((0.85, 0.1, 50) if english or stop_words else (0.8, 0.05, 20)))
    if even.any() and not even.all():
        words = bag.vocabulary_[even]
        often = words[np.argsort(-bag.document_frequency_[even], kind="stable")]
        more = ", ..." if len(often) > 6 else ""
        notes.append(f"{len(often):,} words spread evenly over the documents left out: {', '.join(often[:6])}{more}")
        X, bag = count(texts, source, options | {"stop_words": sorted([*bag.stop_words_, *words])}, [], files)
    empty = int((np.diff(X.indptr) == 0).sum())
    if empty:
        what = "1 document has" if empty == 1 else f"{empty:,} documents have"
        notes.append(f"{what} none of the words counted: the topics of all stand for theirs")
    left = f"in fewer than {rare} documents or " if rare > 1 else ""
    notes.append(f"{X.shape[1]:,} different words counted, none {left}in more than {options['max_df']:.0%} of them")
    return X, bag


def count(
    texts: Sequence[str], source: str, options: dict[str, Any], notes: list[str], files: TextFiles | None
) -> tuple[Any, Any]:
    bag = twofold.BagOfWords(**options)
    try:
        with warnings_as_notes(notes):
            if files is not None:
                return count_to_disk(bag, files), bag
            return sp.csr_array(bag.fit_transform(texts)), bag
    except InputError as error:
        if files is not None and "no word is left" not in str(error):  # a damaged file
            raise
        if not any(text.strip() for text in texts):
            raise InputError(f"{source} has no text in it. Give documents of words.") from error
        raise InputError(
            f"{source}: no word is left without stop words and words of a single document. Give more or longer "
            "documents."
        ) from error


def share_of_commonest(texts: Sequence[str]) -> float:
    """The share of a few of the commonest English words in the text."""
    step = max(1, len(texts) // LANGUAGE_SAMPLE_DOCUMENTS)
    words = [word for text in texts[::step][:LANGUAGE_SAMPLE_DOCUMENTS] for word in text.lower().split()[:400]]
    return sum(word in COMMONEST for word in words) / max(len(words), 1)


def spread_evenly(X: Any, ratio: float, share: float, min_count: int) -> np.ndarray:
    """(d,) whether a word is in at least `ratio` times as many documents as if it had been dealt at random.

    Dealt at random, a word of probability p is in a document of length l with probability 1 − exp(−p l). Told only of
    words in at least `share` and `min_count` of the documents; of rarer ones too little is known.
    """
    step = max(1, X.shape[0] // SPREAD_SAMPLE_DOCUMENTS)
    df, used, lengths = X.sample(step) if isinstance(X, CountsOnDisk) else usage(X[::step])
    p = used / max(lengths.sum(), 1.0)
    even = np.zeros(X.shape[1], dtype=bool)
    for j in np.flatnonzero(df >= max(share * len(lengths), min_count)):
        even[j] = df[j] >= ratio * -np.expm1(-p[j] * lengths).sum()
    return even
