"""Questions that files put to word vectors: analogies, and pairs of words that people have judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.analyses.common.answer import Grid

if TYPE_CHECKING:
    from twofold.words.word_vectors.word_vectors import WordVectors

CUSTOM = 30_000  # the vocabulary that analogies are usually solved with


def solved(vectors: WordVectors, path: Path) -> dict[str, Any]:
    """Analogies with the customary vocabulary, and with all words."""
    sizes = {f"the {CUSTOM:,} most frequent": CUSTOM} if len(vectors) > CUSTOM else {}
    out: dict[str, Any] = {"file": str(path), "vocabularies": {}}
    for name, size in {**sizes, "all": None}.items():
        score = vectors.evaluate_analogies(path, vocabulary=size)
        out["vocabularies"][name] = {key: value for key, value in score._asdict().items() if key != "sections"}
        out.setdefault("sections", score.sections.to_dicts())
    return out


def agreed(vectors: WordVectors, path: Path) -> dict[str, Any]:
    """How far the vectors rank pairs of words as people do."""
    return {"file": str(path), **vectors.evaluate_similarity(path)._asdict()}


def analogies_grid(asked: dict[str, Any]) -> Grid:
    """Sections with the first vocabulary, totals with each."""
    rows = [[part["section"], *cells(part)] for part in asked["sections"]]
    rows += [[f"together, of {name} words", *cells(own)] for name, own in asked["vocabularies"].items()]
    return Grid(["analogies", "right", "asked", "not asked"], rows, right=(1, 2, 3), most=len(rows))


def cells(own: dict[str, Any]) -> list[str]:
    right = own["accuracy"]
    return [f"{right:.1%}" if right == right else "–", f"{own['asked']:,}", f"{own['skipped']:,}"]


def similarity_grid(asked: list[dict[str, Any]]) -> Grid:
    rows = [[own["file"], f"{own['spearman']:.3f}", f"{own['asked']:,}", f"{own['skipped']:,}"] for own in asked]
    return Grid(["similarity", "Spearman", "pairs", "not known"], rows, right=(1, 2, 3), most=len(rows))


def is_analogies(path: str | Path) -> bool:
    """Whether a file asks for analogies: a line of four words, or the name of a section, comes first."""
    with open(path, encoding="utf-8", errors="replace") as file:
        first = next((line.strip() for line in file if line.strip() and not line.startswith("#")), "")
    fields = first.split()
    return first.startswith(":") or (len(fields) == 4 and not any(_number(field) for field in fields))


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
