"""The machinery under every loss and constraint: descent, weights, holes, sparse data, files, your own parts, edges."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold import Factorization
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows, as_blocks
from twofold.factors import (
    L1,
    Absolute,
    Constraint,
    Free,
    Huber,
    KSparse,
    Logistic,
    Loss,
    NonNegative,
    OneHot,
    Orthonormal,
    Poisson,
    Ridge,
    Simplex,
    Squared,
    UnitNorm,
)
from twofold.factors._half_step import Parabola, Side, improve
from twofold.factors._right_step import make_sweep
from twofold.factors.constraints.base import multiply_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LOSSES = [Squared(), Huber(0.5), Absolute(), Logistic(), Poisson("log")]
PAIRS = [
    (Free(), Free()),
    (Ridge(0.3), Ridge(0.5)),
    (Ridge(0.3), Orthonormal()),
    (UnitNorm(), L1(0.3)),
    (L1(0.1), UnitNorm()),
    (NonNegative(), NonNegative()),
    (Simplex(), Ridge(0.3)),
    (OneHot(), Free()),
    (KSparse(2), UnitNorm()),
]
SHARES = [(NonNegative(), NonNegative()), (NonNegative(), Simplex()), (Simplex(), NonNegative())]
GRID = [(loss, *pair) for loss in LOSSES for pair in PAIRS] + [(Poisson(), *pair) for pair in SHARES]
every = pytest.mark.parametrize(("loss", "left", "right"), GRID, ids=repr)
# One of each way through the code: one matrix for all rows, one each, steps that are tried, logarithms, choices.
WAYS = [
    (Squared(), Ridge(0.3), Ridge(0.5)),
    (Squared(), NonNegative(), NonNegative()),
    (Huber(0.5), Ridge(0.3), Ridge(0.5)),
    (Logistic(), Ridge(0.3), Ridge(0.5)),
    (Poisson(), NonNegative(), Simplex()),
    (Absolute(), OneHot(), Free()),
]
ways = pytest.mark.parametrize(("loss", "left", "right"), WAYS, ids=repr)


def table(loss, n=40, d=8, seed=0):
    """A noisy table of rank 3 that the loss takes: any numbers, counts, or yes and no."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    if isinstance(loss, Logistic):
        return (rng.random(M.shape) < 1 / (1 + np.exp(-2 * M))).astype(float)
    if isinstance(loss, Poisson):
        return rng.poisson(np.exp(0.5 * M) + 0.5).astype(float)
    return M + 0.2 * rng.normal(size=M.shape)


