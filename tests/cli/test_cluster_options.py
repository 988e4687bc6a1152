"""--workers and --cluster: streamed files are read by worker processes, with the figures of one process."""

import json

import numpy as np
import polars as pl
import pytest

pytest.importorskip("distributed")


@pytest.fixture
def parts(folder):
    """A folder of arrays of 3 MB in all."""
    (folder / "parts").mkdir()
    X = np.random.default_rng(0).normal(size=(40_000, 10)) @ np.random.default_rng(1).normal(size=(10, 10))
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(folder / "parts" / f"{i}.npy", part)
    return folder / "parts"


def run_json(twofold, *args):
    found = twofold("--memory", "2MB", *args, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout), found.stderr


@pytest.fixture
def at_rest():
    """The memory budget as it was."""
    from twofold.core.config import config

    with config(memory="1GB"):
        yield


def test_a_folder_is_streamed_and_a_cluster_gives_the_same_answer(twofold, parts, processes, at_rest):
    here, said = run_json(twofold, "reduce", "parts", "-k", 2)
    assert "3 files are read in blocks as one table" in said
    address = processes(1).scheduler_address
    there, said = run_json(twofold, "reduce", "parts", "-k", 2, "--cluster", address)
    for answer in (here, there):
        answer.pop("seconds"), answer.pop("notes")
    assert here == there and f"tasks were done by the workers of {address}" in said


def test_a_small_table_says_that_it_was_fitted_here(twofold, folder):
    np.save(folder / "small.npy", np.random.default_rng(0).normal(size=(50, 3)))
    found = twofold("cluster", "small.npy", "-k", 2, "--workers", 1)
    assert found.exit_code == 0 and "the workers had nothing to do" in found.stderr


def test_addresses_and_workers_that_cannot_be(twofold, folder):
    np.save(folder / "small.npy", np.ones((50, 3)))
    found = twofold("reduce", "small.npy", "--cluster", "tcp://127.0.0.1:1", "--workers", 2)
    assert found.exit_code != 0 and "Give one of the two" in str(found.exception) + found.output


@pytest.fixture
def stars(folder):
    """A file of ratings that take 1.2 MB in memory, with factors to be found in them."""
    rng = np.random.default_rng(0)
    i, j = (900 * rng.random(50_000) ** 1.5).astype(int), (120 * rng.random(50_000) ** 2).astype(int)
    U, Z = rng.normal(size=(900, 3)), rng.normal(size=(120, 3))
    x = np.clip(np.round(3 + 0.7 * (U[i] * Z[j]).sum(axis=1) + 0.3 * rng.normal(size=len(i))), 1, 5)
    pl.DataFrame({"user": i, "film": j, "rating": x}).write_parquet(folder / "stars.parquet")
    return folder / "stars.parquet"


def test_ratings_beyond_the_budget_are_recommended_by_workers_as_here(twofold, stars, processes, at_rest):
    here = twofold("--memory", "1.1MB", "recommend", "stars.parquet", "--json", "-o", "here.csv")
    assert here.exit_code == 0, here.output
    assert "stay on disk, in blocks" in here.stderr and "not fitted" in here.stderr
    address = processes(1).scheduler_address
    there = twofold(
        "--memory", "1.1MB", "recommend", "stars.parquet", "--json", "-o", "there.csv", "--cluster", address
    )
    assert there.exit_code == 0, there.output
    assert f"tasks were done by the workers of {address}" in there.stderr
    here, there = json.loads(here.stdout), json.loads(there.stdout)
    for answer in (here, there):
        answer.pop("seconds"), answer.pop("notes"), answer.pop("written")
    assert here == there
    assert here["figures"]["rmse"] < 0.8 * here["baseline"]["rmse"]
    assert here["figures"]["ndcg"] >= here["baseline"]["ndcg"]
    lists, seen = pl.read_csv("here.csv"), pl.read_parquet(stars)
    assert lists.equals(pl.read_csv("there.csv"))
    assert lists["user"].n_unique() == seen["user"].n_unique()
    assert not lists.join(seen, left_on=["user", "item"], right_on=["user", "film"]).height


def test_what_needs_all_ratings_in_memory_is_refused_before_anything_is_read(twofold, stars, at_rest):
    for option in (("--save", "m.twofold"), ("--split", "random")):
        found = twofold("--memory", "1.1MB", "recommend", "stars.parquet", *option)
        assert found.exit_code == 2 and "raise the budget" in found.output


def test_a_figure_of_ratings_beyond_the_budget_shows_those_of_some_users(twofold, stars, at_rest):
    found = twofold("--memory", "1.1MB", "recommend", "stars.parquet", "--model", "ALS", "-o", "figure.png")
    assert found.exit_code == 0 and stars.with_name("figure.png").exists(), found.output
