"""Which words are counted: neither stop words, nor rare ones, nor those spread evenly over all documents.

A word about something comes in bursts. One that is in as many documents as if its occurrences had been dealt at random
says nothing of what they are about, in any language; so stop words need no list, and one's own set phrases go, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold import BagOfWords
from twofold.analyses._tables import warnings_as_notes
from twofold.core.checks import InputError
from twofold.io.documents import Documents

ENGLISH = 0.15  # of the words of English text at least are among the commonest; usually a quarter
LOOKED_AT = 500  # documents by which the language is told
COMMONEST = frozenset("the of and to in is it that for was on with as are this be".split())  # noqa: SIM905
SAMPLE = 20_000  # documents by which words are told to be evenly spread


def counted(documents: Documents, stop_words: str | None, notes: list[str]) -> tuple[sp.csr_array, np.ndarray]:
    """The table of counts, and its words."""
    n = len(documents.texts)
    rare = 1 if n < 20 else 2 if n < 1000 else 3 if n < 10_000 else 5
    options: dict[str, Any] = {"min_df": rare, "max_df": 1.0 if n < 20 else 0.5}
    english = share_of_commonest(documents.texts) >= ENGLISH
    if stop_words is not None:
        options["stop_words"] = stop_words
        notes.append(f"stop words of {stop_words} left out")
    elif english:
        notes.append("the text is English: its stop words (the, of, and, ...) are left out; --stop-words names others")
    else:
        notes.append("few English stop words are found, so words are left out that are spread evenly instead")
    X, words = count(documents, options, notes)
    even = spread_evenly(X, *((0.85, 0.1, 50) if english or stop_words else (0.8, 0.05, 20)))
    if even.any() and not even.all():
        often = words[even][np.argsort(-np.bincount(X.indices, minlength=X.shape[1])[even], kind="stable")]
        more = ", ..." if len(often) > 6 else ""
        notes.append(f"{len(often):,} words spread evenly over the documents left out: {', '.join(often[:6])}{more}")
        X, words = sp.csr_array(X[:, ~even]), words[~even]
    empty = int((np.diff(X.indptr) == 0).sum())
    if empty:
        what = "1 document has" if empty == 1 else f"{empty:,} documents have"
        notes.append(f"{what} none of the words counted: the topics of all stand for theirs")
    left = f"in fewer than {rare} documents or " if rare > 1 else ""
    notes.append(f"{X.shape[1]:,} different words counted, none {left}in more than {options['max_df']:.0%} of them")
    return X, words


def count(documents: Documents, options: dict[str, Any], notes: list[str]) -> tuple[sp.csr_array, np.ndarray]:
    bag = BagOfWords(**options)
    try:
        with warnings_as_notes(notes):
            X = sp.csr_array(bag.fit_transform(documents.texts))
    except InputError as error:
        if any(text.strip() for text in documents.texts) and "stop_words" not in str(error):
            raise InputError(
                f"{documents.source}: no word is left without stop words and words of a single document. Give more or "
                "longer documents."
            ) from error
        raise InputError(f"{documents.source}: {error}") from error
    return X, np.asarray(bag.get_feature_names_out(), dtype=object)


def share_of_commonest(texts: Sequence[str]) -> float:
    """How much of the text is made of a few of the commonest English words."""
    step = max(1, len(texts) // LOOKED_AT)
    words = [word for text in texts[::step][:LOOKED_AT] for word in text.lower().split()[:400]]
    return sum(word in COMMONEST for word in words) / max(len(words), 1)


def spread_evenly(X: sp.csr_array, ratio: float, share: float, fewest: int) -> np.ndarray:
    """(d,) whether a word is in at least `ratio` times as many documents as if it had been dealt at random.

    Dealt at random, a word of probability p is in a document of length l with probability 1 − exp(−p l). Told only of
    words in at least `share` and `fewest` of the documents; of rarer ones too little is known.
    """
    Y = X[:: max(1, X.shape[0] // SAMPLE)]
    df = np.bincount(Y.indices, minlength=Y.shape[1])
    lengths = np.asarray(Y.sum(axis=1), dtype=np.float64).ravel()
    p = np.asarray(Y.sum(axis=0), dtype=np.float64).ravel() / max(lengths.sum(), 1.0)
    even = np.zeros(Y.shape[1], dtype=bool)
    for j in np.flatnonzero(df >= max(share * Y.shape[0], fewest)):
        even[j] = df[j] >= ratio * -np.expm1(-p[j] * lengths).sum()
    return even
