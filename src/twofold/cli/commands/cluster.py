"""`twofold cluster`: which rows belong together, and what sets each group apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.cluster import Clustering
from twofold.analyses.cluster import cluster as analyze
from twofold.cli import _options as options
from twofold.cli._run import Output, run

COUNT = "Number of clusters. Default: chosen from 1 to 10 by BIC."
METHOD = "kmeans or mixture (of Gaussians). Default: kmeans; mixture if cells are blank."


def cluster(
    inputs: options.Tables,
    clusters: Annotated[int | None, typer.Option("-k", "--clusters", min=1, metavar="N", help=COUNT)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    out: Annotated[list[Path] | None, options.out(Clustering.endings)] = None,
    save: options.Save = None,
    scale: options.Scale = None,
    na: options.Na = None,
    drop: options.Drop = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    chosen = {"method": method, "scale": scale, "na": na or (), "drop": drop or (), "seed": seed}
    run(
        lambda watch: analyze(inputs, clusters, **chosen, progress=watch),
        Output(out or [], save, as_json, force, quiet),
        Clustering.endings,
        inputs,
    )
