"""Networks of dense layers, for classes and for numbers.

    a⁰ = x standardized,  aˡ = σ(aˡ⁻¹ Wˡ + bˡ),  last layer linear     minimize  mean loss + ½ alpha Σ‖Wˡ‖² / n
    classes: softmax cross-entropy, or logistic for two and for sets of labels
    numbers: half the squared error, or half the Poisson deviance of exp(output)

One epoch:  every batch of n rows  a step along the gradient, which automatic differentiation gives
References: Rumelhart, Hinton & Williams 1986; Srivastava et al. 2014 (dropout).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length
from torch import Tensor, nn
from torch.utils.data import DataLoader

from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.engine.local import engine_for
from twofold.core.estimator import fitting
from twofold.core.numerics.moments import column_moments
from twofold.core.params import Interval, Options, StrOptions
from twofold.core.types import Table, Weights
from twofold.deep._network import Standard, build_dense, check_layer_sizes, find_varying
from twofold.deep._rows import NetworkRows, read_loader
from twofold.deep._supervised import Classifier, Supervised
from twofold.deep._train import MAX_EVALUATIONS, NO_WEIGHTS, SOLVERS, PreviousFit, State, check_device

LAST_LAYER_FACTOR = 0.1  # of the usual first weights of the last layer, when it predicts standardized numbers


@dataclass(eq=False, repr=False)
class MLP(Supervised):
    """Base of the networks of dense layers: a column that never varies is not read."""

    columns_: Annotated[np.ndarray, "., >= 0, < d"] = field(init=False, repr=False)
    _allow_sparse: ClassVar[bool] = True
    _instead: ClassVar[dict[str, str]] = {
        "max_fun": f"max_iter sets how often the loss is evaluated, at most {MAX_EVALUATIONS:,} times. Leave it out."
    }
    _parameter_constraints: ClassVar[dict] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({*SOLVERS, "lbfgs"})],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="both")],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {math.inf})],
        "scale": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
    }

    _: KW_ONLY
    alpha: float = 1e-4
    learning_rate_init: float = 3e-3
    power_t: float = 0.5
    max_iter: int = 100
    shuffle: bool = True
    tol: float = 1e-4
    warm_start: bool = False
    momentum: float = 0.9
    nesterovs_momentum: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_iter_no_change: float = 10
    scale: bool = True
    dropout: float = 0.0

    @property
    def _dtype(self) -> Any:
        """Line searches need double precision."""
        return np.float64 if self.solver == "lbfgs" else np.float32

    def _build(self) -> Dense:
        return Dense(self.columns_, self.n_outputs_, self)

    def _select_columns(self, rows: NetworkRows, continues: bool, once: bool) -> NetworkRows:
        if self.solver == "lbfgs" and self.dropout:
            raise InputError(f'dropout={self.dropout} is noise, which solver="lbfgs" cannot take. Use solver="adam".')
        if not continues:
            everything = once or not self.scale
            self.columns_ = np.arange(rows.shape[1]) if everything else find_varying(rows)
        columns = self.columns_
        return rows if len(columns) == rows.shape[1] else rows.map(lambda X: np.take(X, columns, axis=1))

    def _record(self, end: State, continues: bool, n_rows: int) -> None:
        """Add the history of this fit to that of the fits before."""
        before = vars(self) if continues else {"loss_curve_": [], "validation_scores_": None, "t_": 0}
        curve, scores, read = (before[name] for name in ("loss_curve_", "validation_scores_", "t_"))
        held = "validation" in self.history_
        self.loss_curve_: list[float] = [*curve, *self.history_["objective"]]
        self.validation_scores_: list[float] | None = [*(scores or []), *self.history_["validation"]] if held else None
        self.best_validation_score_: float | None = -end.best if held else None
        self.best_loss_: float | None = None if held else end.best
        self.t_: int = read + (0 if self.solver == "lbfgs" else self.n_iter_ * n_rows)
        self._end = end._replace(weights=NO_WEIGHTS, kept=NO_WEIGHTS)

    def _add_history(self, earlier: dict[str, list[float]]) -> None:
        """Leave `history_` and `n_iter_` those of the last call, as in scikit-learn; `loss_curve_` has all."""

    def _previous_fit(self, once: bool) -> PreviousFit:
        score, loss = self.best_validation_score_, self.best_loss_
        best = (None if score is None else -score) if self.early_stopping else loss
        end = vars(self).get("_end", State(NO_WEIGHTS, NO_WEIGHTS))._replace(best=math.inf if best is None else best)
        return PreviousFit(len(self.loss_curve_), self.t_, end if once else end._replace(memory=NO_WEIGHTS))

    def _learn_scales(self, module: Any, rows: NetworkRows, y: np.ndarray, w: np.ndarray | None, once: bool) -> None:
        if self.scale:
            moments = rows.moments(w)
            module.inputs.learn(moments.mean, moments.variance, 1.0 if once else np.inf)  # a stream may still vary

    @property
    def coefs_(self) -> list[np.ndarray]:
        """Weights (a,b) of each layer: of X itself, a row of zeros for a column that never varied."""
        return self._layers()[0]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """Intercepts (b,) of each layer, of X itself."""
        return self._layers()[1]

    def _layers(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Weights and intercepts of layers that take X and give predictions, with nothing before or after."""
        if "weights_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no coefs_ and no intercepts_ before it is fitted.")
        names = [name[: -len(".weight")] for name in self.weights_ if name.startswith("layers.") and "weight" in name]
        coefs = [self.weights_[f"{name}.weight"].T.copy() for name in names]
        intercepts = [self.weights_[f"{name}.bias"].copy() for name in names]
        coefs[0] /= self.weights_["inputs.scale"][:, None]
        intercepts[0] -= self.weights_["inputs.mean"] @ coefs[0]
        first = np.zeros((self.n_features_in_, coefs[0].shape[1]), coefs[0].dtype)
        first[self.columns_] = coefs[0]
        coefs[0] = first
        coefs[-1] = coefs[-1] * self.weights_["outputs.scale"]
        intercepts[-1] = intercepts[-1] * self.weights_["outputs.scale"] + self.weights_["outputs.mean"]
        return coefs, intercepts

    @property
    def n_layers_(self) -> int:
        """Layers, with that of the columns and that of the outputs."""
        return len(self._layers()[0]) + 1

    @property
    def loss_(self) -> float:
        """The loss of the last epoch."""
        return self.loss_curve_[-1]


