"""`twofold apply`: a saved model on new rows, documents, images or ratings."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from twofold.analyses.apply.analysis import WHATS, Application
from twofold.analyses.apply.analysis import apply as analyze
from twofold.analyses.common.tables import Reading
from twofold.cli._run import command

MODEL = "A model file (.twofold), as --save writes it."
TAKES = "New data of the kind the model was fitted to: a table, documents, images or ratings."
WHAT = f"{', '.join(WHATS[:-1])} or {WHATS[-1]} (log-densities). Default: what the verb that made the model gives."


@command(Application)
def apply(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    what: Annotated[str | None, typer.Option(metavar="NAME", help=WHAT)] = None,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Items to recommend to each user.")] = 10,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of texts (default: the longest).")] = None,
    **reading: Unpack[Reading],
) -> Application:
    data = inputs[0] if len(inputs) == 1 else inputs
    return analyze(model, data, what=what, n=n, text=text, **reading)
