"""GloVe word vectors."""

from twofold.words.glove.glove import GloVe

__all__ = ["GloVe"]
