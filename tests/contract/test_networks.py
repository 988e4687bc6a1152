"""Every network streams: the same bits from memory, files, dask and loaders, and from rows one call at a time."""

import numpy as np
import polars as pl
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import twofold
from twofold import InputError

from .helpers import differences, row_methods
from .registry import EXEMPT

pytestmark = [pytest.mark.usefixtures("small_blocks"), pytest.mark.filterwarnings("ignore::UserWarning")]
SMALL = {"max_iter": 2, "batch_size": 32, "random_state": 0}
NETWORKS = [
    twofold.MLPClassifier((8,), dropout=0.2, **SMALL),
    twofold.MLPClassifier((8,), early_stopping=True, **SMALL),
    twofold.MLPRegressor(hidden_layer_sizes=(8,), shuffle=False, **SMALL),
    twofold.CNNClassifier((4,), hidden_layer_sizes=8, **SMALL),
    twofold.Autoencoder(3, hidden_layer_sizes=(8,), noise=0.1, **SMALL),
    twofold.VAE(3, hidden_layer_sizes=(8,), **SMALL),
    twofold.VAE(3, hidden_layer_sizes=(4,), architecture="convolutional", output="gaussian", **SMALL),
    twofold.DLGM((2, 3), hidden_layer_sizes=8, **SMALL),
    twofold.GAN(4, hidden_layer_sizes=(8,), **SMALL),
    twofold.VAEGAN(4, hidden_layer_sizes=(8,), **SMALL),
    twofold.NormalizingFlow(3, hidden_layer_sizes=(8,), noise=0.05, **SMALL),
    twofold.PixelCNN(4, n_layers=1, reach=2, **SMALL),
]
every = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
ROWS = 300  # of 64 numbers, in windows of 64 rows


def test_every_network_is_here():
    named = {name for name, why in EXEMPT.items() if why.startswith("a network's promises")}
    assert named == {type(network).__name__ for network in NETWORKS}


@pytest.fixture(scope="module")
def digits():
    found = twofold.datasets.digits()
    return found.data[:ROWS].astype(np.float64), found.target[:ROWS]


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """Nothing that comes from a file is held, though a budget cannot be so small."""
    from twofold.deep import _rows

    monkeypatch.setattr(_rows, "HELD_SHARE", 10**9)


def fit(network, X, y):
    return network.__class__(**network.get_params()).fit(X, y)


@every
def test_where_the_rows_lie_does_not_matter(network, digits, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = digits
    expected = fit(network, X, y)
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    pl.DataFrame(X).write_parquet(tmp_path / "x.parquet", row_group_size=100)
    (tmp_path / "folder").mkdir()
    for i, part in enumerate(np.split(X, [70, 200])):
        np.save(tmp_path / "folder" / f"{i}.npy", part)
    loader = DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(y)), batch_size=77)
    sources = [tmp_path / "c.npy", tmp_path / "f.npy", tmp_path / "x.parquet", tmp_path / "folder", loader]
    for source in [*sources, da.from_array(X, chunks=(97, 30))]:
        assert not differences(expected, fit(network, source, None if source is loader else y)), source
    for method in row_methods(expected):
        assert np.array_equal(getattr(expected, method)(X), getattr(expected, method)(str(tmp_path / "c.npy"))), method


@every
def test_images_may_lie_in_files_as_such(network, digits, tmp_path):
    X, y = digits
    if isinstance(network, (twofold.MLPClassifier, twofold.MLPRegressor)):
        pytest.skip("takes rows alone")
    images = X.reshape(-1, 8, 8).astype(np.uint8)
    np.save(tmp_path / "images.npy", images)
    expected = fit(network, images, y)
    assert not differences(expected, fit(network, tmp_path / "images.npy", y))
    torch_images = torch.from_numpy(images)[:, None]  # (n,c,h,w)
    loader = DataLoader(TensorDataset(torch_images, torch.from_numpy(y)), batch_size=50)
    assert not differences(expected, fit(network, loader, None))


@every
def test_partial_fit_is_an_epoch_at_a_time(network, digits):
    X, y = digits
    if network.get_params().get("early_stopping"):
        pytest.skip("a part of a stream has no rows to hold out")
    known = {"classes": np.unique(y)} if hasattr(network, "predict_proba") else {}
    few = network.__class__(**{**network.get_params(), "max_iter": 6})
    for _ in range(3):
        few.partial_fit(X[:150], y[:150], **known)
        few.partial_fit(X[150:], y[150:])
    assert few.n_iter_ == 6 or len(few.loss_curve_) == 6
    again = network.__class__(**few.get_params())
    for _ in range(3):
        again.partial_fit(X[:150], y[:150], **known)
        again.partial_fit(X[150:], y[150:])
    assert not differences(few.weights_, again.weights_)
    once = network.__class__(**few.get_params()).partial_fit(X[:150], y[:150], **known)
    assert differences(few.weights_, once.weights_)


def test_partial_fit_learns(digits):
    X, _ = digits
    model = twofold.VAE(4, hidden_layer_sizes=(32,), learning_rate_init=3e-3, max_iter=60, random_state=0)
    for _ in range(20):
        for part in np.split(X, 3):
            model.partial_fit(part)
    first = twofold.VAE(**model.get_params()).partial_fit(X)
    assert model.score(X) > first.score(X) + 5  # nats an image, of about 30
    assert len(model.history_["objective"]) == 60


@every
def test_a_missing_device_is_refused_in_one_sentence(network, digits):
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    X, y = digits
    model = network.__class__(**{**network.get_params(), "device": "cuda"})
    with pytest.raises(InputError, match='device="cuda" is not there'):
        model.fit(X, y)
    with pytest.raises(InputError, match='device="gpu" is not there'):
        model.set_params(device="gpu").fit(X, y)


def test_epochs_mix_rows_from_far_apart_and_miss_none():
    from twofold.core.data.blocks import as_blocks
    from twofold.deep._rows import read_rows

    n = 2000
    rows = read_rows(as_blocks(np.zeros((n, 64))), np.float32)
    torch.manual_seed(0)
    windows = [window.numpy() for window in rows.draw_order()]
    assert len(windows) > 20 and np.array_equal(np.sort(np.concatenate(windows)), np.arange(n))
    means = np.array([window.mean() for window in windows[:-1]])
    size = len(windows[0])
    assert np.abs(means - n / 2).max() < 6 * n / np.sqrt(12 * size)  # as rows drawn at random have, in six sigma


def test_lbfgs_says_that_it_needs_all_rows(digits, tmp_path):
    X, y = digits
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(InputError, match='solver="lbfgs" uses all rows in every step'):
        twofold.MLPClassifier((8,), solver="lbfgs").fit(tmp_path / "x.npy", y)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "gives no batch"),
        ([torch.zeros(3)], r"tensors \(n, d\) or images"),
        ([{"x": torch.zeros(3, 4)}], "gives dict"),
        ([torch.zeros(3, 4), torch.zeros(3, 5)], r"shapes \(4,\) and \(5,\)"),
        ([torch.full((3, 4), torch.nan)], "NaN"),
    ],
)
def test_a_loader_without_rows_is_refused(batches, message):
    loader = DataLoader(batches, batch_size=None)
    with pytest.raises(InputError, match=message):
        twofold.VAE(2).fit(loader)
