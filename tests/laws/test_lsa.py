"""LSA is the best low-rank picture of the weighted counts, sparse or dense, from memory or from disk."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

import twofold
from twofold import LSA, InputError
from twofold.core.data.csr_folder import write_csr

KINDS = ("tfidf", "log", None)
SOLVERS = ("auto", "covariance_eigh", "gram", "power", "randomized", "arpack")


def counts(n=90, d=40, seed=0):
    """Documents of four groups of words, one of them empty."""
    rng = np.random.default_rng(seed)
    rates = np.where(rng.integers(0, 4, n)[:, None] == np.arange(d) % 4, 0.8, 0.1)
    X = rng.poisson(rates).astype(float)
    X[5] = 0
    return X


def weigh(X, kind, w=None):
    """A, written out."""
    w = np.ones(len(X)) if w is None else w
    if kind == "log":
        A = np.log(1 + X)
    elif kind == "tfidf":
        A = X * (1 + np.log((1 + w.sum()) / (1 + w @ (X > 0))))
    else:
        return X
    length = np.sqrt((A**2).sum(axis=1, keepdims=True))
    return A / np.where(length > 0, length, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(90, 40), (40, 90)])
def test_equals_the_dense_svd_of_the_weighted_table(kind, solver, shape):
    X = counts(*shape)
    A = weigh(X, kind)
    _, s, Zt = np.linalg.svd(A, full_matrices=False)
    model = LSA(4, weighting=kind, svd_solver=solver, tol=1e-12, max_iter=5000, random_state=0).fit(sparse.csr_array(X))
    np.testing.assert_allclose(model.singular_values_, s[:4], rtol=1e-6)
    np.testing.assert_allclose(np.abs((model.components_ * Zt[:4]).sum(axis=1)), 1, atol=1e-5)
    np.testing.assert_allclose(model.explained_variance_ratio_, s[:4] ** 2 / (s**2).sum(), rtol=1e-6)
    best = ((A - (A @ Zt[:4].T) @ Zt[:4]) ** 2).sum()
    np.testing.assert_allclose(model.history_["objective"][-1], best, rtol=1e-6)
    rebuilt = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(((A - rebuilt) ** 2).sum(), best, rtol=1e-6)


def test_tfidf_is_scikit_learn_s():
    X = counts()
    np.testing.assert_allclose(weigh(X, "tfidf"), TfidfTransformer().fit_transform(X).toarray(), atol=1e-12)
    model = LSA(3).fit(X)
    np.testing.assert_allclose(model.idf_, TfidfTransformer().fit(X).idf_)


@pytest.mark.parametrize("kind", KINDS)
def test_folding_in_the_fitted_documents_gives_their_codes(kind):
    X = counts()
    model = LSA(5, weighting=kind, random_state=0)
    codes = model.fit_transform(X)
    U, s, _ = np.linalg.svd(weigh(X, kind), full_matrices=False)
    np.testing.assert_allclose(np.abs(codes), np.abs(U * s)[:, :5], atol=1e-7 * s[0])
    np.testing.assert_allclose(model.transform(X[7:9]), codes[7:9], rtol=1e-9, atol=1e-12)
    assert np.array_equal(codes[5], np.zeros(5))  # the empty document


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_equals_dense_and_keeps_the_dtype(kind, dtype):
    X = counts().astype(dtype)
    dense, thin = (LSA(3, weighting=kind, random_state=0).fit(T) for T in (X, sparse.csr_array(X)))
    tol = 1e-9 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(dense.components_, thin.components_, atol=tol)
    codes = dense.transform(sparse.csr_array(X))
    np.testing.assert_allclose(codes, dense.transform(X), atol=tol * np.abs(codes).max())
    assert dense.components_.dtype == thin.components_.dtype == codes.dtype == dense.idf_.dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_integer_weights_equal_repeated_documents(kind):
    X = counts()
    w = np.random.default_rng(1).integers(0, 4, len(X))
    one = LSA(4, weighting=kind, random_state=0).fit(X, sample_weight=w)
    other = LSA(4, weighting=kind, random_state=0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)
    np.testing.assert_allclose(one.singular_values_, other.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["covariance_eigh", "gram", "randomized", "arpack"])
def test_same_bits_from_memory_from_disk_and_with_any_number_of_threads(kind, solver, tmp_path, small_blocks):
    X = sparse.csr_array(counts(600, 50).astype(np.int32))
    path = write_csr(tmp_path / "x.csr", [X[:100], X[100:]])
    np.save(tmp_path / "x.npy", X.toarray())

    def fit(X, threads=1):
        with twofold.config(threads=threads):
            model = LSA(3, weighting=kind, svd_solver=solver, random_state=0).fit(X)
            return model.components_.tobytes() + model.singular_values_.tobytes() + model.transform(X).tobytes()

    assert fit(X) == fit(X, 3) == fit(path) == fit(path, 3)
    assert fit(X.toarray()) == fit(tmp_path / "x.npy", 3)


def test_documents_that_share_no_word_but_company_come_close():
    # Words 0 and 1 are synonyms, each seen with 2; words 3 and 4 are about something else.
    X = np.array(
        [[1, 0, 1, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 0.0]]
    )
    U = LSA(2, random_state=0).fit_transform(X)
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    assert X[2] @ X[3] == 0 and U[2] @ U[3] > 0.99 and abs(U[2] @ U[4]) < 1e-6


def test_rows_scale_does_not_matter_when_documents_have_length_one():
    X = counts()
    long = X * np.random.default_rng(0).integers(1, 5, (len(X), 1))
    np.testing.assert_allclose(
        LSA(3, weighting="tfidf").fit(X).components_, LSA(3, weighting="tfidf").fit(long).components_, atol=1e-9
    )


def test_by_default_directions_without_anything_are_left_out():
    X = np.outer([1.0, 2, 3, 4], [1.0, 0, 2]) + np.outer([1.0, 0, 0, 2], [0, 1.0, 0])
    assert LSA().fit(X).components_.shape == (2, 3)
    assert LSA(3).fit(X).components_.shape == (3, 3)
    assert LSA().fit(counts(300, 150)).components_.shape == (100, 150)
    assert LSA().fit(np.zeros((3, 4))).components_.shape == (1, 4)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_what_cannot_be_weighed_is_refused_with_its_place(make):
    for bad, what in ((-0.2, r"X\[3, 7\] is -0.2"), (np.nan, r"X\[3, 7\] is nan"), (np.inf, r"X\[3, 7\] is inf")):
        X = counts()
        model = LSA(3).fit(make(X))
        X[3, 7] = bad
        for method in (LSA(3).fit, model.transform):
            with pytest.raises(InputError, match=what):
                method(make(X))
    X[3, 7] = -0.2
    assert LSA(3, weighting=None).fit(make(X)).components_.shape == (3, 40)
    with pytest.raises(InputError, match="n_components=41"):
        LSA(41).fit(make(counts()))
