"""`twofold topics`: what documents are about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
import typer
from rich.table import Table as Grid
from rich.text import Text

from twofold.analyses._html_report import page
from twofold.cli._console import (
    bar,
    check_save,
    check_target,
    check_targets,
    print_json,
    say,
    stdout,
    table_writer,
    waiting,
    write_all,
)
from twofold.core.checks import InputError

if TYPE_CHECKING:
    from twofold.analyses.topics import Topics

ENDINGS = (".csv", ".tsv", ".parquet", ".png", ".html")
MODELS = {"lda": "LDA", "plsa": "pLSA", "nmf": "NMF"}
TAKES = "A folder or glob of text files, a text file (a document a line), CSV, TSV, JSONL, Parquet, or - for stdin."
COUNT = "Topics. Default: chosen by held-out perplexity and coherence."
MODEL = "lda, plsa or nmf."
RESULTS = "Results, by ending: .csv .tsv .parquet (and NAME_words beside it) .png .html; repeatable."
STOP = "Words to leave out, one a line. Default: English ones."
MOST_SHOWN = 20  # topics in the printed table
SHORT = 90  # characters of a document


def topics(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help=TAKES)],
    number: Annotated[int | None, typer.Option("-k", "--topics", min=1, metavar="N", help=COUNT)] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help=MODEL)] = "lda",
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The text. Default: the longest.")] = None,
    date: Annotated[str | None, typer.Option(metavar="COLUMN", help="When. Default: guessed.")] = None,
    title: Annotated[str | None, typer.Option(metavar="COLUMN", help="What to call it. Default: guessed.")] = None,
    stop_words: Annotated[str | None, typer.Option(metavar="FILE", help=STOP)] = None,
    out: Annotated[list[Path] | None, typer.Option("-o", "--out", metavar="FILE", help=RESULTS)] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model (.twofold).")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")] = False,
) -> None:
    if model not in MODELS:
        raise InputError(f"--model {model}: choose {', '.join(MODELS)}.")
    if stop_words is not None and not Path(stop_words).is_file():
        raise InputError(f"--stop-words {stop_words}: there is no such file. Give one with a word a line.")
    check_targets(out or [], ENDINGS, force, inputs)
    for path in out or []:
        if path.suffix.lower() not in (".png", ".html"):
            check_target(words_beside(path), force, inputs)
    if save is not None:
        check_save(save, out or [], force, inputs)
    with waiting("reading", quiet):
        from twofold.io.documents import read_documents

        documents = read_documents(inputs, text, date, title)
        from twofold.analyses.topics import analyse  # takes seconds to import: bad input is told before
    found = analyse(documents, model, number, stop_words, seed, quiet)
    if save and model == "nmf":
        found.notes.append("the saved NMF takes rows of tf-idf of length one, not counts")
    say(found.notes, quiet)
    with waiting("writing", quiet or not (out or save)):
        targets: dict[Path, Any] = {}
        for path in out or []:
            targets |= writers(path, found)
        write_all(targets | ({save: found.model.save} if save else {}))
    written = [str(path) for path in [*targets, *([save] if save else [])]]
    if as_json:
        print_json(summary(found) | {"written": written})
    else:
        show(found)
        say([f"wrote {', '.join(written)}"] if written else [], quiet)


def words_beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}_words{path.suffix}")


def writers(path: Path, found: Topics) -> dict[Path, Any]:
    """The functions that write the result as the file's ending says; beside a table of documents one of words."""
    ending = path.suffix.lower()
    if ending in (".png", ".html"):
        from twofold.plots.style import as_png

        picture = as_png(figure(found), dpi=150)
        return {
            path: (lambda to: to.write_bytes(picture)) if ending == ".png" else (lambda to: report(to, found, picture))
        }
    return {
        path: table_writer(ending, documents_frame(found)),
        words_beside(path): table_writer(ending, words_frame(found)),
    }


def documents_frame(found: Topics) -> pl.DataFrame:
    """Ids, titles and dates, the main topic, and the share of each."""
    own = found.documents
    columns = [own.ids]
    if own.titles is not None and own.titles.name != own.ids.name:
        columns.append(own.titles)
    if own.dates is not None and own.date_name not in [column.name for column in columns]:
        columns.append(pl.Series(own.date_name, own.dates))
    columns.append(pl.Series("topic", found.mixtures.argmax(axis=1) + 1))
    columns += [pl.Series(f"topic_{c + 1}", found.mixtures[:, c].round(5)) for c in range(found.k)]
    names = [column.name for column in columns]
    clash = {name for name in names if names.count(name) > 1}
    kept = [c.alias(f"{c.name} (given)") if c.name in clash and i < 3 else c for i, c in enumerate(columns)]
    return pl.DataFrame(kept)


