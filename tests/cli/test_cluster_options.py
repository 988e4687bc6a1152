"""--workers and --cluster: streamed files are read by worker processes, with the figures of one process."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.helpers import run_twofold
from tests.cli.worlds import write_rated, write_streamed

pytest.importorskip("distributed")


def run(*argv, memory="2MB"):
    """Return the answer of a command, without what depends on the clock and the place, and its notes."""
    result = run_twofold("--memory", memory, *argv, "--json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    for key in ("seconds", "notes", "written"):
        answer.pop(key, None)
    return answer, result.stderr


@pytest.fixture
def stars(folder):
    return write_rated()


@pytest.fixture
def gaps(folder):
    return write_streamed()


@pytest.fixture
def parts(folder):
    """A folder of arrays of 3 MB in all."""
    (folder / "parts").mkdir()
    X = np.random.default_rng(0).normal(size=(40_000, 10)) @ np.random.default_rng(1).normal(size=(10, 10))
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(folder / "parts" / f"{i}.npy", part)
    return folder / "parts"


def test_a_folder_is_streamed_and_a_cluster_gives_the_same_answer(parts, processes):
    here, notes = run("reduce", "parts", "-k", 2)
    assert "3 files are read in blocks as one table" in notes
    address = processes(1).scheduler_address
    there, notes = run("reduce", "parts", "-k", 2, "--cluster", address)
    assert here == there and f"tasks were done by the workers of {address}" in notes


def test_a_small_table_says_that_it_was_fitted_here(twofold, folder):
    np.save(folder / "small.npy", np.random.default_rng(0).normal(size=(50, 3)))
    found = twofold("cluster", "small.npy", "-k", 2, "--workers", 1)
    assert found.exit_code == 0 and "the workers had nothing to do" in found.stderr


def test_addresses_and_workers_that_cannot_be(twofold, folder):
    np.save(folder / "small.npy", np.ones((50, 3)))
    found = twofold("reduce", "small.npy", "--cluster", "tcp://127.0.0.1:1", "--workers", 2)
    assert found.exit_code != 0 and "Give one of the two" in str(found.error) + found.stderr


def test_ratings_beyond_the_budget_are_recommended_by_workers_as_here(stars, processes):
    command = ("recommend", "stars.parquet", "-o")
    here, notes = run(*command, "here.csv", memory="1.1MB")
    assert "stay on disk, in blocks" in notes and "not fitted" in notes
    address = processes(1).scheduler_address
    there, notes = run(*command, "there.csv", "--cluster", address, memory="1.1MB")
    assert here == there and f"tasks were done by the workers of {address}" in notes
    assert here["figures"]["rmse"] < 0.8 * here["baseline"]["rmse"]
    assert here["figures"]["ndcg"] >= here["baseline"]["ndcg"]
    lists, seen = pl.read_csv("here.csv"), pl.read_parquet("stars.parquet")
    assert lists.equals(pl.read_csv("there.csv"))
    assert lists["user"].n_unique() == seen["user"].n_unique()
    assert not lists.join(seen, left_on=["user", "item"], right_on=["user", "film"]).height


def test_a_figure_of_ratings_beyond_the_budget_shows_those_of_some_users(stars):
    run("recommend", "stars.parquet", "--model", "ALS", "-o", "figure.png", memory="1.1MB")
    assert Path("figure.png").exists()


def test_a_table_beyond_the_budget_is_completed_block_by_block_by_workers_as_here(gaps, processes):
    frame, X, holes = gaps
    here, notes = run("complete", "gaps", "-o", "here.parquet", "-o", "here.csv", "-o", "here.npy")
    assert "streamed in blocks" in notes and '"empty" stays as it is: blank in every row' in notes
    address = processes(1).scheduler_address
    options = ["--uncertainty", "--cluster", address, "--save", "m.twofold"]
    there, notes = run("complete", "gaps", "-o", "there.parquet", *options)
    assert f"tasks were done by the workers of {address}" in notes
    assert here == there and here["blank_cells"] == holes.sum() and here["rows"] == len(X)
    filled, more = pl.read_parquet("here.parquet"), pl.read_parquet("there.parquet")
    assert filled.schema == frame.schema and more.select(frame.columns).equals(filled)
    assert more.columns[11:] == [f"c{j}_sd" for j in range(10)]
    assert (more.select(more.columns[11:]).to_numpy() >= 0).sum() == holes.sum()
    for name in frame.columns:
        known = frame[name].is_not_null()
        assert filled[name].filter(known).equals(frame[name].filter(known))
    Y = filled.to_numpy()[:, :10].astype(float)
    assert np.isfinite(Y).all() and (Y[:, 4] == 7).all()
    measured = holes & (X.std(axis=0) > 0)
    s = np.broadcast_to(X.std(axis=0), X.shape)[measured]
    assert np.linalg.norm((Y - X)[measured] / s) < 0.3 * np.linalg.norm((X.mean(axis=0) - X)[measured] / s)
    assert here["figures"]["rmse"] < 0.5 * here["baseline"]["rmse"]
    assert pl.read_csv("here.csv").columns == frame.columns
    assert np.array_equal(np.load("here.npy")[~holes[:, 0], 0], frame["c0"].drop_nulls().to_numpy())


def test_what_is_streamed_is_filled_as_in_memory(gaps):
    command = ("complete", "gaps", "--method", "ppca", "-o")
    found, _ = run(*command, "streamed.parquet")
    whole, _ = run(*command, "whole.parquet", "-o", "page.html", memory="1GB")
    assert whole["blank_cells"] == found["blank_cells"]
    a, b = pl.read_parquet("streamed.parquet"), pl.read_parquet("whole.parquet")
    assert a.schema == b.schema
    for name in a.columns[:10]:
        assert (a[name] - b[name]).abs().max() <= (1 if a[name].dtype.is_integer() else 0.2 * a[name].std() + 1e-9)