class Dense(nn.Module):
    """The columns that vary, standardized, layers, and outputs on the scale of the targets."""

    columns: Tensor

    def __init__(self, columns: np.ndarray, outputs: int, options: Any):
        super().__init__()
        sizes = [len(columns), *check_layer_sizes("hidden_layer_sizes", options.hidden_layer_sizes), outputs]
        self.register_buffer("columns", torch.from_numpy(columns), persistent=False)
        self.inputs = Standard(len(columns))
        self.layers = build_dense(sizes, options.activation, options.dropout)
        self.outputs = Standard(outputs)

    def standardize(self, x: Tensor) -> Tensor:  # (n,c) -> (n,c), standardized
        return self.inputs(x)

    def raw(self, x: Tensor) -> Tensor:  # (n,c) -> (n,outputs), both standardized
        return self.layers(x)

    def forward(self, x: Tensor) -> Tensor:  # (n,d) -> (n,outputs)
        return self.outputs.back(self.raw(self.standardize(x.index_select(1, self.columns))))


@dataclass(eq=False, repr=False)
class MLPClassifier(MLP, Classifier):
    """A network of dense layers that predicts classes.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(128,)
        Units of each hidden layer; () is logistic regression.
    activation : {"relu", "logistic", "tanh", "identity"}, default="relu"
    solver : {"adam", "sgd", "lbfgs", "adagrad", "adamw"}, default="adam"
        "lbfgs" uses all rows in every step, and is fast for small tables. With "adamw" the effect of `alpha` does not
        depend on the gradient's scale.
    alpha : float, default=1e-4
        Weight of ½‖W‖² over the rows of a batch, which is added to its mean loss; intercepts are free.
    batch_size : int or "auto", default=64
        Rows of a gradient step; "auto" is 200, or all if there are fewer.
    learning_rate : {"constant", "invscaling", "adaptive", "cosine", "linear"}, default="cosine"
        How the length of the steps changes: never; with the rows t seen so far as 1 / (t + 1)^`power_t`; divided by 5
        whenever `n_iter_no_change` epochs have not been better; or from `learning_rate_init` to 0 over `max_iter`
        epochs, along half a cosine or a line. The second and the third are for "sgd".
    learning_rate_init : float, default=3e-3
        The length of the first step.
    power_t : float, default=0.5
    max_iter : int, default=100
        Epochs at most; iterations of "lbfgs".
    shuffle : bool, default=True
        Whether the batches of every epoch are drawn again.
    random_state : int, RandomState, Generator or None, default=None
    tol : float, default=1e-4
        Training ends when the loss of `n_iter_no_change` epochs in a row was not lower by this than the least before,
        or, with `early_stopping`, the score not higher. For "lbfgs", the largest slope at the end.
    warm_start : bool, default=False
        Whether `fit` begins with the weights of the last one.
    momentum : float, default=0.9
    nesterovs_momentum : bool, default=True
        Of "sgd".
    early_stopping : bool, default=False
        Whether training ends by the score on rows held out, and keeps the best weights. The callback
        :class:`EarlyStopping` takes rows of yours instead.
    validation_fraction : float, default=0.1
        Share of the rows held out, in which classes have the shares that they have in all.
    beta_1, beta_2, epsilon : float, default=0.9, 0.999, 1e-8
        Of "adam" and "adamw".
    n_iter_no_change : int or inf, default=10
    scale : bool, default=True
        Whether columns are scaled to mean 0 and variance 1 over the rows of the fit. False takes numbers as they are.
    dropout : float, default=0.0
        Share of the hidden units that are 0 in a training step.
    device : str, default="auto"
        "cpu", "cuda", or whichever is there.

    Attributes
    ----------
    classes_ : ndarray
    coefs_, intercepts_ : list of ndarray
        Weights (a,b) and intercepts (b,) of each layer, for X itself: the means and scales of the columns are in
        them, and rows of zeros for columns that never varied.
    loss_curve_, loss_, best_loss_
        The loss of every epoch with the part of `alpha`, of the last, and the least; the least is None with
        `early_stopping`.
    validation_scores_, best_validation_score_
        The accuracy on rows held out after every epoch, and the best, with `early_stopping`; None without.
    n_layers_, n_outputs_, out_activation_
        Layers, with that of the columns; numbers of the last; "softmax", or "logistic" for two classes and for labels.
    t_ : int
        Rows seen in training, each as often as it was.
    columns_ : ndarray
        The columns that the network reads: those that varied in the fit.
    weights_ : dict of str to ndarray
        Weights, intercepts and these columns' means and scales, by the names they have in `module_`.
    module_ : torch.nn.Module
        The network; its outputs are log-odds, one for two classes.
    history_, n_iter_, converged_
        The objective is `loss_curve_`, of the last fit alone.

    References
    ----------
    Rumelhart, Hinton & Williams (1986), *Nature* 323, 533-536. Kingma & Ba (2015), *ICLR*. Loshchilov & Hutter (2019),
    *ICLR*.

    Examples
    --------
    >>> from twofold import MLPClassifier, datasets
    >>> digits = datasets.digits()
    >>> model = MLPClassifier((64,), max_iter=20, random_state=0)
    >>> model.fit(digits.data[:1500], digits.target[:1500]).score(digits.data[1500:], digits.target[1500:]) > 0.9
    True
    """

    loss: ClassVar[str] = "log_loss"
    hidden_layer_sizes: int | tuple[int, ...] = (128,)
    activation: str = "relu"


