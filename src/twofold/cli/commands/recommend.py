"""`twofold recommend`: what people would like, from what they have rated or used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.table import Table as Grid

from twofold.analyses._html_report import page
from twofold.cli._console import (
    bar,
    check_save,
    check_targets,
    print_json,
    say,
    stdout,
    waiting,
    write_all,
)
from twofold.core.checks import InputError

if TYPE_CHECKING:
    from twofold.analyses.recommend import Listing, Recommending

ENDINGS = (".csv", ".tsv", ".parquet", ".png", ".html")
TAKES = "Ratings: CSV, TSV, Parquet, JSONL, .mtx, file.db::table, a folder, a glob, - for stdin; or a saved .twofold."
USER = "Recommend for this user; repeatable. Default: a few users, and what is recommended most."
NEW = 'Recommend for someone new, from "ITEM:RATING,ITEM:RATING"; repeatable; ids may hold commas and colons.'
RESULTS = "Lists for all users, or those asked for, by ending: .csv .tsv .parquet .html; .png; repeatable."
NAMES = "A table of item ids and names, to show names instead of ids."
EXPLAIN = "Say which rated items carried each recommendation."
MOST_SHOWN = 20  # rows of a printed table
MOST_ON_PAGE = 100  # users in a report


def recommend(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    user: Annotated[list[str] | None, typer.Option(metavar="ID", help=USER)] = None,
    new: Annotated[list[str] | None, typer.Option(metavar="RATINGS", help=NEW)] = None,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Items for each user.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help=EXPLAIN)] = False,
    names: Annotated[str | None, typer.Option(metavar="FILE", help=NAMES)] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the recommender (.twofold).")] = None,
    user_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="Who rated. Default: guessed.")] = None,
    item_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="What. Default: guessed.")] = None,
    rating_column: Annotated[str | None, typer.Option(metavar="COLUMN", help="How. Default: guessed.")] = None,
    na: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="A text for no rating; repeatable.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")] = False,
) -> None:
    check_targets(out or [], ENDINGS, force, inputs)
    if save is not None:
        check_save(save, out or [], force, inputs)
    with waiting("reading", quiet):
        data = read(inputs, {"user": user_column, "item": item_column, "rating": rating_column}, na or [])
        called = read_called(names, data)
        from twofold.analyses.recommend import analyse  # takes seconds to import: bad input is told before
    source = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
    source = "standard input" if source == "-" else source
    found = analyse(data, source, n, user or [], new or [], explain, called, seed, quiet)
    asked = bool(user or new)
    say(found.notes, quiet)
    with waiting("writing", quiet or not (out or save)):
        targets: dict[Path, Any] = {path: writer(path, found, asked) for path in out or []}
        write_all(targets | ({save: found.model.save} if save else {}))
    written = [str(path) for path in [*targets, *([save] if save else [])]]
    if as_json:
        print_json(summary(found) | {"written": written})
    else:
        show(found, asked)
        say([f"wrote {', '.join(written)}"] if written else [], quiet)


def read(inputs: list[str], columns: dict[str, str | None], na: list[str]) -> Any:
    """Ratings, or a recommender that was saved."""
    if len(inputs) == 1 and inputs[0].endswith(".twofold"):
        from twofold.core.files.model_file import ModelFileError, load
        from twofold.io.tables.read import missing_message

        if not Path(inputs[0]).is_file():
            raise ModelFileError(missing_message(inputs[0]))
        model = load(inputs[0])
        if type(model).__name__ != "Recommender":
            raise InputError(f"{inputs[0]} holds a {type(model).__name__}. Give a Recommender, or a file of ratings.")
        return model
    from twofold.io.ratings import read_ratings

    return read_ratings(inputs, columns, na)


def read_called(names: str | None, data: Any) -> dict[Any, str]:
    """What items are called, by id."""
    if names is None:
        return {}
    from twofold.io.ratings import Ratings, read_names

    if not isinstance(data, Ratings):
        return read_names(names, data.items_)
    return read_names(names, data.frame[str(data.columns["item"])].unique().to_numpy())


def writer(path: Path, found: Recommending, asked: bool) -> Any:
    """The function that writes the result as the file's ending says."""
    ending = path.suffix.lower()
    if ending in (".png", ".html"):
        from twofold.plots.style import as_png

        picture = as_png(figure(found))
        return (lambda to: to.write_bytes(picture)) if ending == ".png" else (lambda to: report(to, found, picture))
    from twofold.completion.recommender._top_n import write_frames

    return lambda to: write_frames(frames(found, asked), to)


def frames(found: Recommending, asked: bool) -> Iterator[pl.DataFrame]:
    """Lists of user, item, name if there are names, and score: of those asked for, or of everybody, streamed."""
    if asked:
        who = ((listing.who, listing.frame) for listing in found.listings)
        parts = (frame.select(pl.lit(name).alias("user"), pl.all()) for name, frame in who)
    else:
        parts = found.model.recommend_all(found.n)
    for frame in parts:
        frame = frame.with_columns(pl.col("score").cast(pl.Float64).round(4))
        if found.names:
            called = pl.Series("name", [found.call(item) for item in frame["item"].to_list()])
            frame = frame.insert_column(frame.get_column_index("item") + 1, called)
        yield frame


def figure(found: Recommending) -> Any:
    from twofold.plots.reports.recommend import recommending_figure

    return recommending_figure(
        found.model,
        [found.call(item) for item in found.model.items_],
        found.figures,
        found.n,
        [(found.call(item), count) for item, count in found.often],
        title(found),
    )


# --- words --------------------------------------------------------------------------------------------------


def title(found: Recommending) -> str:
    X = found.model.ratings_
    what = "rows" if found.model.implicit_ else "ratings"
    return f"{found.source}: {X.nnz:,} {what} by {X.shape[0]:,} users of {X.shape[1]:,} items"


