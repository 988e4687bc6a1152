"""Laws of the training: solvers follow their formulas, epochs visit every row once, a restart changes no bit."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import twofold
from twofold import EarlyStopping, InputError, MLPClassifier, MLPRegressor
from twofold.deep import _torch_shim, minimize
from twofold.deep._rows import hold_rows
from twofold.deep._train import FALLING, Feed, Optimizer, Player, copy_state, restore_state, run_epoch

CURVE = np.array([1.0, 10.0])  # minimize ½ Σ c θ², whose gradient is c θ
RATE, STEPS = 0.05, 6


def feed(rows):
    return Feed(hold_rows(rows), (torch.from_numpy(rows).float(),), torch.device("cpu"))


class Quadratic(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))


class Options:
    alpha, batch_size, max_iter, shuffle = 0.0, 1, STEPS, True


SOLVERS = {
    "sgd": {"solver": "sgd", "momentum": 0.0},
    "momentum": {"solver": "sgd", "nesterov": False},
    "nesterov": {"solver": "sgd"},
    "adagrad": {"solver": "adagrad"},
    "adam": {"solver": "adam"},
}


def make(rule, parameters, alpha=0.0):
    return Optimizer(parameters=list(parameters), alpha=alpha, **SOLVERS[rule])


def steady(done):
    return RATE


def by_formula(rule):
    theta, v, s, path = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2), []
    for t in range(1, STEPS + 1):
        g = CURVE * theta
        if rule == "sgd":
            theta = theta - RATE * g
        elif rule == "momentum":  # the heavy ball
            v = 0.9 * v + g
            theta = theta - RATE * v
        elif rule == "nesterov":  # looks ahead along the velocity
            v = 0.9 * v + g
            theta = theta - RATE * (g + 0.9 * v)
        elif rule == "adagrad":
            s = s + g * g
            theta = theta - RATE * g / (np.sqrt(s) + 1e-10)
        else:
            v, s = 0.9 * v + 0.1 * g, 0.999 * s + 0.001 * g * g
            theta = theta - RATE * (v / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
        path.append(theta)
    return np.array(path)


@pytest.mark.parametrize("rule", SOLVERS)
def test_a_solver_follows_its_formula(rule):
    """Of `minimize`; epochs of networks make the steps of scikit-learn: tests/twins/test_networks.py."""
    curve, path = torch.from_numpy(CURVE), []
    options = {"learning_rate": RATE, "max_iter": STEPS, "tol": 0.0, "callback": path.append}
    minimize(lambda x: (0.5 * curve * x**2).sum(), [1.0, -2.0], rule, **options)
    np.testing.assert_allclose(path, by_formula(rule), rtol=1e-6)


SLOPE = torch.arange(12.0).reshape(3, 4) - 5


@pytest.mark.parametrize(
    ("loss", "slope"),
    [
        (lambda theta: (theta * SLOPE).sum(), SLOPE),
        (lambda theta: (theta.t() * SLOPE.t().contiguous()).sum(), SLOPE),  # a gradient that is transposed in memory
        (lambda theta: 2 * theta.sum(), torch.full((3, 4), 2.0)),  # one that is broadcast
    ],
)
@pytest.mark.parametrize("rule", SOLVERS)
def test_the_layout_of_a_gradient_in_memory_plays_no_part(rule, loss, slope):
    """Fused kernels do not ask about it."""
    theta, reference = torch.zeros(3, 4, requires_grad=True), torch.zeros(12, requires_grad=True)
    mover, other = make(rule, [theta]), make(rule, [reference])
    for _ in range(3):
        mover.step(loss(theta), RATE)
        other.step((reference * slope.reshape(-1)).sum(), RATE)
    torch.testing.assert_close(theta.detach().reshape(-1), reference.detach())


def test_alpha_shrinks_matrices_and_leaves_biases():
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone(), layer.bias.detach().clone()
    player = Player(list(layer.parameters()), lambda x, done: (0 * layer(x).sum(), {}))
    run_epoch(Options(), layer, [player], [make("sgd", player.parameters, 0.5)], feed(np.zeros((1, 3))), 0, 0, steady)
    torch.testing.assert_close(layer.weight.detach(), before[0] * (1 - RATE * 0.5))
    torch.testing.assert_close(layer.bias.detach(), before[1])


def test_an_epoch_visits_every_row_once_in_an_order_of_its_own():
    seen = []
    module = Quadratic()
    player = Player([module.theta], lambda x, done: (seen.append(x[:, 0].tolist()) or module.theta.sum() * 0, {}))
    options = Options()
    options.batch_size = 4
    data = feed(np.arange(10.0)[:, None])
    for t in (0, 1):
        run_epoch(options, module, [player], [make("sgd", player.parameters)], data, 0, t, steady)
    orders = [[row for batch in part for row in batch] for part in (seen[:3], seen[3:])]
    assert [len(batch) for batch in seen] == [4, 4, 2] * 2
    assert orders[0] != orders[1]
    assert all(sorted(order) == list(range(10)) for order in orders)


@pytest.mark.parametrize("schedule", FALLING)
def test_a_schedule_starts_at_one_and_never_rises(schedule):
    factors = [FALLING[schedule](t) for t in np.linspace(0, 1, 50)]
    assert factors[0] == 1
    assert np.diff(factors).max() <= 0
    assert math.isclose(factors[-1], 0, abs_tol=1e-12)


@pytest.mark.parametrize("rule", SOLVERS)
def test_what_is_taken_and_put_back_goes_on_alike(rule):
    x = torch.linspace(-1, 1, 12).reshape(4, 3)

    def steps(net, opt, count):
        for _ in range(count):
            opt.step(net(x).square().sum(), RATE)

    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    opt = make(rule, net.parameters())
    steps(net, opt, 3)
    state = copy_state(net, [opt])
    steps(net, opt, 2)
    other = nn.Linear(3, 2)
    fresh = make(rule, other.parameters())
    restore_state(state, other, [fresh])
    steps(other, fresh, 2)
    assert torch.equal(net.weight, other.weight)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_early_stopping_keeps_the_best_epoch(table):
    X, y = table
    stop = EarlyStopping(X[150:], y[150:], patience=3)
    model = MLPClassifier((64,), learning_rate_init=0.03, learning_rate="constant", max_iter=60, random_state=0)
    model.set_callbacks(stop).fit(X[:150], y[:150])
    assert model.n_iter_ == len(stop.scores_) <= 60
    assert model.score(X[150:], y[150:]) == max(stop.scores_)


def test_the_stream_of_torch_is_not_touched(table):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    MLPClassifier((4,), max_iter=2, random_state=0).fit(*table)
    assert torch.equal(torch.rand(3), expected)


def test_threads_are_given_back(table):
    before = torch.get_num_threads()
    with twofold.config(threads=1):
        MLPClassifier((4,), max_iter=2, random_state=0).fit(*table)
    assert torch.get_num_threads() == before


def test_divergence_is_said(table):
    with pytest.raises(InputError, match=r"diverged in epoch \d+ with learning_rate_init=1e\+20"):
        MLPRegressor(hidden_layer_sizes=(8, 8), solver="sgd", learning_rate_init=1e20, max_iter=5, random_state=0).fit(
            *table
        )


# ---- torch's private ways and the documented ones ------------------------------------------------------------------


def test_the_documented_way_trains_like_the_private_one(monkeypatch):
    """Both end with the same weights, but for rounding; and both are really taken."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = MLPClassifier(hidden_layer_sizes=(7,), max_iter=4, batch_size=16, alpha=0.16, random_state=0)
    weights, calls = {}, []
    for way in (_torch_shim.Private, _torch_shim.Documented):

        class Counted(way):
            @staticmethod
            def adam(*args, _way=way, **options):
                calls.append(_way)
                _way.adam(*args, **options)

        monkeypatch.setattr(_torch_shim, "way", Counted)
        weights[way] = model.fit(X, y).weights_
    assert set(calls) == {_torch_shim.Private, _torch_shim.Documented}
    for name, one in weights[_torch_shim.Private].items():
        other = weights[_torch_shim.Documented][name]
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("missing", ["gradients", "adam"])
@pytest.mark.parametrize("error", [AttributeError, TypeError, RuntimeError])
def test_a_torch_without_the_private_way_is_used_by_the_documented_one(missing, error, monkeypatch):
    def gone(*args, **kwargs):
        raise error("not in this torch")

    monkeypatch.setattr(_torch_shim.Private, missing, staticmethod(gone))
    assert _torch_shim.choose_way() is _torch_shim.Documented


def test_a_private_way_that_gives_something_else_is_not_taken(monkeypatch):
    wrong = staticmethod(lambda loss, start, parameters: [torch.zeros_like(p) for p in parameters])
    monkeypatch.setattr(_torch_shim.Private, "gradients", wrong)
    assert _torch_shim.choose_way() is _torch_shim.Documented


def test_no_private_name_of_torch_outside_the_shim():
    folder = Path(_torch_shim.__file__).parent
    for path in folder.glob("*.py"):
        if path.name != "_torch_shim.py":
            names = [n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)]
            private = {n for n in names if n.startswith(("_fused", "_execution", "_foreach"))}
            assert not private, path
