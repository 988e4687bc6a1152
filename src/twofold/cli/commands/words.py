"""`twofold words`: questions to word vectors, one's own or another program's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid
from rich.text import Text as Line

from twofold.cli._console import bar, check_targets, print_json, stdout, waiting, write_all
from twofold.core.checks import InputError

if TYPE_CHECKING:
    from twofold.words.word_vectors.word_vectors import WordVectors

ENDINGS = (".txt", ".vec", ".bin", ".csv", ".tsv", ".parquet", ".png", ".twofold")
USES = {
    "nearest": "WORD [WORD ...]",
    "analogy": "MAN KING WOMAN",
    "similarity": "WORD WORD",
    "evaluate": "FILE [FILE ...]",
    "export": "FILE [FILE ...]",
}
NEEDS = {"nearest": (1, None), "analogy": (3, 3), "similarity": (2, 2), "evaluate": (1, None), "export": (1, None)}
TAKES = "A .twofold file, or vectors in word2vec's formats: .txt, .vec, .bin (also .gz)."
ACTION = "nearest WORD, analogy MAN KING WOMAN, similarity WORD WORD, evaluate FILE, export FILE."
METHOD = "For analogies: additive or multiplicative."


def words(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=TAKES)],
    action: Annotated[str | None, typer.Argument(metavar="ACTION", help=ACTION)] = None,
    given: Annotated[list[str] | None, typer.Argument(metavar="WORD...", help="Words, or files.")] = None,
    number: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many words to show.")] = 10,
    method: Annotated[str, typer.Option(metavar="NAME", help=METHOD)] = "additive",
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    given = given or []
    check(model, action, given, method, force)
    with waiting("reading", False):
        from twofold.cli._word_files import read_vectors

        vectors = read_vectors(model)
    if action is None:
        about(model, vectors, as_json)
    elif action == "nearest":
        nearest(vectors, given, number, as_json)
    elif action == "analogy":
        analogy(vectors, given, number, method, as_json)
    elif action == "similarity":
        similarity(vectors, given, as_json)
    elif action == "evaluate":
        evaluate(vectors, given, as_json)
    else:
        export(vectors, given, as_json)


def check(model: str, action: str | None, given: list[str], method: str, force: bool) -> None:
    """Refuse what cannot be done before anything is read."""
    if method not in ("additive", "multiplicative"):
        raise InputError(f"--method {method}: choose additive or multiplicative.")
    if action is None:
        return
    if action not in USES:
        raise InputError(f'"{action}" is nothing that can be asked: choose {", ".join(USES)}.')
    least, most = NEEDS[action]
    if len(given) < least or (most is not None and len(given) > most):
        raise InputError(f"{action} takes {USES[action]}: twofold words {model} {action} {USES[action]}.")
    if action == "export":
        check_targets([Path(file) for file in given], ENDINGS, force, [model])
    for file in given if action == "evaluate" else []:
        if not Path(file).is_file():
            raise InputError(
                f"{file}: there is no such file. Give questions (a b c d) or pairs with a number (a b 7.5)."
            )


def spelled(vectors: WordVectors, word: str) -> str:
    """The word as the vectors know it: as given, else in small letters."""
    return word if word in vectors or word.lower() not in vectors else word.lower()


def nearest(vectors: WordVectors, given: list[str], n: int, as_json: bool) -> None:
    found = {word: vectors.nearest(spelled(vectors, word), n) for word in given}
    if as_json:
        print_json({word: dict(near) for word, near in found.items()})
        return
    for i, (word, near) in enumerate(found.items()):
        ranked(f"nearest to {word}", "cosine", near, space=i > 0)


def analogy(vectors: WordVectors, given: list[str], n: int, method: str, as_json: bool) -> None:
    a, b, c = (spelled(vectors, word) for word in given)
    found = vectors.analogy(a, b, c, n, method=method)
    if as_json:
        print_json({"question": [a, b, c], "method": method, "answers": dict(found)})
        return
    ranked(f"{a} is to {b} as {c} is to", "cosine" if method == "additive" else "score", found)


def similarity(vectors: WordVectors, given: list[str], as_json: bool) -> None:
    a, b = (spelled(vectors, word) for word in given)
    value = vectors.similarity(a, b)
    if as_json:
        print_json({"words": [a, b], "cosine": value})
        return
    stdout().print(f"{a} and {b}: cosine {value:.3f}")


def evaluate(vectors: WordVectors, given: list[str], as_json: bool) -> None:
    from twofold.analyses._word_questions import agreed, is_analogies, solved
    from twofold.cli.commands.embed import show_analogies, show_similarity

    with waiting("asking", False):
        solving = [solved(vectors, Path(file)) for file in given if is_analogies(file)]
        pairs = [agreed(vectors, Path(file)) for file in given if not is_analogies(file)]
    if as_json:
        print_json({"analogies": solving, "similarity": pairs})
        return
    for own in solving:
        show_analogies(own)
    if pairs:
        show_similarity(pairs)


def export(vectors: WordVectors, given: list[str], as_json: bool) -> None:
    from twofold.cli._word_files import writer

    paths = [Path(file) for file in given]
    with waiting("writing", False):
        write_all({path: writer(path, vectors) for path in paths})
    V, k = vectors.vectors_.shape
    if as_json:
        print_json({"words": V, "n_components": k, "written": given})
        return
    stdout().print(f"{V:,} words, {k} numbers each: {', '.join(given)}", soft_wrap=True)


def about(model: str, vectors: WordVectors, as_json: bool) -> None:
    """What the file holds, and what can be asked."""
    from twofold.analyses._telling_words import examples

    V, k = vectors.vectors_.shape
    some = examples(vectors, 8)
    if as_json:
        print_json({"file": model, "words": V, "n_components": k, "some": some})
        return
    console = stdout()
    console.print(f"{model}: {V:,} words, {k} numbers each", style="bold")
    console.print(f"among them: {', '.join(some)}", soft_wrap=True)
    for name, use in USES.items():
        console.print(f"twofold words {model} {name} {use}", soft_wrap=True)


def ranked(title: str, name: str, found: list[tuple[str, float]], space: bool = False) -> None:
    """Words with their scores, as a table with bars."""
    console: Any = stdout()
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column(title, no_wrap=True)
    grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("")
    for word, score in found:
        grid.add_row(Line(word), f"{score:.3f}", bar(score, 16))
    if space:
        console.print()
    console.print(grid)