@dataclass(eq=False, repr=False)
class MLPRegressor(RegressorMixin, MLP):
    """A network of dense layers that predicts numbers, one or several a row.

    Parameters
    ----------
    loss : {"squared_error", "poisson"}, default="squared_error"
        Half the squared error, or half the Poisson deviance of counts and rates, whose predictions are exp(output).
    hidden_layer_sizes, activation, solver, alpha, batch_size, learning_rate, learning_rate_init, power_t, max_iter, \
shuffle, random_state, tol, warm_start, momentum, nesterovs_momentum, early_stopping, validation_fraction, beta_1, \
beta_2, epsilon, n_iter_no_change, dropout, device
        As in :class:`MLPClassifier`; the score on rows held out is R².
    scale : bool, default=True
        Whether columns and targets have mean 0 and variance 1 in training. Losses and `tol` are in the units of the
        targets all the same; `tol` is relative to their variance where that is below 1.

    Attributes
    ----------
    coefs_, intercepts_, loss_curve_, loss_, best_loss_, validation_scores_, best_validation_score_, n_layers_, \
n_outputs_, t_, columns_, weights_, module_, history_, n_iter_, converged_
        As in :class:`MLPClassifier`; layers with these weights give y in its own units, or its logarithm. The
        objective is the mean over targets.
    out_activation_ : str
        "identity", or "exp" for Poisson.

    Examples
    --------
    >>> from twofold import MLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, size=(1000, 1))
    >>> model = MLPRegressor(hidden_layer_sizes=(64, 64), learning_rate_init=0.01, random_state=0)
    >>> model.fit(x, np.sin(2 * x[:, 0])).score(x, np.sin(2 * x[:, 0])) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict] = {"loss": [StrOptions({"squared_error", "poisson"})]}
    loss: str = "squared_error"
    hidden_layer_sizes: int | tuple[int, ...] = (128,)
    activation: str = "relu"

    @fitting
    def fit(self, X: Table | DataLoader, y: Any = None, sample_weight: Weights = None) -> MLPRegressor:
        """Learn from rows X (n,d) and their targets y (n,) or (n,t).

        X may also be the path of a file or folder of numbers, a dask array, or a torch DataLoader, whose pairs have y.
        """
        return self._fit_numbers(X, y, sample_weight, False)

    @available_if(lambda self: self.solver != "lbfgs")
    @fitting
    def partial_fit(self, X: Table, y: Any, sample_weight: Weights = None) -> MLPRegressor:
        """Train for one epoch on some rows, from where the last call ended.

        Means and scales of columns and targets are those of the first rows.
        """
        return self._fit_numbers(X, y, sample_weight, True)

    def _fit_numbers(self, X: Any, y: Any, sample_weight: Any, once: bool) -> MLPRegressor:
        check_device(self.device)
        if isinstance(X, DataLoader):
            X = read_loader(X)
            y = X.y if y is None else y
        if y is None:
            raise InputError("MLPRegressor requires y to be passed, but the target y is None.")
        continues = self._continues(once)
        rows, _ = self._rows(X, reset=not continues)
        y = check_array(y, ensure_2d=False, dtype=self._dtype, input_name="y")
        check_consistent_length(rows, y)
        if y.ndim > 2:
            raise InputError(f"y has shape {y.shape}; targets are numbers (n,) or rows of numbers (n, t).")
        if self.loss == "poisson" and y.min() < 0:
            raise InputError(f'y has {y.min():g}; loss="poisson" is for numbers of at least 0. Use "squared_error".')
        if continues and y.shape[1:] != self.target_shape_:
            raise InputError(f"y has rows of shape {y.shape[1:]}; those of the last fit were {self.target_shape_}.")
        self.target_shape_: tuple[int, ...] = y.shape[1:]
        self.n_outputs_ = math.prod(self.target_shape_)
        self._fit(X, y, sample_weight, rows, y.reshape(len(y), -1), once)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def out_activation_(self) -> str:
        return "exp" if self.loss == "poisson" else "identity"

    def _build(self) -> Dense:
        """A network that starts near the mean: with few rows its random part would remain."""
        module = super()._build()
        if self.scale:
            with torch.no_grad():
                for p in module.layers[-1].parameters():
                    p.mul_(LAST_LAYER_FACTOR)
        return module

    def _learn_scales(self, module: Any, rows: NetworkRows, y: np.ndarray, w: np.ndarray | None, once: bool) -> None:
        super()._learn_scales(module, rows, y, w, once)
        if self.scale and self.loss == "poisson":
            mean = np.average(y, axis=0, weights=w)
            module.outputs.mean.copy_(torch.from_numpy(np.log(np.where(mean > 0, mean, 1.0))))
        elif self.scale:
            blocks = as_blocks(np.ascontiguousarray(y))
            moments = column_moments(engine_for(blocks), blocks, w)
            module.outputs.learn(moments.mean, moments.variance, 1.0)

    def _goals(self, module: Any, targets: np.ndarray) -> np.ndarray:
        return targets if self.loss == "poisson" else module.outputs(torch.from_numpy(targets)).numpy()

    def _loss(self, out: Tensor, goal: Tensor, reduction: str) -> Tensor:
        if self.loss == "poisson":
            each = (torch.xlogy(goal, goal) - goal * out - goal + out.exp()).sum(dim=1)
        else:
            each = 0.5 * (out - goal).square().sum(dim=1)
        return each.mean() if reduction == "mean" else each

    def _parts(self, loss: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return loss, {} if self.loss == "poisson" or self.n_outputs_ == 1 else {"objective": loss / self.n_outputs_}

    def _unit(self, module: Any) -> float:
        return 1.0 if self.loss == "poisson" else float(module.outputs.scale.square().mean())

    def _judge(self, out: np.ndarray, goal: np.ndarray, w: np.ndarray | None) -> float:
        return float(r2_score(goal, np.exp(out) if self.loss == "poisson" else out, sample_weight=w))

    def predict(self, X: Table) -> np.ndarray:
        """Predictions (n,), or (n,t) where several targets were learned."""
        rows, _ = self._rows(X)
        out = self._through(lambda module, x: module(x), rows).astype(np.float64)
        out = np.exp(out) if self.loss == "poisson" else out
        return out.reshape(len(out), *self.target_shape_)
