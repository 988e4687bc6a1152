"""`twofold complete`: the blanks of a table filled, everything else as it was."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from twofold.analyses.common.tables import Reading
from twofold.analyses.complete.analysis import complete as analyze
from twofold.analyses.complete.answer import Filling
from twofold.cli import _options as options
from twofold.cli._run import command

METHOD = (
    "means, ppca, factors (factor analysis), gaussian; or low-rank completion by als, svd, svp, soft or svt. "
    "Default: the best of the first four on hidden cells; of the first three, where a table is read in blocks."
)
UNCERTAINTY = "Add a column NAME_sd, the standard deviation of each guess, for every filled column."


@command(Filling, "The filled table, a figure or a report", streams=True)
def complete(
    inputs: options.Tables,
    uncertainty: Annotated[bool, typer.Option("--uncertainty", help=UNCERTAINTY)] = False,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    seed: options.Seed = 0,
    **reading: Unpack[Reading],
) -> Filling:
    return analyze(inputs, method=method, uncertainty=uncertainty, seed=seed, **reading)