def by_model(found: Recommending) -> str:
    model = found.model.model_
    factors = getattr(model, "components_", None)
    return type(model).__name__ + (f", {len(factors)} factors" if factors is not None else "")


def held_out_line(found: Recommending) -> str:
    """The held-out figures as a sentence."""
    if not found.figures:
        return "held out: nothing"
    own, tested = found.figures[0], found.tested
    parts = [f"{tested['ratings']:,} {'rows' if found.model.implicit_ else 'ratings'} not fitted"]
    if own["rmse"] is not None:
        others = [f"{row['model']} {row['rmse']:.3f}" for row in found.figures[1:] if row["rmse"] is not None]
        parts.append(f"error (RMSE) {own['rmse']:.3f}{f', {others[0]}' if others else ''}")
    if own["precision"] is not None:
        parts.append(f"of {found.n} items recommended {own['precision'] * found.n:.1f} are among them and liked")
    return f"held out: {'; '.join(parts)}"


def grid_of(*columns: tuple[str, str]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in columns:
        grid.add_column(name, justify=side, no_wrap=side == "right")  # type: ignore[arg-type]
    return grid


def figures_grid(found: Recommending) -> Grid:
    """One row a model: error, and what its lists are worth."""
    n = found.n
    heads = [f"precision@{n}", f"recall@{n}", f"ndcg@{n}"]
    rated = any(row["rmse"] is not None for row in found.figures)
    grid = grid_of(("held out", "left"), *([("RMSE", "right")] if rated else []), *((head, "right") for head in heads))
    for row in found.figures:
        error = [] if not rated else ["" if row["rmse"] is None else f"{row['rmse']:.3f}"]
        values = [row[name] for name in ("precision", "recall", "ndcg")]
        grid.add_row(row["model"], *error, *("" if v is None else f"{v:.3f}" for v in values))
    return grid


def show(found: Recommending, asked: bool) -> None:
    """The short tables on stdout."""
    console = stdout()
    console.print(f"{title(found)} → {by_model(found)}", style="bold")
    if found.figures:
        console.print(figures_grid(found))
    if found.often:
        grid = grid_of(("recommended most", "left"), ("lists", "right"), ("", "left"))
        for item, count in found.often[:MOST_SHOWN]:
            grid.add_row(found.call(item), f"{count / found.looked_at:.0%}", bar(count / found.often[0][1], 12))
        console.print()
        console.print(grid)
    if asked or any(listing.reasons for listing in found.listings):
        for listing in found.listings:
            console.print()
            console.print(listing_grid(found, listing))
        return
    grid = grid_of(("user", "left"), ("best for them", "left"))
    for listing in found.listings:
        grid.add_row(listing.who, "; ".join(found.call(item) for item in listing.frame["item"].to_list()[:3]))
    console.print()
    console.print(grid)


def listing_grid(found: Recommending, listing: Listing) -> Grid:
    score = "score" if found.model.implicit_ else "expected"
    head = "for someone new" if listing.who == "new" else f"for user {listing.who}"
    grid = grid_of((head, "left"), (score, "right"), *([("because of", "left")] if listing.reasons else []))
    for i, (item, value) in enumerate(listing.frame.iter_rows()):
        why = [reason(found, listing, i)] if listing.reasons else []
        grid.add_row(found.call(item), f"{value:.2f}", *why)
    return grid


def reason(found: Recommending, listing: Listing, i: int) -> str:
    return (
        ", ".join(f"{found.call(item)} (+{share:.2f})" for item, share in listing.reasons[i])
        or "no rating speaks for it"
    )


def summary(found: Recommending) -> dict[str, Any]:
    """What --json prints."""
    model, X = found.model, found.model.ratings_
    lists = [
        {
            "user": listing.who,
            "items": [
                {
                    "item": item,
                    **({"name": found.call(item)} if found.names else {}),
                    "score": score,
                    **(
                        {"because": [{"item": j, "share": s} for j, s in listing.reasons[i]]} if listing.reasons else {}
                    ),
                }
                for i, (item, score) in enumerate(listing.frame.iter_rows())
            ],
        }
        for listing in found.listings
    ]
    return {
        "input": found.source,
        "ratings": X.nnz,
        "users": X.shape[0],
        "items": X.shape[1],
        "columns": model.columns_,
        "implicit": model.implicit_,
        "model": type(model.model_).__name__,
        "choice": model.choice_,
        "held_out": {**found.tested, "models": found.figures},
        "recommended_most": [{"item": item, "lists": count} for item, count in found.often],
        "recommendations": lists,
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def report(to: Path, found: Recommending, picture: bytes) -> None:
    """A page that needs no other file; of very many users, the first."""
    parts: Iterator[pl.DataFrame] = frames(found, not found.often)
    lists = (part for frame in parts for part in frame.partition_by("user", maintain_order=True))
    rows = [
        [
            str(part["user"][0]),
            str(len(part)),
            f"{part['score'].to_numpy().max(initial=0):.2f}",
            "; ".join(found.call(item) for item in part["item"].to_list()),
        ]
        for part in islice(lists, MOST_ON_PAGE)
    ]
    line = held_out_line(found)
    lead = f"{by_model(found)}. {line[0].upper()}{line[1:]}."
    users = len(found.model.users_)
    cut = [f"this page lists the first {MOST_ON_PAGE} of {users:,} users; -o top.csv has all"]
    notes = found.notes + (cut if found.often and users > MOST_ON_PAGE else [])
    head = ["user", "items", "best", "recommended, best first"]
    to.write_text(page(title(found), lead, picture, head, rows, notes), encoding="utf-8")
