"""NMF and LDA mean what they mean in scikit-learn: objectives by one function, from the same table."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import psi
from sklearn import decomposition as theirs
from sklearn.datasets import make_multilabel_classification

import twofold

RNG = np.random.default_rng(0)
X = RNG.gamma(0.5, size=(80, 4)) @ RNG.gamma(0.5, size=(4, 15)) + 0.1 * RNG.random((80, 15))
LOSSES = {"frobenius": 2, "kullback-leibler": 1, "itakura-saito": 0, 1.5: 1.5, 3.0: 3.0, 0.5: 0.5}
K = 4
PARTS = RNG.random((K, 15)) + 0.1


def divergence(X, Y, beta):
    if beta == 1:
        return (X * np.log(X / Y) - X + Y).sum()
    if beta == 0:
        return (X / Y - np.log(X / Y) - 1).sum()
    return ((X**beta + (beta - 1) * Y**beta - beta * X * Y ** (beta - 1)) / (beta * (beta - 1))).sum()


def objective(X, W, H, beta, alpha_W=0.0, alpha_H="same", l1_ratio=0.0):
    """As scikit-learn's page defines it: penalties of W times the columns, of H times the rows."""
    (n, d), alpha_H = X.shape, alpha_W if alpha_H == "same" else alpha_H
    sides = ((alpha_W * d, W), (alpha_H * n, H))
    penalties = [a * (l1_ratio * A.sum() + 0.5 * (1 - l1_ratio) * (A**2).sum()) for a, A in sides]
    return divergence(X, W @ H, beta) + sum(penalties)


