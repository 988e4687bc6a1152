"""The criteria by which settings are compared.

    evidence        the log-probability of the data, the parameters integrated out (Laplace); the largest is best
    gavish-donoho   the residual, and the threshold for every direction kept; the smallest is best
    icl             BIC of the rows and their clusters; the smallest is best
    bic, aic        the penalized likelihood of the data of the fit; the smallest is best
    heldout         the score of predicted hidden cells in new rows, over folds; the largest is best
    stability       the agreement of two fits to disjoint halves, 0 by chance and 1 when equal; the largest is best

A model may prefer one of them (`Model._criterion`) and give the reason; for others "auto" is BIC if there is one, else
the held-out score. References: Minka 2000; Gavish & Donoho 2014; Biernacki, Celeux & Govaert 2000; Schwarz 1978; Akaike
1974; Ben-Hur, Elisseeff & Guyon 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.base import clone, is_classifier, is_regressor

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, is_dask
from twofold.core.types import Table

Split = tuple[np.ndarray, np.ndarray]  # rows to fit to, and others
PATHS = ("evidence", "gavish-donoho")  # one decomposition gives them for all sizes
ONCE = {"bic": "bic", "aic": "aic", "icl": "icl"}  # one fit to all rows, then a method of the model
CRITERIA = ("bic", "aic", "heldout", "stability", "icl", *PATHS)
MINIMIZED = ("bic", "aic", "icl", "gavish-donoho")
NEGLIGIBLE_DIFFERENCE = {"bic": 2.0, "aic": 2.0, "icl": 2.0, "evidence": 1.0}  # Kass & Raftery 1995
WHY = {
    "bic": "it has a likelihood and counts its parameters, so BIC, close to the evidence, finds their best number",
    "heldout": "it is scored on rows and cells that the fit did not see",
}


def heldout_score(estimator: Any, X: Table, y: Any = None) -> float:
    """The held-out score of a fitted estimator, as a scorer: ``GridSearchCV(..., scoring=heldout_score)``.

    It is the fitted estimator's own ``heldout_score``, or, of estimators from elsewhere, its ``score``.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from twofold import KMeans
    >>> rng = np.random.default_rng(0)
    >>> X = 9 * rng.normal(size=(3, 6))[rng.integers(3, size=150)] + rng.normal(size=(150, 6))
    >>> search = GridSearchCV(KMeans(random_state=0), {"n_clusters": range(1, 8)}, scoring=heldout_score).fit(X)
    >>> search.best_params_["n_clusters"]
    3
    """
    how = getattr(estimator, "heldout_score", None) or estimator.score
    return float(how(X) if y is None else how(X, y))


def resolve(base: Any, criterion: Any, X: Any, grid: dict[str, list[Any]]) -> tuple[str, str]:
    """The name of the criterion, and the reason; an error if the estimator does not have it."""
    if callable(criterion):
        return "heldout", f"{getattr(criterion, '__name__', 'the given function')} scores a fitted model"
    prefers = getattr(base, "_criterion", None)
    if criterion == "auto" and prefers is not None:
        return prefers(X, grid)
    why = "asked for"
    if criterion == "auto":
        criterion = "bic" if hasattr(base, "bic") else "heldout"
        why = WHY[criterion]
    if criterion not in CRITERIA:
        raise InputError(f"criterion is {criterion!r}; choose auto, {', '.join(CRITERIA)}, or give a function.")
    able = [c for c, method in (*ONCE.items(), ("heldout", "score")) if hasattr(base, method)]
    able += [c for c in ("heldout",) if c not in able and hasattr(base, "heldout_score")]
    if criterion in PATHS:
        if not hasattr(base, "_path") or list(grid) != ["n_components"]:
            raise InputError(
                f"criterion={criterion!r} is for numbers of components of PCA and PPCA, and nothing else beside. "
                f"Use {' or '.join(repr(c) for c in [*able, 'stability'])}."
            )
    elif criterion != "stability" and criterion not in able:
        raise InputError(
            f"{type(base).__name__} has no method {ONCE.get(criterion, 'score')}, which criterion={criterion!r} needs. "
            f"Use {' or '.join(repr(c) for c in [*able, 'stability'])}."
        )
    return criterion, why


def unit_of(base: Any, criterion: Any) -> str:
    """The unit of an estimator's figures: only figures of one unit can be compared."""
    if callable(criterion) or criterion in ("stability", *ONCE):
        return ""
    if is_classifier(base):
        return "accuracy"
    if is_regressor(base):
        return "R²"
    return getattr(base, "_heldout_unit", "") or f"the score of {type(base).__name__}"


# --- measuring ----------------------------------------------------------------------------------------------


def rows_of(array: Any, index: np.ndarray) -> Any:
    """The rows `index` of a table, of a list, of a file or of a dask array."""
    if isinstance(array, (list, tuple)):
        return [array[i] for i in index]
    if isinstance(array, Blocks):
        chosen = np.zeros(array.shape[0], dtype=bool)
        chosen[index] = True
        return array.where(chosen)
    if is_dask(array):
        return array[np.sort(index)]
    return None if array is None else getattr(array, "iloc", array)[index]  # a pandas table counts rows by iloc


def fit(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X) if y is None else model.fit(X, y)


def measure_heldout(model: Any, X: Any, y: Any, split: Split, score: Callable[..., float]) -> float:
    """The score on rows that were not in the fit."""
    train, test = split
    fitted = fit(clone(model), rows_of(X, train), rows_of(y, train))
    new = rows_of(X, test)
    return float(score(fitted, new) if y is None else score(fitted, new, rows_of(y, test)))


def measure_agreement(model: Any, X: Any, y: Any, split: Split, score: Any = None) -> float:
    """The agreement of two fits, beyond chance."""
    a, b = (fit(clone(model), rows_of(X, part), rows_of(y, part)) for part in split)
    if hasattr(a, "predict"):
        first, second = np.asarray(a.predict(X)), np.asarray(b.predict(X))
        if first.dtype.kind == "f":
            raise InputError("it predicts numbers, not groups that could be compared")
        if len(np.unique(first)) == len(np.unique(second)) == 1:
            raise InputError("it puts every row into one group, which is always stable")
        from sklearn.metrics import adjusted_rand_score

        return adjusted_rand_score(first, second)
    if not hasattr(a, "components_"):
        raise InputError(f"{type(model).__name__} has neither predict nor components_ to compare")
    A, B = np.asarray(a.components_), np.asarray(b.components_)  # (k,d)
    chance = max(len(A), len(B)) / A.shape[1]  # the mean cos² between random subspaces
    if chance >= 1:
        raise InputError("it keeps every direction, which is always stable")
    return float((np.mean(np.cos(subspace_angles(A.T, B.T)) ** 2) - chance) / (1 - chance))
