"""Topics put together and taken apart by hand, as a reader sees fit.

merge    p(word | c) = Σ_g w_g p(word | g) / Σ_g w_g      over the topics g of a group, w the weight of each
split    x_ij u_ic z_cj / Σ_c' u_ic' z_c'j                 the words that topic c has in the documents, fitted again
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.types import Seed, Table


class Mergeable:
    """A model whose topics are the rows of `components_`; its other attributes by topic are sums."""

    components_: np.ndarray
    _component_axes: ClassVar[dict[str, int]]

    def merge(self, *groups: Sequence[int], weight: Any = None) -> Self:
        """A copy of the fitted model in which the topics of each group are one.

        Parameters
        ----------
        *groups : sequences of int
            Numbers of topics, two at least in each group. The new topic has the place of its first one.
        weight : array of shape (k,), optional
            The weight of each topic; by default its share of the words, and with NMF, which has none, the same for all.

        Examples
        --------
        >>> from twofold import PLSA
        >>> X = np.kron(np.eye(3), np.ones((4, 2))) * 5                       # three topics of two words each
        >>> merged = PLSA(3, random_state=0).fit(X).merge([0, 2])
        >>> (merged.components_ > 0.1).sum(axis=1).tolist()
        [4, 2]
        """
        check_is_fitted(self)
        k = len(self.components_)
        goal = np.arange(k)
        for group in groups:
            numbers = np.unique(np.asarray(group))
            if numbers.dtype.kind not in "iu" or len(numbers) < 2 or numbers[0] < 0 or numbers[-1] >= k:
                raise InputError(f"{list(group)} is no group of topics: give two or more numbers from 0 to {k - 1}.")
            if (goal[numbers] != numbers).any() or np.isin(goal[np.setdiff1d(np.arange(k), numbers)], numbers).any():
                raise InputError(f"{list(group)}: a topic is in two groups. Make one group of them.")
            goal[numbers] = numbers[0]
        places, of = np.unique(goal, return_inverse=True)
        own = self._topic_weights() if weight is None else np.asarray(weight, dtype=np.float64)
        M = np.zeros((len(places), k))
        M[of, np.arange(k)] = np.maximum(own, 1e-300)
        Z = (M / M.sum(axis=1, keepdims=True)) @ self.components_
        return self._with_topics(Z, {name: np.bincount(of, weights=value) for name, value in self._sums().items()})

    def split(self, topic: int, X: Table, n_topics: int = 2, *, random_state: Seed = 0) -> Self:
        """A copy of the fitted model in which one topic is several: its words in the documents X are fitted again.

        Parameters
        ----------
        topic : int
        X : array or sparse array of shape (n, d)
            Documents, as for `fit`.
        n_topics : int, default=2
            The topics it becomes. The first has its place, the others come last.
        random_state : int, RandomState, Generator or None, default=0
        """
        check_is_fitted(self)
        k = len(self.components_)
        if not 0 <= topic < k or n_topics < 2:
            raise InputError(
                f"topic={topic}, n_topics={n_topics}: give a topic from 0 to {k - 1}, and two topics at least."
            )
        part = clone(self).set_params(n_components=n_topics, random_state=random_state, init=None)
        U = np.asarray(self.transform(X))  # type: ignore[attr-defined]
        part.fit(take_topic(sparse.csr_array(X), U, self.components_, topic))
        share = part._topic_weights() / part._topic_weights().sum()
        order = np.argsort(-share, kind="stable")
        new, share = part.components_[order], share[order]
        Z = np.vstack([self.components_, new[1:]])
        Z[topic] = new[0]
        sums = {name: np.append(value, value[topic] * share[1:]) for name, value in self._sums().items()}
        for value in sums.values():
            value[topic] *= share[0]
        return self._with_topics(Z, sums)

    def _sums(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(getattr(self, name)) for name in self._component_axes if name != "components_"}

    def _topic_weights(self) -> np.ndarray:
        weight = getattr(self, "topic_weight_", getattr(self, "topic_share_", None))
        return np.ones(len(self.components_)) if weight is None else np.asarray(weight, dtype=np.float64)

    def _with_topics(self, Z: np.ndarray, sums: dict[str, np.ndarray]) -> Self:
        model = copy.copy(self)
        model.n_components = len(Z)  # type: ignore[attr-defined]
        if hasattr(self, "n_components_"):
            model.n_components_ = len(Z)  # type: ignore[attr-defined]
        for name, value in {"components_": Z, **sums}.items():
            setattr(model, name, np.ascontiguousarray(value, dtype=getattr(self, name).dtype))
        return model


def take_topic(X: sparse.csr_array, U: np.ndarray, Z: np.ndarray, topic: int) -> sparse.csr_array:
    """The part of each cell of X (n,d) that comes from a topic, by codes U (n,k) and topics Z (k,d)."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    own = U[rows, topic] * Z[topic, X.indices]
    total = np.zeros(len(own))
    for c in range(len(Z)):
        total += U[rows, c] * Z[c, X.indices]
    part = X.data * np.divide(own, total, out=np.zeros(len(own)), where=total > 0)
    return sparse.csr_array((part, X.indices, X.indptr), shape=X.shape)
