"""PMI embedding: the table it factorizes, and what its vectors say."""

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold import Cooccurrence, InputError, PMIEmbedding
from twofold.words import _mapped_cells

V = 50


def corpus(lines=300, seed=0):
    """Lines that each keep to a topic, from a vocabulary with frequent and rare words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(20 / (1 + np.arange(V)), size=4)
    return [[f"w{j}" for j in rng.choice(V, size=10, p=topics[rng.integers(4)])] for _ in range(lines)]


def give_pairs(counts):
    """Pairs that were counted elsewhere."""
    pairs = Cooccurrence(vocabulary=[f"w{i}" for i in range(len(counts))]).fit([["w0", "w1"]])
    pairs.counts_ = sparse.csr_array(np.asarray(counts, np.float32))
    return pairs


@pytest.fixture(scope="module")
def pairs():
    return Cooccurrence(window=4, min_count=1).fit(corpus())


def formula(counts, shift=1.0, smoothing=0.75, positive=True):
    """M, cell by cell."""
    n = counts.toarray().astype(float)
    chance = n.sum(axis=0) ** smoothing / (n.sum(axis=0) ** smoothing).sum()
    with np.errstate(divide="ignore"):
        M = np.log(n / n.sum() / (n.sum(axis=1, keepdims=True) / n.sum() * chance)) - np.log(shift)
    return np.maximum(M, 0) if positive else np.where(n > 0, M, 0)


def product(model):
    return model.vectors_.vectors_ @ model.contexts_.vectors_.T


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("options", [{}, {"shift": 1.5}, {"smoothing": 1.0}, {"positive": False}], ids=str)
def test_at_full_rank_the_products_are_the_table(pairs, power, options):
    n = len(pairs.vocabulary_)
    model = PMIEmbedding(n, power=power, random_state=0, **options).fit(pairs)
    M = formula(pairs.counts_, **options)
    np.testing.assert_allclose(product(model), M, atol=1e-4)
    assert model.history_["objective"][0] < 1e-5 * (M**2).sum()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_below_it_they_are_the_nearest_of_their_rank(pairs, power):
    M = formula(pairs.counts_)
    model = PMIEmbedding(5, power=power, random_state=0).fit(pairs)
    np.testing.assert_allclose(product(model), twofold.linalg.low_rank(M, 5), atol=2e-3 * M.max())
    left = ((product(model) - M) ** 2).sum()
    np.testing.assert_allclose(model.history_["objective"][0], left, rtol=1e-4)
    np.testing.assert_allclose(model.singular_values_, np.linalg.svd(M, compute_uv=False)[:5], rtol=1e-4)


def test_without_smoothing_words_and_contexts_are_alike(pairs):
    """The table is symmetric then, so its left and right vectors agree but for signs."""
    model = PMIEmbedding(5, smoothing=1.0, random_state=0).fit(pairs)
    np.testing.assert_allclose(abs(model.vectors_.vectors_), abs(model.contexts_.vectors_), atol=2e-3)


def test_contexts_are_added_on_request(pairs):
    plain, added = (PMIEmbedding(5, add_contexts=add, random_state=0).fit(pairs) for add in (False, True))
    np.testing.assert_allclose(
        added.vectors_.vectors_, plain.vectors_.vectors_ + plain.contexts_.vectors_, rtol=1e-5, atol=1e-6
    )
    assert np.array_equal(added.contexts_.vectors_, plain.contexts_.vectors_)


def test_words_that_meet_by_chance_alone_have_no_vector():
    share = np.random.default_rng(0).random(8) + 0.1
    model = PMIEmbedding(3, smoothing=1.0, shift=1.01, random_state=0).fit(give_pairs(1000 * np.outer(share, share)))
    assert not model.vectors_.vectors_.any() and model.history_["objective"] == [0.0]


def test_how_much_text_there_is_does_not_matter(pairs):
    small, large = (PMIEmbedding(5, random_state=0).fit(give_pairs(c * pairs.counts_.toarray())) for c in (1, 64))
    np.testing.assert_allclose(product(small), product(large), atol=1e-4)


def test_threads_budget_and_place_do_not_show(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(_mapped_cells, "CELLS_PER_BLOCK", 200)
    stored = Cooccurrence(window=4, min_count=1).fit(corpus(), to=tmp_path / "pairs.csr")
    found = []
    for threads, memory, form in ((1, "1GB", pairs), (2, "1GB", stored), (3, "2MB", stored)):
        if memory == "2MB":
            monkeypatch.setattr(_mapped_cells, "config", lambda: type("Settings", (), {"memory": 100}))
        with twofold.config(threads=threads, memory=memory):
            model = PMIEmbedding(4, random_state=0).fit(form)
        found.append(
            (model.vectors_.vectors_.tobytes(), model.contexts_.vectors_.tobytes(), model.history_["objective"])
        )
    assert found[0] == found[1] == found[2]


def test_more_numbers_than_words_are_refused(pairs):
    with pytest.raises(InputError, match=r"n_components=51 is more than the \d+ words"):
        PMIEmbedding(51).fit(pairs)
