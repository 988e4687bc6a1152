"""Counts of words: documents become codes, codes become CSR counts, and words are chosen by their counts.

    piece of text ↦ code        once for every distinct piece, then a look-up
    codes of a chunk ↦ CSR      (documents, codes) with int32 counts

A fit keeps the distinct words in memory. If they exceed the budget they are written to disk in sorted runs, which are
merged at the end: the result is the same.
"""

from __future__ import annotations

import heapq
import itertools
import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.config import config
from twofold.text.tokenize import Rules, Stems, bare

if TYPE_CHECKING:
    from twofold.text._word_codes import Pieces

PIECES_PER_CHUNK = 2**18  # of text, coded before they are counted
WORD_BYTES = 800  # of a distinct word, about, in the dictionaries below and while they are sorted
MAX_RUNS = 64  # files of words on disk before they are merged into one
NOT_A_WORD, UNSEEN = -1, -2

Record = tuple[str, str, int, int]  # stem, form, how often, in how many documents (with the first form of a stem)


class Codes(dict):
    """piece ↦ code, computed by `find` when a piece first occurs."""

    def __init__(self, find: Callable[[str], int]):
        super().__init__()
        self.find = find
        self.pieces: Pieces | None = None  # the same for long texts

    @property
    def held(self) -> int:
        return len(self) + (0 if self.pieces is None else len(self.pieces))

    def clear(self) -> None:
        super().clear()
        if self.pieces is not None:
            self.pieces.clear()

    def __missing__(self, piece: str) -> int:
        code = self[piece] = self.find(piece)
        return code


class Chunk(NamedTuple):
    """The codes of consecutive documents, and the number of codes of each."""

    codes: np.ndarray
    lengths: np.ndarray

    def rows(self, d: int, columns: np.ndarray | None = None) -> sparse.csr_array:
        """Counts (documents, d) int32; codes below 0 are left out, after `columns` has mapped them, if given."""
        return count(self.codes if columns is None else columns[self.codes], self.lengths, d)


def count(codes: np.ndarray, lengths: np.ndarray, d: int, times: np.ndarray | None = None) -> sparse.csr_array:
    """CSR int32 of codes that occur `times` (once) each; rows are the next lengths[i] codes."""
    keep = codes >= 0
    before = np.concatenate([[0], np.cumsum(keep)])
    indptr = before[np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)]
    data = np.ones(before[-1], np.int32) if times is None else times[keep]
    X = sparse.csr_array((data, codes[keep].astype(np.int32), indptr), shape=(len(lengths), d))
    X.sum_duplicates()
    return X


