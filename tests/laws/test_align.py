"""Alignment: planted turns are found, and what is found is what the formulas say."""

import numpy as np
import pytest

import twofold
from twofold import WordVectors
from twofold.words import align
from twofold.words._nearest import normalize_rows, row_norms
from twofold.words.alignment import match_mutually, neighbor_density, procrustes


def rotate(V=400, k=12, noise=0.0, seed=0, dtype=np.float64, mirror=False):
    """Words "a0", ... and their turned copies "b0", ...; the turn; all pairs. Neither side is centered."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(V, k)) + 0.5 * rng.normal(size=k)
    Q = np.linalg.qr(rng.normal(size=(k, k)))[0]
    Q[:, 0] *= np.sign(np.linalg.det(Q)) * (-1 if mirror else 1)
    Y = (X + noise * rng.normal(size=X.shape)) @ Q
    source, target = [f"a{i}" for i in range(V)], [f"b{i}" for i in range(V)]
    shuffled = rng.permutation(V)  # the target's own order
    s = WordVectors.of(source, X.astype(dtype))
    t = WordVectors.of([target[i] for i in shuffled], Y[shuffled].astype(dtype))
    return s, t, Q, list(zip(source, target, strict=True))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("mirror", [True, False])
@pytest.mark.parametrize("dtype, exact", [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_a_planted_turn_is_found_exactly(dtype, exact, mirror, center):
    s, t, Q, pairs = rotate(dtype=dtype, mirror=mirror)
    found = align(s, t, pairs[:15], center=center)
    np.testing.assert_allclose(found.matrix_, Q, atol=exact)
    assert found.score(pairs) == found.score(pairs, method="nearest") == 1.0


def test_one_wrong_pair_in_five_is_seen_through():
    s, t, Q, pairs = rotate()
    wrong = [(a, pairs[-1 - i][1]) if i % 5 == 0 else (a, b) for i, (a, b) in enumerate(pairs[:60])]
    spelled = WordVectors.of(
        [dict(wrong).get(word, word) for word in s.words], s.vectors_
    )  # given by spelling, not known
    found = align(spelled, t)
    assert len(found.pairs_) > 380
    np.testing.assert_allclose(found.matrix_, Q, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_noise_costs_little(seed):
    s, t, Q, pairs = rotate(V=600, k=20, noise=0.35, seed=seed)
    found = align(s, t, pairs[:25])
    assert found.score(pairs[25:]) > 0.95
    assert np.abs(found.matrix_ - Q).max() < 0.05


def test_refinement_makes_much_of_few_pairs():
    s, t, _, pairs = rotate(V=600, k=20, noise=0.3)
    alone, refined = align(s, t, pairs[:12], refine=0), align(s, t, pairs[:12], refine=20)
    assert alone.n_iter_ == 1 and len(alone.pairs_) == 12
    assert alone.score(pairs) < 0.5 and refined.score(pairs) > 0.95


def test_the_matrix_is_orthogonal_whatever_the_pairs():
    rng = np.random.default_rng(0)
    s = WordVectors.of([f"w{i}" for i in range(50)], rng.normal(size=(50, 7)))
    t = WordVectors.of([f"w{i}" for i in range(50)], rng.normal(size=(50, 7)))
    for pairs in (None, [("w0", "w3")], [("w0", "w3"), ("w0", "w4")]):
        for refine in (0, 3):
            W = align(s, t, pairs, refine=refine).matrix_
            np.testing.assert_allclose(W.T @ W, np.eye(7), atol=1e-12)


def test_no_turn_fits_the_pairs_better():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(2, 30, 5))
    W = procrustes(X, Y)
    best = np.linalg.norm(X @ W - Y)
    for _ in range(200):
        angle = rng.normal(size=(5, 5)) * 10 ** rng.uniform(-3, 0)
        other = W @ np.linalg.qr(np.eye(5) + (angle - angle.T) / 2)[0]
        assert np.linalg.norm(X @ other - Y) >= best - 1e-12


def test_directions_without_pairs_stay_free_but_length_is_kept():
    s, t, Q, pairs = rotate(k=12)
    found = align(s, t, pairs[:3], refine=0, center=False)
    known = normalize_rows(s.vectors_[:3])
    np.testing.assert_allclose(known @ found.matrix_, known @ Q, atol=1e-9)


def csls_by_hand(X, Y, K):
    """All of CSLS (n,m) by the formula."""
    C = X @ Y.T
    rx = np.sort(C, axis=1)[:, -K:].mean(axis=1)
    ry = np.sort(C, axis=0)[-K:].mean(axis=0)
    return 2 * C - rx[:, None] - ry


def test_csls_is_its_formula():
    s, t, _, pairs = rotate(V=150, noise=0.8)
    found = align(s, t, pairs[:40])
    X, Y = (
        found.transform(s.vectors_),
        normalize_rows(normalize_rows(t.vectors_) - normalize_rows(t.vectors_).mean(axis=0)),
    )
    S = csls_by_hand(X, Y, 10)
    for i in (0, 7, 149):
        answer = found.translate(f"a{i}", 20)
        order = np.argsort(-S[i], kind="stable")[:20]
        assert [word for word, _ in answer] == [t.words[j] for j in order]
        np.testing.assert_allclose([score for _, score in answer], S[i, order], atol=1e-12)
        near = found.translate(f"a{i}", 5, method="nearest")
        np.testing.assert_allclose([score for _, score in near], np.sort(X[i] @ Y.T)[::-1][:5], atol=1e-12)


@pytest.mark.parametrize("n, m, K", [(60, 80, 10), (5, 8, 10), (1, 30, 3)])
def test_mutual_pairs_choose_each_other(n, m, K):
    rng = np.random.default_rng(2)
    X, Y = normalize_rows(rng.normal(size=(n, 6))), normalize_rows(rng.normal(size=(m, 6)))
    C = X @ Y.T
    rx = np.sort(C, axis=1)[:, -min(K, m) :].mean(axis=1)
    np.testing.assert_allclose(neighbor_density(X, Y, row_norms(Y), K), rx, atol=1e-12)
    ry = np.sort(C, axis=0)[-min(K, n) :].mean(axis=0)
    S = 2 * C - rx[:, None] - ry
    best = {(i, int(S[i].argmax())) for i in range(n)} & {(int(S[:, j].argmax()), j) for j in range(m)}
    assert {(int(a), int(b)) for a, b in match_mutually(X, Y, K)} == best


def test_csls_helps_against_hubs():
    """Points near the mean of all are near everything: cosines alone fall for them."""
    rng = np.random.default_rng(0)
    V, k = 500, 30
    X = rng.normal(size=(V, k)) + 8 * np.eye(k)[0]
    hubs = np.repeat(X.mean(axis=0)[None], 20, axis=0) + 0.1 * rng.normal(size=(20, k))
    Y = X + 0.9 * rng.normal(size=X.shape)
    s = WordVectors.of([f"w{i}" for i in range(V)], X)
    t = WordVectors.of([f"w{i}" for i in range(V)] + [f"hub{i}" for i in range(20)], np.vstack([Y, hubs]))
    pairs = [(f"w{i}", f"w{i}") for i in range(V)]
    found = align(s, t, pairs, refine=0, center=False)
    assert found.score(pairs) > found.score(pairs, method="nearest") + 0.05


def test_threads_and_blocks_change_no_bit(small_blocks):
    s, t, _, pairs = rotate(V=300, noise=0.4, dtype=np.float32)
    made = []
    for threads in (1, 2):
        with twofold.config(threads=threads):
            found = align(s, t, pairs[:20])
            made.append((found.matrix_.tobytes(), found.pairs_.tobytes(), str(found.translate("a3"))))
    assert made[0] == made[1]
