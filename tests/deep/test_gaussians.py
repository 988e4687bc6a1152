"""Laws of Gaussian codes: their formulas, and the gradients of expectations over them."""

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli as BernoulliLaw
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from twofold import DLGM, VAE, InputError
from twofold.deep._rows import hold_rows
from twofold.deep._variational import Bernoulli, Full, Gaussian, Stacked, compute_loss, count_numbers, read_posterior
from twofold.deep.gradient_noise import gradient_variance

COVARIANCES = ("diagonal", "rank-one", "full")


def draw_posterior(covariance, n=5, k=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    return read_posterior(covariance, 0.5 * torch.randn(n, count_numbers(covariance, k), generator=g).double(), k)


def build_law(covariance, q):
    """The same Gaussians by torch, from the covariance, the precision or the root as it is defined."""
    if covariance == "full":
        return MultivariateNormal(q.mean, scale_tril=q.root)
    precision = torch.diag_embed((-q.log_variance).exp())
    if covariance == "rank-one":
        precision = precision + q.direction[:, :, None] * q.direction[:, None]
    return MultivariateNormal(q.mean, precision_matrix=precision)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_posterior_is_the_gaussian_of_torch(covariance):
    q = draw_posterior(covariance)
    law, z = build_law(covariance, q), torch.randn(7, 5, 4, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(q.log_density(z), law.log_prob(z))
    prior = MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double())
    torch.testing.assert_close(q.kl(), kl_divergence(law, prior))
    R = torch.stack([q.draw(e) - q.mean for e in torch.eye(4).double()[:, None].expand(4, 5, 4)], dim=2)  # (n,k,k)
    torch.testing.assert_close(R @ R.mT, law.covariance_matrix)
    torch.testing.assert_close(q.kl_each(), kl_divergence(Normal(q.mean, law.variance.sqrt()), Normal(0.0, 1.0)))
    zero = read_posterior(covariance, torch.zeros(3, count_numbers(covariance, 4)), 4)
    torch.testing.assert_close(zero.kl(), torch.zeros(3))


def test_layers_side_by_side_are_independent():
    parts = draw_posterior("rank-one", k=3), draw_posterior("full", k=4, seed=1)
    q, z = Stacked(parts), torch.randn(6, 5, 7, generator=torch.Generator().manual_seed(2)).double()
    one, other = z.split([3, 4], dim=-1)
    torch.testing.assert_close(q.log_density(z), parts[0].log_density(one) + parts[1].log_density(other))
    torch.testing.assert_close(q.draw(z), torch.cat([parts[0].draw(one), parts[1].draw(other)], dim=-1))
    torch.testing.assert_close(q.kl(), parts[0].kl() + parts[1].kl())
    torch.testing.assert_close(q.kl_each(), torch.cat([part.kl_each() for part in parts], dim=1))


@pytest.mark.parametrize(
    "output", [Bernoulli((1, 2, 2)), Gaussian((1, 2, 2), "pixel", 1.0), Gaussian((1, 2, 2), 0.3, 1.0)]
)
def test_densities_of_pixels_are_those_of_torch(output):
    torch.manual_seed(0)
    pixels = np.random.default_rng(0).random((6, 1, 2, 2), dtype=np.float32)
    a, x = torch.randn(6, 1, 2, 2), torch.from_numpy(pixels).round()
    output.learn(hold_rows(pixels))
    output.eval()
    mean = output.mean(a)
    law = BernoulliLaw(mean) if isinstance(output, Bernoulli) else Normal(mean, output.variance().sqrt())
    torch.testing.assert_close(output.log_density(x, a), law.log_prob(x).flatten(1).sum(1), rtol=1e-4, atol=1e-4)
    draws = torch.stack([output.draw(a) for _ in range(2000)])
    torch.testing.assert_close(draws.mean(0), law.mean, rtol=0, atol=float(6 * law.stddev.max() / 2000**0.5))


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
    q = draw_posterior("full", n=1, k=2, seed=3)
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


def test_several_draws_average_the_gradient(parts):
    """L draws a row have the same gradient on average, with 1/L of the variance."""
    model = VAE(4, hidden_layer_sizes=(16,), max_iter=1, random_state=0)
    module = model.fit(parts[0][:50].reshape(-1, 8, 8)).module_
    x = torch.from_numpy(np.asarray(parts[0][:50], np.float32).reshape(-1, 1, 8, 8) / 16)
    last = module.encoder[-1].bias

    def gradients(draws, n=400):
        g = torch.Generator().manual_seed(draws)
        shape = (draws, 50, 4) if draws > 1 else (50, 4)
        found = [
            torch.autograd.grad(compute_loss(module, x, torch.randn(shape, generator=g), 1.0)[0], last)[0]
            for _ in range(n)
        ]
        return torch.stack(found).double()

    one, many = gradients(1), gradients(4)
    error = (one.var(0) / len(one) + many.var(0) / len(many)).sqrt()
    assert ((one.mean(0) - many.mean(0)).abs() < 6 * error + 1e-6).all()
    ratio = float(one.var(0).sum() / many.var(0).sum())
    assert 2.5 < ratio < 6.5  # 4 but for chance


@pytest.mark.filterwarnings("ignore::twofold.deep._variational.CollapseWarning")
@pytest.mark.parametrize(
    "model",
    [VAE(2, hidden_layer_sizes=(8,)), DLGM((2, 2), hidden_layer_sizes=6, covariance="rank-one")],
    ids=["VAE", "DLGM"],
)
def test_both_estimators_have_one_mean_and_reinforce_the_larger_variance(digits, model):
    X = digits[:16]
    model.set_params(learning_rate_init=1e-3, max_iter=1, random_state=0).fit(digits)
    before = model.module_.baseline.item()
    through, score = gradient_variance(model, X, n_draws=300, random_state=0).values()
    apart = (through.mean - score.mean) / np.sqrt((through.variance + score.variance) / 300 + 1e-12)
    assert np.abs(apart).max() < 6
    assert np.linalg.norm(through.mean - score.mean) < 0.3 * np.linalg.norm(through.mean)
    assert score.total > 4 * through.total
    assert model.module_.baseline.item() == before


def test_the_noise_belongs_to_the_seed(digits):
    model = VAE(2, hidden_layer_sizes=(8,), learning_rate_init=0.01, max_iter=1, random_state=0).fit(digits)
    a, b, c = (gradient_variance(model, digits[:8], n_draws=5, random_state=s)["reinforce"] for s in (0, 0, 1))
    np.testing.assert_array_equal(a.mean, b.mean)
    assert not np.array_equal(a.mean, c.mean)
    with pytest.raises(InputError, match="n_draws=1"):
        gradient_variance(model, digits[:8], n_draws=1)


@pytest.mark.filterwarnings("ignore::twofold.deep._variational.CollapseWarning")
def test_reinforce_learns(digits):
    """A generator whose encoder learns nothing cannot do better than pixels that know nothing of each other."""
    X = (digits >= 8).astype(float)
    model = VAE(
        2, hidden_layer_sizes=(64,), gradient="reinforce", learning_rate_init=3e-3, max_iter=20, random_state=0
    ).fit(X[:1300])
    p = (X[:1300].sum(axis=0) + 0.5) / 1401
    test = X[1300:]
    assert model.score(test) > (test * np.log(p) + (1 - test) * np.log(1 - p)).sum(axis=1).mean()
