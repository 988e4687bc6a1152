"""Expectation maximization for probabilistic latent semantic analysis, fused over the stored counts.

    q_c(i,j) ∝ u_ic v_jc      u_ic ∝ Σ_j x_ij q_c(i,j)      v_jc ∝ Σ_i x_ij q_c(i,j)

    X (n,d) counts in CSR    U (n,k) p(topic | document)    V (d,k) p(word | topic)

The posteriors q of one cell are computed, used and discarded: no array of n × d × k numbers is formed. Tempered by β
they are ∝ (u v)^β: V comes in raised to β already, and the u of a document is raised once.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _weigh_words(start, stop, indices, x, V, u, beta, p, pull, ratio):
    """Write p = u^β, pull_c = Σ_j x v_jc / ŷ_j with ŷ_j = ⟨p, v_j⟩, and ratio = x/ŷ. Returns Σ x log ŷ.

    Words of no topic are left out.
    """
    total = 0.0
    pull[:] = 0
    for c in range(u.size):
        p[c] = u[c] if beta == 1 else u[c] ** beta
    for q in range(start, stop):
        j = indices[q]
        y = V.dtype.type(0)
        for c in range(p.size):
            y += p[c] * V[j, c]
        r = x[q] / y if y > 0 else V.dtype.type(0)
        ratio[q - start] = r
        if y > 0:
            total += np.float64(x[q]) * np.log(np.float64(y))
        for c in range(p.size):
            pull[c] += r * V[j, c]
    return total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _update_mixture(p, pull, u):
    """Set u ∝ p · pull with sum 1, unless no word has a topic. Returns Σ|change of u|."""
    size, moved = u.dtype.type(0), u.dtype.type(0)
    for c in range(u.size):
        size += p[c] * pull[c]
    if size > 0:
        for c in range(u.size):
            moved += abs(p[c] * pull[c] / size - u[c])
        for c in range(u.size):
            u[c] = p[c] * pull[c] / size
    return moved


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def em_counts(indptr, indices, x, w, V, beta, passes, U, T, loglik):
    """Improve every document's mixture in place by a few passes; the last pass also adds its part of the topics.

    T (d,k) float64 += w_i Σ_i x u^β / ŷ, which times V is Σ w x q; loglik[i] = Σ_j x log ŷ before the last step.
    """
    k, most = V.shape[1], max(1, np.max(indptr[1:] - indptr[:-1]))
    p, pull, ratio = np.empty(k, V.dtype), np.empty(k, V.dtype), np.empty(most, V.dtype)
    for i in range(U.shape[0]):
        u = U[i]
        for _ in range(passes):
            loglik[i] = _weigh_words(indptr[i], indptr[i + 1], indices, x, V, u, beta, p, pull, ratio)
            _update_mixture(p, pull, u)
        for q in range(indptr[i], indptr[i + 1]):
            r = w[i] * np.float64(ratio[q - indptr[i]])
            for c in range(k):
                T[indices[q], c] += r * p[c]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def em_fold(indptr, indices, x, V, beta, passes, tol, U):
    """Improve mixtures of new documents given the topics, each until a pass changes it by less than tol."""
    k, most = V.shape[1], max(1, np.max(indptr[1:] - indptr[:-1]))
    p, pull, ratio = np.empty(k, V.dtype), np.empty(k, V.dtype), np.empty(most, V.dtype)
    for i in range(U.shape[0]):
        u = U[i]
        for _ in range(passes):
            _weigh_words(indptr[i], indptr[i + 1], indices, x, V, u, beta, p, pull, ratio)
            if _update_mixture(p, pull, u) <= tol:
                break
