"""Factors: any loss, and any constraint on either factor, give a model."""

from twofold.factors.constraints import (
    L1,
    Constraint,
    Free,
    KSparse,
    NonNegative,
    OneHot,
    Orthonormal,
    Ridge,
    Simplex,
    UnitNorm,
)
from twofold.factors.factorization import Factorization
from twofold.factors.losses import Absolute, Categorical, Huber, Logistic, Loss, Ordinal, Poisson, Squared

__all__ = [
    "L1",
    "Absolute",
    "Categorical",
    "Constraint",
    "Factorization",
    "Free",
    "Huber",
    "KSparse",
    "Logistic",
    "Loss",
    "NonNegative",
    "OneHot",
    "Ordinal",
    "Orthonormal",
    "Poisson",
    "Ridge",
    "Simplex",
    "Squared",
    "UnitNorm",
]
