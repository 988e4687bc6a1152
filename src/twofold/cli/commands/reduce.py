"""`twofold reduce`: the main directions of a table, and every row's place along them."""

from __future__ import annotations

import math
from typing import Annotated, Unpack

import typer

from twofold.analyses.common.tables import Reading
from twofold.analyses.reduce.analysis import RULES, Reduction
from twofold.analyses.reduce.analysis import reduce as analyze
from twofold.cli import _options as options
from twofold.cli._run import command
from twofold.core.checks import InputError

COUNT = f"Number of components: a count (3), a share of the variance (0.95), or a rule: {', '.join(RULES)}."
METHOD = (
    "pca, bayesian (finds the number), fa (factor analysis), ae (deep autoencoder) or fisher (separates the groups of "
    "--label). Default: pca, which takes blanks, too."
)
LABEL = "Column that says which group a row belongs to, for --method fisher."


@command(Reduction, streams=True)
def reduce(
    inputs: options.Tables,
    components: Annotated[str | None, typer.Option("-k", "--components", metavar="K", help=COUNT)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help=LABEL)] = None,
    scale: options.Scale = None,
    seed: options.Seed = 0,
    **reading: Unpack[Reading],
) -> Reduction:
    return analyze(
        inputs,
        parse_k(components),
        method=method,
        label=label,
        scale=scale,
        seed=seed,
        **reading,
    )


def parse_k(text: str | None) -> int | float | str | None:
    """What -k says: a count, a share of the variance, or a rule."""
    if text is None or text in RULES:
        return text
    try:
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if 1 <= number < math.inf and number == int(number) and not text.endswith("%"):
        return int(number)
    if 0 < number < 1:
        return number
    raise InputError(f"-k {text}: give a count (3), a share of the variance (0.95), or a rule: {', '.join(RULES)}.")
