"""`twofold cluster`: which rows belong together, and what sets each group apart."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

import typer

from twofold.analyses.cluster.analysis import Clustering
from twofold.analyses.cluster.analysis import cluster as analyze
from twofold.analyses.common.palette import Palette
from twofold.analyses.common.tables import Reading
from twofold.cli import _options as options
from twofold.cli._run import command

TAKES = f"{options.TABLES[:-1]}; or an image, for its colors."
CORESET = "Fit k-means to a few weighted rows that stand for all (for long tables); the cost on all rows is told."
COUNT = "Number of clusters. Default: chosen by BIC."
METHOD = "kmeans or mixture (of Gaussians). Default: kmeans; mixture if cells are blank."


@command(Clustering, streams=True)
def cluster(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    clusters: Annotated[int | None, typer.Option("-k", "--clusters", min=1, metavar="N", help=COUNT)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    scale: options.Scale = None,
    coreset: Annotated[bool, typer.Option("--coreset", help=CORESET)] = False,
    seed: options.Seed = 0,
    **reading: Unpack[Reading],
) -> Clustering | Palette:
    wishes: dict[str, Any] = {"method": method, "scale": scale, "coreset": coreset}
    return analyze(inputs, clusters, **wishes, seed=seed, **reading)
