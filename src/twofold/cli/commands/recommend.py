"""`twofold recommend`: what people would like, from what they have rated or used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.analyses.recommend.analysis import recommend as analyze
from twofold.analyses.recommend.analysis import refuse_stored
from twofold.analyses.recommend.answer import Recommendations
from twofold.cli import _options as options
from twofold.cli._run import command

TAKES = (
    "Ratings, as rows of user, item and rating or as a matrix: CSV, TSV, Parquet, JSONL, .npy, .mtx, file.db::table, a "
    "folder, a pattern, - (stdin); or a saved .twofold."
)
USER = "Recommend for this user; repeatable. Default: a few users, and what is recommended most."
NEW = 'Recommend for someone new, from "ITEM:RATING,ITEM:RATING"; repeatable; ids may hold commas and colons.'
MODEL = (
    "Model for lists and ratings: EASE, ImplicitALS, SVDPlusPlus, ALS, Neighborhood, Popularity, ... Default: chosen."
)
TIME = "About how long the choice of models may take; what would take longer is not tried."
SPLIT = (
    "Fit again and measure on ratings held out: random, leave-out (some of each user), last (by time), users (new), "
    "items (new, ranked by --items)."
)
EXPLAIN = "Say which rated items carried each recommendation."
NAMES = "Table of item ids and names, to show names instead of ids; a saved model keeps them."


def column(what: str) -> typer.models.OptionInfo:
    return typer.Option(metavar="COLUMN", help=f"{what} column (default: detected).")


def features(what: str) -> typer.models.OptionInfo:
    said = f"Table of what is known of {what}, a row each with their ids; so {what} without ratings are served, too."
    return typer.Option(metavar="FILE", help=said)


@command(Recommendations, "Lists for all users, or those asked for", streams=True)
def recommend(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    user: Annotated[list[str] | None, typer.Option(metavar="ID", help=USER)] = None,
    new: Annotated[list[str] | None, typer.Option(metavar="RATINGS", help=NEW)] = None,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Number of items for each user.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help=EXPLAIN)] = False,
    names: Annotated[str | None, typer.Option(metavar="FILE", help=NAMES)] = None,
    names_id: Annotated[str | None, column("Id of items in --names:")] = None,
    names_column: Annotated[str | None, column("Name of items in --names:")] = None,
    user_column: Annotated[str | None, column("User")] = None,
    item_column: Annotated[str | None, column("Item")] = None,
    rating_column: Annotated[str | None, column("Rating")] = None,
    missing: options.Missing = None,
    users: Annotated[str | None, features("users")] = None,
    items: Annotated[str | None, features("items")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help=MODEL)] = None,
    time: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help=TIME)] = 30.0,
    split: Annotated[str | None, typer.Option(metavar="HOW", help=SPLIT)] = None,
    seed: options.Seed = 0,
    save: Path | None = None,
) -> Recommendations:
    if save is not None:
        refuse_stored(inputs, user_column, item_column)
    return analyze(
        inputs,
        users=user or (),
        new=new or (),
        n=n,
        explain=explain,
        names=names,
        names_id=names_id,
        names_column=names_column,
        user_column=user_column,
        item_column=item_column,
        rating_column=rating_column,
        missing=missing or (),
        user_features=users,
        item_features=items,
        model=model,
        time=time,
        split=split,
        seed=seed,
    )
