"""Documents as mixtures of topics."""

from twofold.text.bag_of_words import BagOfWords
from twofold.topics.evaluation import perplexity, topic_coherence
from twofold.topics.lda.lda import LatentDirichletAllocation
from twofold.topics.lsa import LSA
from twofold.topics.nmf.nmf import NMF
from twofold.topics.plsa import PLSA
from twofold.topics.topic_table import topic_map, topic_table

__all__ = [
    "LSA",
    "NMF",
    "PLSA",
    "BagOfWords",
    "LatentDirichletAllocation",
    "perplexity",
    "topic_coherence",
    "topic_map",
    "topic_table",
]
