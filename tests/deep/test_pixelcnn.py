"""Laws of PixelCNN: what a pixel sees, likelihoods that sum to one, draws without waste, and what is learned."""

from itertools import product

import numpy as np
import pytest
import torch

from twofold import InputError, PixelCNN
from twofold.core.seeds import generator
from twofold.deep.pixelcnn import Causal

QUICK = {"channels": 8, "n_layers": 2, "learning_rate_init": 0.02, "batch_size": 32, "max_iter": 4, "random_state": 0}


def tiny(**changes):
    return PixelCNN(**{"channels": 4, "n_layers": 2, "reach": 2, "max_iter": 2, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def pictures(digits):
    return digits.reshape(-1, 8, 8)


@pytest.fixture(scope="module")
def twins():
    """Binary pictures whose lower half repeats the upper."""
    upper = np.random.default_rng(0).integers(2, size=(600, 2, 4))
    return np.concatenate([upper, upper], axis=1)


@pytest.mark.parametrize(("reach", "layers"), [(1, 1), (1, 2), (2, 1), (3, 4)])
@pytest.mark.parametrize("levels", [2, 3])
def test_a_pixel_sees_what_lies_before_it_in_its_field_and_nothing_else(reach, layers, levels):
    torch.manual_seed(0)
    h, w, far = 5, 9, reach + layers
    net = Causal((h, w), levels, 3, layers, reach).double()
    with torch.no_grad():
        for p in net.parameters():
            p.abs_()  # so that no unit is silent and no two paths cancel
    x = torch.rand(1, 1, h, w, dtype=torch.float64, requires_grad=True)
    out = net(x).sum(dim=(0, 1))
    for i, j in product(range(h), range(w)):
        (slope,) = torch.autograd.grad(out[i, j], x, retain_graph=True)
        seen = (slope[0, 0] != 0).numpy()
        expected = np.zeros((h, w), dtype=bool)
        expected[max(0, i - far) : i, max(0, j - far) : j + far + 1] = True  # above, to both sides: no blind spot
        expected[i, max(0, j - far) : j] = True
        np.testing.assert_array_equal(seen, expected, err_msg=f"pixel {i}, {j}")


def test_a_reach_beyond_the_picture_is_all_of_it():
    X = np.random.default_rng(0).integers(0, 2, size=(20, 4, 6))
    far, whole = (tiny(reach=reach).fit(X) for reach in (50, 5))
    assert far.history_["objective"] == whole.history_["objective"]
    np.testing.assert_array_equal(far.score_samples(X), whole.score_samples(X))
    assert np.isfinite(tiny(reach=50).fit(X[:, :1, :1]).score(X[:, :1, :1]))


@pytest.mark.parametrize(
    ("shape", "levels"), [((2, 2), 2), ((3, 3), 2), ((1, 5), 3), ((2, 2), 4), ((4, 1), 4), ((2, 1, 3), 2)]
)
def test_the_likelihoods_of_all_pictures_sum_to_one(shape, levels):
    every = np.array(list(product(range(levels), repeat=int(np.prod(shape))))).reshape(-1, *shape)
    some = every[np.random.default_rng(0).integers(len(every), size=40)]
    model = tiny(levels=levels, batch_size=8, learning_rate_init=0.05).fit(np.concatenate([some, every[-1:]]))
    logp = model.score_samples(every)
    assert np.exp(logp).sum() == pytest.approx(1, abs=1e-5)
    assert np.ptp(logp) > 0.5  # and not because all are alike
    assert model.score(every) == pytest.approx(logp.mean())
    assert model.bits_per_pixel(every) == pytest.approx(-logp.mean() / np.log(2) / np.prod(shape))


def whole(model, n, seed):
    """Draws by the whole network for every pixel, with the same random numbers."""
    net, (h, w) = model.module_, model._size
    k = torch.zeros(n, h, w, dtype=torch.uint8)
    u = torch.from_numpy(generator(seed).random((n, h, w)))
    with torch.no_grad():
        for i, j in product(range(h), range(w)):
            k[:, i, j] = net.choose(net(net.pixels(k))[:, :, i, j], u[:, i, j])
    return k.numpy()


@pytest.mark.parametrize(("shape", "levels"), [((5, 6), 2), ((4, 5), 6), ((3, 2, 3), 4), ((1, 7), 2), ((6, 1), 3)])
def test_draws_that_remember_are_those_of_the_whole_network(shape, levels):
    X = np.random.default_rng(0).integers(levels, size=(30, *shape))
    model = tiny(levels=levels, reach=3, learning_rate_init=0.05).fit(X)
    found = model.sample(20, random_state=5)
    assert found.shape == (20, *shape)
    k = np.rint((found - model.range_[0]) / np.ptp(model.range_) * (levels - 1)).reshape(20, *model._size)
    np.testing.assert_array_equal(k, whole(model, 20, 5))


def test_draws_have_the_likelihood_they_are_drawn_with():
    X = np.random.default_rng(0).random((200, 2, 2)) < [[0.2, 0.5], [0.7, 0.9]]
    model = tiny(learning_rate_init=0.02, batch_size=16, max_iter=4).fit(X)
    drawn = model.sample(4000, random_state=1).reshape(-1, 4)
    every = np.array(list(product([0, 1], repeat=4)))
    share = (drawn[:, None] == every).all(axis=2).mean(axis=0)
    p = np.exp(model.score_samples(every.reshape(-1, 2, 2)))
    assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000) + 1e-3).all()


