"""What is taken away from the lab, applied to the same file, gives what the lab shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.lab.test_methods import QUICK, Frames, list_fitted_arrays, same_bits
from twofold import analyses
from twofold.lab import data
from twofold.lab.methods import catalog, find

FILES = ("wine.csv", "messy.csv", "ratings.csv", "texts", "pictures.npz")
KINDS = dict(zip(FILES, ("table", "table", "ratings", "text", "pictures"), strict=True))


def write(name: str, folder: Path) -> Path:
    """Write a file as users have them: a table, one with blanks and text, ratings, a folder of texts, pictures."""
    from twofold import datasets

    path = folder / name
    if name in ("wine.csv", "messy.csv"):
        wine = datasets.wine()
        frame = pl.DataFrame(wine.data, schema=list(wine.feature_names), orient="row")
        frame = frame.insert_column(0, pl.Series("bottle", [f"no. {i}" for i in range(len(frame))]))
        frame = frame.with_columns(pl.Series("grower", [wine.target_names[i] for i in wine.target]))
        if name == "messy.csv":
            known = np.random.default_rng(0).random(len(frame)) > 0.1
            frame = frame.with_columns(pl.when(pl.Series(known)).then(pl.col("ash")), empty=pl.lit(None, pl.Float64))
        frame.write_csv(path)
    elif name == "ratings.csv":
        datasets.ratings(60, 40).ratings.write_csv(path)
    elif name == "texts":
        path.mkdir()
        for i, text in enumerate(datasets.docstrings(60).documents):
            (path / f"text {i:02}.txt").write_text(text[:600], encoding="utf-8")
    else:
        digits = datasets.digits()
        np.savez(path, images=digits.images[:150].astype(np.uint8), labels=digits.target[:150])
    return path


def find_shown(view: str, frames: Frames, applied: pl.DataFrame) -> tuple[Any, Any]:
    """Return what the last frame shows, and the same of what `twofold apply` gives."""
    first, arrays = frames[0][2], frames[-1][2]
    numbers = {name: applied[name].to_numpy() for name in applied.columns if applied[name].dtype.is_numeric()}
    if view == "points":
        return arrays["labels"], numbers["cluster"]
    if view == "topics":
        names = [name for name in numbers if name.startswith(("topic", "direction"))]
        shares = np.abs(np.stack([numbers[name] for name in names], axis=1))
        return arrays["labels"], shares[first["rows"]].argmax(axis=1)
    if view == "matrix":
        rows, columns, blank = frames[0][3]["rows"], frames[0][3]["columns"], np.isnan(first["truth"])
        if not blank.any():
            return np.zeros(0), np.zeros(0)
        return arrays["filled"][blank], np.stack([numbers[name] for name in columns], axis=1)[rows][blank]
    codes = np.stack([numbers[name] for name in numbers if name.startswith(("code", "PC"))], axis=1)
    if view == "factors":
        return arrays["left"], codes[first["rows"]]
    return arrays["points"][:, : codes.shape[1]], codes[:, :2]


CASES = [
    (method.id, name)
    for method in catalog()
    for name in FILES
    if KINDS[name] in method.kinds and "model" in method.downloads and method.id != "gan"  # which takes no rows
]
SHORT = {("kmeans", "wine.csv"), ("gaussian_mixture", "messy.csv"), ("als", "messy.csv"), ("nmf", "texts"),
         ("pca", "wine.csv"), ("factorization", "messy.csv"), ("pca", "pictures.npz")}  # fmt: skip
SHOWN = ("points", "topics", "matrix", "factors", "axes", "codes", "latent")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("id", "name"), [pytest.param(*case, marks=[] if case in SHORT else pytest.mark.soak) for case in CASES]
)
def test_a_model_taken_away_gives_of_the_same_file_what_the_lab_shows(id, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    method, path = find(id), write(name, tmp_path)
    own = data.read(str(path), name, "own")
    if reason := method.reason_against(own.describe_briefly()):
        pytest.skip(reason)
    frames = Frames()
    result = method.run(own, QUICK.get(id, {}), frames)
    result.model.save("model.twofold")
    applied = analyses.apply("model.twofold", name).table
    if method.view in SHOWN:
        coded = analyses.apply("model.twofold", name, what="codes").table if id == "fisher_lda" else applied
        shown, found = find_shown(method.view, frames, coded)
        assert shown.shape == found.shape and (shown.size > 0 or method.view == "matrix")
        np.testing.assert_allclose(shown, found, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(found).max(initial=0))))
    names: dict = {}
    exec(result.script, names)
    mine, theirs = (list_fitted_arrays(method.inner_model(model)) for model in (result.model, names["model"]))
    assert mine and not [part for part in mine if not same_bits(mine[part], theirs[part])]
    names["model"].save("again.twofold")
    assert analyses.apply("again.twofold", name).table.equals(applied, null_equal=True)
    if method.view != "words" and result.table is not None:  # whose table has the words
        same = [name for name in result.table.columns if name in applied.columns]
        assert len(same) > 1 and result.table.select(same).equals(applied.select(same), null_equal=True)
