"""A flow is a density: it integrates to one, its inverse is its inverse, and its determinants are those of autograd."""

import copy

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.datasets import make_moons

from twofold import InputError, NormalizingFlow
from twofold.deep.normalizing_flow import choose_kept


@pytest.fixture(scope="module")
def moons():
    return make_moons(800, noise=0.1, random_state=0)[0] * [3.0, 0.5] + [10.0, -4.0]


@pytest.fixture(scope="module")
def flow(moons):
    return NormalizingFlow(6, hidden_layer_sizes=(32,), learning_rate_init=5e-3, max_iter=25, random_state=0).fit(moons)


def test_the_density_integrates_to_one(flow, moons):
    low, high = moons.min(axis=0) - 2 * moons.std(axis=0), moons.max(axis=0) + 2 * moons.std(axis=0)
    axes = [np.linspace(a, b, 600) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.prod((high - low) / 599)
    assert abs(np.exp(flow.score_samples(points)).sum() * cell - 1) < 0.01


def test_the_inverse_is_the_inverse_and_draws_follow_the_density(flow, moons):
    there = flow.transform(moons)
    np.testing.assert_allclose(flow.inverse_transform(there), moons, atol=1e-3)
    drawn = flow.sample(4000, random_state=1)
    again = flow.sample(4000, random_state=2)
    mean, error = flow.score(drawn), flow.score_samples(drawn).std() / np.sqrt(4000)
    assert abs(mean - flow.score(again)) < 6 * np.sqrt(2) * error  # minus the entropy, twice


def test_log_determinants_are_those_of_autograd(flow):
    module = copy.deepcopy(flow.module_).double()
    x = torch.from_numpy(flow.sample(5, random_state=0).astype(np.float64))
    _, log_det = module(x)
    for row, value in zip(x, log_det, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda x: module(x[None])[0][0], row)
        torch.testing.assert_close(torch.linalg.slogdet(jacobian)[1], value, atol=1e-8, rtol=1e-8)


def test_an_untrained_flow_is_the_gaussian_of_the_columns(moons):
    flow = NormalizingFlow(2, max_iter=1, learning_rate_init=1e-30, random_state=0).fit(moons)
    law = multivariate_normal(moons.mean(axis=0), np.diag(moons.var(axis=0)))
    np.testing.assert_allclose(flow.score_samples(moons), law.logpdf(moons), atol=1e-4)


def test_it_learns_what_no_gaussian_has(flow, moons):
    new = make_moons(800, noise=0.1, random_state=1)[0] * [3.0, 0.5] + [10.0, -4.0]
    law = multivariate_normal(moons.mean(axis=0), np.cov(moons.T))
    assert flow.score(new) > law.logpdf(new).mean() + 0.4  # nats; the best mixture of many Gaussians has about 0.9


@pytest.mark.parametrize("d", [2, 3, 7, 64])
def test_any_two_columns_are_parted_by_a_coupling(d):
    masks = np.stack([choose_kept(layer, d) for layer in range(2 * max(1, (d - 1).bit_length()))])
    assert all((masks[:, i] != masks[:, j]).any() for i in range(d) for j in range(i))
    assert all(mask.any() and not mask.all() for mask in masks)


def test_one_column_is_refused():
    with pytest.raises(InputError, match="n_features = 1"):
        NormalizingFlow().fit(np.ones((30, 1)))
