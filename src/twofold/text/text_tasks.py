"""Texts on the workers of a cluster: blocks of files, each read by the task that counts it.

    tasks = find_text_tasks(corpus, split)   blocks and tasks; None without a cluster, or if the texts are in memory
    tasks.map(fn, *shared)                   fn(block, *shared) for each block; the results come here in order
    tasks.count_words(rules, 5)              the words of all lines, counted by block and merged along a fixed tree

Blocks are cut by bytes alone, and counts are whole numbers: no result depends on blocks or workers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold.core.data.blocks import is_dask, is_path
from twofold.core.engine.tasks import Tasks
from twofold.io.documents import TextFiles
from twofold.text.counting import Tally, Term, column_finder, document_bounds, encode_chunks
from twofold.text.documents import Texts, documents, from_path
from twofold.text.tokenize import Rules, Stems

TASK_BYTES = 2**26  # of memory, about, for the words of a block and their counts
TASKS_PER_WORKER = 2  # submitted at a time, where results come in order
RECORD = {"stem": pl.String, "form": pl.String, "times": pl.Int64, "documents": pl.Int64}


class Counted(NamedTuple):
    """Words of some texts: a row for every form of a stem; the first also has the number of the stem's documents."""

    n_documents: int
    n_lines: int
    n_tokens: int
    table: pl.DataFrame

    def result(self) -> Iterator[Term]:
        """Every term, in no order."""
        ranked = self.table.sort(["stem", "times", "form"], descending=[False, True, False])
        sums = (pl.col("form").first(), pl.col("documents").sum(), pl.col("times").sum())
        return (Term(*row) for row in ranked.group_by("stem").agg(*sums).iter_rows())

    def words(self, min_count: int) -> Iterator[tuple[str, int]]:
        """Words that occur `min_count` times or more, and their counts, in no order."""
        return self.table.filter(pl.col("times") >= min_count).select("form", "times").iter_rows()


class TextTasks(NamedTuple):
    """Blocks of texts, and the tasks of a cluster."""

    tasks: Tasks
    blocks: list[Any]

    def map(self, fn: Callable[..., Any], *shared: Any, over: list[Any] | None = None) -> Iterator[Any]:
        """fn(block, *shared) of all blocks, or of other items, in order; a few tasks run at a time."""
        waiting, limit = deque[Any](), TASKS_PER_WORKER * self.tasks.workers
        for item in self.blocks if over is None else over:
            if len(waiting) == limit:
                yield self.tasks.gather([waiting.popleft()])[0]
            waiting.append(self.tasks.submit(fn, item, *shared))
        while waiting:
            yield self.tasks.gather([waiting.popleft()])[0]

    def count_words(self, rules: Rules, min_count: int) -> Counted:
        """The words of all lines that occur `min_count` times or more; the totals are of all words and lines."""
        counts = [self.tasks.submit(count_lines, block, rules) for block in self.blocks]
        return self._merge(counts, _keep_frequent, min_count)

    def count_terms(self, rules: Rules, language: str | None, min_df: Any, max_df: Any) -> Counted:
        """The words of all documents whose stems are in min_df..max_df of them."""
        counts = [self.tasks.submit(count_documents, block, rules, language) for block in self.blocks]
        return self._merge(counts, _keep_between, min_df, max_df)

    def _merge(self, counts: list[Any], keep: Callable[..., Counted], *bounds: Any) -> Counted:
        """Merge the counts of all blocks; only the words that `keep` selects come here."""
        merged: Counted = self.tasks.gather([self.tasks.submit(keep, self.tasks.reduce(counts, merge), *bounds)])[0]
        return merged


def find_text_tasks(corpus: Any, split: bool) -> TextTasks | None:
    """The blocks of a corpus in files or in a dask collection, if a cluster is active whose workers can read them.

    With `split` each line of a text file is a text, else each of several files.
    """
    if "distributed" not in sys.modules or not (is_path(corpus) or isinstance(corpus, TextFiles) or is_dask(corpus)):
        return None
    from twofold.core.engine.dask import find_cluster

    tasks = find_cluster(TASK_BYTES)
    if tasks is None:
        return None
    if is_dask(corpus):
        return TextTasks(tasks, tasks.frames(corpus))
    texts = from_path(os.fspath(corpus), split) if is_path(corpus) else corpus
    if not isinstance(texts, TextFiles):
        return None
    files = [file._replace(path=os.path.abspath(file.path)) for file in texts.files]  # workers have other folders
    return TextTasks(tasks, replace(texts, files=files).blocks())


# ---- tasks -----------------------------------------------------------------------------------------------------


def count_lines(block: Any, rules: Rules) -> Counted:
    """Count the words of a block's lines."""
    texts, n_tokens = Texts(block), 0
    with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
        tally = Tally(rules, Stems(None), folder)
        for chunk in encode_chunks(texts, rules, tally.codes):
            n_tokens += int((chunk.codes >= 0).sum())
            tally.add_words(chunk)
        return Counted(tally.n_documents, texts.n_lines, n_tokens, _table(tally))


def count_documents(block: Any, rules: Rules, language: str | None) -> Counted:
    """Count the documents of a block with each term, and the words of each form."""
    with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
        tally = Tally(rules, Stems(language), folder)
        for chunk in encode_chunks(documents(block), rules, tally.codes):
            tally.add(chunk)
        return Counted(tally.n_documents, 0, 0, _table(tally))


def count_rows(block: Any, words: list[str], rules: Rules, language: str | None) -> sparse.csr_array:
    """A block's documents as rows of counts of `words`."""
    codes, d = column_finder(words, rules, Stems(language)), len(words)
    rows = [chunk.rows(d) for chunk in encode_chunks(documents(block), rules, codes)]
    return sparse.vstack([sparse.csr_array((0, d), dtype=np.int32), *rows], format="csr")


def merge(parts: list[Counted]) -> Counted:
    """The words of several blocks."""
    table = pl.concat([part.table for part in parts])
    table = table.group_by("stem", "form").agg(pl.col("times", "documents").sum())
    n_documents, n_lines, n_tokens = (sum(numbers) for numbers in zip(*(part[:3] for part in parts), strict=True))
    return Counted(n_documents, n_lines, n_tokens, table.sort("stem", "form"))


def _table(tally: Tally) -> pl.DataFrame:
    return pl.DataFrame(list(tally.records()), schema=RECORD, orient="row")


def _keep_frequent(counted: Counted, min_count: int) -> Counted:
    return counted._replace(table=counted.table.filter(pl.col("times") >= min_count))


def _keep_between(counted: Counted, min_df: Any, max_df: Any) -> Counted:
    bounds = document_bounds(min_df, max_df, counted.n_documents)
    stems = counted.table.group_by("stem").agg(pl.col("documents").sum())
    stems = stems.filter(pl.col("documents").is_between(*bounds))
    return counted._replace(table=counted.table.join(stems, on="stem", how="semi"))
