"""Items for users, from what they rated or used."""

from twofold.analyses.recommend.analysis import recommend

__all__ = ["recommend"]