def encode_chunks(documents: Iterable[str | list[str]], rules: Rules, codes: Codes) -> Iterator[Chunk]:
    """The documents as chunks of codes; the dictionary is emptied before it exceeds its share of the budget."""
    max_held = max_words()
    for number, some in enumerate(_batches(documents, min(PIECES_PER_CHUNK, max_held // 2))):
        if number and codes.pieces is None:  # a long text repays the compiled look-up
            from twofold.text._word_codes import Pieces

            codes.pieces = Pieces(rules, codes.find)
        yield _chunk(some, rules, codes)
        if codes.held >= max_held:
            codes.clear()


def _batches(documents: Iterable[str | list[str]], size: int) -> Iterator[list[str | list[str]]]:
    """Group documents into batches of about `size` words."""
    some, words = list[str | list[str]](), 0
    for document in documents:
        some.append(document)
        words += 8 + (len(document) // 6 if isinstance(document, str) else len(document))
        if words >= size:
            yield some
            some, words = [], 0
    if some:
        yield some


def _chunk(some: list[str | list[str]], rules: Rules, codes: Codes) -> Chunk:
    """Encode documents: by the compiled look-up where possible, the others a word at a time."""
    pieces, code_of = codes.pieces, codes.__getitem__
    if pieces is None:
        parts = [array("i", map(code_of, rules.split(document))) for document in some]
        lengths = np.array([len(part) for part in parts], np.int64)
        return Chunk(np.frombuffer(b"".join(parts), np.int32), lengths)
    codes_of_texts, lengths = pieces.encode_texts([str(text) if pieces.takes(text) else "" for text in some])
    others = [at for at, document in enumerate(some) if not pieces.takes(document)]
    if not others:
        return Chunk(codes_of_texts, lengths)
    starts, done, cut = np.concatenate([[0], np.cumsum(lengths)]), 0, list[np.ndarray]()
    for at in others:
        words = np.fromiter(map(code_of, rules.split(some[at])), np.int32)
        cut += [codes_of_texts[done : starts[at]], words]
        done, lengths[at] = starts[at], len(words)
    return Chunk(np.concatenate([*cut, codes_of_texts[done:]]), lengths)


def max_words() -> int:
    """The number of distinct words that fit into half of the budget."""
    return max(2**12, config().memory // (2 * WORD_BYTES))


def column_finder(words: Iterable[str], rules: Rules, stem: Stems) -> Codes:
    """piece ↦ its column, NOT_A_WORD or UNSEEN."""
    columns = {stem(word): column for column, word in enumerate(words)}

    def find(piece: str) -> int:
        if stem.find is None and (column := columns.get(bare(piece))) is not None:
            return column  # a word of a user's vocabulary is counted even if the rules drop it
        word = rules.word(piece)
        return NOT_A_WORD if word is None else columns.get(stem(word), UNSEEN)

    return Codes(find)


# ---- learning the words ----------------------------------------------------------------------------------------


class Term(NamedTuple):
    """A word, or all words with one stem."""

    stem: str
    name: str  # its most frequent form; of equally frequent ones the first in alphabetical order
    documents: int
    total: int


class Tally:
    """Counts documents of each term and words of each form.

    Words beyond the budget are written to `folder` in runs; with None all are in memory.
    """

    def __init__(self, rules: Rules, stem: Stems, folder: str | None):
        self.rules, self.stem, self.folder = rules, stem, folder
        self.n_documents, self.runs, self.written = 0, list[Path](), 0
        self.codes = Codes(self._find)
        self._restart()

    def _restart(self) -> None:
        self.forms: dict[str, int] = {}
        self.terms: dict[str, int] = {}
        self.term_of = list[int]()  # of each form
        self.columns = np.array([NOT_A_WORD], np.int32)  # term_of as an array, and NOT_A_WORD at its end
        self.codes.clear()
        self.total, self.documents = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def _find(self, piece: str) -> int:
        word = self.rules.word(piece)
        if word is None:
            return NOT_A_WORD
        form = self.forms.setdefault(word, len(self.forms))
        if form == len(self.term_of):
            self.term_of.append(self.terms.setdefault(self.stem(word), len(self.terms)))
        return form

    def add(self, chunk: Chunk) -> sparse.csr_array:
        """Count a chunk, and return its counts (documents, terms)."""
        known = chunk.codes >= 0
        new = np.array([*self.term_of[len(self.columns) - 1 :], NOT_A_WORD], np.int32)
        self.columns = np.concatenate([self.columns[:-1], new])  # the last is found by code −1
        X = chunk.rows(len(self.terms), self.columns)
        self.total = _sum(self.total, np.bincount(chunk.codes[known], minlength=len(self.forms)))
        self.documents = _sum(self.documents, np.bincount(X.indices, minlength=len(self.terms)))
        self.n_documents += X.shape[0]
        self._spill_if_large()
        return X

    def add_words(self, chunk: Chunk) -> None:
        """Count a chunk's words, but not their documents: faster than `add`."""
        self.total = _sum(self.total, np.bincount(chunk.codes[chunk.codes >= 0], minlength=len(self.forms)))
        self.documents = np.zeros(len(self.terms), np.int64)
        self.n_documents += len(chunk.lengths)
        self._spill_if_large()

    def _spill_if_large(self) -> None:
        if self.folder is not None and len(self.forms) > 0.9 * max_words():
            self._spill()

    def _records(self) -> list[Record]:
        """The records in memory, sorted."""
        stems = list(self.terms)
        counts = zip(self.forms, self.term_of, self.total.tolist(), strict=True)
        forms = sorted((stems[term], form, times) for form, term, times in counts)
        heads = itertools.chain([True], (a[0] != b[0] for a, b in itertools.pairwise(forms)))
        return [
            (*record, int(self.documents[self.terms[record[0]]]) if head else 0)
            for record, head in zip(forms, heads, strict=False)
        ]

    def _spill(self) -> None:
        """Write all records in memory to a run on disk; MAX_RUNS runs become one, so that few files are open."""
        self._write(self._records())
        self._restart()
        if len(self.runs) == MAX_RUNS:
            former, self.runs = self.runs, []
            self._write(_merge_runs(map(_read_run, former)))
            for path in former:
                path.unlink()

    def _write(self, records: Iterable[Record]) -> None:
        self.written += 1
        path = Path(str(self.folder)) / f"{self.written}.jsonl"
        with open(path, "w", encoding="ascii") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        self.runs.append(path)

    def records(self) -> Iterator[Record]:
        """All records, sorted."""
        return _merge_runs([*map(_read_run, self.runs), self._records()])

    def result(self) -> Iterator[Term]:
        """Every term, sorted by stem."""
        for stem, group in itertools.groupby(self.records(), key=itemgetter(0)):
            forms = list(group)
            name = min(forms, key=lambda record: (-record[2], record[1]))[1] if len(forms) > 1 else forms[0][1]
            yield Term(stem, name, sum(record[3] for record in forms), sum(record[2] for record in forms))

    def words(self, min_count: int) -> Iterator[tuple[str, int]]:
        """Words (without stems) that occur `min_count` times or more, and their counts, in no order."""
        if self.runs:
            return ((term.name, term.total) for term in self.result() if term.total >= min_count)
        forms = list(self.forms)
        return ((forms[form], int(self.total[form])) for form in np.flatnonzero(self.total >= min_count))


def _merge_runs(runs: Iterable[Iterable[Record]]) -> Iterator[Record]:
    """Merge sorted runs, with one record for each form."""
    stem, form, times, documents = "", "", 0, 0
    for record in heapq.merge(*runs):
        if record[1] == form and record[0] == stem:
            times, documents = times + record[2], documents + record[3]
            continue
        if form:
            yield stem, form, times, documents
        stem, form, times, documents = record
    if form:
        yield stem, form, times, documents


def _read_run(path: Path) -> Iterator[Record]:
    with open(path, encoding="ascii") as file:
        for line in file:
            yield tuple(json.loads(line))


def _sum(before: np.ndarray, more: np.ndarray) -> np.ndarray:
    """before + more, where `more` may be longer."""
    more = more.astype(np.int64)
    more[: len(before)] += before
    return more


def document_bounds(min_df: int | float, max_df: int | float, n: int) -> tuple[float, float]:
    """The minimum and the maximum number of documents; min_df and max_df may be shares of n."""
    low, high = (df if isinstance(df, Integral) else df * n for df in (min_df, max_df))
    return low, high


def choose(terms: Iterable[Term], low: float, high: float, max_features: int | None) -> list[Term]:
    """Terms in low..high documents, the `max_features` most frequent of them (ties by name), sorted by name."""
    kept: Iterable[Term] = (term for term in terms if low <= term.documents <= high)
    if max_features is not None:
        kept = heapq.nsmallest(max_features, kept, key=lambda term: (-term.total, term.name))
    return sorted(kept, key=lambda term: term.name)
