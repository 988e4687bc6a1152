"""What models with a likelihood share: scores, information criteria, and the use of joint densities.

A mixture or a classifier gives `_joint()`: a function of rows and the state it needs, such that
joint(X, *state)[i, c] = log p(x_i, c). Everything a user asks about new rows follows from it, in log space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.multiclass import check_classification_targets

from twofold.core.checks import InputError
from twofold.core.estimator import Model
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Block, Seed, Table, Weights


class Density(Model):
    """A model with `score_samples`, the log-density of rows, and `_n_parameters`."""

    _heldout_unit = "the log-density of a row"
    score_samples: Callable[..., Any]
    _n_parameters: Callable[[], int]

    def score(self, X: Table, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def bic(self, X: Table) -> float:
        """Bayesian information criterion on X, −2 log p(X) + κ log n for κ free parameters: the lower the better.

        Textbooks that write −log p(X) + ½ κ log n have half of it, with the same minimum.
        """
        logp = self.score_samples(X)
        return float(-2 * logp.sum() + self._n_parameters() * np.log(len(logp)))

    def aic(self, X: Table) -> float:
        """Akaike information criterion on X, −2 log p(X) + 2κ for κ free parameters: the lower the better.

        Textbooks that write −log p(X) + κ have half of it, with the same minimum.
        """
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())


class MixtureDensity(DensityMixin, Density):
    """A mixture: every row has components responsible for it."""

    score = Density.score  # before that of DensityMixin, which is empty
    _joint: Callable[[], tuple[Any, ...]]

    def score_samples(self, X: Table) -> np.ndarray:
        """The log-density of each row, over its observed cells."""
        return self._rowwise(_total, X, *self._joint())

    def predict_proba(self, X: Table) -> np.ndarray:
        """The responsibility of each component for each row."""
        return self._rowwise(_share, X, *self._joint())

    def predict(self, X: Table) -> np.ndarray:
        """The component most responsible for each row."""
        return self._rowwise(_place, X, *self._joint(), opaque=True)

    def _draw_components(
        self, weights: np.ndarray, n_samples: int, random_state: Seed
    ) -> tuple[np.random.Generator, np.ndarray]:
        """A generator to go on with, and the components of new rows in ascending order."""
        if n_samples < 1:
            raise InputError(f"n_samples={n_samples}: one row or more can be drawn.")
        model: Any = self
        rng = generator(seed_of(model.random_state if random_state is None else random_state))
        return rng, np.sort(rng.choice(len(weights), size=n_samples, p=weights / weights.sum()))

    def fit_predict(self, X: Table, y: Any = None, sample_weight: Weights = None) -> np.ndarray:
        """Fit, then the component of each row."""
        model: Any = self
        return model.fit(X, sample_weight=sample_weight).predict(X)


class ClassDensity(Model):
    """A classifier by Bayes' rule."""

    classes_: np.ndarray
    _joint: Callable[[], tuple[Any, ...]]

    def _read_classes(self, X: Table, y: Any, sample_weight: Weights) -> tuple[Any, Any, np.ndarray, np.ndarray]:
        """Check the arguments of a fit: blocks, weights or None, the classes, and the number of each row's class."""
        blocks, y = self._blocks(X, y=y, reset=True, min_rows=2)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        return blocks, self._weights(blocks, sample_weight), classes, labels

    def predict_log_proba(self, X: Table) -> np.ndarray:
        """The log-probability of each class for each row."""
        return self._rowwise(_log_share, X, *self._joint())

    def predict_proba(self, X: Table) -> np.ndarray:
        """The probability of each class for each row."""
        return self._rowwise(_share, X, *self._joint())

    def predict(self, X: Table) -> np.ndarray:
        """The most probable class of each row."""
        joint = self._joint()
        return self._rowwise(_label, X, self.classes_, *joint, opaque=True)


def safe_log(share: np.ndarray) -> np.ndarray:
    """Return the logarithm of shares, those of zero as 1e-300."""
    return np.log(np.maximum(share, 1e-300))


def _total(X: Block, joint: Callable[..., Any], *state: Any) -> np.ndarray:
    return logsumexp(joint(X, *state), axis=1)


def _log_share(X: Block, joint: Callable[..., Any], *state: Any) -> np.ndarray:
    return log_softmax(joint(X, *state), axis=1)


def _share(X: Block, joint: Callable[..., Any], *state: Any) -> np.ndarray:
    return np.exp(_log_share(X, joint, *state))


def _place(X: Block, joint: Callable[..., Any], *state: Any) -> np.ndarray:
    return np.argmax(joint(X, *state), axis=1)


def _label(X: Block, classes: np.ndarray, joint: Callable[..., Any], *state: Any) -> np.ndarray:
    return classes[_place(X, joint, *state)]
