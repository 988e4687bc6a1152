"""Words: meaning from company."""

from twofold.text.vocabulary import Vocabulary
from twofold.words.alignment import Alignment, align
from twofold.words.cooccurrence.cooccurrence import Cooccurrence
from twofold.words.glove.glove import GloVe
from twofold.words.pmi import PMIEmbedding
from twofold.words.skip_gram.skip_gram import SkipGram
from twofold.words.word_vectors.word_vectors import WordVectors

__all__ = [
    "Alignment",
    "Cooccurrence",
    "GloVe",
    "PMIEmbedding",
    "SkipGram",
    "Vocabulary",
    "WordVectors",
    "align",
]
