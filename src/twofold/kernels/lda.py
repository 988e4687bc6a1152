"""Inner loops of topic models: documents fold in to fixed topics, and give expected topic counts.

topics (d,k) are word-major, a row of k numbers per word, so that a cell reads and writes two contiguous pieces of
memory. Words that have no chance in any topic are skipped.
"""

import math

import numpy as np
from numba import njit

from twofold.kernels.randomness import log_gamma_draw

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fold_in(data, indices, indptr, topics, alpha, counts, passes, tol):
    """Repeat counts (m,k) ← Σ_j x_j γ_jc with γ_jc ∝ topics_jc (counts_c + α_c), `passes` times for each document.

    A document ends earlier if the sum of the changes of its counts is at most tol times its length.
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
def count_topics(data, indices, indptr, topics, alpha, counts, weight, out):
    """Do one more pass and add Σ_i w_i x_ij γ_ijc to out (d,k); returns the log-likelihood and the number of tokens.

    The log-likelihood is that of the shares before the pass, (counts + α) / sum.
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
    """Write Σ_j x_j log Σ_c shares_c topics_jc of each document, and Σ_j x_j over words with a chance above zero."""
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
    """Return ψ(x) for x > 0, by recurrence up to where the asymptotic series is exact to double precision."""
    shift = 0.0
    while x < 6.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))
    return shift + np.log(x) - 0.5 / x - series


@njit(cache=True, nogil=True, error_model="numpy")
def dirichlet_sums(counts, alpha, weight, above):
    """Add Σ_i w_i (ψ(n_ic + α_c) − ψ(α_c)) to above (k,); returns Σ_i w_i (ψ(n_i + Σα) − ψ(Σα)), n_i = Σ_c n_ic."""
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
def _exp_mean_log(gamma, k, theta):
    """Write exp E log θ under a Dirichlet with parameters gamma to theta; columns from k on are padding."""
    total = 0.0
    for c in range(k):
        total += gamma[c]
    whole = digamma(total)
    for c in range(k):
        theta[c] = np.exp(digamma(float(gamma[c])) - whole)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def fit_dirichlets(data, indices, indptr, topics, alpha, k, gamma, passes, tol):
    """Update each document's variational Dirichlet gamma (m,K): γ_c ← α_c + Σ_j x_j topics_jc θ_c / Σ, θ = exp E log.

    topics are exp E log p(word | topic), padded from k to K columns with zeros.
    """
    K, zero = topics.shape[1], topics.dtype.type(0)
    theta, new = np.zeros(K, topics.dtype), np.empty(K, topics.dtype)
    for i in range(gamma.shape[0]):
        for _ in range(passes):
            _exp_mean_log(gamma[i], k, theta)
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
def count_dirichlet_topics(data, indices, indptr, topics, k, gamma, weight, out):
    """Add Σ_i w_i x_ij γ_ijc of documents with these Dirichlets to out (d,K)."""
    K, zero = topics.shape[1], topics.dtype.type(0)
    theta = np.zeros(K, topics.dtype)
    for i in range(gamma.shape[0]):
        _exp_mean_log(gamma[i], k, theta)
        for t in range(indptr[i], indptr[i + 1]):
            row, into, s = topics[indices[t]], out[indices[t]], zero
            for c in range(K):
                s += row[c] * theta[c]
            if s > zero:
                f = weight[i] * data[t] / s
                for c in range(K):
                    into[c] += f * (row[c] * theta[c])


@njit(cache=True, nogil=True, error_model="numpy")
def draw_log_dirichlet(alpha, k, state, logs):
    """Write the logarithms of a draw from Dirichlet(alpha) to logs (k,); returns the next state."""
    top = -np.inf
    for c in range(k):
        logs[c], state = log_gamma_draw(alpha[c], state)
        top = max(top, logs[c])
    total = 0.0
    for c in range(k):
        total += math.exp(logs[c] - top)
    for c in range(k):
        logs[c] -= top + math.log(total)
    return state


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def log_probability(data, indices, start, stop, topics, theta):
    """Return Σ_j x_j log Σ_c theta_c topics_jc of one document, over the words with a chance above zero."""
    total = 0.0
    for t in range(start, stop):
        row, s = topics[indices[t]], 0.0
        for c in range(topics.shape[1]):
            s += row[c] * theta[c]
        if s > 0:
            total += data[t] * np.log(s)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def log_normalizer(alpha, k):
    """Return log 1 / B(alpha), the factor of a Dirichlet's density."""
    total, out = 0.0, 0.0
    for c in range(k):
        total += alpha[c]
        out -= math.lgamma(alpha[c])
    return out + math.lgamma(total)


@njit(cache=True, nogil=True, error_model="numpy")
def estimate_evidence(data, indices, indptr, topics, alpha, k, gamma, heat, draws, seed, logp, error):
    """Estimate log ∫ p(x | θ) Dirichlet(θ | α) dθ of each document and its standard error by importance sampling.

    Draws come in turn from Dirichlet(α + h (γ − α)) for h in `heat`, with γ (m,K) near the posterior's. The weight of a
    draw is p(x | θ) p(θ) over the density of that mixture. Every document starts with the same seed.
    """
    K, H = topics.shape[1], heat.size
    theta, logs, proposals, norm, weight = np.zeros(K), np.empty(k), np.empty((H, k)), np.empty(H), np.empty(draws)
    prior = log_normalizer(alpha, k)
    for i in range(gamma.shape[0]):
        start, stop, state = indptr[i], indptr[i + 1], seed
        for h in range(H):
            for c in range(k):
                proposals[h, c] = alpha[c] + heat[h] * (gamma[i, c] - alpha[c])
            norm[h] = log_normalizer(proposals[h], k) - prior
        top = -np.inf
        for r in range(draws):
            state, further = draw_log_dirichlet(proposals[r % H], k, state, logs), 0.0
            for c in range(k):
                theta[c] = math.exp(logs[c])
                further += (gamma[i, c] - alpha[c]) * logs[c]
            most, ratio = -np.inf, 0.0
            for h in range(H):
                most = max(most, norm[h] + heat[h] * further)
            for h in range(H):
                ratio += math.exp(norm[h] + heat[h] * further - most) / H
            weight[r] = log_probability(data, indices, start, stop, topics, theta) - most - math.log(ratio)
            top = max(top, weight[r])
        first, second = 0.0, 0.0
        for r in range(draws):
            first += math.exp(weight[r] - top) / draws
            second += math.exp(2 * (weight[r] - top)) / draws
        logp[i] = top + math.log(first)
        error[i] = math.sqrt(max(second / first**2 - 1, 0.0) / max(draws - 1, 1))
