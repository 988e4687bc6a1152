"""Laws of the network of convolutions: what it computes, what it learns, which pictures it takes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.signal import correlate2d
from sklearn.linear_model import LogisticRegression

from twofold import CNNClassifier

QUICK = {"learning_rate_init": 5e-3, "batch_size": 32, "max_iter": 5, "random_state": 0}


@pytest.fixture(scope="module")
def digits_network(digits, labels):
    X, y = digits.reshape(-1, 8, 8), labels
    return CNNClassifier((16, 32), **{**QUICK, "max_iter": 8}).fit(X[:1200], y[:1200])


@pytest.fixture(scope="module")
def bars():
    """Pictures of a bar that lies or stands, somewhere: no single pixel tells which."""
    rng = np.random.default_rng(1)
    X, y = np.zeros((300, 6, 6)), rng.integers(2, size=300)
    for picture, stands, i in zip(X, y, rng.integers(6, size=300), strict=True):
        picture[(slice(None), i) if stands else i] = 1
    return X + 0.1 * rng.random(X.shape), y


def tiny(**changes):
    return CNNClassifier(**{"channels": (4,), "hidden_layer_sizes": 8, "max_iter": 3, "random_state": 0, **changes})


def by_hand(weights, x, pooling=2):
    """The network's formula with loops over the kernel's places, in double precision."""
    w = {name: a.astype(np.float64) for name, a in weights.items()}
    a = (x - w["inputs.mean"][:, None, None]) / w["inputs.scale"][:, None, None]
    kernel, bias = w["layers.0.weight"], w["layers.0.bias"]
    h, wide = a.shape[2:]
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    z = bias[:, None, None] + sum(
        np.einsum("nchw,oc->nohw", padded[:, :, i : i + h, j : j + wide], kernel[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    h, wide = h // pooling, wide // pooling
    z = np.maximum(z, 0)[:, :, : h * pooling, : wide * pooling].reshape(*z.shape[:2], h, pooling, wide, pooling)
    z = z.max(axis=(3, 5)).reshape(len(x), -1)
    z = np.maximum(z @ w["dense.0.weight"].T + w["dense.0.bias"], 0)
    last = max(name for name in w if name.startswith("dense"))[:-7]
    return z @ w[f"{last}.weight"].T + w[f"{last}.bias"]


def test_the_network_is_its_formula():
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 5, 7, 2)), np.arange(30) % 3
    model = tiny(dropout=0.0).fit(X, y)
    expected = by_hand(model.weights_, X.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)


def test_it_reads_digits_better_than_logistic_regression(digits, labels, digits_network):
    X, y = digits.reshape(-1, 8, 8), labels
    line = LogisticRegression(max_iter=100).fit(X[:1200].reshape(1200, -1) / 16, y[:1200])
    assert digits_network.score(X[1200:], y[1200:]) > line.score(X[1200:].reshape(-1, 64) / 16, y[1200:]) + 0.01
    assert digits_network.history_["objective"][-1] < 0.3 * digits_network.history_["objective"][0]


def test_two_classes_that_no_single_pixel_tells_apart(bars):
    X, y = bars
    names = np.array(["lies", "stands"])[y]
    model = CNNClassifier((8,), hidden_layer_sizes=16, **QUICK).fit(X[:200], names[:200])
    assert model.score(X[200:], names[200:]) > 0.95
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X) == "stands", model.decision_function(X) > 0)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 10), (2, 2), (3, 2), (5, 1), (2, 2, 3)])
@pytest.mark.parametrize("channels", [(4,), (4, 4, 4)])
def test_pictures_of_any_size(shape, channels):
    rng = np.random.default_rng(0)
    X, y = rng.random((40, *shape)), np.arange(40) % 2
    X[y == 1] += 1
    model = tiny(channels=channels, learning_rate_init=0.03, batch_size=8, max_iter=8, dropout=0.0).fit(X, y)
    assert model.image_shape_ == shape and model.score(X, y) > 0.9


def test_pooling_one_is_none_and_large_kernels_keep_the_size(bars):
    X, y = bars
    whole = tiny(pooling=1, kernel_size=9).fit(X, y)
    assert whole.weights_["dense.0.weight"].shape == (8, 4 * 36)
    assert tiny(pooling=9).fit(X, y).weights_["dense.0.weight"].shape == (8, 4)


def test_a_weight_of_zero_is_no_picture(bars):
    X, y = bars
    weights = np.where(np.arange(300) < 150, 0.0, 1.0)
    wrong = np.where(weights == 0, 1 - y, y)
    model = CNNClassifier((8,), hidden_layer_sizes=16, **{**QUICK, "max_iter": 10}).fit(X, wrong, sample_weight=weights)
    assert model.score(X[:150], y[:150]) > 0.9


def test_the_objective_is_the_cross_entropy(bars):
    X, y = bars
    model = tiny(dropout=0.0, alpha=0.0, learning_rate_init=1e-12, max_iter=1).fit(X, y)
    out = torch.from_numpy(model.decision_function(X))
    expected = F.binary_cross_entropy_with_logits(out, torch.from_numpy(y).double()).item()
    assert model.history_["objective"][0] == pytest.approx(expected, rel=1e-5)


def test_a_convolution_layer_correlates_and_what_is_shifted_comes_out_shifted(digits_network):
    """Σ K(u) a(i + u); away from the border, the layer of a shifted picture is the shifted layer of the picture."""
    layer, picture = digits_network.module_.layers[0], torch.zeros(1, 1, 12, 12)
    picture[0, 0, 3:6, 2:6] = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        out, moved = layer(picture)[0], layer(torch.roll(picture, (3, 4), dims=(2, 3)))[0]
    for got, kernel, bias in zip(out.numpy(), layer.weight.detach()[:, 0].numpy(), layer.bias.tolist(), strict=True):
        np.testing.assert_allclose(got, correlate2d(picture[0, 0].numpy(), kernel, mode="same") + bias, atol=1e-5)
    torch.testing.assert_close(moved, torch.roll(out, (3, 4), dims=(1, 2)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"channels": (0,)}, "channels"), ({"kernel_size": 4}, "kernel_size=4"), ({"pooling": 0}, "pooling")],
)
def test_wrong_parameters_are_named(bars, changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes).fit(*bars)
