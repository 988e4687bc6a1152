"""Which words are counted: neither rare ones nor stop words.

The stop words are those of the languages that the documents are in. Of a language without a list they are found by how
they are spread: a word about something comes in bursts, and one that is in as many documents as if its occurrences had
been dealt at random says nothing of what they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import twofold
from twofold.analyses.common.tables import warnings_as_notes
from twofold.analyses.topics.streamed import CountsOnDisk, count_to_disk, usage
from twofold.core.checks import InputError
from twofold.io.documents import TextFiles
from twofold.text.languages import list_languages, list_stop_words, name_language, name_stemmer

LANGUAGE_SAMPLE_DOCUMENTS = 1000
SPREAD_SAMPLE_DOCUMENTS = 20_000  # that show which words are spread evenly
EVEN_RATIO, EVEN_SHARE, EVEN_DOCUMENTS = 0.8, 0.05, 20  # of words spread evenly: to chance, of the documents, at least


def find_main_languages(texts: Sequence[str]) -> dict[str, float]:
    """The languages of some of the texts, and their shares."""
    step = max(1, len(texts) // LANGUAGE_SAMPLE_DOCUMENTS)
    return list_languages(list(texts[::step][:LANGUAGE_SAMPLE_DOCUMENTS]))


def count_words(
    texts: Sequence[str],
    source: str,
    languages: dict[str, float],
    stop_words: list[str] | None,
    stem: bool,
    notes: list[str],
    files: TextFiles | None = None,
) -> tuple[Any, Any]:
    """The table of counts (n,d), and the fitted `BagOfWords` whose `transform` gives it.

    If the texts are too large to be read, those in files are `files`, the others but a sample, and counts are on disk.
    """
    n = len(texts)
    rare = 1 if n < 20 else 2 if n < 1000 else 3 if n < 10_000 else 5
    options: dict[str, Any] = {"min_df": rare, "max_df": 1.0 if n < 20 else 0.5}
    options["stop_words"] = choose_stop_words(languages, stop_words, notes)
    if stem:
        options["stem"] = choose_stemmer(languages, notes)
    X, bag = count(texts, source, options, notes, files)
    if not options["stop_words"]:
        X, bag = leave_out_even(X, bag, texts, source, options, notes, files)
    empty = int((np.diff(X.indptr) == 0).sum())
    if empty:
        what = "1 document has" if empty == 1 else f"{empty:,} documents have"
        notes.append(f"{what} none of the words counted: the topics of all stand for theirs")
    left = f"in fewer than {rare} documents or " if rare > 1 else ""
    notes.append(f"{X.shape[1]:,} different words counted, none {left}in more than {options['max_df']:.0%} of them")
    return X, bag


def leave_out_even(
    X: Any, bag: Any, texts: Sequence[str], source: str, options: dict[str, Any], notes: list[str], files: Any
) -> tuple[Any, Any]:
    """The counts without the words that are spread evenly."""
    even = spread_evenly(X, EVEN_RATIO, EVEN_SHARE, EVEN_DOCUMENTS)
    if not even.any() or even.all():
        return X, bag
    words = bag.vocabulary_[even]
    often = words[np.argsort(-bag.document_frequency_[even], kind="stable")]
    more = ", ..." if len(often) > 6 else ""
    notes.append(f"{len(often):,} words spread evenly over the documents left out: {', '.join(often[:6])}{more}")
    return count(texts, source, options | {"stop_words": sorted(words)}, [], files)


def choose_stop_words(languages: dict[str, float], listed: list[str] | None, notes: list[str]) -> list[str]:
    """The words given, or those of all main languages; a note says which."""
    names = [name_language(code) for code in languages]
    if len(names) > 1:
        parts = ", ".join(f"{name} {share:.0%}" for name, share in zip(names, languages.values(), strict=True))
        notes.append(
            f"the text is in {len(names)} languages: {parts}; ⟨language={next(iter(languages))}⟩ takes the documents "
            "in one of them"
        )
    if listed is not None:
        notes.append(f"{len(listed):,} stop words left out")
        return listed
    words = sorted(set[str]().union(*(list_stop_words(code) for code in languages)))
    without = [name_language(code) for code in languages if not list_stop_words(code)]
    if words and len(names) == 1:
        notes.append(f"the text is {names[0]}: its {len(words):,} stop words are left out; ⟨stop_words⟩ names others")
    elif words:
        notes.append(f"the {len(words):,} stop words of these are left out; ⟨stop_words⟩ names others")
    if without or not names:
        what = f"there is no list of stop words for {', '.join(without)}" if without else "the language is not known"
        notes.append(f"{what}, so words are left out that are spread evenly")
    return words


def choose_stemmer(languages: dict[str, float], notes: list[str]) -> str:
    """The stemmer of the language of the text."""
    if len(languages) != 1:
        what = "several languages" if languages else "a language that is not known"
        raise InputError(f"⟨stem⟩: the text is in {what}, and stems are of one. ⟨language⟩ takes the documents in one.")
    code = next(iter(languages))
    name = name_stemmer(code)
    if name is None:
        raise InputError(f"⟨stem⟩: there is no stemmer for {name_language(code)}. Leave it out.")
    notes.append(f"words with one stem in {name_language(code)} count as one")
    return name


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