def holes(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def start(loss, d=8, seed=2):
    Z = np.random.default_rng(seed).normal(size=(3, d))
    return np.abs(Z) + 0.1 if loss.positive else Z


def objective(model, X, U):
    """What the fitted components and these codes cost, by the definition."""
    loss, left, right = model._choices()
    cells = loss.value(np.nan_to_num(X), U @ model.components_ + model.intercept_)
    return cells[~np.isnan(X)].sum() + left.values(U).sum() + right.values(model.components_).sum()


# ---- descent ---------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("missing", [False, True])
def test_the_objective_never_rises_and_is_what_it_says(loss, left, right, missing):
    X = holes(table(loss)) if missing else table(loss)
    model = Factorization(3, loss=loss, left=left, right=right, tol=0.0, max_iter=12, random_state=0).fit(X)
    path = np.array(model.history_["objective"])
    assert np.all(np.diff(path) <= 0)
    assert path[-1] < path[0] or isinstance(left, OneHot)  # which begin where k-means of so few rows ends
    np.testing.assert_allclose(right.prox(model.components_, 0.0), model.components_, atol=1e-9)
    codes = model.transform(X)
    np.testing.assert_allclose(left.prox(codes, 0.0), codes, atol=1e-9)
    if left not in (KSparse(2), UnitNorm()):  # of those, the best code need not be found
        assert objective(model, X, codes) <= path[-1] * (1 + 1e-9)


@every
@pytest.mark.parametrize("missing", [False, True])
def test_half_steps_need_no_net(loss, left, right, missing):
    """From a wild start, without the loop that would turn back: a sweep costs what it says, and never more."""
    X = holes(table(loss)) if missing else table(loss)
    model = Factorization(3, loss=loss, left=left, right=right, intercept=not loss.positive)
    data, _ = model._data(as_blocks(X), None, 3)
    V = np.array(right.start(10.0 ** np.linspace(-2, 2, 8) * start(loss)).T, order="C")
    V = V if loss.positive else np.column_stack([V, np.zeros(8)])
    sizes = 10.0 ** np.linspace(-2, 2, 40)[:, None]
    codes = left.start(sizes * np.abs(np.random.default_rng(7).normal(size=(40, 3))))
    kept, last, sweep = Rows([(codes,)]), np.inf, make_sweep(data)
    for _ in range(5):
        kept, V, cost = sweep(kept, V)
        model.components_, model.intercept_ = data.problem.split(V)
        model.intercept_ = model.intercept_ + data.problem.shift
        assert cost == pytest.approx(objective(model, X, kept[0][0]), rel=1e-8)
        assert cost <= last * (1 + 1e-12)
        last = cost


@pytest.mark.parametrize(
    "constraint", [Free(), Ridge(), L1(), NonNegative(), Simplex(), UnitNorm(), KSparse(2), OneHot()]
)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_on_a_parabola_never_ends_higher(constraint, right, own, seed):
    rng, side = np.random.default_rng(seed), Side(constraint, right)
    A = rng.normal(size=(6, 5, 4)) * 10.0 ** rng.uniform(-2, 2, size=4)
    H, B = np.swapaxes(A, 1, 2) @ A, 10 * rng.normal(size=(6, 4))
    q = Parabola(H if own else H[0], B)
    F = side.prox(10 * rng.normal(size=(6, 4)), np.zeros((1, 1)))
    costs = lambda F: side.costs(q.values(F, multiply_rows(F, q.H)), F)  # noqa: E731
    new = improve(q, F, side, 10)
    assert np.all(costs(new) <= costs(F) + 1e-12 * np.abs(costs(F))) and costs(new).sum() < costs(F).sum()
    np.testing.assert_allclose(side.prox(new, np.zeros((1, 1))), new, atol=1e-12)


@ways
@pytest.mark.parametrize("missing", [False, True])
def test_training_rows_folded_in_again_reproduce_the_objective(loss, left, right, missing):
    X = holes(table(loss)) if missing else table(loss)
    model = Factorization(2, loss=loss, left=left, right=right, tol=1e-9, max_iter=2000, random_state=0).fit(X)
    U = model.transform(X)
    end = objective(model, X, U)
    assert end == pytest.approx(model.history_["objective"][-1], rel=1e-5)
    assert -model.score(X) * len(X) == pytest.approx(end - right.values(model.components_).sum(), rel=1e-9)
    np.testing.assert_allclose(model.inverse_transform(U), loss.mean(U @ model.components_ + model.intercept_))


def test_an_intercept_is_the_level_of_every_column():
    X = table(Squared()) + np.linspace(0, 1e4, 8)
    model = Factorization(2, right=Orthonormal(), intercept=True, random_state=0).fit(X)
    np.testing.assert_allclose(model.intercept_, X.mean(axis=0), atol=1e-3)
    far = Factorization(2, loss=Huber(), intercept=True, random_state=0).fit(X)
    near = Factorization(2, loss=Huber(), intercept=True, random_state=0).fit(X - np.linspace(0, 1e4, 8))
    assert far.history_["objective"][-1] == pytest.approx(near.history_["objective"][-1], rel=1e-3)


def test_what_no_row_uses_stays_unless_it_costs():
    X = table(Squared())
    start = np.vstack([X[:2], np.full(8, 99.0)])
    kept = Factorization(3, left=OneHot(), init=start, random_state=0).fit(X)
    np.testing.assert_array_equal(kept.components_[2], start[2])
    gone = Factorization(3, left=OneHot(), right=Ridge(0.1), init=start, random_state=0).fit(X)
    assert np.abs(gone.components_[2]).max() < 2


def test_several_starts_end_no_higher_than_each():
    X = table(Squared(), n=60)
    one = [Factorization(6, left=OneHot(), random_state=t).fit(X).history_["objective"][-1] for t in range(4)]
    best = Factorization(6, left=OneHot(), n_init=12, random_state=0).fit(X).history_["objective"][-1]
    assert best <= np.median(one)


# ---- weights and holes -----------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("missing", [False, True])
def test_a_row_of_weight_two_is_two_rows(loss, left, right, missing):
    X = holes(table(loss)) if missing else table(loss)
    w = np.random.default_rng(3).integers(0, 4, len(X))
    model = Factorization(3, loss=loss, left=left, right=right, init=start(loss), tol=0.0, max_iter=10)
    one = model.fit(X, sample_weight=w)
    components, path = one.components_, one.history_["objective"]
    two = model.fit(np.repeat(X, w, axis=0))
    if isinstance(loss, Absolute):  # whose curvature is bounded by a mean over rows
        assert two.history_["objective"][-1] == pytest.approx(path[-1], rel=1e-2)
    else:
        np.testing.assert_allclose(two.history_["objective"], path, rtol=1e-8)
        np.testing.assert_allclose(two.components_, components, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", [*LOSSES, Poisson()], ids=repr)
def test_a_weight_a_cell_is_a_weight_a_row_where_rows_are_alike(loss):
    X, w = table(loss), np.random.default_rng(3).random(40) + 0.1
    kind = NonNegative() if loss.positive else Free()
    model = Factorization(3, loss=loss, left=kind, right=kind, init=start(loss), tol=0.0, max_iter=5)
    by_row = model.fit(X, sample_weight=w).history_["objective"]
    by_cell = model.fit(X, sample_weight=np.repeat(w[:, None], 8, axis=1)).history_["objective"]
    np.testing.assert_allclose(by_cell, by_row, rtol=1e-4 if isinstance(loss, Absolute) else 1e-7)


@ways
def test_a_hole_is_a_cell_of_weight_zero(loss, left, right):
    X = table(loss)
    W = (np.random.default_rng(1).random(X.shape) < 0.8).astype(float)
    model = Factorization(3, loss=loss, left=left, right=right, tol=0.0, max_iter=15, random_state=0)
    one = model.fit(X, sample_weight=W).components_
    other = model.fit(np.where(W > 0, X, X.max()), sample_weight=W).components_
    np.testing.assert_array_equal(one, other)  # what lies in a hole is not looked at
    gone = model.fit(np.where(W > 0, X, np.nan)).components_
    np.testing.assert_allclose(gone, one, rtol=1e-7, atol=1e-9)


@ways
def test_sparse_equals_dense(loss, left, right):
    X = np.where(np.random.default_rng(4).random((40, 8)) < 0.5, table(loss), 0.0)
    W = (np.random.default_rng(5).random(X.shape) < 0.8).astype(float)
    thin, thin_weights = sparse.csr_array(X), sparse.csr_array(W)
    model = Factorization(3, loss=loss, left=left, right=right, tol=0.0, max_iter=10, random_state=0)
    for given, data, weights in ((None, thin, None), (W, X, thin_weights), (W, thin, thin_weights)):
        expected = model.fit(X, sample_weight=given).components_
        codes = model.transform(X)
        np.testing.assert_allclose(model.fit(data, sample_weight=weights).components_, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.transform(thin), codes, rtol=1e-5, atol=1e-7)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("loss", "left", "right"), [WAYS[1], WAYS[3], WAYS[4]], ids=repr)
def test_weights_of_cells_travel_with_their_rows(loss, left, right, tmp_path):
    da = pytest.importorskip("dask.array")
    X = table(loss, n=300)
    W = np.random.default_rng(1).random(X.shape) * (np.random.default_rng(2).random(X.shape) < 0.8)
    np.save(tmp_path / "x.npy", X)
    model = Factorization(3, loss=loss, left=left, right=right, max_iter=6, random_state=0)
    with twofold.config(threads=1):
        expected = model.fit(X, sample_weight=W).components_
    for source in (X, tmp_path / "x.npy", da.from_array(X, chunks=(77, 5))):
        with twofold.config(threads=3):
            assert np.array_equal(model.fit(source, sample_weight=W).components_, expected)


# ---- completion ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_only_holes_are_filled(loss):
    X = table(loss, n=200)
    H = holes(X)
    model = Factorization(3, loss=loss, left=Ridge(0.5), right=Ridge(0.5), random_state=0).fit(H)
    filled, gone = model.complete(H), np.isnan(H)
    np.testing.assert_array_equal(filled[~gone], X[~gone])
    np.testing.assert_array_equal(filled[gone], model.inverse_transform(model.transform(H))[gone])
    error, plain = (np.abs(X - guess)[gone].mean() for guess in (filled, np.nanmean(H, axis=0)))
    assert error < 0.75 * plain
    if isinstance(loss, Logistic):
        assert filled.min() >= 0 and filled.max() <= 1


def test_rows_without_anything_known_are_answered():
    H = holes(table(Squared()))
    H[3], H[:, 5] = np.nan, np.nan
    for loss in LOSSES[:3]:
        model = Factorization(2, loss=loss, left=Ridge(0.1), intercept=True, max_iter=30, random_state=0).fit(H)
        assert np.isfinite(model.complete(H)).all()
        np.testing.assert_allclose(model.transform(H)[3], 0, atol=1e-12)
        np.testing.assert_allclose(model.components_[:, 5], 0, atol=1e-12)


# ---- files, and parts of your own ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogCosh(Loss):
    """log cosh (x − m)."""

    shifts: ClassVar[bool] = True

    def value(self, X, M):
        r = np.abs(X - M)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def slope(self, X, M):
        return np.tanh(M - X)

    def curvature(self, X, M):
        r = np.maximum(np.abs(X - M), 1e-6)
        return np.tanh(r) / r


@dataclass(frozen=True)
class Box(Constraint):
    """Numbers from 0 to `top`."""

    top: float = 1.0
    elementwise: ClassVar[bool] = True

    def prox(self, F, step):
        return np.clip(F, 0, self.top)


@pytest.mark.parametrize("missing", [False, True])
def test_your_own_loss_and_constraint(missing):
    X = holes(np.abs(table(Squared()))) if missing else np.abs(table(Squared()))
    model = Factorization(3, loss=LogCosh(), left=Box(2.0), right=Box(), tol=1e-10, max_iter=1000, random_state=0)
    U, Z = model.fit_transform(X), model.components_
    assert U.min() >= 0 and U.max() <= 2 and Z.min() >= 0 and Z.max() <= 1 and np.isin([0.0, 1.0], Z).all()
    pull = np.nan_to_num(np.tanh(U @ Z - X))
    for gradient, factor, top in ((pull @ Z.T, U, 2.0), (U.T @ pull, Z, 1.0)):  # no way down is left
        inside = np.where(
            factor <= 0, np.minimum(gradient, 0), np.where(factor >= top, np.maximum(gradient, 0), gradient)
        )
        assert np.abs(inside).max() < 1e-2


def test_files_keep_losses_and_constraints(tmp_path):
    X = table(Logistic())
    for loss, left, right in (
        (Logistic(), Ridge(0.25), L1(0.125)),
        (Huber(0.5), KSparse(2), UnitNorm()),
        (Poisson("log"), Simplex(), Orthonormal()),
        (Poisson(), NonNegative(), Simplex()),
        (Absolute(), OneHot(), Free()),
        (None, None, None),
    ):
        model = Factorization(3, loss=loss, left=left, right=right, max_iter=5, random_state=0).fit(X)
        model.save(tmp_path / "m.twofold")
        back = twofold.load(tmp_path / "m.twofold")
        assert back.get_params() == model.get_params() and (back.loss, back.left, back.right) == (loss, left, right)
        assert np.array_equal(back.transform(X), model.transform(X))


def test_parts_of_your_own_have_no_place_in_a_file(tmp_path):
    for part in ({"loss": LogCosh()}, {"left": Box()}):
        model = Factorization(2, max_iter=3, random_state=0, **part).fit(table(Squared()))
        name, value = next(iter(part.items()))
        with pytest.raises(InputError, match=f"params.{name} is of type {type(value).__name__}"):
            model.save(tmp_path / "m.twofold")
        assert not any(tmp_path.iterdir())


# ---- edges -----------------------------------------------------------------------------------------------------


@ways
def test_empty_rows_constant_columns_and_one_row(loss, left, right):
    X = table(loss)
    X[4], X[:, 2], X[:, 6] = 0.0, 1.0, 0.0
    params = {"loss": loss, "left": left, "right": right, "max_iter": 30, "random_state": 0}
    for data in (X, X[:1], X[4:5], sparse.csr_array(X), np.zeros_like(X)):
        model = Factorization(3, **params).fit(data)
        for found in (model.components_, model.transform(data), model.inverse_transform(model.transform(data))):
            assert np.isfinite(found).all()
        assert np.isfinite(model.history_["objective"]).all()


@ways
def test_more_components_than_rows_or_columns(loss, left, right):
    X = table(loss, n=6)
    model = Factorization(12, loss=loss, left=left, right=right, max_iter=30, random_state=0).fit(X)
    assert model.components_.shape == (12, 8) and np.isfinite(model.transform(X)).all()
    path = model.history_["objective"]
    assert path[-1] < path[0] or path[-1] < 1e-8  # one-hot codes begin with a cluster for each row


def test_enough_components_meet_every_known_cell():
    H = holes(table(Squared(), n=10))
    model = Factorization(8, tol=1e-8, random_state=0).fit(H)
    assert model.history_["objective"][-1] < 1e-6 * np.nansum(H**2)


@every
def test_single_precision_stays(loss, left, right):
    X = table(loss, n=10).astype(np.float32)
    model = Factorization(3, loss=loss, left=left, right=right, intercept=not loss.positive, max_iter=3, random_state=0)
    for data in (X, holes(X).astype(np.float32)):
        codes = model.fit(data).transform(data)
        found = (model.components_, model.intercept_, codes, model.inverse_transform(codes), model.complete(data))
        assert {a.dtype for a in found} == {np.dtype(np.float32)}


def test_a_count_that_was_never_seen_is_survived():
    X = table(Poisson())
    X[:, 3] = 0
    model = Factorization(2, loss=Poisson(), left=NonNegative(), right=Simplex(), random_state=0).fit(X)
    new = X[:5].copy()
    new[0, 3] = 4.0
    np.testing.assert_allclose(model.transform(new)[1:], model.transform(X[1:5]), rtol=1e-9)
    assert np.isfinite(model.transform(new)).all() and model.score(new) < model.score(X[:5])


def refused(match, X=None, sample_weight=None, **params):
    with pytest.raises(ValueError, match=match):
        Factorization(**{"n_components": 2, **params}).fit(
            table(Squared()) if X is None else X, sample_weight=sample_weight
        )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_cells_a_loss_does_not_know_are_refused_with_their_place(kind):
    X, share = table(Poisson()), {"left": NonNegative(), "right": NonNegative()}
    X[7, 3] = -2.0
    refused(r"X\[7, 3\] is -2; loss=Poisson\(link='identity'\) needs a count", kind(X), loss=Poisson(), **share)
    refused(r"X\[7, 3\] is -2; loss=Poisson\(link='log'\)", kind(X), loss=Poisson("log"))
    Y = table(Logistic())
    model = Factorization(2, loss=Logistic(), max_iter=5, random_state=0).fit(Y)
    Y[5, 1] = 1.5
    refused(r"X\[5, 1\] is 1.5; loss=Logistic\(\) needs a number from 0 to 1", kind(Y), loss=Logistic())
    for method in (model.transform, model.score):
        with pytest.raises(InputError, match=r"X\[5, 1\] is 1.5"):
            method(kind(Y))


def test_what_does_not_go_together_is_refused():
    refused("left=Orthonormal.*only the right factor", left=Orthonormal())
    refused("right=Orthonormal.*9 rows of 8 numbers.*n_components=8", n_components=9, right=Orthonormal())
    X, share = table(Poisson()), {"left": NonNegative(), "right": NonNegative()}
    refused("left=Free.*NonNegative", X, loss=Poisson(), right=NonNegative())
    refused("right=Ridge.*NonNegative", X, loss=Poisson(), left=NonNegative(), right=Ridge())
    refused("intercept", X, loss=Poisson(), intercept=True, **share)
    refused("loss", loss="squared")
    refused("left", left=Squared())
    refused(r"init must be \(2, 8\).*\(3, 8\)", init=np.ones((3, 8)))
    refused("too large to be squared", np.full((5, 3), 1e200))


def test_weights_that_cannot_be_are_refused():
    X = table(Squared())
    refused(r"\(40, 7\), expected \(40, 8\)", sample_weight=np.ones((40, 7)))
    refused("negative", sample_weight=np.where(np.arange(8) == 3, -1.0, np.ones(X.shape)))
    refused("zero everywhere", sample_weight=np.zeros(X.shape))
    refused(r"sample_weight\[4\] is -1", sample_weight=np.where(np.arange(40) == 4, -1.0, 1.0))
    refused("not finite", sample_weight=sparse.csr_array(np.where(X > 1, np.inf, 1.0)))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Ridge(-1.0), r"Ridge\(alpha=-1.0\)"),
        (lambda: L1(np.nan), r"L1\(alpha=nan\)"),
        (lambda: KSparse(0), r"KSparse\(n_nonzero=0\)"),
        (lambda: KSparse(1.5), "whole number"),
        (lambda: Huber(0.0), r"Huber\(delta=0.0\)"),
        (lambda: Poisson("sqrt"), r'"identity" or "log"'),
    ],
)
def test_parts_refuse_their_parameters(make, match):
    with pytest.raises(InputError, match=match):
        make()
