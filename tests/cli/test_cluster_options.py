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


# --- complete -----------------------------------------------------------------------------------------------


@pytest.fixture
def gaps(folder):
    """A folder of Parquet files of 3 MB in all, a fifth of its cells missing, of rank 2 and a little noise; what is
    missing."""
    (folder / "gaps").mkdir()
    rng = np.random.default_rng(0)
    X = 5 + rng.normal(size=(30_000, 2)) @ rng.normal(size=(2, 10)) + 0.1 * rng.normal(size=(30_000, 10))
    X[:, 3], X[:, 4] = np.round(10 * X[:, 3]), 7
    holes = rng.random(X.shape) < 0.2
    frame = pl.DataFrame(np.where(holes, np.nan, X), schema=[f"c{j}" for j in range(10)], orient="row")
    kinds = {"c3": pl.Int32, "c5": pl.Float32}
    frame = frame.fill_nan(None).cast(kinds).with_columns(empty=pl.lit(None, pl.Float64))
    for i, part in enumerate(np.array_split(np.arange(30_000), 3)):
        frame[part].write_parquet(folder / "gaps" / f"{i}.parquet", row_group_size=4_000)
    return frame, X, holes


def test_a_table_beyond_the_budget_is_completed_block_by_block_by_workers_as_here(twofold, gaps, processes, at_rest):
    frame, X, holes = gaps
    here, said = run_json(twofold, "complete", "gaps", "-o", "here.parquet", "-o", "here.csv", "-o", "here.npy")
    assert "streamed in blocks" in said and '"empty" stays as it is: blank in every row' in said
    address = processes(1).scheduler_address
    there, said = run_json(
        twofold, "complete", "gaps", "-o", "there.parquet", "--uncertainty", "--cluster", address, "--save", "m.twofold"
    )
    assert f"tasks were done by the workers of {address}" in said
    for answer in (here, there):
        answer.pop("seconds"), answer.pop("notes"), answer.pop("written")
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


def test_what_is_streamed_is_filled_as_in_memory(twofold, gaps, at_rest):
    found, _ = run_json(twofold, "complete", "gaps", "--method", "ppca", "-o", "streamed.parquet")
    whole = twofold("complete", "gaps", "--method", "ppca", "--json", "-o", "whole.parquet", "-o", "page.html")
    assert whole.exit_code == 0, whole.output
    assert json.loads(whole.stdout)["blank_cells"] == found["blank_cells"]
    a, b = pl.read_parquet("streamed.parquet"), pl.read_parquet("whole.parquet")
    assert a.schema == b.schema
    for name in a.columns[:10]:
        assert (a[name] - b[name]).abs().max() <= (1 if a[name].dtype.is_integer() else 0.2 * a[name].std() + 1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "als"], ["needs all cells in memory", "ppca", "--memory"]),
        (["--drop", "c0"], ["larger than the memory budget", "--drop"]),
        (["gaps/0.parquet", "gaps/1.parquet", "gaps/2.parquet"], ["and 2 more", "pattern in quotes", "--memory"]),
    ],
)
def test_what_does_not_stream_is_refused_in_one_line(twofold, gaps, at_rest, options, words):
    inputs = options if options[0].startswith("gaps") else ["gaps", *options]
    found = twofold("--memory", "2MB", "complete", *inputs, "-o", "out.parquet")
    assert found.exit_code == 2 and len(found.stderr.splitlines()) == 1
    assert all(word in found.stderr for word in words), found.stderr


def test_files_that_cannot_be_completed_are_named_and_nothing_is_left(twofold, gaps, folder, at_rest):
    text = pl.read_parquet("gaps/1.parquet").with_columns(name=pl.lit("x"))
    big = (folder / "gaps" / "1.parquet").read_bytes()
    for content, words in ((big[:-500], "1.parquet"), (None, 'column "name" is String')):
        if content is None:
            text.write_parquet("gaps/1.parquet")
        else:
            (folder / "gaps" / "1.parquet").write_bytes(content)
        found = twofold("--memory", "2MB", "complete", "gaps", "-o", "out.parquet")
        assert found.exit_code == 2 and words in found.stderr and len(found.stderr.splitlines()) == 1, found.stderr
        assert [path.name for path in folder.iterdir()] == ["gaps"]
