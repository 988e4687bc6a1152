"""Laws of the measures of generated samples."""

import numpy as np
import pytest

from twofold import InputError
from twofold.deep import frechet_distance, sample_score

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n", "d"), [(50, 4), (10, 40)])  # also with more features than samples
def test_the_distance_is_the_formula(n, d):
    A, B = RNG.normal(size=(n, d)) @ RNG.normal(size=(d, d)), RNG.normal(size=(n + 2, d)) + 2
    C, D = np.cov(A.T), np.cov(B.T)
    roots = np.sqrt(np.maximum(np.real(np.linalg.eigvals(C @ D)), 0)).sum()
    expected = ((A.mean(0) - B.mean(0)) ** 2).sum() + np.trace(C) + np.trace(D) - 2 * roots
    assert frechet_distance(A, B).distance == pytest.approx(expected, rel=1e-5)


def test_it_is_zero_for_the_same_and_grows_with_a_shift():
    A = RNG.normal(size=(200, 3))
    assert frechet_distance(A, A[::-1]).distance == pytest.approx(0, abs=1e-9)
    distances = [frechet_distance(A, A + shift).distance for shift in (1, 2, 3)]
    np.testing.assert_allclose(distances, [3, 12, 27], rtol=1e-9)


def test_the_floor_is_between_halves_and_features_are_used():
    A = RNG.normal(size=(4000, 3))
    found = frechet_distance(A, RNG.normal(size=(4000, 3)))
    assert 0 < found.floor < 0.05
    pictures = RNG.normal(size=(100, 4, 4))
    assert frechet_distance(pictures, pictures * 0, features=lambda X: np.zeros((len(X), 1))).distance == 0


def test_too_little_is_refused():
    with pytest.raises(InputError, match="generated needs two samples"):
        frechet_distance(np.zeros((5, 2)), np.zeros((1, 2)))
    with pytest.raises(InputError, match="2 features, generated ones 3"):
        frechet_distance(np.zeros((5, 2)), np.zeros((5, 3)))


def test_the_score_is_the_mean_divergence_from_the_average():
    P = RNG.dirichlet(np.ones(5), size=300)
    mean = P.mean(axis=0)
    expected = np.exp((P * np.log(P / mean)).sum(axis=1).mean())
    found = sample_score(lambda X: P, np.zeros(300))
    assert found.score == pytest.approx(expected)
    assert found.score == pytest.approx(found.quality * found.diversity)


def test_one_class_alone_has_quality_without_diversity():
    P = np.zeros((10, 4))
    P[:, 2] = 1
    assert sample_score(lambda X: P, np.zeros(10)) == (1, 1, 1)


def test_what_is_no_probability_is_refused():
    with pytest.raises(InputError, match="sum to 1"):
        sample_score(lambda X: np.ones((3, 2)), np.zeros(3))
