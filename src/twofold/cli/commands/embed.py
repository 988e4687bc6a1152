"""`twofold embed`: vectors of words, by the company they keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.embed.analysis import METHODS, Embedding
from twofold.analyses.embed.analysis import embed as analyze
from twofold.cli import _options as options
from twofold.cli._run import command

TAKES = "Text file (plain or .gz), folder or pattern of them, CSV, TSV, JSONL, Parquet, or - (stdin)."
SIZE = "(default: by the size of the text)"
NUMBERS = f"Length of a word's vector {SIZE}."
WINDOW = "Number of neighboring words on either side (default: the method's own)."
LEAST = f"Leave out words seen less often {SIZE}."
EPOCHS = f"Passes over the text {SIZE}."
TEXT = "Text column of a table (default: the one with the longest texts)."
ANALOGIES = "File of questions to ask: a b c d a line, a is to b as c is to d."
SIMILARITY = "File of people's judgements to compare with: two words and a number a line; repeatable."


@command(
    Embedding, "Word vectors (.txt .vec .bin are word2vec's formats), a map (.png) or a report (.html)", streams=True
)
def embed(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    method: Annotated[str, typer.Option(metavar="NAME", help=f"Method: {', '.join(METHODS)}.")] = "skipgram",
    number: Annotated[int | None, typer.Option("-k", "--dimensions", min=1, metavar="N", help=NUMBERS)] = None,
    window: Annotated[int | None, typer.Option(min=1, metavar="N", help=WINDOW)] = None,
    min_count: Annotated[int | None, typer.Option(min=1, metavar="N", help=LEAST)] = None,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="N", help=EPOCHS)] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help=TEXT)] = None,
    analogies: Annotated[Path | None, typer.Option(metavar="FILE", help=ANALOGIES)] = None,
    similarity: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=SIMILARITY)] = None,
    seed: options.Seed = 0,
) -> Embedding:
    return analyze(
        inputs,
        method=method,
        n_components=number,
        window=window,
        min_count=min_count,
        epochs=epochs,
        text=text,
        analogies=analogies,
        similarity=similarity or (),
        seed=seed,
    )
