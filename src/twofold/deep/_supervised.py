"""Networks that learn from targets: a part of the rows held out, the loss, and how classes are read.

One epoch:  every batch of n rows  a step along the gradient of the loss, which automatic differentiation gives
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_consistent_length
from torch import Tensor
from torch.utils.data import DataLoader

from twofold.core.checks import InputError, check_weights
from twofold.core.estimator import fitting
from twofold.core.seeds import seed_of
from twofold.core.types import Table, Weights
from twofold.deep._network import Network, standardize_by
from twofold.deep._rows import PIECE_ROWS, NetworkRows, read_loader
from twofold.deep._train import NEW_FIT, Player, check_device, train, train_by_lbfgs


class Supervised(Network):
    """Base of the networks with a target: a loss for each row, weighted; rows held out."""

    n_outputs_: int

    def _inputs(self, X: Any, **options: Any) -> tuple[NetworkRows, Any]:
        """X as the network takes it, and y if it was given."""
        return self._rows(X, **options)

    def _continues(self, once: bool) -> bool:
        """True if training begins with the weights of the last fit."""
        return (once or self.warm_start) and hasattr(self, "weights_")

    def _fit(self, X: Any, y: Any, sample_weight: Any, rows: NetworkRows, targets: np.ndarray, once: bool) -> None:
        """Train on rows and targets that are ready, from the start or from where the last fit ended."""
        earlier = self.history_ if once and hasattr(self, "weights_") else {}
        continues, seed, w = self._continues(once), seed_of(self.random_state), check_weights(sample_weight, len(rows))
        kept, held = self._split(targets, seed, once)
        rows = self._select_columns(rows, continues, once)
        module = self._copy_for_training() if continues else self._build_with(seed)
        if not continues:
            self._learn_scales(module, rows.some(kept), targets[kept], None if w is None else w[kept], once)
        rows = rows.map(standardize_by(module, self.device))  # of rows that are held once, not in every epoch
        data: list[Any] = [self._goals(module, targets), *([] if w is None else [w.astype(rows.dtype)])]

        def loss(x: Tensor, goal: Tensor, *weights: Any) -> tuple[Tensor, dict[str, Tensor]]:
            if w is None:
                return self._parts(self._loss(module.raw(x), goal, "mean"))
            total = weights[0].sum()
            mean = (weights[0] * self._loss(module.raw(x), goal, "none")).sum() / total.clamp(min=1e-30)
            loss, parts = self._parts(mean)
            return loss, {**parts, "rows": total}

        def judge() -> float:
            with torch.no_grad():
                device = next(module.parameters()).device
                parts = (heldout[a : a + PIECE_ROWS] for a in range(0, len(held), PIECE_ROWS))
                out = torch.cat([module.raw(torch.from_numpy(part).to(device)).cpu() for part in parts])
            return self._judge(out.double().numpy(), data[0][held], None if w is None else w[held])

        lbfgs, heldout = self.solver == "lbfgs", rows.some(held)
        options: dict[str, Any] = {} if lbfgs else {"judge": judge if len(held) else None, "once": once}
        end = self._train(
            module,
            [Player(list(module.parameters()), loss, penalized=True)],
            (rows.some(kept), *(D[kept] for D in data)),
            seed,
            method=train_by_lbfgs if lbfgs else train,
            before=self._previous_fit(once) if continues else NEW_FIT,
            unit=self._unit(module),
            X=X,
            y=y,
            **options,
        )
        self._record(end, continues, len(rows) - len(held))
        self._add_history(earlier)

    def _select_columns(self, rows: NetworkRows, continues: bool, once: bool) -> NetworkRows:
        """The columns that the network reads."""
        return rows

    def _copy_for_training(self) -> Any:
        """The network of the last fit, to be trained further."""
        try:
            return self._copy()
        except RuntimeError as error:
            raise InputError(
                f"{type(self).__name__} continues its last fit, whose layers had other sizes. Set warm_start=False, "
                "or the sizes that it had."
            ) from error

    def _split(self, targets: np.ndarray, seed: int, once: bool) -> tuple[Any, Any]:
        """Rows to learn from, and those held out for early stopping."""
        if not self.early_stopping or self.solver == "lbfgs":
            return slice(None), np.zeros(0, np.int64)
        if once:
            raise InputError("partial_fit does not support early_stopping=True: it sees one batch. Set it to False.")
        n = len(targets)
        if math.ceil(self.validation_fraction * n) < 2:
            raise InputError(f"validation_fraction={self.validation_fraction} of {n} rows is less than 2. Raise it.")
        options = {"test_size": self.validation_fraction, "random_state": seed % 2**32}
        try:
            strata = targets if is_classifier(self) and targets.ndim == 1 else None
            kept, held = train_test_split(np.arange(n), stratify=strata, **options)
        except ValueError:  # a class of one row, or more classes than rows held out
            kept, held = train_test_split(np.arange(n), **options)
        return np.sort(kept), np.sort(held)

    def _learn_scales(self, module: Any, rows: NetworkRows, y: np.ndarray, w: np.ndarray | None, once: bool) -> None:
        """Take means and scales from the rows to learn from; those of a stream that is still may yet vary."""
        module.learn(rows, w, 1.0 if once else np.inf)

    def _goals(self, module: Any, targets: np.ndarray) -> np.ndarray:
        """The targets as the layers should give them."""
        raise NotImplementedError

    def _loss(self, out: Tensor, goal: Tensor, reduction: str) -> Tensor:
        """The loss of each row ("none"), or their mean ("mean")."""
        raise NotImplementedError

    def _parts(self, loss: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """A batch's loss, and the parts to note."""
        return loss, {}

    def _unit(self, module: Any) -> float:
        """A loss of 1 in training, in the units of the targets."""
        return 1.0

    def _judge(self, out: np.ndarray, goal: np.ndarray, w: np.ndarray | None) -> float:
        """The score of outputs for rows held out."""
        raise NotImplementedError