def fit_quietly(model, X, **factors):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_transform(X, **factors)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize(
    "penalty",
    [
        {"alpha_W": 0.01},
        {"alpha_W": 0.01, "l1_ratio": 1.0},
        {"alpha_W": 0.02, "alpha_H": 0.005, "l1_ratio": 0.5},
        {"alpha_W": 0.0, "alpha_H": 0.0, "l1_ratio": 0.7},
    ],
    ids=["l2", "l1", "both", "none"],
)
@pytest.mark.parametrize("solver", ["auto", "mu"])
def test_penalties_have_their_scale_and_end_no_higher(loss, penalty, solver):
    beta = LOSSES[loss]
    many = {"tol": 1e-9, "max_iter": 1500, "random_state": 0}
    init, factors = (None, {}) if solver == "auto" else ("custom", {"W": np.full((80, K), 0.5), "H": PARTS})
    here = twofold.NMF(K, beta_loss=loss, solver=solver, init=init, **penalty, **many)
    same = "cd" if (beta, solver) == (2, "auto") else "mu"
    there = theirs.NMF(K, beta_loss=loss, solver=same, init=init or "nndsvda", **penalty, **many)
    W, W2 = fit_quietly(here, X, **factors), fit_quietly(there, X, **factors)
    mine = objective(X, W, here.components_, beta, **penalty)
    assert mine <= objective(X, W2, there.components_, beta, **penalty) * 1.005
    assert here.history_["objective"][-1] == pytest.approx(mine, rel=1e-3)
    assert here.reconstruction_err_ == pytest.approx(np.sqrt(2 * divergence(X, W @ here.components_, beta)), rel=1e-6)
    assert here.n_components_ == K


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", 1.5])
def test_new_rows_pay_the_penalty_of_their_codes(loss):
    penalty = {"alpha_W": 0.02, "alpha_H": 0.0, "l1_ratio": 0.5}
    H = theirs.NMF(K, random_state=0, max_iter=1000).fit(X).components_
    there = theirs.NMF(K, beta_loss=loss, solver="mu", tol=1e-8, max_iter=1000, **penalty)
    here = twofold.NMF(K, beta_loss=loss, **penalty, init=H, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here.fit(X), there.fit(X)
        there.components_ = here.components_
        costs = [objective(X, m.transform(X), here.components_, LOSSES[loss], **penalty) for m in (here, there)]
    assert costs[0] <= costs[1] * (1 + 1e-6)
    assert -here.score(X) * len(X) == pytest.approx(costs[0], rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_any_divergence_ends_as_low_from_the_same_start(loss):
    W, H = RNG.random((80, K)) + 0.1, RNG.random((K, 15)) + 0.1
    options = {"beta_loss": loss, "solver": "mu", "init": "custom", "tol": 0.0, "max_iter": 150}
    here, there = twofold.NMF(K, **options), theirs.NMF(K, **options)
    costs = [
        objective(X, fit_quietly(m, X, W=W.copy(), H=H.copy()), m.components_, LOSSES[loss]) for m in (here, there)
    ]
    assert costs[0] <= costs[1] * 1.02
    assert np.all(np.diff(here.history_["objective"]) <= 0)
    assert here.transform(X).shape == (80, K)


def test_the_number_of_a_loss_is_its_name():
    for number, name in ((2, "frobenius"), (1, "kullback-leibler"), (0, "itakura-saito")):
        one, other = (twofold.NMF(3, beta_loss=b, max_iter=20, tol=0, random_state=0) for b in (number, name))
        np.testing.assert_array_equal(fit_quietly(one, X), fit_quietly(other, X))


@pytest.mark.parametrize("init", [None, "random", "nndsvd", "nndsvda", "nndsvdar"])
@pytest.mark.parametrize("solver", ["cd", "mu"])
def test_every_start_of_scikit_learn_leads_down(init, solver):
    model = twofold.NMF(K, init=init, solver=solver, max_iter=400, tol=1e-7, random_state=0)
    there = theirs.NMF(K, init=init or "nndsvda", solver=solver, max_iter=400, tol=1e-7, random_state=0)
    W, W2 = fit_quietly(model, X), fit_quietly(there, X)
    assert objective(X, W, model.components_, 2) <= 1.05 * objective(X, W2, there.components_, 2)
    V = fit_quietly(model, sparse.csr_array(X))
    assert objective(X, V, model.components_, 2) <= 1.05 * objective(X, W2, there.components_, 2)


def test_the_number_of_parts_is_inferred():
    W, H = RNG.random((80, 3)), RNG.random((3, 15))
    assert twofold.NMF(init="custom", max_iter=500).fit(X, W=W, H=H).components_.shape == (3, 15)
    assert twofold.NMF(max_iter=2000).fit(X[:, :3]).n_components_ == 3
    assert twofold.NMF(None, max_iter=2000).fit(X[:, :3]).n_components_ == 3


@pytest.mark.parametrize(
    ("options", "factors", "match"),
    [
        ({"init": "custom"}, {}, "W is not given"),
        ({"init": "custom"}, {"W": np.ones((80, 2)), "H": np.ones((2, 9))}, r"H has shape \(2, 9\)"),
        ({}, {"W": np.ones((80, 2)), "H": np.ones((2, 15))}, 'only with init="custom"'),
        ({"beta_loss": 0.5, "solver": "cd"}, {}, "does not minimize"),
    ],
)
def test_what_cannot_be_is_refused(options, factors, match):
    with pytest.raises(ValueError, match=match):
        twofold.NMF(2, **options).fit(X, **factors)


def test_divergences_that_need_every_cell_say_so():
    zero, hole = X.copy(), X.copy()
    zero[3, 7], hole[3, 7] = 0.0, np.nan
    with pytest.raises(ValueError, match=r"X\[3, 7\] is 0; beta_loss='itakura-saito' divides by it"):
        twofold.NMF(2, beta_loss="itakura-saito").fit(zero)
    for table in (hole, sparse.csr_array(X)):
        with pytest.raises(ValueError, match="needs a dense table"):
            twofold.NMF(2, beta_loss=0.5).fit(table)


# --- latent Dirichlet allocation ------------------------------------------------------------------------------

COUNTS = make_multilabel_classification(n_samples=300, random_state=0)[0]
PRIORS = {"doc_topic_prior": None, "topic_word_prior": None, "random_state": 0}


def fit_both(method, **options):
    here = twofold.LatentDirichletAllocation(5, learning_method=method, tol=0.0, **PRIORS, **options)
    there = theirs.LatentDirichletAllocation(5, learning_method=method, **PRIORS, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return here.fit(COUNTS), there.fit(COUNTS)


def as_theirs(here):
    """A model of scikit-learn with the topics of ours."""
    there = theirs.LatentDirichletAllocation(5, max_iter=1, **PRIORS).fit(COUNTS)
    weight = here.topic_weight_ + here.n_features_in_ * here.topic_word_prior_
    there.components_, there.exp_dirichlet_component_ = (
        here.components_ * weight[:, None],
        here.exp_dirichlet_component_,
    )
    return there


@pytest.mark.parametrize("method", ["batch", pytest.param("online", marks=pytest.mark.soak)])
def test_topics_are_as_good_and_counted_alike(method):
    here, there = fit_both(method, max_iter=30)
    assert here.perplexity_bound(COUNTS) == pytest.approx(there.perplexity(COUNTS), rel=0.02)
    assert here.bound_ == pytest.approx(here.perplexity_bound(COUNTS), rel=1e-9)
    assert here.n_batch_iter_ == there.n_batch_iter_
    assert np.all(here.doc_topic_prior_ == there.doc_topic_prior_)
    assert here.topic_word_prior_ == there.topic_word_prior_


@pytest.mark.parametrize("method", ["scvb0", "batch", "online"])
def test_the_same_topics_have_the_same_bound(method):
    options = {"max_iter": 5, "tol": 0.0, **PRIORS}
    here = twofold.LatentDirichletAllocation(5, learning_method=method, **options)
    fit_quietly(here, COUNTS)
    there = as_theirs(here)
    for sub in (False, True):
        assert here.perplexity_bound(COUNTS, sub_sampling=sub) == pytest.approx(there.perplexity(COUNTS, sub), rel=1e-6)
    lam = there.components_
    expected = np.exp(psi(lam) - psi(lam.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(here.exp_dirichlet_component_, expected, rtol=1e-9)
    if method != "scvb0":
        np.testing.assert_allclose(here.transform(COUNTS), there.transform(COUNTS), atol=1e-5)
        ours, counts = here.transform(COUNTS, normalize=False), there.transform(COUNTS, normalize=False)
        np.testing.assert_allclose(ours, counts, atol=1e-4)


@pytest.mark.soak
def test_an_optimum_of_scikit_learn_is_one_of_ours():
    counts = COUNTS[:100]  # scikit-learn takes its time
    there = theirs.LatentDirichletAllocation(5, max_iter=200, mean_change_tol=1e-7, **PRIORS).fit(counts)
    start = there.components_ / there.components_.sum(axis=1, keepdims=True)
    options = {"learning_method": "batch", "init": start, "mean_change_tol": 1e-7, "max_iter": 40, "tol": 0.0}
    here = twofold.LatentDirichletAllocation(5, **options, **PRIORS)
    fit_quietly(here, counts)
    assert here.perplexity_bound(counts) == pytest.approx(there.perplexity(counts), rel=2e-3)


def test_batches_of_documents_move_the_topics_alike():
    options = {"learning_decay": 0.8, "learning_offset": 5.0, "total_samples": 900, **PRIORS}
    here = twofold.LatentDirichletAllocation(5, learning_method="online", **options)
    there = theirs.LatentDirichletAllocation(5, learning_method="online", **options)
    for part in np.array_split(COUNTS, 6):
        here.partial_fit(part), there.partial_fit(part)
    assert here.n_batch_iter_ == there.n_batch_iter_ == 7
    pseudo = here.topic_weight_.sum() + 5 * here.n_features_in_ * here.topic_word_prior_
    assert pseudo == pytest.approx(there.components_.sum(), rel=1e-3)
    assert here.perplexity_bound(COUNTS) == pytest.approx(there.perplexity(COUNTS), rel=0.03)


def test_none_is_one_over_the_number_of_topics():
    factors = twofold.LatentDirichletAllocation(4, doc_topic_prior=0.25, topic_word_prior=0.25, random_state=0)
    none = twofold.LatentDirichletAllocation(4, **PRIORS)
    np.testing.assert_array_equal(factors.fit_transform(COUNTS), none.fit_transform(COUNTS))
