"""What documents are about: topics, and how much of each document is about each.

LDA, pLSA or NMF on counts of words. The method and the number of topics are chosen, unless given, by how well the words
of the topics belong together in documents held out; how good they are is measured on other documents held out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl

from twofold.analyses.common.analysis import Column, Data, Seed, analysis
from twofold.analyses.common.answer import Grid, count
from twofold.analyses.common.documents import as_documents, as_paths
from twofold.analyses.common.tables import warnings_as_notes
from twofold.analyses.topics.lsa import LINE_CHARACTERS, AboutDocuments, Directions, add_snippet, find_directions
from twofold.analyses.topics.models import METHODS, fit, mixtures_of, telling_words, topics_of
from twofold.analyses.topics.stop_words import count_words, find_main_languages
from twofold.analyses.topics.streamed import Sample, as_unread, find_large, look_up, with_ids
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.io.dates import in_periods
from twofold.io.documents import Documents
from twofold.io.open import check_budget
from twofold.text.languages import find_code, find_languages, name_language
from twofold.text.phrases import find_phrases, write_title
from twofold.text.snippets import cut
from twofold.text.stop_words import stop_words_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_DOCUMENTS = 4
TITLE_WORDS = 12  # of a topic, that its title is made of
TOPIC_WORDS, TOPIC_DOCUMENTS = 10, 3  # that stand for a topic
MIN_COPY_COSINE = 0.7  # of two documents' counts, from which one is taken for a copy of the other
HALF_TRUST_WORDS = 25.0  # of a document whose mixture counts half


@dataclass(kw_only=True, repr=False, eq=False)
class Topics(AboutDocuments):
    """Fitted topics; topic 0 is the one most talked about."""

    method: str
    topics: np.ndarray  # (k,d) rows sum to one
    mixtures: np.ndarray  # (n,k) rows sum to one
    shares: np.ndarray  # (k,) of all words
    choice: dict[str, Any] | None  # ks, perplexities, coherences of each method, best
    phrases: dict[tuple[str, str], int] = field(default_factory=dict)  # neighboring words, and how often
    telling: list[list[int]] = field(default_factory=list)  # documents, for each topic
    over_time: tuple[np.ndarray, np.ndarray, str] | None = None  # periods (t,), shares (t,k), what a period is

    @property
    def k(self) -> int:
        return len(self.shares)

    @property
    def outcome(self) -> str:
        return f"{count(self.k, 'topic')} by {METHODS[self.method]}"

    @cached_property
    def table(self) -> pl.DataFrame:
        """Ids, titles and dates of the documents, the main topic, and the share of each."""
        own = self.documents
        columns = [own.ids]
        if own.titles is not None and own.titles.name != own.ids.name:
            columns.append(own.titles)
        if own.dates is not None and own.date_name not in [column.name for column in columns]:
            columns.append(pl.Series(own.date_name, own.dates))
        shares = {f"topic_{c + 1}": self.mixtures[:, c].round(5) for c in range(self.k)}
        return self.tabulate(columns, {"topic": self.mixtures.argmax(axis=1) + 1} | shares)

    @cached_property
    def words(self) -> pl.DataFrame:
        """The words with their counts, and the probability of each in each topic."""
        return self.tabulate_words({f"topic_{c + 1}": self.topics[c] for c in range(self.k)})

    @cached_property
    def telling_words(self) -> np.ndarray:
        """(k,d) p(j|c) log p(j|c) / p(j): what each word adds to the divergence of a topic from all text."""
        return telling_words(self.topics, self.shares)

    def top(self, c: int, count: int = TOPIC_WORDS) -> list[str]:
        """The words that tell topic c best: probable in it, and more so than in all documents."""
        order = np.argsort(-self.telling_words[c], kind="stable")[:count]
        return [str(self.vocabulary[j]) for j in order if self.topics[c, j] > 0]

    def name_topic(self, c: int, count: int = 4) -> str:
        """The phrases and words that name topic c."""
        return write_title(self.top(c, TITLE_WORDS), self.phrases, count)

    def example(self, c: int, i: int) -> str:
        """A telling document: its name, if it has one, and the sentence that says most."""
        own = self.documents
        if own.titles is not None and own.titles[i]:
            return cut(own.call(i), LINE_CHARACTERS)
        name = cut(own.call(i), LINE_CHARACTERS // 2) if own.named else f"{own.ids.name} {own.ids[i]}"
        return add_snippet(name, own.texts[i], self.top(c, 60))

    def grids(self) -> list[Grid]:
        rows = [
            [
                str(c + 1),
                f"{self.shares[c]:.1%}",
                float(self.shares[c] / self.shares[0]),
                "\n· ".join([self.name_topic(c, 8), *(self.example(c, i) for i in self.telling[c])]),
            ]
            for c in range(self.k)
        ]
        return [Grid(["topic", "share", "", "words, and documents most about it"], rows, right=(1,), rest="topics")]

    def lines(self) -> list[str]:
        if not self.figures:
            return ["held out: nothing"]
        own, plain, n = self.figures, self.baseline, self.figures["documents"]
        return [
            f"held out: {count(n, 'document')} not fitted; the words of a topic belong together there: NPMI "
            f"{own['coherence']:.2f}, words of documents dealt at random {plain['coherence']:.2f}; half of the words "
            f"of each, given the other half: perplexity {own['perplexity']:,.0f}, by word frequencies alone "
            f"{plain['perplexity']:,.0f}"
        ]

    def facts(self) -> dict[str, Any]:
        own = self.documents
        main = np.bincount(self.mixtures.argmax(axis=1), minlength=self.k)
        parts = []
        for c in range(self.k):
            order = np.argsort(-self.telling_words[c], kind="stable")[:TOPIC_WORDS]
            parts.append(
                {
                    "topic": c + 1,
                    "title": self.name_topic(c),
                    "share": self.shares[c],
                    "documents": main[c],
                    "words": {str(self.vocabulary[j]): self.topics[c, j] for j in order},
                    "telling": [{own.ids.name: own.ids[i], "share": self.mixtures[i, c]} for i in self.telling[c]],
                }
            )
        time = None
        if self.over_time is not None:
            starts, shares, name = self.over_time
            time = {"period": name, "start": [str(day) for day in starts], "shares": shares}
        return super().facts() | {
            "model": type(self.model).__name__,
            "n_topics": self.k,
            "topics": parts,
            "tried": self.choice,
            "over_time": time,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.topics import topic_report_figure
        from twofold.topics.topic_table import topic_map

        at = topic_map(self.topics, share=self.shares) if self.k > 1 else np.zeros((1, 2))
        tops = [self.name_topic(c, 5).split(", ") for c in range(self.k)]
        time = None if self.over_time is None else self.over_time[:2]
        return topic_report_figure(at, self.shares, tops, self.choice, time, self.heading)


@analysis(streams=True)
def topics(
    data: Data,
    n_topics: Annotated[int | None, Flag("-k", "--topics", min=1, unit="N")] = None,
    *,
    method: Annotated[Literal["lda", "plsa", "nmf", "lsa"] | None, Flag("--method", "--model")] = None,
    text: Column = None,
    date: Column = None,
    title: Column = None,
    language: Annotated[str | None, Flag(unit="NAME")] = None,
    stop_words: Annotated[Any, Flag(unit="FILE")] = None,
    stem: bool = False,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Topics | Directions:
    """Find what documents are about: a folder, a file, or a column of text.

    Parameters
    ----------
    data : path, list of paths, frame, or sequence of texts
        Folder or pattern of text files, text file (a document a line), CSV, TSV, JSONL, Parquet, or - (stdin).
    n_topics
        Number of topics. Default: of 8 to 40, the one whose topics are clearest in documents held out.
    method
        Model of the documents; lsa finds directions, with words at both ends, in place of topics. Default: lda or nmf,
        whichever has the clearer topics in documents held out.
    text
        Text column. Default: the one with the longest texts.
    date
        Date column. Default: detected.
    title
        Title column. Default: detected.
    language
        Take only the documents in this language, given by its name or code. Default: all documents.
    stop_words : path, language, list of str, or None
        Words to leave out, in a file one a line. Default: the small words of the languages found, and words that are
        spread evenly.
    stem
        Count words with one stem as one word: house, houses.

    Returns
    -------
    Directions
        With lsa: ``table`` holds where every document lies along each, ``words`` the weight of every word.
    Topics
        With the others: ``table`` holds the main topic of every document and the share of each, ``words`` the
        probability of every word in each topic.

    Examples
    --------
    >>> texts = ["roses and tulips grow", "a rose is a flower", "the engine and the gear", "an engine needs petrol"]
    >>> answer = topics(texts * 3, 2)
    >>> answer.table.columns
    ['row', 'topic', 'topic_1', 'topic_2']
    """
    from twofold.analyses.topics.number import choose_answer, measure  # late: it needs scikit-learn

    left_out = None if stop_words is None else sorted(stop_words_of(stop_words))
    paths = as_paths(data)
    with doing("reading"):
        files = None if paths is None else find_large(paths, text, date, title)
        documents = as_documents(data, text, date, title) if files is None else as_unread(files)
        texts = documents.texts if files is None else Sample(files)
    notes = documents.notes
    if language is not None:
        documents = take_language(documents, find_code(language), files is not None)
        texts = documents.texts
    if len(texts) < MIN_DOCUMENTS:
        raise InputError(
            f"{documents.source} holds {count(len(texts), 'document')}; topics are what several have in common, so "
            f"give at least {MIN_DOCUMENTS}. (Of one file each line is a document, of a folder each file.)"
        )
    if files is not None and method == "lsa":
        check_budget(files.size, documents.source, remedy="⟨method=lsa⟩ reads all of it; lda, plsa and nmf do not. ")
    with doing("counting words"):
        languages = {find_code(language): 1.0} if language is not None else find_main_languages(texts)
        X, bag = count_words(texts, documents.source, languages, left_out, stem, notes, files)
    if files is not None:
        documents = with_ids(documents, files, X.shape[0])
    if n_topics is not None and n_topics > min(X.shape):
        n, d = X.shape
        raise InputError(f"{n_topics} topics: there are {n} documents and {d} words, so at most {min(n, d)}.")
    chosen = {} if isinstance(stop_words, (str, os.PathLike)) else {"stop_words": left_out}
    chosen |= {"data": None} if paths is None else {}  # the texts are not written out
    if method == "lsa":
        return find_directions(documents, X, bag, n_topics, chosen, seed)
    with doing("trying topics"), warnings_as_notes([]):
        kind, k, choice = choose_answer(method, n_topics, X, seed, notes)
    with doing("fitting without a tenth of the documents"), warnings_as_notes([]):
        figures, baseline = measure(kind, X, k, seed, notes)
    with warnings_as_notes(notes):
        model = fit(kind, X, k, seed)
        mixtures = mixtures_of(model, X)
    lengths = np.asarray(X.sum(axis=1)).ravel()
    shares = lengths @ mixtures / lengths.sum()
    order = np.argsort(-shares, kind="stable")
    model = model.reordered(order)
    model.bag_of_words_ = bag
    answer = Topics(
        source=documents.source,
        model=model,
        figures=figures,
        baseline=baseline,
        notes=notes,
        chosen=chosen | {"n_topics": k, "method": kind},
        documents=documents,
        method=kind,
        vocabulary=bag.vocabulary_,
        counts=X,
        topics=topics_of(model),
        mixtures=mixtures[:, order],
        shares=shares[order],
        choice=choice,
        phrases=find_phrases(bag, texts[:]),
    )
    answer.telling = [find_telling_documents(answer, c, lengths) for c in range(answer.k)]
    if files is not None:
        documents.texts = look_up(files, {i for some in answer.telling for i in some})
    if documents.dates is not None:
        answer.over_time = prevalence(documents.dates, answer.mixtures, lengths, notes)
    return answer


def take_language(documents: Documents, code: str, large: bool) -> Documents:
    """The documents in one language."""
    if large:
        raise InputError(
            f"⟨language⟩: {documents.source} is larger than the memory budget. Take its files apart first."
        )
    found = np.array(find_languages(documents.texts))
    rows = np.flatnonzero(found == code)
    if not len(rows):
        raise InputError(f"{documents.source} has no documents in {name_language(code)}. Leave ⟨language⟩ out.")
    documents.notes.append(
        f"{len(rows):,} of {len(found):,} documents are in {name_language(code)}; the others are left out"
    )
    return documents.take(rows)


def find_telling_documents(answer: Topics, c: int, lengths: np.ndarray) -> list[int]:
    """The documents most about topic c; short ones, of which little is known, come later, and copies not at all."""
    score = answer.mixtures[:, c] * lengths / (lengths + HALF_TRUST_WORDS)
    order = np.argsort(-score, kind="stable")[: 20 * TOPIC_DOCUMENTS]
    rows = answer.counts[order].astype(np.float64)
    norm = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    cosines = (rows @ rows.T).toarray() / np.maximum(np.outer(norm, norm), 1e-300)
    out: list[int] = []
    for i in range(len(order)):
        if len(out) < TOPIC_DOCUMENTS and norm[i] > 0 and all(cosines[i, j] < MIN_COPY_COSINE for j in out):
            out.append(i)
    return [int(order[i]) for i in out]


def prevalence(
    dates: np.ndarray, mixtures: np.ndarray, lengths: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray, str] | None:
    """The share of each topic in the words of each period; NaN where a period has none."""
    blank = int(np.isnat(dates).sum())
    if blank:
        notes.append(f"{count(blank, 'document')} without a date: not in the picture over time")
    if blank == len(dates):
        return None
    starts, period, name = in_periods(dates)
    if len(starts) < 3:
        notes.append(f"all dates lie within {count(len(starts), name)}: no picture over time")
        return None
    own = period >= 0
    sums = np.zeros((len(starts), mixtures.shape[1]))
    np.add.at(sums, period[own], lengths[own, None] * mixtures[own])
    total = sums.sum(axis=1, keepdims=True)
    return starts, np.where(total > 0, sums / np.where(total > 0, total, 1.0), np.nan), name
