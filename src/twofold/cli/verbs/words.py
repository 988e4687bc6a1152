"""`twofold words`: questions to word vectors, one's own or another program's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from twofold.analyses.common.answer import Grid, rich_table
from twofold.analyses.common.targets import check_targets
from twofold.analyses.words.vectors import (
    EXPORTED,
    analogies_grid,
    compare_similarities,
    examples,
    is_analogies,
    read_vectors,
    similarity_grid,
    solve_analogies,
    writer,
)
from twofold.cli import options
from twofold.cli.deliver import print_json, stdout
from twofold.cli.progress import show_progress
from twofold.core.checks import InputError
from twofold.core.files.atomic import write_all
from twofold.core.printable import plain
from twofold.core.progress import doing

if TYPE_CHECKING:
    from twofold.words.word_vectors.word_vectors import WordVectors

USES = {
    "nearest": "WORD [WORD ...]",
    "analogy": "MAN KING WOMAN",
    "similarity": "WORD WORD",
    "evaluate": "FILE [FILE ...]",
    "export": "FILE [FILE ...]",
    "align": "OTHER",
}
NEEDS = {
    "nearest": (1, None),
    "analogy": (3, 3),
    "similarity": (2, 2),
    "evaluate": (1, None),
    "export": (1, None),
    "align": (1, 1),
}
TAKES = "Model file (.twofold), or vectors in word2vec's formats: .txt, .vec, .bin (also .gz)."
ACTION = "nearest WORD, analogy MAN KING WOMAN, similarity WORD WORD, evaluate FILE, export FILE, align OTHER."
METHOD = "How analogies are solved: additive or multiplicative."
PAIRS = "For align: file with two words a line, one of MODEL and one of OTHER (default: words that both have)."
OUT = f"For align: the vectors of MODEL among those of OTHER, written by the ending: {' '.join(EXPORTED)}. Repeatable."


def words(
    model: Annotated[str, Parameter(help=TAKES)],
    action: Annotated[str | None, Parameter(help=ACTION)] = None,
    given: Annotated[list[str] | None, Parameter(help="Words, or files.")] = None,
    /,
    *,
    number: Annotated[int, options.option("-n", text="Number of words to show.", unit="N")] = 10,
    method: Annotated[str, options.option("--method", text=METHOD, unit="NAME")] = "additive",
    pairs: Annotated[str | None, options.option("--pairs", text=PAIRS, unit="FILE")] = None,
    out: Annotated[list[Path] | None, options.option("--out", "-o", text=OUT, unit="FILE")] = None,
    safe_csv: options.SafeCsv = False,
    as_json: options.AsJson = False,
    force: options.Force = False,
) -> None:
    """Ask word vectors: nearest words, analogies, similarity; or export them."""
    given, out = given or [], out or []
    if number < 1:
        raise InputError(f"-n {number}: give a number of at least 1.")
    check(model, action, given, method, force)
    check_alignment(model, action, given, pairs, out, force)
    with show_progress(), doing("reading"):
        vectors = read_vectors(model)
    with show_progress(), doing("asking"):
        if action == "export":
            found = export(vectors, given, safe_csv)
        elif action == "align":
            found = align(vectors, read_vectors(given[0]), pairs, out, safe_csv)
        else:
            found = ask(vectors, model, action, given, number, method)
    if as_json:
        print_json(plain(found.facts))
        return
    console = stdout()
    for line in found.lines:
        console.print(line, soft_wrap=True)
    for i, grid in enumerate(found.grids):
        if i:
            console.print()
        console.print(rich_table(grid))


class Found(NamedTuple):
    """What an action found: for programs, and for people."""

    facts: dict[str, Any]
    lines: Sequence[str] = ()
    grids: Sequence[Grid] = ()


def ask(vectors: WordVectors, model: str, action: str | None, given: list[str], n: int, method: str) -> Found:
    if action is None:
        return about(model, vectors)
    if action == "nearest":
        return nearest(vectors, given, n)
    if action == "analogy":
        return analogy(vectors, given, n, method)
    if action == "similarity":
        return similarity(vectors, given)
    return evaluate(vectors, given)


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
        check_targets([Path(file) for file in given], EXPORTED, force, [model])
    for file in given if action == "evaluate" else []:
        if not Path(file).is_file():
            raise InputError(
                f"{file}: there is no such file. Give questions (a b c d) or pairs with a number (a b 7.5)."
            )


def check_alignment(
    model: str, action: str | None, given: list[str], pairs: str | None, out: list[Path], force: bool
) -> None:
    if action != "align" and (pairs is not None or out):
        raise InputError("--pairs and -o are for align: twofold words MODEL align OTHER. Leave them out.")
    if pairs is not None and not Path(pairs).is_file():
        raise InputError(f"--pairs {pairs}: there is no such file. Give two words a line.")
    check_targets(out, EXPORTED, force, [model, *given, *([pairs] if pairs else [])])


def find_spelling(vectors: WordVectors, word: str) -> str:
    """The word as the vectors know it: as given, else in small letters."""
    return word if word in vectors or word.lower() not in vectors else word.lower()


def nearest(vectors: WordVectors, given: list[str], n: int) -> Found:
    queries, lines = dict[str, Any](), list[str]()
    for word in given:
        known = find_spelling(vectors, word)
        queries[word] = known if known in vectors else vectors.unseen(known)  # refuses letters that no word has
        if known not in vectors:
            lines.append(f'"{word}" was never seen: its vector is estimated from its letters')
    found = {word: vectors.nearest(query, n) for word, query in queries.items()}
    facts = {word: dict(near) for word, near in found.items()}
    return Found(facts, lines, [rank_words(f"nearest to {word}", "cosine", near) for word, near in found.items()])


def analogy(vectors: WordVectors, given: list[str], n: int, method: str) -> Found:
    a, b, c = (find_spelling(vectors, word) for word in given)
    found = vectors.analogy(a, b, c, n, method=method)
    grid = rank_words(f"{a} is to {b} as {c} is to", "cosine" if method == "additive" else "score", found)
    return Found({"question": [a, b, c], "method": method, "answers": dict(found)}, grids=[grid])


def similarity(vectors: WordVectors, given: list[str]) -> Found:
    a, b = (find_spelling(vectors, word) for word in given)
    value = vectors.similarity(a, b)
    return Found({"words": [a, b], "cosine": value}, [f"{a} and {b}: cosine {value:.3f}"])


def evaluate(vectors: WordVectors, given: list[str]) -> Found:
    solving = [solve_analogies(vectors, Path(file)) for file in given if is_analogies(file)]
    pairs = [compare_similarities(vectors, Path(file)) for file in given if not is_analogies(file)]
    grids = [analogies_grid(own) for own in solving] + ([similarity_grid(pairs)] if pairs else [])
    return Found({"analogies": solving, "similarity": pairs}, grids=grids)


def export(vectors: WordVectors, given: list[str], safe_csv: bool) -> Found:
    write_all({Path(file): writer(Path(file), vectors, safe_csv) for file in given})
    V, k = vectors.vectors_.shape
    facts = {"words": V, "n_components": k, "written": given}
    return Found(facts, [f"{V:,} words, {k} numbers each: {', '.join(given)}"])


def align(vectors: WordVectors, other: WordVectors, pairs: str | None, out: list[Path], safe_csv: bool) -> Found:
    from twofold.analyses.words.alignment import align_vectors

    turned, facts = align_vectors(vectors, other, pairs)
    write_all({file: writer(file, turned, safe_csv) for file in out})
    by = "words that both have" if pairs is None else f"pairs of {pairs}"
    lines = [f"{len(vectors):,} words turned onto {len(other):,}, by {facts['pairs']:,} {by}"]
    held = facts["held_out"]
    if held is None:
        lines.append("held out: nothing, there are too few pairs")
    else:
        lines.append(
            f"held out: of {held['words']:,} words not learned from, {held['precision_1']:.1%} find their partner, "
            f"{held['precision_5']:.1%} among five; by chance {held['by_chance_1']:.2%} and {held['by_chance_5']:.2%}"
        )
    rows = [
        [word, ", ".join(f"{name} {score:.2f}" for name, score in near.items())]
        for word, near in facts["translations"].items()
    ]
    lines += [f"wrote {', '.join(map(str, out))}"] if out else []
    return Found(
        facts | {"written": [str(file) for file in out]}, lines, [Grid(["word", "nearest there (CSLS)"], rows)]
    )


def about(model: str, vectors: WordVectors) -> Found:
    """Describe what the file holds, and what can be asked."""
    V, k = vectors.vectors_.shape
    some = examples(vectors, 8)
    lines = [f"{model}: {V:,} words, {k} numbers each", f"among them: {', '.join(some)}"]
    lines += [f"twofold words {model} {name} {use}" for name, use in USES.items()]
    return Found({"file": model, "words": V, "n_components": k, "some": some}, lines)


def rank_words(title: str, name: str, found: list[tuple[str, float]]) -> Grid:
    """Words with their scores, as a table with bars."""
    rows = [[word, f"{score:.3f}", float(score)] for word, score in found]
    return Grid([title, name, ""], rows, right=(1,), most=len(rows))