@pytest.mark.parametrize(("binary", "levels", "gain"), [(True, 2, 4), (False, 17, 6)])
def test_digits_are_likelier_than_pixel_by_pixel(pictures, binary, levels, gain):
    X = (pictures > 7).astype(int) if binary else pictures.astype(int)
    model = PixelCNN(**QUICK).fit(X[:1200])
    assert model.levels_ == levels and model.history_["objective"][-1] < model.history_["objective"][0]
    share = ((X[:1200, :, :, None] == np.arange(levels)).sum(axis=0) + 0.1) / (1200 + 0.1 * levels)
    rows, columns = np.indices((8, 8))
    assert model.score(X[1200:]) > np.log(share[rows, columns, X[1200:]]).sum(axis=(1, 2)).mean() + gain
    drawn = model.sample(100, random_state=0)
    assert set(np.unique(drawn)) <= set(range(levels))
    noise = (np.random.default_rng(0).random((*drawn.shape, 1)) > share.cumsum(axis=-1)).sum(axis=-1)
    assert model.score(drawn) > model.score(np.minimum(noise, levels - 1)) + 3


def test_a_lower_half_that_repeats_the_upper_is_found(twins):
    model = PixelCNN(16, n_layers=1, learning_rate_init=0.02, max_iter=6, random_state=0).fit(twins[:500])
    given = twins[500:].astype(float)
    given[:, 2:] = np.nan
    told = []
    done = model.complete(given, random_state=0, progress=told.append)
    assert np.array_equal(done[:, :2], twins[500:, :2])
    assert (done == twins[500:]).mean() > 0.98
    assert told == sorted(told) and len(told) == 4 and told[-1] == 1
    rows = model.complete(given.reshape(100, -1), mask=None, random_state=0)
    assert np.array_equal(rows, done.reshape(100, -1))


def test_any_mask_keeps_what_is_known(pictures):
    model = PixelCNN(**{**QUICK, "max_iter": 1}).fit(pictures[:200] / 16)
    X = pictures[200:230] / 16 + 0.001  # off the levels: what is known comes back as it was, all the same
    mask = np.random.default_rng(0).random(X.shape) < 0.3
    done = model.complete(X, mask, random_state=0)
    assert np.array_equal(done[~mask], X[~mask]) and not np.array_equal(done[mask], X[mask])
    one = model.complete(X, mask[0], random_state=0)
    assert np.array_equal(one[:, ~mask[0]], X[:, ~mask[0]])
    assert np.array_equal(model.complete(X, np.zeros((8, 8))), X)
    everything = model.complete(X, np.ones((8, 8)), random_state=3)
    np.testing.assert_array_equal(everything, model.sample(30, random_state=3))


def test_what_is_drawn_follows_only_from_what_comes_before(pictures):
    model = PixelCNN(**{**QUICK, "max_iter": 1}).fit(pictures[:200] > 7)
    X, mask = (pictures[200:260] > 7).astype(float), np.zeros((8, 8), dtype=bool)
    mask[3, 2:5] = True
    other = X.copy()
    other[:, 3, 5:], other[:, 4:] = 1 - X[:, 3, 5:], 1 - X[:, 4:]
    first, second = (model.complete(Z, mask, random_state=0)[:, mask] for Z in (X, other))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1], 2),
        ([0, 255], 2),
        ([0, 0.5, 1], 3),
        (range(17), 17),
        ([0, 3, 16], 17),
        (range(256), 256),
        ([0, 1 / np.pi, 1], 256),
    ],
)
def test_levels_are_the_fewest_on_which_all_values_lie(values, expected):
    X = np.resize(np.asarray(list(values), dtype=float), (300, 1, 2))
    assert tiny(max_iter=1).fit(X).levels_ == expected


def test_a_value_counts_as_the_nearest_level(twins):
    model = tiny(levels=3).fit(twins[:100])
    assert np.array_equal(model.score_samples(twins[:9] * 0.8), model.score_samples(twins[:9]))
    assert not np.array_equal(model.score_samples(twins[:9] * 0.7), model.score_samples(twins[:9]))


def test_wrong_requests_are_named(twins):
    model = tiny(max_iter=1).fit(twins[:100])
    with pytest.raises(InputError, match='mask="upper"'):
        model.complete(twins, "upper")
    with pytest.raises(InputError, match=r"mask has shape \(3, 3\)"):
        model.complete(twins, np.ones((3, 3)))
    with pytest.raises(InputError, match="fitted to"):
        model.complete(twins[:, :3], "lower")
    with pytest.raises(ValueError, match="levels"):
        tiny(levels=257).fit(twins)
