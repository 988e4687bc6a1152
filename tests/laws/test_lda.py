"""Laws of latent Dirichlet allocation: three solvers, one model."""

import functools

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment
from scipy.stats import beta

import twofold
from tests.callbacks import Crash, Recorder
from tests.contract.helpers import differences
from twofold import Checkpoint, LatentDirichletAllocation
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.data.csr_folder import write_csr
from twofold.topics.evaluation import perplexity
from twofold.topics.lda import _scvb0, _variational
from twofold.topics.lda.documents import batches, finer

SOLVERS = ["scvb0", "gibbs", "batch", "online"]
every = pytest.mark.parametrize("solver", SOLVERS)
variational = pytest.mark.parametrize("solver", ["scvb0", "batch", "online"])
sampling = pytest.mark.parametrize("solver", ["gibbs"])  # the contract has the other solvers
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def plant(n=400, d=60, k=4, length=80, alpha=0.15, seed=0):
    """Documents of k topics, as CSR counts; the topics."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(99).dirichlet(np.full(d, 0.1), size=k)
    shares = rng.dirichlet(np.broadcast_to(alpha, k), size=n)
    return sparse.csr_array([rng.multinomial(length, p / p.sum()) for p in shares @ topics]), topics


def model(solver, k=4, **options):
    few = {} if solver == "scvb0" else {"max_iter": 60}
    return LatentDirichletAllocation(k, **{"learning_method": solver, "random_state": 0, **few, **options})


def best(solver, X, k=4, starts=3, **options):
    """The best of a few starts, as anyone would take: planted topics are one optimum of several."""
    fits = [model(solver, k, **{"random_state": s, **options}).fit(X) for s in range(starts)]
    return min(fits, key=lambda m: m.history_["objective"][-1])


@functools.cache
def best_of_planted(solver):
    return best(solver, plant()[0])


def distance(topics, true):
    """Half the summed difference of matched topics, the worst of them: and the matching."""
    gap = np.abs(topics[:, None] - true[None]).sum(axis=2) / 2
    rows, cols = linear_sum_assignment(gap)
    return gap[rows, cols].max(), rows[np.argsort(cols)]


@every
def test_planted_topics_are_recovered(solver):
    assert distance(best_of_planted(solver).components_, plant()[1])[0] < 0.1


@every
def test_probabilities_sum_to_one(solver):
    X, _ = plant(60)
    fitted = model(solver, max_iter=5).fit(X)
    U = fitted.transform(X)
    assert (fitted.components_ > 0).all() and (U > 0).all() and (fitted.doc_topic_prior_ > 0).all()
    np.testing.assert_allclose(fitted.components_.sum(axis=1), 1)
    np.testing.assert_allclose(U.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.inverse_transform(U).sum(axis=1), 1)
    if solver != "online":  # whose first steps are short
        np.testing.assert_allclose(fitted.topic_weight_.sum(), X.sum())


@every
def test_sampling_and_refitting_recovers_the_topics(solver):
    first = best_of_planted("scvb0")
    sampled, shares = first.sample_documents(600, 80, random_state=1, return_topics=True)
    assert sampled.shape == (600, 60) and shares.shape == (600, 4) and np.all(sampled.sum(axis=1) == 80)
    again = best(solver, sampled)
    gap, order = distance(again.components_, first.components_)
    assert gap < 0.16
    assert np.abs(again.transform(sampled)[:, order] - shares).mean() < 0.05


@every
def test_the_prior_is_recovered(solver):
    alpha = np.array([0.1, 0.3, 0.6])
    X, topics = plant(1500, k=3, length=150, alpha=alpha)
    order = [2, 0, 1]
    fitted = model(solver, 3, init=7 * topics[order], tol=1e-7).fit(X)  # where it starts
    assert distance(fitted.components_, topics[order])[1].tolist() == [0, 1, 2]
    # Soft assignments leave a little of every topic in every document: scvb0 takes rare topics for less rare.
    np.testing.assert_allclose(fitted.doc_topic_prior_, alpha[order], rtol=0.8 if solver == "scvb0" else 0.3)


@every
def test_a_given_prior_stays(solver):
    X, _ = plant(60)
    assert np.all(model(solver, doc_topic_prior=0.3, max_iter=6).fit(X).doc_topic_prior_ == 0.3)
    given = [0.1, 0.2, 0.3, 0.4]
    assert model(solver, doc_topic_prior=given, max_iter=6).fit(X).doc_topic_prior_.tolist() == given


@every
def test_unseen_documents_are_better_understood_than_by_chance(solver):
    (X, topics), new = plant(), plant(200, seed=7)[0]
    found, true = perplexity(best_of_planted(solver), new), perplexity(topics, new, alpha=0.15)
    assert true <= found * 1.001 and found < 1.05 * true < perplexity(np.asarray(X.sum(axis=0)), new)


@sampling
def test_threads_and_files_do_not_matter(solver, tmp_path, small_blocks):
    X, fits = plant(150)[0].toarray(), []
    np.save(tmp_path / "x.npy", X)
    for threads, data in ((1, X), (2, X), (3, X), (2, tmp_path / "x.npy")):
        with twofold.config(threads=threads):
            fits.append(model(solver, max_iter=6).fit(data))
    assert not any(differences(fits[0], other) for other in fits[1:])


@every
def test_a_folder_of_counts_equals_memory(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(_scvb0, "BLOCKS_PER_BATCH", 2)
    for file in (_scvb0, _variational):
        monkeypatch.setattr(file, "finer", lambda blocks, cells: finer(blocks, 1000))
    X = plant(150)[0].astype(np.float64)
    path = write_csr(tmp_path / "x.csr", [X[:40], X[40:]])
    a, b = (model(solver, max_iter=6).fit(data) for data in (X, path))
    assert np.array_equal(a.components_, b.components_) and np.array_equal(a.transform(X), b.transform(path))


@sampling
@pytest.mark.parametrize("after", [1, 4])
def test_a_fit_cut_short_goes_on_to_the_same_bits(solver, after, tmp_path, small_blocks):
    X, path = plant(150)[0].toarray(), tmp_path / "c"
    with pytest.raises(Crash):
        model(solver, max_iter=8, tol=0).set_callbacks(Checkpoint(path), Recorder(crash_after=after + 1)).fit(X)
    assert path.exists()
    a, b = model(solver, max_iter=8, tol=0), model(solver, max_iter=8, tol=0).set_callbacks(Checkpoint(path))
    assert np.array_equal(a.fit(X).components_, b.fit(X).components_) and b.n_iter_ == 8


def test_a_weight_of_two_is_a_second_row_to_a_sampler():
    """In distribution only: rows of their own draw numbers of their own."""
    X, topics = plant(200)
    w = np.random.default_rng(0).integers(0, 3, 200)
    weighted = model("gibbs", init=topics).fit(X, sample_weight=w)
    repeated = model("gibbs", init=topics).fit(X[np.repeat(np.arange(200), w)])
    assert weighted.topic_weight_.sum() == pytest.approx(w @ X.sum(axis=1)) == repeated.topic_weight_.sum()
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=0.01)
    unweighted = model("gibbs", init=topics).fit(X)
    assert (
        np.abs(weighted.components_ - repeated.components_).max()
        < np.abs(weighted.components_ - unweighted.components_).max()
    )


def test_mini_batches_find_the_same_topics(monkeypatch):
    monkeypatch.setattr(_scvb0, "BLOCKS_PER_BATCH", 2)
    X, topics = plant(800)
    monkeypatch.setattr(_scvb0, "finer", lambda blocks, cells: finer(blocks, 2000))
    assert len(batches(finer(as_blocks(X), 2000), None, 2).blocks) > 3  # the law is about several
    assert distance(best("scvb0", X).components_, topics)[0] < 0.12


@variational
def test_batch_after_batch_learns_the_topics(solver):
    X, topics = plant(1200)
    fitted = model(solver, init=0.5 * topics + 0.5 / 60)
    for start in range(0, 1200, 200):
        fitted.partial_fit(X[start : start + 200])
    assert fitted.n_iter_ == 6 == len(fitted.history_["objective"])
    assert distance(fitted.components_, topics)[0] < 0.12
    np.testing.assert_allclose(fitted.components_.sum(axis=1), 1)


@every
def test_empty_documents_and_unknown_words(solver):
    X = plant(80)[0].toarray()
    X[3] = 0
    X[:, 7] = 0  # a word nobody uses
    fitted = model(solver, max_iter=8).fit(X)
    U = fitted.transform(X)
    np.testing.assert_allclose(U[3], fitted.doc_topic_prior_ / fitted.doc_topic_prior_.sum())
    fitted.components_[:, 7] = 0  # a word no topic knows
    strange = X.copy()
    strange[:, 7] = 5
    np.testing.assert_allclose(fitted.transform(strange), U, atol=0 if solver in ("scvb0", "gibbs") else 1e-3)
    np.testing.assert_allclose(fitted.score_samples(strange), fitted.score_samples(X))
    assert fitted.score_samples(X)[3] == 0


def test_fold_in_is_a_fixed_point():
    X, _ = plant(60)
    fitted = model("scvb0").fit(X)
    U = fitted.transform(X)
    joint = U[:, None] * fitted.components_.T[None]  # (n,d,k)
    counts = np.einsum("ij,ijc->ic", X.toarray(), joint / joint.sum(axis=2, keepdims=True))
    shares = (counts + fitted.doc_topic_prior_) / (counts + fitted.doc_topic_prior_).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(U, shares, atol=1e-4)
    p = U @ fitted.components_
    assert fitted.fit_log_likelihood(X) == pytest.approx((X.toarray() * np.log(p)).sum() / X.sum())


# --- the evidence: log ∫ p(x | θ) Dirichlet(θ | α) dθ ---------------------------------------------------------------


def exact_evidence(x, Z, alpha):
    """Of one document and two topics, by quadrature over the quantiles of θ_0: its prior has poles at both ends."""
    chance = lambda t: x @ np.log(np.multiply.outer(Z[0], t) + np.multiply.outer(Z[1], 1 - t))  # noqa: E731
    top = chance(np.linspace(1e-9, 1 - 1e-9, 4001)).max()
    inside, error = quad(lambda u: np.exp(chance(beta.ppf(u, *alpha)) - top), 0, 1, limit=1000, epsrel=1e-8)
    assert error < 1e-5 * inside
    return top + np.log(inside)


@pytest.fixture(scope="module")
def two_topics():
    """A model of two topics, documents of 30 words, and the log-likelihoods of these."""
    X, _ = plant(200, d=25, k=2, length=60, alpha=[0.4, 0.2])
    fitted = model("scvb0", 2).fit(X.toarray())
    documents = plant(12, d=25, k=2, length=30, alpha=[0.4, 0.2], seed=5)[0].toarray()
    Z = fitted.components_ / fitted.components_.sum(axis=1, keepdims=True)
    return fitted, documents, np.array([exact_evidence(x, Z, fitted.doc_topic_prior_) for x in documents])


def test_the_evidence_is_that_of_quadrature(two_topics):
    fitted, documents, exact = two_topics
    found, std = fitted.log_likelihood(documents, return_std=True)
    np.testing.assert_allclose(found, exact, rtol=0.01)
    np.testing.assert_array_equal(fitted.score_samples(documents), found)
    assert (std < 0.01 * -exact).all() and (found <= exact + 6 * std).all()
    bound = fitted.elbo(documents)
    assert (bound <= exact + 1e-6).all()
    np.testing.assert_allclose(bound, exact, rtol=0.03)


def test_the_evidence_is_unbiased_and_its_error_is_the_one_stated(two_topics):
    fitted, documents, exact = two_topics
    each = (fitted.log_likelihood(documents, 64, seed, return_std=True) for seed in range(300))
    runs, stated = zip(*each, strict=True)
    ratio = np.exp(np.array(runs) - exact)  # (seeds, documents); its mean is 1
    assert (np.abs(ratio.mean(axis=0) - 1) < 6 * ratio.std(axis=0) / np.sqrt(len(ratio))).all()
    # The spread of 300 runs is known to 4 % in each of 12 documents, and weights are not normal.
    np.testing.assert_allclose(np.median(stated, axis=0).mean(), ratio.std(axis=0).mean(), rtol=0.5)
    for t in (0.1, 0.5):  # Markov's inequality
        assert (ratio > np.exp(t)).mean() <= np.exp(-t)


def test_the_evidence_of_many_topics_lies_above_the_bound_and_below_the_best_mixture():
    X, _ = plant(150)
    fitted = model("scvb0").fit(X)
    found, std = fitted.log_likelihood(X, 256, return_std=True)
    best_mixture = (X.toarray() * np.log(fitted.transform(X) @ fitted.components_)).sum(axis=1)
    assert (found > fitted.elbo(X) - 6 * std).all() and (found < best_mixture + 6 * std).all()
    more = fitted.log_likelihood(X, 2048, random_state=1)
    np.testing.assert_allclose(found, more, rtol=0.01)


def test_words_of_one_topic_need_no_estimate():
    X, _ = plant(80)
    one = model("scvb0", 1).fit(X)
    np.testing.assert_allclose(one.log_likelihood(X, 1), X @ np.log(one.components_[0]), rtol=1e-9)
    np.testing.assert_allclose(one.elbo(X), X @ np.log(one.components_[0]), rtol=1e-9)


def test_a_document_has_the_same_evidence_in_any_company(two_topics):
    fitted, documents, _ = two_topics
    whole = fitted.log_likelihood(documents)
    np.testing.assert_array_equal(fitted.log_likelihood(documents[3:5]), whole[3:5])
    np.testing.assert_array_equal(fitted.log_likelihood(sparse.csr_array(documents)), whole)
    assert not np.array_equal(fitted.log_likelihood(documents, random_state=1), whole)
    with pytest.raises(InputError, match="n_draws=0"):
        fitted.log_likelihood(documents, 0)


def test_the_objective_falls_and_is_the_likelihood():
    X, _ = plant()
    fitted = model("scvb0", doc_topic_prior=0.1).fit(X)
    objective = np.array(fitted.history_["objective"])
    assert fitted.converged_ and objective[-1] < objective[0] and np.all(np.diff(objective) < 1e-3)
    assert -fitted.fit_log_likelihood(X) == pytest.approx(objective[-1], rel=0.01)


@sampling
def test_single_precision_stays(solver):
    X, _ = plant(80)
    single = model(solver, max_iter=8).fit(X.astype(np.float32))
    double = model(solver, max_iter=8).fit(X.astype(np.float64))
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert double.components_.dtype == double.transform(X).dtype == np.float64
    np.testing.assert_allclose(single.components_, double.components_, atol=2e-3)


@pytest.mark.parametrize(
    "options, change, match",
    [
        ({}, lambda X: X - 1, r"X\[0, \d+\] is -1; LatentDirichletAllocation needs X >= 0"),
        ({}, lambda X: 0 * X, "holds no words"),
        ({"learning_method": "gibbs"}, lambda X: X * 0.5, r"X\[0, \d+\] is .*whole counts"),
        ({"init": np.ones((3, 60))}, lambda X: X, r"\(3, 60\).*\(4, 60\)"),
        ({"init": -np.ones((4, 60))}, lambda X: X, "finite numbers >= 0"),
        ({"doc_topic_prior": [0.1, 0.2]}, lambda X: X, "doc_topic_prior"),
    ],
)
def test_refusals(options, change, match):
    X = plant(20)[0].toarray()
    with pytest.raises(InputError, match=match):
        LatentDirichletAllocation(4, **options).fit(change(X))


def test_what_gibbs_cannot_do():
    X, _ = plant(20)
    with pytest.raises(InputError, match=r"sample_weight\[3\] is 0.5.*whole weights"):
        model("gibbs").fit(X, sample_weight=np.where(np.arange(20) == 3, 0.5, 1.0))
    many = X.toarray()
    many[2, 5] = 70_000
    with pytest.raises(InputError, match=r"X\[2, 5\] is 70000.*whole counts"):
        model("gibbs").fit(many)
    with pytest.raises(InputError, match="cannot continue"):
        model("gibbs").partial_fit(X)


class Caught(Exception):
    """The loop was about to begin."""


def test_a_sweep_leaves_the_state_before_it_alone_though_its_first_batch_counts_nothing(monkeypatch):
    from twofold.topics.lda import lda

    caught = []

    def run(model, sweep, state, **_):
        caught.append((sweep, state))
        raise Caught

    monkeypatch.setattr(lda.loop, "run", run)
    X = np.random.default_rng(0).poisson(1.0, size=(60, 8))
    model = LatentDirichletAllocation(3, learning_method="online", batch_size=20, random_state=0)
    with pytest.raises(Caught):
        model.fit(X, sample_weight=np.repeat([0.0, 1.0], [20, 40]))
    sweep, state = caught[0]
    before = state.counts.copy()
    moved = sweep(state, 1).state.counts
    assert not np.array_equal(moved, before)
    np.testing.assert_array_equal(state.counts, before)
