"""Word vectors, the questions they answer, and their files."""

from twofold.words.word_vectors.word_vectors import WordVectors

__all__ = ["WordVectors"]
