"""Losses: one file each."""

from twofold.factors.losses.absolute import Absolute
from twofold.factors.losses.base import Loss
from twofold.factors.losses.categorical import Categorical
from twofold.factors.losses.huber import Huber
from twofold.factors.losses.logistic import Logistic
from twofold.factors.losses.ordinal import Ordinal
from twofold.factors.losses.poisson import Poisson
from twofold.factors.losses.squared import Squared

__all__ = ["Absolute", "Categorical", "Huber", "Logistic", "Loss", "Ordinal", "Poisson", "Squared"]
