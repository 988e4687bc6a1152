"""Pairs of words counted on the workers of a cluster: each block of the corpus by itself, then rows of all blocks.

    map      the lines of a block → ids → sums of whole numbers by row, sorted          a folder N.csr a block, on disk
    bucket   runs of rows that store about equally much, over all blocks
    reduce   each run of rows: what all blocks have of it, added up                     comes here, run after run

Sums are whole, so the counts are those of one machine to the last bit. The disk must be one that all workers see.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.csr_folder import open_array, write_csr
from twofold.text.counting import column_finder
from twofold.text.text_tasks import TextTasks
from twofold.text.tokenize import Rules, Stems
from twofold.text.vocabulary import Vocabulary, rules_of
from twofold.words.cooccurrence._pairs import Part, Weights, as_rows, cut_rows, make_weights, merge_panel, sum_panels
from twofold.words.corpus import Corpus, encode_pieces


def pair_rows_there(
    there: TextTasks, vocabulary: Vocabulary, most: int, window: int, harmonic: bool, both: bool, folder: str
) -> Iterator[sparse.csr_array]:
    """The table n (V,V) float32 in blocks of rows, from the first to the last.

    No word occurs more than `most` times; `folder` is empty, and seen by all workers.
    """
    V, tasks = len(vocabulary), there.tasks
    weights = make_weights(window, harmonic, both, most)
    shared = tasks.hold(vocabulary.words_.tolist()), rules_of(vocabulary.lowercase), weights, folder
    written = [tasks.submit(write_part, block, number, *shared) for number, block in enumerate(there.blocks)]
    stored = tasks.gather([tasks.reduce(written)])[0]
    runs = cut_rows(stored)
    for rows in there.map(merge_run, folder, len(written), V, weights.unit, over=runs):
        yield as_rows(rows, V)


def count_known(there: TextTasks, vocabulary: Vocabulary) -> np.ndarray:
    """How often each word of a vocabulary occurs."""
    shared = there.tasks.hold(vocabulary.words_.tolist()), rules_of(vocabulary.lowercase)
    counted = [there.tasks.submit(count_ids, block, *shared) for block in there.blocks]
    return there.tasks.gather([there.tasks.reduce(counted)])[0]


# ---- tasks -----------------------------------------------------------------------------------------------------


def encode(block: Any, words: list[str], rules: Rules) -> Corpus:
    """A block's lines as ids of words."""
    return encode_pieces(block, rules, column_finder(words, rules, Stems(None)))


def count_ids(block: Any, words: list[str], rules: Rules) -> np.ndarray:
    with encode(block, words, rules) as corpus:
        return np.bincount(corpus.tokens, minlength=len(words))


def write_part(block: Any, number: int, words: list[str], rules: Rules, weights: Weights, folder: str) -> np.ndarray:
    """Write a block's sums, and tell how much each row stores (V,)."""
    if not os.path.isdir(folder):
        raise InputError(
            f"a worker does not see {folder}, where counts of pairs wait. Give fit(..., to=PATH) a path on a disk that "
            "all of them share, or set TMPDIR to one."
        )
    V, stored = len(words), list[np.ndarray]()
    with encode(block, words, rules) as corpus:

        def rows() -> Iterator[sparse.csr_array]:
            for panel in sum_panels(corpus, V, weights):
                stored.append(np.diff(panel.indptr))
                yield as_rows(panel, V)

        write_csr(Path(folder) / f"{number}.csr", rows())
    return np.concatenate(stored)


def merge_run(rows: tuple[int, int, int], folder: str, parts: int, V: int, unit: int) -> Any:
    """A run of rows of all blocks, added up."""
    names = ("indptr.npy", "indices.npy", "data.npy")
    opened = [Part(*(open_array(Path(folder) / f"{n}.csr" / name) for name in names)) for n in range(parts)]
    return merge_panel(rows, opened, V, unit)
