"""Probabilistic PCA of a table with 20 % of its cells missing, to equal quality."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bench.harness import Bar, Contestant, Event, optional
from twofold import PPCA
from twofold.linear.gaussian import log_density

NEAR = 0.1  # nats a row: a likelihood this close to ours counts as equal
HALF = 1.001  # of our error on the hidden cells


class Fit(NamedTuple):
    """What every contestant hands over, whatever its own conventions."""

    mean: np.ndarray  # (d,)
    W: np.ndarray  # (d,k)
    noise: float
    filled: np.ndarray | None = None  # its own imputation, where it gives one
    sweeps: int = 0
