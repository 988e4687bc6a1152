"""Gradients of expectations under a Gaussian: what may be exchanged with what."""

import numpy as np
import pytest
import torch

from twofold.deep._gaussians import Full, count_numbers, read_posterior


def any_covariance(n=5, k=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    return Full.of(0.5 * torch.randn(n, count_numbers("full", k), generator=g, dtype=torch.float64), k)


def test_any_covariance_is_a_gaussian_with_it():
    """Oracle: torch's Gaussian with the root of the covariance."""
    q = any_covariance()
    law = torch.distributions.MultivariateNormal(q.mean, scale_tril=q.root)
    z = torch.randn(7, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(q.log_density(z), law.log_prob(z))
    prior = torch.distributions.MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double())
    torch.testing.assert_close(q.kl(), torch.distributions.kl_divergence(law, prior))
    R = torch.stack([q.draw(e) - q.mean for e in torch.eye(4).double()[:, None].expand(4, 5, 4)], dim=2)  # (n,k,k)
    torch.testing.assert_close(R @ R.mT, law.covariance_matrix)
    own = torch.distributions.Normal(q.mean, law.variance.sqrt())
    torch.testing.assert_close(
        q.kl_each(), torch.distributions.kl_divergence(own, torch.distributions.Normal(0.0, 1.0))
    )


@pytest.mark.parametrize("covariance", ["diagonal", "rank-one", "full"])
def test_a_posterior_of_zeros_is_the_prior(covariance):
    q = read_posterior(covariance, torch.zeros(3, count_numbers(covariance, 4), dtype=torch.float64), 4)
    torch.testing.assert_close(q.kl(), torch.zeros(3, dtype=torch.float64))


def nodes(k=2, n=7):
    """Points and weights that integrate polynomials up to degree 13 under N(0, I) without error."""
    x, w = np.polynomial.hermite_e.hermegauss(n)
    grid = np.stack(np.meshgrid(*[x] * k, indexing="ij"), axis=-1).reshape(-1, k)
    weights = np.prod(np.stack(np.meshgrid(*[w / w.sum()] * k, indexing="ij"), axis=-1).reshape(-1, k), axis=1)
    return torch.from_numpy(grid), torch.from_numpy(weights)


def f(z):
    """A polynomial of degree 4 without symmetries."""
    x, y = z[..., 0], z[..., 1]
    return x**4 - 2 * x**2 * y + 0.5 * x * y**3 + 3 * y**2 - x


def test_bonnet_and_the_hessian():
    """∇_m E f(z) = E ∇f(z) and ∇_C E f(z) = ½ E ∇²f(z) for z ~ N(m, C): Bonnet 1964, Price 1958."""
    q = any_covariance(n=1, k=2, seed=3)
    mean, root = (t.detach().clone().requires_grad_() for t in q)
    points, weights = nodes()
    z = Full(mean, root).draw(points[:, None])[:, 0]
    by_mean, by_root = torch.autograd.grad(weights @ f(z), [mean, root])
    z = z.detach().requires_grad_()
    slopes = torch.autograd.grad(f(z).sum(), z)[0]
    torch.testing.assert_close(by_mean[0], weights @ slopes)
    curvature = torch.stack([torch.autograd.functional.hessian(f, at) for at in z.detach()])
    by_covariance = 0.5 * (weights[:, None, None] * curvature).sum(0)
    torch.testing.assert_close(by_root[0], 2 * by_covariance @ root[0].detach())  # dC = dU Uᵀ + U dUᵀ
    torch.testing.assert_close(by_root[0], torch.einsum("s,si,sj->ij", weights, slopes, points))  # E[g ζᵀ]