class Classifier(ClassifierMixin, Supervised):
    """Base of the networks for classes: log-odds out, one for two classes, one each for labels of a set."""

    classes_: Annotated[np.ndarray, "., text"]
    out_activation_: str

    @fitting
    def fit(self, X: Table | DataLoader, y: Any = None, sample_weight: Weights = None) -> Self:
        """Learn from X, a row or an image each, and their classes y (n,), or sets of labels y (n,L) of 0 and 1.

        X may also be the path of a file or folder of numbers, a dask array, or a torch DataLoader, whose pairs have y.
        A table y (n,L) of probabilities is a soft target: of the classes 0 … L − 1 if every row has the sum 1, else of
        independent labels.
        """
        return self._fit_classes(X, y, sample_weight, None, False)

    @available_if(lambda self: self.solver != "lbfgs")
    @fitting
    def partial_fit(
        self, X: Table | DataLoader, y: Any = None, sample_weight: Weights = None, classes: Any = None
    ) -> Self:
        """Train for one epoch on some rows, from where the last call ended; the first call names all `classes`.

        Means and scales of the columns are those of the first rows.
        """
        if isinstance(X, DataLoader):
            X = read_loader(X)
            y = X.y if y is None else y
        if classes is None and not hasattr(self, "weights_") and count_columns(y) == 1:
            raise InputError("classes must be passed on the first call to partial_fit.")
        if classes is not None and hasattr(self, "weights_") and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"classes={classes!r} is not the same as on last call to partial_fit, was: {self.classes_}. Leave it "
                "out, or begin with a new model."
            )
        return self._fit_classes(X, y, sample_weight, classes, True)

    def _fit_classes(self, X: Any, y: Any, sample_weight: Any, classes: Any, once: bool) -> Self:
        check_device(self.device)
        continues = self._continues(once)
        if isinstance(X, DataLoader):
            X = read_loader(X)
            y = X.y if y is None else y
        rows, y = self._read_both(X, y, reset=not continues)
        found = np.arange(y.shape[1]) if y.ndim == 2 else np.unique(y)
        shares = y.ndim == 2 and type_of_target(y) != "multilabel-indicator"
        shares = shares and bool(np.allclose(y.sum(axis=1), 1, rtol=0, atol=1e-6))  # of classes that exclude each other
        many = y.ndim == 2 and not shares
        if not continues:
            self.classes_ = found if classes is None or many else np.unique(classes)
            self.n_outputs_ = 1 if len(self.classes_) == 2 and y.ndim == 1 else len(self.classes_)
            self.out_activation_ = "logistic" if many or self.n_outputs_ == 1 else "softmax"
        known = np.isin(found, self.classes_).all() and many == self._many_labels
        if not known or (continues and not once and len(found) < len(self.classes_)):
            raise InputError(
                f"`y` has classes not in `self.classes_`, or not all of them: it has {found}, the fit before had "
                f"{self.classes_}. Set warm_start=False, or name all in the first partial_fit's classes=."
            )
        targets = y if y.ndim == 2 else np.searchsorted(self.classes_, y)
        self._fit(X, y, sample_weight, rows, targets, once)
        return self

    def _read_both(self, X: Any, y: Any, reset: bool) -> tuple[NetworkRows, np.ndarray]:
        """X as the network takes it, and classes (n,), or labels (n,L)."""
        if sparse.issparse(y) or (isinstance(y, (np.ndarray, list, tuple)) and count_columns(y) > 1):
            rows, _ = self._inputs(X, reset=reset)
            y = check_array(y, accept_sparse="csr", dtype=None, input_name="y")
            y = y.toarray() if sparse.issparse(y) else y
            check_consistent_length(rows, y)
            if type_of_target(y) != "multilabel-indicator" and not (
                y.dtype.kind == "f" and np.min(y) >= 0 and np.max(y) <= 1
            ):
                raise InputError(
                    f"y has shape {y.shape}, and is no table of 0 and 1, or of probabilities, a column a label. Give "
                    "one class a row, (n,), or fit a model for each column."
                )
        else:
            rows, y = self._inputs(X, reset=reset, y=y)
            check_classification_targets(y)
        return rows, y

    @property
    def _many_labels(self) -> bool:
        return self.out_activation_ == "logistic" and self.n_outputs_ > 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _goals(self, module: Any, targets: np.ndarray) -> np.ndarray:
        real = self.out_activation_ == "logistic" or targets.ndim == 2
        return targets.astype(self._dtype if real else np.int64)

    def _loss(self, out: Tensor, goal: Tensor, reduction: str) -> Tensor:
        if self._many_labels:
            each = F.binary_cross_entropy_with_logits(out, goal, reduction="none").sum(dim=1)
            return each.mean() if reduction == "mean" else each
        if self.out_activation_ == "logistic":
            return F.binary_cross_entropy_with_logits(out[:, 0], goal, reduction=reduction)
        return F.cross_entropy(out, goal, reduction=reduction)

    def _judge(self, out: np.ndarray, goal: np.ndarray, w: np.ndarray | None) -> float:
        if self.out_activation_ == "softmax":
            guess, goal = out.argmax(axis=1), goal.argmax(axis=1) if goal.ndim == 2 else goal
        else:
            guess = (out > 0).astype(int).reshape(goal.shape)
        return float(accuracy_score(np.rint(goal).astype(int), guess, sample_weight=w))

    def decision_function(self, X: Table) -> np.ndarray:
        """Log-odds of the second of two classes (n,), or scores of all classes or labels (n,K)."""
        rows, _ = self._inputs(X)
        out = self._through(lambda module, x: module(x), rows).astype(np.float64)
        return out[:, 0] if self.out_activation_ == "logistic" and self.n_outputs_ == 1 else out

    def predict_proba(self, X: Table) -> np.ndarray:
        """Probabilities of the classes, or of each label for itself (n,K)."""
        out = self._score_all(X)
        return expit(out) if self._many_labels else softmax(out, axis=1)

    def predict_log_proba(self, X: Table) -> np.ndarray:
        """Their logarithms (n,K), which stay finite where a probability is too small for a number."""
        out = self._score_all(X)
        return log_expit(out) if self._many_labels else log_softmax(out, axis=1)

    def _score_all(self, X: Table) -> np.ndarray:
        """Scores (n,K); of two classes, the first has the score 0."""
        out = self.decision_function(X)
        return np.stack([np.zeros_like(out), out], axis=1) if out.ndim == 1 else out

    def predict(self, X: Table) -> np.ndarray:
        """The likeliest class of each row, or its labels (n,L) with a probability above a half."""
        out = self.decision_function(X)
        if self._many_labels:
            return (out > 0).astype(int)
        return self.classes_[(out > 0).astype(int) if out.ndim == 1 else out.argmax(axis=1)]


def count_columns(y: Any) -> int:
    """The number of columns of a table, else 1."""
    try:
        shape = np.shape(y)
    except ValueError:  # lists of several lengths
        return 1
    return shape[1] if len(shape) == 2 else 1
