"""Perplexity and coherence: by hand on corpora small enough, and what must hold on any."""

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold.core.checks import InputError
from twofold.core.seeds import generator
from twofold.topics.evaluation import perplexity, score_hidden_words, split_halves, topic_coherence


def corpus(n=150, d=40, k=4, length=60, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.1), size=k)
    shares = rng.dirichlet(np.full(k, 0.2), size=n)
    return np.array([rng.multinomial(length, p / p.sum()) for p in shares @ topics]), topics


def brute_force(topics, X, alpha):
    """The definition, cell by cell, with a fold-in that runs until nothing moves at all."""
    first, second = (half.toarray() for half in split_halves(sparse.csr_array(X), generator(0, 0)))
    logp, tokens = 0.0, 0
    for seen, asked in zip(first, second, strict=True):
        theta = np.full(len(topics), 1 / len(topics))
        for _ in range(5000):
            new = alpha.copy()
            for j, x in enumerate(seen):
                p = theta * topics[:, j]
                if x and p.sum() > 0:
                    new += x * p / p.sum()
            theta = new / new.sum()
        for j, x in enumerate(asked):
            if theta @ topics[:, j] > 0:
                logp, tokens = logp + x * np.log(theta @ topics[:, j]), tokens + x
    return np.exp(-logp / tokens)


@pytest.mark.parametrize("alpha", [np.full(3, 0.1), np.array([0.2, 1.0, 0.5])])
def test_perplexity_is_what_it_says(alpha):
    rng = np.random.default_rng(3)
    topics, X = rng.dirichlet(np.full(8, 0.5), size=3), rng.poisson(1.5, size=(6, 8))
    topics[:, 5] = 0  # a word that no topic knows
    topics /= topics.sum(axis=1, keepdims=True)
    X[4] = 0
    assert perplexity(topics, X, alpha=alpha) == pytest.approx(brute_force(topics, X, alpha), rel=1e-3)


