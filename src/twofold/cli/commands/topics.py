"""`twofold topics`: what documents are about."""

from __future__ import annotations

from typing import Annotated

import typer

from twofold.analyses.topics.analysis import METHODS, Topics
from twofold.analyses.topics.analysis import topics as analyze
from twofold.analyses.topics.lsa import Directions
from twofold.cli import _options as options
from twofold.cli._run import command
from twofold.core.checks import InputError

TAKES = "Folder or pattern of text files, text file (a document a line), CSV, TSV, JSONL, Parquet, or - (stdin)."
COUNT = "Number of topics (default: chosen by held-out perplexity)."
METHOD = f"Model: {', '.join(METHODS)}. lsa finds directions, with words at both ends, in place of topics."
STOP = "File of words to leave out, one a line (default: English ones if the text is English)."


@command(Topics, "Documents with their topics (and the words of topics in NAME_words beside a table)", streams=True)
def topics(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    number: Annotated[int | None, typer.Option("-k", "--topics", min=1, metavar="N", help=COUNT)] = None,
    method: Annotated[str, typer.Option("--method", "--model", metavar="NAME", help=METHOD)] = "lda",
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Text column (default: the one with the longest texts).")
    ] = None,
    date: Annotated[str | None, typer.Option(metavar="COLUMN", help="Date column (default: detected).")] = None,
    title: Annotated[str | None, typer.Option(metavar="COLUMN", help="Title column (default: detected).")] = None,
    stop_words: Annotated[str | None, typer.Option(metavar="FILE", help=STOP)] = None,
    seed: options.Seed = 0,
) -> Topics | Directions:
    if method not in METHODS:
        raise InputError(f"--method {method}: choose {', '.join(METHODS)}.")
    return analyze(
        inputs,
        number,
        method=method,
        text=text,
        date=date,
        title=title,
        stop_words=stop_words,
        seed=seed,
    )
