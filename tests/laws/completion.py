"""A planted table with holes, and the objective of factors and biases, for the laws of several models."""

import numpy as np


def plant(n=50, d=40, k=3, share=0.5, noise=0.3, seed=0):
    """Ratings around 3 made of biases and k factors, with holes; row 4 and column 2 are empty."""
    rng = np.random.default_rng(seed)
    X = 3 + rng.normal(size=(n, 1)) + rng.normal(size=d) + rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
    X += noise * rng.normal(size=(n, d))
    X[rng.random((n, d)) > share] = np.nan
    X[4], X[:, 2] = np.nan, np.nan
    return X


def compute_objective(model, X, w=None):
    """The formula, term by term."""
    known = ~np.isnan(X)
    w = np.where(known, 1.0 if w is None else w, 0.0)
    lam, s = model.reg_, model.spread_
    U, Z, b, c = model.row_factors_, model.components_, model.row_bias_, model.column_bias_
    gaps = np.where(known, X, 0.0) - (model.mean_ + b[:, None] + c + U @ Z)
    power = (0.5 if model.reg == "auto" else 1.0) if model.reg_power is None else model.reg_power
    n, d = w.sum(axis=1), w.sum(axis=0)
    held_b, held_c = model.bias_reg_ or (lam * n**power / s, lam * d**power / s)
    factors = lam * (n**power @ (U**2).sum(axis=1) + d**power @ (Z**2).sum(axis=0))
    return (w * gaps**2).sum() + factors + (held_b * b**2).sum() + (held_c * c**2).sum()
