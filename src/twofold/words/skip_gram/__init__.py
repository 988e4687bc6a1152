"""Skip-gram word vectors."""

from twofold.words.skip_gram.skip_gram import SkipGram

__all__ = ["SkipGram"]
