"""How fitted models are compared."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator


def fitted(model):
    """The fitted attributes, those whose name ends in an underscore."""
    return {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}


def differences(a, b, at="model"):
    """Return where two fitted values differ in type, shape or any bit; clocks and column names are not compared."""
    if isinstance(a, BaseEstimator):
        a, b = fitted(a), fitted(b)
    if isinstance(a, dict):
        keys = (set(a) | set(b)) - {"seconds", "feature_names_in_"}
        return [d for k in sorted(keys) for d in differences(a.get(k), b.get(k), f"{at}.{k}")]
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return [f"{at}: {len(a)} != {len(b)} items"]
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in differences(x, y, f"{at}[{i}]")]
    if sparse.issparse(a) and sparse.issparse(b):
        a, b = ({"shape": S.shape, "data": S.data, "indices": S.indices, "indptr": S.indptr} for S in (a, b))
        return differences(a, b, at)
    if isinstance(a, np.ndarray) and a.dtype != object:
        if not isinstance(b, np.ndarray) or (a.dtype, a.shape) != (b.dtype, b.shape):
            return [f"{at}: {a.dtype}{a.shape} is not {getattr(b, 'dtype', type(b))}{np.shape(b)}"]
        return [] if a.tobytes() == b.tobytes() else [f"{at}: bits differ, by up to {abs(a - b).max():.1e}"]
    return [] if np.array_equal(a, b) else [f"{at}: {a} != {b}"]


def essence(model, X):
    """Return what a model says about rows whatever its axes: densities, reconstructions, chances, values."""
    said = []
    if hasattr(model, "complete") and hasattr(model, "predict"):
        said.append(model.predict(X))
    if hasattr(model, "score_samples"):
        said.append(model.score_samples(X))
    if hasattr(model, "inverse_transform"):
        said.append(model.inverse_transform(model.transform(X)))
    if hasattr(model, "cluster_centers_"):
        said.append(model.cluster_centers_[model.predict(X)])
    if hasattr(model, "classes_"):
        said.append(model.predict_proba(X))
    if not said and hasattr(model, "components_"):  # p(word | document), for one
        said.append(model.transform(X) @ model.components_)
    assert said, f"{type(model).__name__} says nothing about rows"
    return [np.asarray(s, dtype=np.float64) for s in said]


def assert_alike(a, b, X, rtol=1e-5):
    """Two models say the same about X, each figure within rtol of the largest of its kind."""
    for one, other in zip(essence(a, X), essence(b, X), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * max(np.abs(one).max(), 1e-300))


def row_methods(model):
    """The methods that answer row by row."""
    return [m for m in ("transform", "predict", "predict_proba", "score_samples", "impute") if hasattr(model, m)]
