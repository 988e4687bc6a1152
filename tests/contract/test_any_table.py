"""Whatever small table comes: a fit works with finite results, or is refused with a message."""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from .helpers import fitted, row_methods
from .registry import every


@st.composite
def tables(draw, nan):
    """A table of 2..40 rows and 1..12 columns with some of what makes tables hard; targets; a wish for k."""
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.normal(size=(n, d)) * draw(st.sampled_from([1e-6, 1.0, 1e6])) + draw(st.sampled_from([0.0, 1.0, 1e5]))
    if draw(st.booleans()):
        X[:, rng.integers(d)] = draw(st.sampled_from([0.0, -3.0, 1e9]))  # a constant column
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 2)] = X[0]  # equal rows
    if draw(st.booleans()):
        X[:, rng.integers(d)] = X[:, 0]  # equal columns
    if draw(st.booleans()):
        X = np.round(X)
    if nan and draw(st.booleans()):
        X[rng.random((n, d)) < draw(st.sampled_from([0.05, 0.5, 0.9]))] = np.nan
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    y = rng.permutation(np.arange(n) % draw(st.integers(2, 4)))
    return X, y, draw(st.integers(1, 5))


@every
@settings(max_examples=8)
@given(data=st.data())
def test_any_table_is_fitted_or_refused(case, data):
    X, y, k = data.draw(tables(case.nan))
    X = np.abs(X) if case.completes or case.positive else X  # counts have no sign
    few = {"max_iter": 8 if case.completes else 25} if "max_iter" in case().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = case.fit(X, y, **case.wish(k), **few)
        except ValueError as why:
            assert not isinstance(why, np.linalg.LinAlgError), repr(why)
            assert len(str(why)) > 20
            return
        for attribute, value in fitted(model).items():
            if isinstance(value, (np.ndarray, float)) and np.asarray(value).dtype.kind == "f":
                assert np.isfinite(value).all(), attribute
        for method in row_methods(model):
            assert np.isfinite(np.asarray(getattr(model, method)(X), dtype=float)).all(), method
