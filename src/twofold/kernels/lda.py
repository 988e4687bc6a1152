"""Inner loops of topic models: documents fold in to fixed topics, and say what counts they expect.

topics (d,k) are word-major, a row of k numbers a word, so that a cell reads and writes two runs of memory. Words that
no topic knows are passed over.
"""

import math

import numpy as np
from numba import njit

from twofold.kernels.randomness import log_gamma_draw

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fold_in(data, indices, indptr, topics, alpha, counts, passes, tol):
    """counts (m,k) ← Σ_j x_j γ_jc with γ_jc ∝ topics_jc (counts_c + α_c), `passes` times for each document.

    A document whose counts move by no more than tol of its length (in sum) is done earlier.
    """
    k, zero = topics.shape[1], topics.dtype.type(0)
    theta, new = np.empty(k, topics.dtype), np.empty(k, topics.dtype)
    for i in range(counts.shape[0]):
        for c in range(k):
            theta[c] = counts[i, c] + alpha[c]
        for _ in range(passes):
            for c in range(k):
                new[c] = alpha[c]
            length = zero
            for t in range(indptr[i], indptr[i + 1]):
                row, s = topics[indices[t]], zero
                for c in range(k):
                    s += row[c] * theta[c]
                if s > zero:
                    f = data[t] / s
                    length += data[t]
                    for c in range(k):
                        new[c] += f * (row[c] * theta[c])
            moved = zero
            for c in range(k):
                moved += abs(new[c] - theta[c])
            for c in range(k):
                theta[c] = new[c]
            if moved <= tol * length:
                break
        for c in range(k):
            counts[i, c] = theta[c] - alpha[c]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def expected_counts(data, indices, indptr, topics, alpha, counts, weight, out):
    """One pass more, fused with what it adds to out (d,k): Σ_i w_i x_ij γ_ijc; the log-likelihood, and the tokens.

    The log-likelihood is that of the shares the documents came with, (counts + α) / sum.
    """
    k, zero, logp, tokens = topics.shape[1], topics.dtype.type(0), 0.0, 0.0
    theta, new = np.empty(k, topics.dtype), np.empty(k, topics.dtype)
    for i in range(counts.shape[0]):
        w, total = weight[i], zero
        for c in range(k):
            theta[c] = counts[i, c] + alpha[c]
            new[c] = zero
        for c in range(k):
            total += theta[c]
        for t in range(indptr[i], indptr[i + 1]):
            row, into, s = topics[indices[t]], out[indices[t]], zero
            for c in range(k):
                s += row[c] * theta[c]
            if s > zero:
                f = data[t] / s
                g = w * f
                logp += w * data[t] * np.log(s / total)
                tokens += w * data[t]
                for c in range(k):
                    v = row[c] * theta[c]
                    new[c] += f * v
                    into[c] += g * v
        for c in range(k):
            counts[i, c] = new[c]
    return logp, tokens


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def log_likelihood(data, indices, indptr, topics, shares, logp, tokens):
    """For each document Σ_j x_j log Σ_c shares_c topics_jc, and Σ_j x_j over the words with a chance."""
    for i in range(shares.shape[0]):
        total, length = 0.0, 0.0
        for t in range(indptr[i], indptr[i + 1]):
            row, s = topics[indices[t]], topics.dtype.type(0)
            for c in range(topics.shape[1]):
                s += row[c] * shares[i, c]
            if s > 0:
                total += data[t] * np.log(s)
                length += data[t]
        logp[i], tokens[i] = total, length


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def digamma(x):
    """ψ(x) for x > 0: upwards until the asymptotic series is exact to double precision."""
    shift = 0.0
    while x < 6.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))
    return shift + np.log(x) - 0.5 / x - series


