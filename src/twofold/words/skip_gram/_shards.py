"""Skip-gram on the workers of a cluster: shards of the text are learned from apart, and their vectors averaged.

    each epoch   every shard makes its steps from the same X, Y       X_s, Y_s (V,D), its text read where it is
                 X ← Σ_s n_s X_s / Σ_s n_s                            n_s (V,) how often it has each word

A word that one shard alone has keeps what that one learned. Shards are cut by the text alone and averaged along a fixed
tree: the bits are the same for any number of workers, though not those of one machine, which makes all steps in turn.
Reference: McDonald, Hall & Mann 2010 (averaging after each epoch).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.seeds import generator
from twofold.io.documents import TextFiles
from twofold.text.text_tasks import TextTasks
from twofold.text.vocabulary import Vocabulary
from twofold.words.corpus import encode_corpus
from twofold.words.skip_gram._steps import State, Sums, epoch

SHARDS = 32  # at most
FAINT = 1.0  # occurrences by which a shard counts for words that it does not have, shared by all


class Learned(NamedTuple):
    """What shards add up to: vectors times how much they count, that number (V,1), and what pairs cost."""

    X: np.ndarray
    Y: np.ndarray
    weight: np.ndarray
    loss: float
    pairs: int
    tokens: int


def cut_shards(blocks: list[Any]) -> list[Any]:
    """Blocks of files put together to no more than so many shards."""
    if not all(isinstance(block, TextFiles) for block in blocks):
        return blocks
    cuts = np.linspace(0, len(blocks), min(SHARDS, len(blocks)) + 1).astype(int)
    runs = [blocks[a:b] for a, b in pairwise(cuts)]
    return [replace(run[0], files=[file for block in run for file in block.files]) for run in runs]


def epoch_of_shards(
    there: TextTasks, model: Any, vocabulary: Any, state: State, t: int, seed: int
) -> tuple[State, Learned]:
    """All shards once, each from the same state."""
    tasks, held = there.tasks, there.tasks.hold(state)
    made = [
        tasks.submit(learn_shard, shard, model, vocabulary, held, t, seed, s, len(there.blocks))
        for s, shard in enumerate(there.blocks)
    ]
    found: Learned = tasks.gather([tasks.reduce(made)])[0]
    X, Y = found.X / found.weight, found.Y / found.weight
    if model.biases:
        X[:, model.n_components] = 1  # but for rounding, it is
    return state._replace(X=X, Y=Y), found


def learn_shard(
    shard: Any, model: Any, vocabulary: Vocabulary, state: State, t: int, seed: int, s: int, shards: int
) -> Learned:
    """The steps of one shard in one epoch."""
    own = int(generator(seed, 3, s).integers(2**31))
    with encode_corpus(shard, vocabulary) as text:
        seen = np.bincount(text.tokens, minlength=len(vocabulary))
        weight = (seen + FAINT / shards).astype(np.float32)[:, None]
        sums, tokens = Sums(0.0, 0), len(text)
        with suppress(InputError):  # if no line has two words
            state, sums = epoch(state, model._plan(text, vocabulary, model.learning_rate, own), t)
    return Learned(state.X * weight, state.Y * weight, weight, sums.loss, sums.pairs, tokens)
