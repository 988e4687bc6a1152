"""What a model is before, during and after a fit."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import twofold
from twofold.core.estimator import fitting


def rows(seed=0):
    return np.random.default_rng(seed).normal(size=(30, 4))


def break_cell(X):
    X = X.copy()
    X[3, 1] = np.inf
    return X


@pytest.mark.parametrize("model", [twofold.PPCA(2), twofold.KMeans(2, random_state=0), twofold.NMF(2, random_state=0)])
def test_a_first_fit_that_fails_leaves_the_model_unfitted(model):
    with pytest.raises(twofold.InputError):
        model.fit(break_cell(np.abs(rows())))
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_later_fit_that_fails_leaves_the_earlier_one():
    X = rows()
    model = twofold.PPCA(2).fit(X)
    before = model.transform(X)
    with pytest.raises(twofold.InputError):
        model.fit(break_cell(rows(1)[:, :3]))
    np.testing.assert_array_equal(model.transform(X), before)


def test_looking_at_data_is_not_learning_from_it():
    model = twofold.PPCA(2)
    model._blocks(rows(), reset=True)
    assert model.n_features_in_ == 4
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_what_was_made_without_a_fit_counts_as_fitted():
    made = twofold.WordVectors.of(["a", "b"], np.eye(2))
    assert made.__sklearn_is_fitted__() and not twofold.WordVectors().__sklearn_is_fitted__()


def test_a_singular_matrix_is_said_in_words_of_the_model():
    class Fails(twofold.GaussianMixture):
        @fitting
        def fit(self, X, y=None):
            return np.linalg.cholesky(-np.eye(2))

    with pytest.raises(twofold.InputError, match=r"Fails must solve with a matrix.*raise reg_covar"):
        Fails().fit(np.eye(3))
