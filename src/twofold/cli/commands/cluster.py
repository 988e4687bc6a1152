"""`twofold cluster`: which rows belong together, and what sets each group apart."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from twofold.analyses._tables import Reading
from twofold.analyses.cluster import Clustering
from twofold.analyses.cluster import cluster as analyze
from twofold.analyses.progress import SILENT, Progress
from twofold.cli import _options as options
from twofold.cli._run import command

COUNT = "Number of clusters. Default: chosen by BIC."
METHOD = "kmeans or mixture (of Gaussians). Default: kmeans; mixture if cells are blank."


@command(Clustering)
def cluster(
    inputs: options.Tables,
    clusters: Annotated[int | None, typer.Option("-k", "--clusters", min=1, metavar="N", help=COUNT)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    scale: options.Scale = None,
    seed: options.Seed = 0,
    progress: Progress = SILENT,
    **reading: Unpack[Reading],
) -> Clustering:
    return analyze(inputs, clusters, method=method, scale=scale, seed=seed, progress=progress, **reading)