@njit(cache=True, nogil=True, error_model="numpy")
def dirichlet_sums(counts, alpha, weight, above):
    """Σ_i w_i (ψ(n_ic + α_c) − ψ(α_c)) into above (k,), and Σ_i w_i (ψ(n_i + Σα) − ψ(Σα)), n_i = Σ_c n_ic."""
    k, below, total = above.size, 0.0, 0.0
    base = np.empty(k)
    for c in range(k):
        base[c] = digamma(float(alpha[c]))
        total += alpha[c]
    whole = digamma(total)
    for i in range(counts.shape[0]):
        length, w = 0.0, weight[i]
        for c in range(k):
            if counts[i, c] > 0:
                length += counts[i, c]
                above[c] += w * (digamma(float(counts[i, c]) + float(alpha[c])) - base[c])
        below += w * (digamma(length + total) - whole)
    return below


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _chances(gamma, k, theta):
    """theta ← exp E log θ under a Dirichlet with these numbers; columns from k on are padding."""
    total = 0.0
    for c in range(k):
        total += gamma[c]
    whole = digamma(total)
    for c in range(k):
        theta[c] = np.exp(digamma(float(gamma[c])) - whole)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def variational(data, indices, indptr, topics, alpha, k, gamma, passes, tol):
    """Each document's variational Dirichlet, gamma (m,K): γ_c ← α_c + Σ_j x_j topics_jc θ_c / Σ, θ = exp E log.

    topics are exp E log p(word | topic), padded from k to K columns with zeros.
    """
    K, zero = topics.shape[1], topics.dtype.type(0)
    theta, new = np.zeros(K, topics.dtype), np.empty(K, topics.dtype)
    for i in range(gamma.shape[0]):
        for _ in range(passes):
            _chances(gamma[i], k, theta)
            for c in range(K):
                new[c] = alpha[c]
            for t in range(indptr[i], indptr[i + 1]):
                row, s = topics[indices[t]], zero
                for c in range(K):
                    s += row[c] * theta[c]
                if s > zero:
                    f = data[t] / s
                    for c in range(K):
                        new[c] += f * (row[c] * theta[c])
            moved = zero
            for c in range(k):
                moved += abs(new[c] - gamma[i, c])
            for c in range(k):
                gamma[i, c] = new[c]
            if moved <= tol * k:
                break


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def variational_counts(data, indices, indptr, topics, k, gamma, weight, out):
    """What documents with these Dirichlets add to out (d,K): Σ_i w_i x_ij γ_ijc."""
    K, zero = topics.shape[1], topics.dtype.type(0)
    theta = np.zeros(K, topics.dtype)
    for i in range(gamma.shape[0]):
        _chances(gamma[i], k, theta)
        for t in range(indptr[i], indptr[i + 1]):
            row, into, s = topics[indices[t]], out[indices[t]], zero
            for c in range(K):
                s += row[c] * theta[c]
            if s > zero:
                f = weight[i] * data[t] / s
                for c in range(K):
                    into[c] += f * (row[c] * theta[c])


@njit(cache=True, nogil=True, error_model="numpy")
def log_dirichlet(own, k, state, logs):
    """logs (k,) ← the logarithms of a draw from Dirichlet(own); returns the state after it."""
    top = -np.inf
    for c in range(k):
        logs[c], state = log_gamma_draw(own[c], state)
        top = max(top, logs[c])
    total = 0.0
    for c in range(k):
        total += math.exp(logs[c] - top)
    for c in range(k):
        logs[c] -= top + math.log(total)
    return state


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def log_chance(data, indices, start, stop, topics, theta):
    """Σ_j x_j log Σ_c theta_c topics_jc of one document, over the words with a chance."""
    total = 0.0
    for t in range(start, stop):
        row, s = topics[indices[t]], 0.0
        for c in range(topics.shape[1]):
            s += row[c] * theta[c]
        if s > 0:
            total += data[t] * np.log(s)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def log_normalizer(own, k):
    """log of 1 / B(own), the factor of a Dirichlet's density."""
    total, out = 0.0, 0.0
    for c in range(k):
        total += own[c]
        out -= math.lgamma(own[c])
    return out + math.lgamma(total)


@njit(cache=True, nogil=True, error_model="numpy")
def evidence(data, indices, indptr, topics, alpha, k, gamma, heat, draws, seed, logp, error):
    """log ∫ p(x | θ) Dirichlet(θ | α) dθ of each document by importance sampling, and its standard error, into (m,).

    Draws come in turn from Dirichlet(α + h (γ − α)) for h in `heat`, γ (m,K) near the posterior's, and weigh
    p(x | θ) p(θ) over the density of that mixture. Every document begins with the same seed.
    """
    K, H = topics.shape[1], heat.size
    theta, logs, own, norm, weight = np.zeros(K), np.empty(k), np.empty((H, k)), np.empty(H), np.empty(draws)
    prior = log_normalizer(alpha, k)
    for i in range(gamma.shape[0]):
        start, stop, state = indptr[i], indptr[i + 1], seed
        for h in range(H):
            for c in range(k):
                own[h, c] = alpha[c] + heat[h] * (gamma[i, c] - alpha[c])
            norm[h] = log_normalizer(own[h], k) - prior
        top = -np.inf
        for r in range(draws):
            state, further = log_dirichlet(own[r % H], k, state, logs), 0.0
            for c in range(k):
                theta[c] = math.exp(logs[c])
                further += (gamma[i, c] - alpha[c]) * logs[c]
            most, ratio = -np.inf, 0.0
            for h in range(H):
                most = max(most, norm[h] + heat[h] * further)
            for h in range(H):
                ratio += math.exp(norm[h] + heat[h] * further - most) / H
            weight[r] = log_chance(data, indices, start, stop, topics, theta) - most - math.log(ratio)
            top = max(top, weight[r])
        first, second = 0.0, 0.0
        for r in range(draws):
            first += math.exp(weight[r] - top) / draws
            second += math.exp(2 * (weight[r] - top)) / draws
        logp[i] = top + math.log(first)
        error[i] = math.sqrt(max(second / first**2 - 1, 0.0) / max(draws - 1, 1))
