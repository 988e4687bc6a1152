"""Networks of dense layers, for classes and for numbers.

    a⁰ = x standardized,  aˡ = σ(Wˡ aˡ⁻¹ + bˡ),  last layer linear     minimize the mean loss + ½λ Σ‖Wˡ‖²
    classes: softmax cross-entropy, or logistic for two      numbers: half the squared error

One epoch:  every batch  a step along the gradient, which automatic differentiation gives
References: Rumelhart, Hinton & Williams 1986; Srivastava et al. 2014 (dropout).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length
from torch import Tensor, nn

from twofold.core.checks import InputError, check_weights
from twofold.core.data.blocks import Blocks
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Seed, Table, Weights
from twofold.deep._network import (
    ACTIVATIONS,
    ROWS,
    TRAINING,
    Network,
    Standard,
    build_dense,
    check_layer_sizes,
    find_varying,
)
from twofold.deep._train import Player


class Supervised(Network):
    """What all networks with a target share: a loss a row, weighted."""

    def _outputs(self) -> int:
        raise NotImplementedError

    def _inputs(self, X: Any, **options: Any) -> tuple[Blocks, np.ndarray, Any]:
        """X as the network takes it, with the blocks it came from, and y if it was given."""
        return self._rows(X, **options)

    def _fit(self, X: Any, y: Any, sample_weight: Any, blocks: Blocks, rows: np.ndarray, targets: np.ndarray) -> None:
        """Train on rows and targets that are ready."""
        seed, w = self._seed(), check_weights(sample_weight, len(rows))
        module = self._fresh(seed)
        module.learn(rows, w)
        with torch.no_grad():
            for part in torch.from_numpy(rows).split(ROWS):  # once, not in every epoch anew; rows are a copy of X
                part.copy_(module.prepared(part))
        goals = self._goals(module, targets, w)
        weights = [] if w is None else [(w / w.mean()).astype(np.float32)]

        def loss(x: Tensor, goal: Tensor, *rest: Any) -> tuple[Tensor, dict[str, Tensor]]:
            if w is None:
                return self._loss(module.raw(x), goal, "mean"), {}
            return (rest[0] * self._loss(module.raw(x), goal, "none")).mean(), {}

        self._train(module, [Player(list(module.parameters()), loss)], (rows, goals, *weights), blocks, seed, X=X, y=y)

    def _goals(self, module: Any, targets: np.ndarray, w: np.ndarray | None) -> np.ndarray:
        """The targets as the layers should give them."""
        raise NotImplementedError

    def _loss(self, out: Tensor, goal: Tensor, reduction: str) -> Tensor:
        """The loss of each row ("none"), or their mean ("mean")."""
        raise NotImplementedError


class Classifier(ClassifierMixin, Supervised):
    """What all networks for classes share: log-odds out, one for two classes."""

    classes_: np.ndarray

    @fitting
    def fit(self, X: Table, y: Any, sample_weight: Weights = None) -> Self:
        """Learn from X, a row or an image each, and their classes y (n,)."""
        blocks, rows, y = self._inputs(X, reset=True, y=y)
        check_classification_targets(y)
        self.classes_, targets = np.unique(y, return_inverse=True)
        self._fit(X, y, sample_weight, blocks, rows, targets)
        return self

    def _outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _goals(self, module: Any, targets: np.ndarray, w: np.ndarray | None) -> np.ndarray:
        return targets.astype(np.float32 if len(self.classes_) == 2 else np.int64)

    def _loss(self, out: Tensor, goal: Tensor, reduction: str) -> Tensor:
        if len(self.classes_) == 2:
            return F.binary_cross_entropy_with_logits(out[:, 0], goal, reduction=reduction)
        return F.cross_entropy(out, goal, reduction=reduction)

    def decision_function(self, X: Table) -> np.ndarray:
        """Log-odds of the second of two classes (n,), or scores of all classes (n,K)."""
        _, rows, _ = self._inputs(X)
        out = self._through(lambda module, x: module(x), rows).astype(np.float64)
        return out[:, 0] if len(self.classes_) == 2 else out

    def predict_proba(self, X: Table) -> np.ndarray:
        """Probabilities of the classes (n,K)."""
        out = self.decision_function(X)
        return softmax(np.stack([np.zeros_like(out), out], axis=1) if out.ndim == 1 else out, axis=1)

    def predict(self, X: Table) -> np.ndarray:
        """The likeliest class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class MLP(Supervised):
    """What the classifier and the regressor of dense layers share: a column that never varies is not looked at."""

    columns_: np.ndarray

    _parameter_constraints: ClassVar[dict] = {
        "hidden": ["array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        **TRAINING,
    }

    def __init__(
        self,
        hidden: tuple[int, ...] = (128,),
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        optimizer: str = "adam",
        learning_rate: float = 3e-3,
        schedule: str = "cosine",
        weight_decay: float = 1e-4,
        batch_size: int = 64,
        max_iter: int = 100,
        device: str = "auto",
        random_state: Seed = None,
    ):
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def _fit(self, X: Any, y: Any, sample_weight: Any, blocks: Blocks, rows: np.ndarray, targets: np.ndarray) -> None:
        self.columns_ = find_varying(rows)
        seen = rows if len(self.columns_) == rows.shape[1] else np.take(rows, self.columns_, axis=1)
        super()._fit(X, y, sample_weight, blocks, seen, targets)

    def _build(self) -> Dense:
        return Dense(self.columns_, self._outputs(), self)


class Dense(nn.Module):
    """The columns that vary, standardized, layers, and outputs on the scale of the targets."""

    columns: Tensor

    def __init__(self, columns: np.ndarray, outputs: int, options: MLP):
        super().__init__()
        sizes = [len(columns), *check_layer_sizes("hidden", options.hidden), outputs]
        self.register_buffer("columns", torch.from_numpy(columns), persistent=False)
        self.inputs = Standard(len(columns))
        self.layers = build_dense(sizes, options.activation, options.dropout)
        self.outputs = Standard(outputs)

    def learn(self, rows: np.ndarray, w: np.ndarray | None) -> None:
        """Means and scales of the columns that vary."""
        self.inputs.learn(rows, w)

    def prepared(self, x: Tensor) -> Tensor:  # (n,c) -> (n,c), standardized
        return self.inputs(x)

    def raw(self, x: Tensor) -> Tensor:  # (n,c) -> (n,outputs), both standardized
        return self.layers(x)

    def forward(self, x: Tensor) -> Tensor:  # (n,d) -> (n,outputs)
        return self.outputs.back(self.raw(self.prepared(x.index_select(1, self.columns))))


class MLPClassifier(Classifier, MLP):
    """A network of dense layers that tells classes apart.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        Units of each hidden layer; () is logistic regression.
    activation : {"relu", "sigmoid", "tanh", "linear"}, default="relu"
    dropout : float, default=0.0
        Share of the hidden units that are silent in a training step.
    optimizer : {"adam", "sgd", "momentum", "nesterov", "adagrad"}, default="adam"
    learning_rate : float, default=3e-3
    schedule : {"cosine", "linear", "constant"}, default="cosine"
        How the learning rate falls from step to step.
    weight_decay : float, default=1e-4
        Weight of ½‖W‖² in training; biases are free. With adam it is decoupled from the gradient's scale.
    batch_size : int, default=64
    max_iter : int, default=100
        Epochs.
    device : str, default="auto"
        "cpu", "cuda", or whichever is there.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    columns_ : ndarray
        The columns that the network looks at: those that varied in the fit.
    weights_ : dict of str to ndarray
        Weights, biases and these columns' means and scales, by the names they have in `module_`.
    module_ : torch.nn.Module
        The network; its outputs are log-odds, one for two classes.
    history_, n_iter_, converged_
        The objective is the mean cross-entropy of an epoch's batches.

    References
    ----------
    Rumelhart, Hinton & Williams (1986), *Nature* 323, 533-536. Kingma & Ba (2015), *ICLR*. Loshchilov & Hutter (2019),
    *ICLR*.

    Examples
    --------
    >>> from twofold import MLPClassifier, datasets
    >>> digits = datasets.digits()
    >>> model = MLPClassifier((64,), max_iter=20, random_state=0).fit(digits.data[:1500], digits.target[:1500])
    >>> model.score(digits.data[1500:], digits.target[1500:]) > 0.9
    True
    """


class MLPRegressor(RegressorMixin, MLP):
    """A network of dense layers that predicts numbers, one or several a row.

    Its parameters are those of :class:`MLPClassifier`; the objective is half the mean squared error of the targets,
    which are standardized for the training.

    Attributes
    ----------
    columns_, weights_, module_, history_, n_iter_, converged_
        As in :class:`MLPClassifier`; the module's outputs are predictions.

    Examples
    --------
    >>> from twofold import MLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, size=(1000, 1))
    >>> model = MLPRegressor((64, 64), learning_rate=0.01, random_state=0).fit(x, np.sin(2 * x[:, 0]))
    >>> model.score(x, np.sin(2 * x[:, 0])) > 0.99
    True
    """

    target_shape_: tuple[int, ...]

    @fitting
    def fit(self, X: Table, y: Any, sample_weight: Weights = None) -> MLPRegressor:
        """Learn from rows X (n,d) and their targets y (n,) or (n,t)."""
        if y is None:
            raise InputError("MLPRegressor requires y to be passed, but the target y is None.")
        blocks, rows, _ = self._rows(X, reset=True)
        y = check_array(y, ensure_2d=False, dtype=np.float32, input_name="y")
        check_consistent_length(rows, y)
        if y.ndim > 2:
            raise InputError(f"y has shape {y.shape}; targets are numbers (n,) or rows of numbers (n, t).")
        self.target_shape_ = y.shape[1:]
        self._fit(X, y, sample_weight, blocks, rows, y.reshape(len(y), -1))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _outputs(self) -> int:
        return math.prod(self.target_shape_)

    def _goals(self, module: Any, targets: np.ndarray, w: np.ndarray | None) -> np.ndarray:
        module.outputs.learn(targets, w, still=1.0)
        return module.outputs(torch.from_numpy(targets)).numpy()

    def _loss(self, out: Tensor, goal: Tensor, reduction: str) -> Tensor:
        return 0.5 * (F.mse_loss(out, goal) if reduction == "mean" else (out - goal).square().mean(dim=1))

    def predict(self, X: Table) -> np.ndarray:
        """Predictions (n,), or (n,t) where several targets were learned."""
        _, rows, _ = self._rows(X)
        out = self._through(lambda module, x: module(x), rows).astype(np.float64)
        return out.reshape(len(out), *self.target_shape_)