def words_frame(found: Topics) -> pl.DataFrame:
    """How often each word is used, and its probability in each topic."""
    count = np.asarray(found.counts.sum(axis=0)).ravel().astype(np.int64)
    frame = pl.DataFrame(
        {"word": [str(word) for word in found.words], "count": count}
        | {f"topic_{c + 1}": found.topics[c] for c in range(found.k)}
    )
    return frame.sort("count", descending=True, maintain_order=True)


def figure(found: Topics) -> Any:
    from twofold.plots.reports.topics import topic_report_figure
    from twofold.topics.topic_table import topic_map

    at = topic_map(found.topics, share=found.shares) if found.k > 1 else np.zeros((1, 2))
    tops = [found.top(c) for c in range(found.k)]
    time = None if found.over_time is None else found.over_time[:2]
    return topic_report_figure(at, found.shares, tops, found.choice, time, heading(found))


# --- words --------------------------------------------------------------------------------------------------


def heading(found: Topics) -> str:
    n, d = found.counts.shape
    return f"{found.documents.source}: {n:,} documents, {int(found.counts.sum()):,} words ({d:,} different)"


def by_model(found: Topics) -> str:
    return f"{found.k} topic{'s' if found.k > 1 else ''} by {MODELS[found.kind]}"


def held_out_line(found: Topics) -> str:
    """The held-out figure as a sentence."""
    if not found.tested:
        return "held out: nothing"
    own, plain = found.tested["perplexity"], found.tested["perplexity_unigram"]
    n = found.tested["documents"]
    what = f"{n:,} documents not fitted; half of the words of each" if n > 1 else "1 document; half of its words"
    return f"held out: {what}, given the other half: perplexity {own:,.0f}, by word frequencies alone {plain:,.0f}"


def example(found: Topics, c: int, i: int, width: int = SHORT) -> str:
    """A telling document: its name, if it has one, and the sentence that says most."""
    from twofold.text.snippets import cut, snippet

    rank = {word: 1.0 / (3 + r) for r, word in enumerate(found.top(c, 60))}
    own = found.documents
    name = cut(own.call(i), width // 2) if own.named else f"{own.ids.name} {own.ids[i]}"
    if own.titles is not None and own.titles[i]:
        return cut(own.call(i), width)
    return f"{name}: {snippet(own.texts[i], rank, width - len(name) - 2)}"


def show(found: Topics) -> None:
    """The short table on stdout."""
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in [("topic", "left"), ("share", "right"), ("", "left")]:
        grid.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    grid.add_column("words, and documents most about it")
    console = stdout()
    room = max(40, console.width - 30)
    for c in range(min(found.k, MOST_SHOWN)):
        lines = [Text(" ".join(found.top(c, 8)))]
        lines += [Text(f"· {example(found, c, i, room - 2)}", style="dim") for i in found.telling[c]]
        share = found.shares[c]
        grid.add_row(str(c + 1), f"{share:.1%}", bar(share / found.shares[0], 12), Text("\n").join(lines))
    console.print(f"{heading(found)} → {by_model(found)}", style="bold")
    console.print(grid)
    if found.k > MOST_SHOWN:
        console.print(f"... and {found.k - MOST_SHOWN} more, {found.shares[MOST_SHOWN:].sum():.0%} of the words")
    console.print(held_out_line(found), soft_wrap=True)


def summary(found: Topics) -> dict[str, Any]:
    """What --json prints."""
    own = found.documents
    main = np.bincount(found.mixtures.argmax(axis=1), minlength=found.k)
    parts = []
    for c in range(found.k):
        order = np.argsort(-found.telling_words[c], kind="stable")[:10]
        parts.append(
            {
                "topic": c + 1,
                "share": found.shares[c],
                "documents": main[c],
                "words": {str(found.words[j]): found.topics[c, j] for j in order},
                "telling": [{own.ids.name: own.ids[i], "share": found.mixtures[i, c]} for i in found.telling[c]],
            }
        )
    time = None
    if found.over_time is not None:
        starts, shares, name = found.over_time
        time = {"period": name, "start": [str(day) for day in starts], "shares": shares}
    return {
        "input": own.source,
        "documents": len(own.texts),
        "tokens": int(found.counts.sum()),
        "words": len(found.words),
        "model": type(found.model).__name__,
        "n_topics": found.k,
        "topics": parts,
        "held_out": found.tested,
        "tried": found.choice,
        "over_time": time,
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def report(to: Path, found: Topics, picture: bytes) -> None:
    """A page that needs no other file."""
    main = np.bincount(found.mixtures.argmax(axis=1), minlength=found.k)
    head = ["topic", "share", "documents", "words", "documents most about it"]
    rows = [
        [
            str(c + 1),
            f"{found.shares[c]:.1%}",
            f"{main[c]:,}",
            " ".join(found.top(c)),
            " · ".join(example(found, c, i) for i in found.telling[c]),
        ]
        for c in range(found.k)
    ]
    line = held_out_line(found)
    lead = f"{by_model(found)}. {line[0].upper()}{line[1:]}."
    to.write_text(page(heading(found), lead, picture, head, rows, found.notes), encoding="utf-8")
