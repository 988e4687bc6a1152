"""Constraints: one file each."""

from twofold.factors.constraints.base import Constraint
from twofold.factors.constraints.free import Free
from twofold.factors.constraints.k_sparse import KSparse
from twofold.factors.constraints.l1 import L1
from twofold.factors.constraints.non_negative import NonNegative
from twofold.factors.constraints.one_hot import OneHot
from twofold.factors.constraints.orthonormal import Orthonormal
from twofold.factors.constraints.ridge import Ridge
from twofold.factors.constraints.simplex import Simplex
from twofold.factors.constraints.unit_norm import UnitNorm

__all__ = [
    "L1",
    "Constraint",
    "Free",
    "KSparse",
    "NonNegative",
    "OneHot",
    "Orthonormal",
    "Ridge",
    "Simplex",
    "UnitNorm",
]