def test_halves_are_halves():
    X = corpus()[0]
    X[0], X[1] = 0, np.eye(1, X.shape[1])[0]
    first, second = (h.toarray() for h in split_halves(sparse.csr_array(X), np.random.default_rng(0)))
    np.testing.assert_array_equal(first + second, X)
    assert (first >= 0).all() and (second >= 0).all()
    np.testing.assert_array_equal(first.sum(axis=1), (X.sum(axis=1) + 1) // 2)
    many = np.full((2000, 4), 5)
    share = split_halves(sparse.csr_array(many), np.random.default_rng(0))[0].toarray()
    np.testing.assert_allclose(share.mean(axis=0), 2.5, atol=0.1)  # every word as likely to be in either


@pytest.mark.parametrize("k", [1, 3])
def test_uniform_topics_hesitate_between_all_words(k):
    X = corpus()[0]
    assert perplexity(np.ones((k, X.shape[1])), X) == pytest.approx(X.shape[1], rel=1e-12)


def test_the_true_topics_are_hard_to_beat():
    X, topics = corpus(600)
    best, rng = perplexity(topics, X, alpha=0.2), np.random.default_rng(1)
    merged = np.concatenate([topics[:2], topics[2:].mean(axis=0, keepdims=True)])
    others = [topics.mean(axis=0), merged, 0.7 * topics + 0.3 / X.shape[1], rng.permutation(topics, axis=1)]
    assert all(best < perplexity(other, X, alpha=0.2) for other in others)
    assert perplexity(topics * [[2], [3], [4], [5]], X, alpha=0.2) == pytest.approx(best)  # scale says nothing


def test_models_and_arrays_are_judged_alike():
    X, _ = corpus()
    model = twofold.LatentDirichletAllocation(3, random_state=0).fit(X)
    assert perplexity(model, X) == perplexity(model.components_, X, alpha=model.doc_topic_prior_)
    assert perplexity(model, X, alpha=0.1) == perplexity(model.components_, X)
    assert perplexity(model, X, random_state=1) != perplexity(model, X)


def test_where_documents_lie_does_not_matter(tmp_path, small_blocks):
    X, topics = corpus()
    np.save(tmp_path / "x.npy", X)
    with twofold.config(threads=1):
        expected = perplexity(topics, X), topic_coherence(topics, X).tolist()
    with twofold.config(threads=3):
        for other in (X, tmp_path / "x.npy"):
            assert (perplexity(topics, other), topic_coherence(topics, other).tolist()) == expected
    assert topic_coherence(topics, sparse.csr_array(X)).tolist() == expected[1]


#              together  apart   sometimes
DOCUMENTS = np.array([[1, 1, 0, 3, 0], [2, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 5, 0, 0]])


def test_npmi_by_hand():
    one = lambda *words: np.isin(np.arange(5), words).astype(float)[None]  # noqa: E731
    value = lambda *words: topic_coherence(one(*words), DOCUMENTS, top=2)[0]  # noqa: E731
    assert value(0, 1) == pytest.approx(1)  # p_ij = p_i = p_j = 1/2
    assert value(0, 3) == pytest.approx(0, abs=1e-9)  # 1/4 = 1/2 · 1/2
    assert value(0, 2) == pytest.approx(np.log(1e-12 / 0.25) / -np.log(1e-12))
    assert np.isnan(value(0, 4))  # in no document
    assert topic_coherence(np.ones((1, 2)), np.ones((3, 2)), top=2)[0] == 1  # everywhere


def test_umass_by_hand():
    topics = [[9, 5, 0, 7, 0.0]]  # likeliest first: words 0, 3, 1
    expected = np.mean([np.log((1 + 1) / 2), np.log((2 + 1) / 2), np.log((1 + 1) / 2)])  # (3,0), (1,0), (1,3)
    assert topic_coherence(topics, DOCUMENTS, measure="umass", top=3)[0] == pytest.approx(expected)


def test_coherence_tells_planted_topics_from_mixed_ones():
    X, topics = corpus(500, d=80, length=20)
    mixed = np.random.default_rng(0).permutation(topics, axis=1)
    for measure in ("npmi", "umass"):
        good, bad = (topic_coherence(Z, X, measure=measure).mean() for Z in (topics, mixed))
        assert good > bad + 0.1


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda X, Z: perplexity(Z[:, :-1], X), "40 columns.*39 words"),
        (lambda X, Z: perplexity(-Z, X), "no distributions"),
        (lambda X, Z: perplexity(Z, X + 0.5), "whole counts"),
        (lambda X, Z: perplexity(Z, X - 1), r"X\[0, \d+\] is -1; perplexity needs X >= 0"),
        (lambda X, Z: perplexity(Z, X, alpha=[1.0, 2.0]), "alpha"),
        (lambda X, Z: perplexity(Z, X, alpha=0.0), "alpha"),
        (lambda X, Z: perplexity(Z, np.eye(3, 40)), "second half"),
        (lambda X, Z: topic_coherence(Z, X, measure="cv"), "npmi"),
        (lambda X, Z: topic_coherence(Z, X, top=1), "pair"),
        (lambda X, Z: topic_coherence(Z, np.where(X == 0, np.nan, X)), "nan"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(InputError, match=match):
        call(*corpus())


def test_hidden_words_are_foretold_by_their_topic_alone():
    """Two topics without a word in common: a document of one of them leaves the hidden words of that one."""
    topics = np.kron(np.eye(2), np.ones(50) / 50)
    X = np.random.default_rng(0).multinomial(400, topics[0], size=20) * 0.5
    half = generator(0).permutation(np.arange(100) % 2)[:50]
    tokens = np.array([X[:, :50][:, half == h].sum() for h in (0, 1)])
    words = np.array([(half == h).sum() for h in (0, 1)])
    expected = -(tokens @ np.log(words)) / tokens.sum()
    assert score_hidden_words(topics, X) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("make", [twofold.LatentDirichletAllocation, twofold.PLSA])
def test_one_perplexity(make):
    """The model's own perplexity, its score and the function are one number of one table."""
    X = sparse.csr_array(np.random.default_rng(0).poisson(0.4, size=(60, 30)))
    model = make(3, random_state=0, max_iter=20, tol=1.0).fit(X)
    number = perplexity(model, X)
    assert model.perplexity(X) == number == pytest.approx(np.exp(-model.score(X)), rel=1e-12)
    assert np.exp(-model.fit_log_likelihood(X)) < number  # which sees the words that it foretells
    assert model.score(sparse.csr_array(X.astype(float) * 0.7)) < 0  # parts of counts are rounded at random
