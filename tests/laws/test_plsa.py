"""Laws of probabilistic latent semantic analysis."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from twofold.core.checks import InputError
from twofold.topics.nmf.nmf import NMF
from twofold.topics.plsa import PLSA

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def corpus(n=120, d=40, k=4, tokens=80, seed=0):
    """Counts, the mixtures and the topics they were drawn from."""
    rng = np.random.default_rng(seed)
    Z, U = rng.dirichlet(np.full(d, 0.1), size=k), rng.dirichlet(np.full(k, 0.3), size=n)
    return np.array([rng.multinomial(tokens, p) for p in U @ Z]).astype(float), U, Z


def brute_force(X, Z, sweeps):
    """EM with the array of posteriors, one step of both sides a sweep."""
    U = np.full((len(X), len(Z)), 1 / len(Z))
    for _ in range(sweeps):
        q = U[:, :, None] * Z[None]
        q /= np.maximum(q.sum(axis=1, keepdims=True), 1e-300)
        counts = X[:, None, :] * q
        U = counts.sum(axis=2) / counts.sum(axis=(1, 2))[:, None]
        Z = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    return (X * np.log(np.where(X > 0, U @ Z, 1))).sum() / X.sum(), Z


def test_equals_brute_force_on_a_tiny_corpus():
    X, _, Z = corpus(12, 9, 2, tokens=30)
    start = 0.5 * Z + 0.5 / 9
    loglik, topics = brute_force(X, start, 4000)
    model = PLSA(2, init=start, tol=1e-13, max_iter=4000).fit(X)
    assert model.fit_log_likelihood(X) == pytest.approx(loglik, rel=1e-7)
    np.testing.assert_allclose(model.components_, topics, atol=1e-3)


@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_a_sweep_of_em_is_one_step_of_em(sweeps):
    X, _, Z = corpus(30, 12, 3)
    start = 0.5 * Z + 0.5 / 12
    model = PLSA(3, solver="em", init=start, tol=0, max_iter=sweeps).fit(X)
    np.testing.assert_allclose(model.components_, brute_force(X, start, sweeps)[1], rtol=1e-9, atol=1e-15)
    before = brute_force(X, start, sweeps - 1)[0]
    assert model.history_["objective"][-1] == pytest.approx(-before, rel=1e-9)


def test_samples_have_the_frequencies_of_the_model():
    X = corpus(30, 12, 3)[0]
    model, n = PLSA(3, random_state=0).fit(X), 100_000
    words, topics = model.sample(n, random_state=0)
    joint = model.topic_share_[:, None] * model.components_
    found = np.histogram2d(topics, words, bins=[np.arange(4), np.arange(13)])[0] / n
    assert (np.abs(found - joint) <= 6 * np.sqrt(joint / n) + 1e-12).all()
    mixtures = model.transform(X)[:2]
    words, topics = model.sample(n, mixtures, random_state=1)
    assert words.shape == topics.shape == (2, n)
    for row, drawn in zip(mixtures, words, strict=True):
        expected = row @ model.components_
        assert (np.abs(np.bincount(drawn, minlength=12) / n - expected) <= 6 * np.sqrt(expected / n) + 1e-12).all()
    with pytest.raises(InputError, match="needs 3 probabilities a document"):
        model.sample(5, [0.5, 0.5])


@pytest.mark.parametrize("solver", ["newton", "em"])
@pytest.mark.parametrize("tempering", [1.0, 0.8, 1.2])
def test_objective_never_rises(tempering, solver):
    X = corpus()[0]
    model = PLSA(5, tempering=tempering, solver=solver, tol=0, max_iter=80, random_state=0).fit(X)
    assert np.all(np.diff(model.history_["objective"]) <= 1e-13)
    assert model.n_iter_ > 20


@pytest.mark.parametrize("solver", ["newton", "mu"])
def test_nmf_with_kl_reaches_the_same_likelihood(solver):
    X, _, Z = corpus()
    start = 0.7 * Z + 0.3 / Z.shape[1]
    ours = PLSA(4, init=start, tol=1e-12, max_iter=8000).fit(X)
    nmf = NMF(4, beta_loss="kullback-leibler", solver=solver, init=start, tol=1e-12, max_iter=8000).fit(X)
    # At the optimum the rows of UZ sum as those of X do, so D = Σ x log(x / n_i) − L.
    share = X / X.sum(axis=1, keepdims=True)
    entropy = (X * np.log(np.where(X > 0, share, 1))).sum()
    loglik = entropy - nmf.reconstruction_err_**2 / 2
    assert ours.fit_log_likelihood(X) * X.sum() == pytest.approx(loglik, rel=1e-6)


def test_planted_topics_are_found():
    X, U, Z = corpus(600, 50, 4, tokens=200)
    found = [PLSA(4, random_state=seed).fit(X) for seed in range(3)]
    best = max(found, key=lambda model: model.fit_log_likelihood(X))
    cost = np.abs(best.components_[:, None] - Z[None]).sum(axis=2) / 2
    mine, theirs = linear_sum_assignment(cost)
    assert cost[mine, theirs].max() < 0.12
    assert np.abs(best.transform(X)[:, mine] - U[:, theirs]).mean() < 0.05


def test_what_it_gives_are_probabilities():
    X = corpus()[0]
    X[7] = 0
    model = PLSA(3, random_state=0).fit(X)
    for p in (model.components_, model.transform(X), model.topic_share_[None]):
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(X)[7], model.topic_share_)


def test_symmetric_form_is_the_same_model():
    X = corpus()[0]
    model = PLSA(3, random_state=0).fit(X)
    topic, document, word = model.symmetric(X)
    np.testing.assert_allclose(topic, model.topic_share_)
    np.testing.assert_allclose(document.sum(axis=0), 1)
    joint = np.einsum("c,ic,cj->ij", topic, document, word)
    share = X.sum(axis=1, keepdims=True) / X.sum()
    np.testing.assert_allclose(joint, share * (model.transform(X) @ model.components_), atol=1e-12)


def test_words_never_seen_are_ignored():
    X = corpus()[0]
    X[:, 5] = 0
    model = PLSA(3, random_state=0).fit(X)
    other = X.copy()
    other[:, 5] = 100
    np.testing.assert_array_equal(model.components_[:, 5], 0)
    np.testing.assert_allclose(model.transform(other), model.transform(X))
    assert model.fit_log_likelihood(other) == pytest.approx(model.fit_log_likelihood(X))


def test_tempering_flattens():
    X = corpus()[0]
    sharp, flat = (PLSA(4, tempering=b, random_state=0).fit(X) for b in (1.0, 0.6))
    assert flat.transform(X).max(axis=1).mean() < sharp.transform(X).max(axis=1).mean()
    assert flat.fit_log_likelihood(X) < sharp.fit_log_likelihood(X)


def test_refusals():
    X = corpus()[0]
    X[3, 7] = -0.2
    with pytest.raises(InputError, match=r"X\[3, 7\] is -0.2; PLSA needs X >= 0"):
        PLSA(2).fit(X)
    X[3, 7] = 1
    model = PLSA(2, random_state=0).fit(X)
    X[3, 7] = -1
    with pytest.raises(InputError, match=r"X\[3, 7\] is -1"):
        model.transform(X)
    with pytest.raises(InputError, match="finite numbers >= 0"):
        PLSA(2, init=np.ones((3, 40))).fit(np.abs(X))


def test_nothing_at_all():
    model = PLSA(2, random_state=0).fit(np.zeros((4, 3)))
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.transform(np.zeros((2, 3))), 0.5)
