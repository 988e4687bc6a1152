"""Compressive sensing: what is measured keeps its length, what is sparse comes back, and noise does bounded harm."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from twofold import CompressiveSensing, InputError, load
from twofold.signals import DCT, Fourier, Haar, Shifted, Union, Wavelet, measurements_needed
from twofold.signals.compressive_sensing import draw_measurements, transform_walsh

WAVES = Wavelet(wavelet="db2")
KINDS = ("gaussian", "rademacher", "fourier", "hadamard")


def sparse_signal(basis, shape, K, seed=0):
    rng = np.random.default_rng(seed)
    c = np.zeros(int(np.prod(shape)))
    c[rng.choice(c.size, K, replace=False)] = rng.normal(size=K) + np.sign(rng.normal(size=K))
    return basis.synthesize(c.reshape(shape))


def dense(measuring):
    d = int(np.prod(measuring.shape))
    return measuring.forward(np.eye(d).reshape(d, *measuring.shape)).T  # (m,d)


# --- the measurements -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fourier", "hadamard"])
@pytest.mark.parametrize("shape", [(1,), (2,), (64,), (100,), (127,), (8, 16), (11, 12), (1, 7)])
def test_fast_measurements_are_rows_of_an_orthonormal_matrix(kind, shape):
    d = int(np.prod(shape))
    for m in {1, -(-d // 3), d}:
        measuring = draw_measurements(kind, shape, m, np.random.default_rng(m))
        A = dense(measuring)
        assert A.shape == (m, d)
        np.testing.assert_allclose(A @ A.T, np.eye(m), atol=1e-12)
        back = measuring.transpose(np.eye(m)).reshape(m, d)
        np.testing.assert_allclose(back, A, atol=1e-12)


@pytest.mark.parametrize("d", [2, 16, 32, 64])
def test_the_walsh_transform_is_hadamards_matrix_by_changes_of_sign(d):
    W = transform_walsh(np.eye(d)) * np.sqrt(d)
    np.testing.assert_array_equal((np.diff(np.sign(W), axis=1) != 0).sum(axis=1), np.arange(d))
    assert {tuple(row) for row in np.rint(W)} == {tuple(row) for row in hadamard(d)}


def test_a_length_is_cut_into_powers_of_two():
    W = transform_walsh(np.eye(11))
    blocks = np.zeros((11, 11), dtype=bool)
    for start, end in [(0, 8), (8, 10), (10, 11)]:
        blocks[start:end, start:end] = True
    np.testing.assert_array_equal(np.abs(W) > 1e-12, blocks)


@pytest.mark.parametrize("kind", ["fourier", "hadamard"])
@pytest.mark.parametrize("d", [256, 300, 511])
@pytest.mark.parametrize("basis", [DCT(), Haar(), Fourier()])
def test_measurements_of_signals_are_incoherent_with_any_basis(kind, d, basis):
    """No product of a row with an atom is far above 1/√d, as for random directions: √(2 log d² / d), some for luck."""
    A = dense(draw_measurements(kind, (d,), d, np.random.default_rng(0)))
    assert np.abs(A @ basis.matrix(d).T).max() < 1.6 * np.sqrt(2 * np.log(d * d) / d)


@pytest.mark.parametrize("kind", ["fourier", "hadamard"])
def test_pictures_are_measured_at_low_frequencies_first(kind):
    measuring = draw_measurements(kind, (64, 64), 500, np.random.default_rng(0))
    image = np.random.default_rng(1).normal(size=(64, 64))
    assert np.isclose(measuring.forward(image), image.sum() / 64).any()  # the mean
    smooth, rough = np.indices((64, 64)).sum(axis=0) - 63.0, np.random.default_rng(0).normal(size=(64, 64))
    kept = [np.sum(measuring.forward(x) ** 2) / np.sum(x**2) for x in (smooth, rough)]
    assert kept[0] > 0.9 and kept[1] < 0.2


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_random_matrices_keep_lengths_on_average_and_go_back_by_the_transpose(kind):
    measuring = draw_measurements(kind, (9, 10), 30, np.random.default_rng(0))
    A = measuring.matrix
    assert np.sum(A**2) == pytest.approx(90, rel=0.17)  # six standard deviations
    if kind == "rademacher":
        np.testing.assert_allclose(np.abs(A), 1 / np.sqrt(30))
    X, Y = np.random.default_rng(1).normal(size=(4, 9, 10)), np.random.default_rng(2).normal(size=(4, 30))
    np.testing.assert_allclose(measuring.forward(X), X.reshape(4, 90) @ A.T)
    np.testing.assert_allclose(measuring.transpose(Y).reshape(4, 90), Y @ A)


# --- recovery ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("basis", [None, Haar(), WAVES])
def test_a_sparse_signal_comes_back(kind, basis):
    x = sparse_signal(basis or DCT(), (120,), 6)
    sensing = CompressiveSensing(60, kind=kind, basis=basis, random_state=0).fit(x)
    np.testing.assert_allclose(sensing.recover(sensing.measure(x)), x, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_picture_comes_back(kind):
    basis = Wavelet(ndim=2, wavelet="haar")
    c = np.zeros((16, 16))
    c[:4, :4] = np.random.default_rng(0).normal(size=(4, 4))  # coarse ones, as in pictures
    c[5, 9], c[10, 3] = 2, -2
    x = basis.synthesize(c)
    sensing = CompressiveSensing(110, kind=kind, basis=basis, random_state=0).fit(x)
    np.testing.assert_allclose(sensing.recover(sensing.measure(x)), x, atol=1e-4)


def test_an_overcomplete_basis_will_do():
    both = Union(DCT(), Haar(), shape=64)
    x = both.synthesize(3 * np.eye(128)[5] - 2 * np.eye(128)[100])
    for kind in ("gaussian", "fourier"):
        sensing = CompressiveSensing(40, kind=kind, basis=both, random_state=0).fit(x)
        np.testing.assert_allclose(sensing.recover(sensing.measure(x)), x, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_does_harm_in_proportion(kind):
    x = sparse_signal(DCT(), (128,), 5)
    sensing = CompressiveSensing(64, kind=kind, random_state=0).fit(x)
    y, noise = sensing.measure(x), np.random.default_rng(1).normal(size=64)
    for sigma in (1e-4, 1e-3, 1e-2):
        found = sensing.recover(y + sigma * noise, sigma=sigma)
        assert np.linalg.norm(sensing.measure(found) - y - sigma * noise) <= 1.01 * sigma * 8
        assert np.linalg.norm(found - x) <= 4 * sigma * 8  # σ√m


def test_a_picture_comes_back_better_than_from_its_low_frequencies_alone():
    i, j = np.indices((64, 64)) / 64
    image = (np.hypot(i - 0.5, j - 0.4) < 0.3) + 0.5 * (i > 0.8) + 0.3 * j
    for kind in ("fourier", "hadamard"):
        sensing = CompressiveSensing(1200, kind=kind, random_state=0).fit(image)
        y = sensing.measure(image)
        plain = sensing.measuring_.transpose(y)  # what was not measured, zero
        assert np.linalg.norm(sensing.recover(y) - image) < 0.3 * np.linalg.norm(plain - image)


def test_shifted_copies_keep_lengths_and_give_the_signal_back():
    x = np.random.default_rng(0).normal(size=(3, 10, 12))
    frame = Shifted(2, Wavelet(2, "haar"))
    codes = frame.analyze(x)
    assert codes.shape == (3, *frame.coefficients((10, 12)))
    np.testing.assert_allclose(np.sum(codes**2, axis=(1, 2, 3)), np.sum(x**2, axis=(1, 2)))
    np.testing.assert_allclose(frame.synthesize(codes), x)
    other = np.random.default_rng(1).normal(size=codes.shape)
    np.testing.assert_allclose(np.vdot(frame.synthesize(other), x), np.vdot(other, codes))  # adjoints
    with pytest.raises(InputError, match="orthonormal"):
        Shifted(1, Wavelet(2, "haar"))


def test_shifted_copies_do_not_mind_where_an_edge_is():
    step = (np.arange(64) >= 21) * 1.0  # within a pair
    frame, plain = Shifted(1, Haar()), Haar()
    sizes = [np.abs(b.analyze(np.roll(step, 1))).sum() / np.abs(b.analyze(step)).sum() for b in (frame, plain)]
    assert abs(sizes[0] - 1) < abs(sizes[1] - 1)


# --- the estimator ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_saved_with_its_measurements(kind, tmp_path):
    x = sparse_signal(WAVES, (50,), 3)
    sensing = CompressiveSensing(25, kind=kind, basis=WAVES, random_state=1).fit(x)
    again = CompressiveSensing(25, kind=kind, basis=WAVES, random_state=1).fit(np.zeros(50))
    sensing.save(tmp_path / "sensing.twofold")
    y = sensing.measure(x)
    np.testing.assert_array_equal(again.measure(x), y)
    read = load(tmp_path / "sensing.twofold")
    np.testing.assert_array_equal(read.measure(x), y)
    np.testing.assert_array_equal(read.recover(y), sensing.recover(y))


@pytest.mark.parametrize("kind", ["gaussian", "hadamard"])
def test_many_are_as_one_and_types_stay(kind):
    X = np.stack([sparse_signal(DCT(), (60,), 3, seed) for seed in range(3)])
    sensing = CompressiveSensing(kind=kind, basis=DCT(), n_measurements=40, random_state=0).fit(X)
    assert sensing.shape_ == (60,)
    Y = sensing.measure(X)
    np.testing.assert_allclose(Y[1], sensing.measure(X[1]), atol=1e-14)
    np.testing.assert_allclose(sensing.recover(Y)[1], sensing.recover(Y[1]), atol=1e-12)
    single = sensing.measure(X.astype(np.float32))
    assert single.dtype == np.float32 and sensing.recover(single, sigma=0.001).dtype == np.float32
    assert sensing.measure(np.ones(60, dtype=np.uint8)).dtype == np.float64


def test_a_quarter_is_measured_unless_said():
    assert CompressiveSensing(kind="fourier").fit(np.zeros((10, 9))).measure(np.zeros((10, 9))).shape == (23,)
    assert CompressiveSensing().fit(np.zeros(10)).shape_ == (10,)
    assert CompressiveSensing().fit(np.zeros((3, 10, 9))).shape_ == (10, 9)


def make_fitted():
    return CompressiveSensing(5, random_state=0).fit(np.zeros(10))


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: CompressiveSensing(20).fit(np.zeros(10)), "n_measurements=20"),
        (lambda: CompressiveSensing(basis=Wavelet(2)).fit(np.zeros(10)), "shape"),
        (lambda: CompressiveSensing().fit(np.zeros((1000, 1000))), "hadamard"),
        (lambda: make_fitted().measure(np.zeros(9)), r"X has shape \(9,\)"),
        (lambda: make_fitted().recover(np.zeros(6)), "y has shape"),
        (lambda: make_fitted().recover([0, 1, np.nan, 0, 0]), r"y\[2\] is nan"),
        (lambda: make_fitted().recover(np.zeros(5), sigma=-1), "sigma=-1"),
        (lambda: make_fitted().recover(np.zeros(5), method="lasso"), "basis_pursuit, omp"),
        (lambda: make_fitted().recover(np.zeros(5), n_nonzero=3), "omp"),
        (lambda: make_fitted().recover(np.zeros(5), n_nonzero=0, method="omp"), "n_nonzero=0"),
        (lambda: measurements_needed(5, 4), "K=5"),
    ],
)
def test_bad_input_is_named(call, word):
    with pytest.raises(InputError, match=word):
        call()


# --- how many ---------------------------------------------------------------------------------------------------


def test_needs_grow_with_the_signal_and_stay_below_its_length():
    D = (10, 50, 400, 10_000)
    needs = np.array([[measurements_needed(K, d) for K in range(11)] for d in D])
    assert (np.diff(needs, axis=1) >= 0).all() and (np.diff(needs, axis=0) >= 0).all()
    assert (needs <= np.array(D)[:, None]).all() and (needs >= np.arange(11)).all()
    assert (measurements_needed(0, 10), measurements_needed(10, 10)) == (0, 10)


@pytest.mark.parametrize("K", [10, 60])
def test_so_many_are_needed(K):
    D = 400
    need = measurements_needed(K, D)
    x = np.stack([sparse_signal(DCT(), (D,), K, seed) for seed in range(4)])
    recovered = []
    for m in (int(1.1 * need) + 10, int(0.75 * need)):
        sensing = CompressiveSensing(m, basis=DCT(), random_state=0).fit(x)
        error = np.linalg.norm(sensing.recover(sensing.measure(x)) - x, axis=1)
        recovered.append((error < 1e-4 * np.linalg.norm(x, axis=1)).sum())
    assert recovered == [4, 0]


@pytest.mark.parametrize("method", ["omp", "matching_pursuit"])
@pytest.mark.parametrize("kind", ["gaussian", "hadamard"])
def test_pursuits_recover_what_is_sparse(kind, method):
    c = np.zeros(120)
    c[[4, 30, 77]] = [3.0, -2.0, 1.5]
    x = DCT().synthesize(c)
    sensing = CompressiveSensing(60, kind=kind, random_state=0).fit(x)
    y = sensing.measure(x)
    np.testing.assert_allclose(sensing.recover(y, method=method), x, atol=1e-4)
    noisy = y + 0.01 * np.random.default_rng(0).normal(size=60)
    error = np.linalg.norm(sensing.recover(noisy, sigma=0.01, method=method) - x)
    assert error < 0.1 * np.linalg.norm(x)
    one = DCT().analyze(sensing.recover(y, method=method, n_nonzero=1))
    assert np.count_nonzero(np.abs(one) > 1e-9) == 1
