"""What the models of pairs are fitted to: a table of counts, given or made from a corpus."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.text.vocabulary import Vocabulary
from twofold.words.cooccurrence.cooccurrence import Cooccurrence


class Counted(NamedTuple):
    """Counts n (V,V) in blocks of rows, and the words they are of."""

    vocabulary: Vocabulary
    blocks: Blocks


@contextmanager
def counted(X: Any, **options: Any) -> Iterator[Counted]:
    """The pairs of a fitted `Cooccurrence`, or those of a corpus, counted with its `options`.

    Lists are counted in memory; what is read from files may be of any size, so its table goes to a temporary folder
    and is read from there a few megabytes at a time.
    """
    with tempfile.TemporaryDirectory(prefix="twofold-words-") as folder:
        if not isinstance(X, Cooccurrence):
            small = isinstance(X, (list, tuple))
            X = Cooccurrence(**options).fit(X, to=None if small else os.path.join(folder, "pairs.csr"))
        check_is_fitted(X)
        blocks = as_blocks(X.counts_)
        if not blocks.source.n_stored:
            raise InputError(
                f"no two of the {len(X.vocabulary_):,} words of the vocabulary occur within window={X.window} places "
                "of each other. Give longer lines, or lower min_count."
            )
        yield Counted(X.vocabulary_, blocks)
