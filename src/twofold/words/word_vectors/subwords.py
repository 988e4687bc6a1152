"""Vectors of words never seen, from their letters: a word's vector is near the mean of those of its n-grams.

    minimize  Σ_w ‖x_w − 1/|G_w| Σ_{g in G_w} z_g‖² + λ Σ_g ‖z_g‖²      G_w the n-grams of "<word>", 3 to 6 letters

The n-grams share a table of buckets by a hash, as in fastText; here they are learned after the words, so that vectors
of any model, and of files, have them. Reference: Zhao, Mudgal & Liang (2018), *EMNLP*, 601-606; Bojanowski, Grave,
Joulin & Mikolov (2017), *TACL* 5, 135-146.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

LENGTHS = range(3, 7)  # of n-grams, in letters
BUCKETS = 2**16
RIDGE = 0.01  # on top of means of n-grams, whose squares are about one over their number
MAX_WORDS = 20_000  # the most frequent ones, by which n-grams are learned
MAX_STEPS, TOLERANCE = 20, 1e-2  # of conjugate gradients


class Subwords(NamedTuple):
    """Vectors of the buckets of n-grams."""

    Z: np.ndarray  # (buckets,k)
    known: np.ndarray  # (buckets,) whether a word has an n-gram in it

    def estimate(self, word: str) -> np.ndarray | None:
        """The vector (k,) of a word by its n-grams; None if no word has any of them."""
        row = count_ngrams([word])
        own = row.indices[self.known[row.indices]]
        return self.Z[own].mean(axis=0) if len(own) else None


def count_ngrams(words: Sequence[str]) -> sparse.csr_array:
    """The share of each bucket in the n-grams of words, (w, buckets)."""
    indices, indptr = list[int](), [0]
    for word in words:
        spelled = f"<{word}>"
        cuts = (spelled[i : i + n] for n in LENGTHS for i in range(len(spelled) - n + 1))
        indices += sorted({zlib.crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS for gram in cuts})
        indptr.append(len(indices))
    sizes = np.diff(indptr)
    data = np.repeat(1 / np.maximum(sizes, 1), sizes)
    return sparse.csr_array((data, indices, indptr), shape=(len(words), BUCKETS))


def learn_subwords(words: Sequence[str], X: np.ndarray) -> Subwords:
    """Vectors of n-grams by ridge regression of words' vectors X (w,k)."""
    G = count_ngrams(words)
    known = np.bincount(G.indices, minlength=BUCKETS) > 0
    G = sparse.csr_array(G[:, np.flatnonzero(known)])
    normal = LinearOperator((G.shape[1],) * 2, matvec=lambda z: G.T @ (G @ z) + RIDGE * z)
    B = G.T @ X  # (buckets in use, k)
    Z = np.zeros((BUCKETS, X.shape[1]))
    Z[known] = np.column_stack([cg(normal, b, rtol=TOLERANCE, maxiter=MAX_STEPS)[0] for b in B.T])
    return Subwords(Z, known)
