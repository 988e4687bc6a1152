"""Ratings in a folder: the same cells and the same fits as in memory, on threads and on worker processes, undisturbed
or not; and one clear error for what cannot be read, written or found."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from tests.callbacks import Crash, Recorder
from tests.conftest import start_processes
from twofold import (
    ALS,
    EASE,
    Biases,
    Checkpoint,
    ImplicitALS,
    InputError,
    PartitionedRatings,
    Popularity,
    Recommender,
    SoftImpute,
    config,
)
from twofold.completion.partitioned import cells as fitting
from twofold.completion.partitioned import ratings as module
from twofold.completion.partitioned import sources
from twofold.completion.partitioned._layout import read_cells
from twofold.completion.partitioned._writing import cut_rows, make_units
from twofold.completion.partitioned.stored_rows import StoredRows
from twofold.completion.ratings_table import cells_of
from twofold.core.engine.tasks import Tasks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"reg": 0.1, "max_iter": 7, "tol": 0.0, "random_state": 0}
QUICK = SHORT | {"max_iter": 4}
FACTORS = ("row_factors_", "components_", "row_bias_", "column_bias_")


def same_bits(model, other):
    return all(np.array_equal(getattr(model, name), getattr(other, name)) for name in FACTORS)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Some shards of little data."""
    monkeypatch.setattr(module, "CELLS", (2**9, 2**20))
    monkeypatch.setattr(module, "SHARDS", 5)


def make_rows(seed=0, n=300, d=80, m=4000):
    rng = np.random.default_rng(seed)
    i, j = (n * rng.random(m) ** 1.5).astype(int), (d * rng.random(m) ** 2).astype(int)
    U, Z = rng.normal(size=(n, 3)), rng.normal(size=(d, 3))
    x = np.clip(np.round(3 + 0.7 * (U[i] * Z[j]).sum(axis=1) + 0.3 * rng.normal(size=m)), 1, 5)
    return pl.DataFrame(
        {"userId": i * 3, "movieId": j * 7, "rating": x, "timestamp": rng.integers(10**9, 2 * 10**9, m)}
    )


@pytest.fixture
def rows():
    return make_rows()


def write_parts(rows, folder, write):
    folder.mkdir()
    for p, part in enumerate(rows.iter_slices(1500)):
        write(part, folder / f"{p}")
    return folder


@pytest.fixture
def folder(rows, tmp_path):
    return write_parts(rows, tmp_path / "in", lambda part, path: part.write_parquet(f"{path}.parquet"))


def in_memory(rows, duplicates="mean"):
    return cells_of(rows, duplicates="mean", implicit=duplicates == "sum").X


# ---- the cells ------------------------------------------------------------------------------------------------------


def stack(parts, side):
    """The cells of one side, shard by shard, as triples."""
    found = []
    for u, unit in enumerate(side.units):
        X = read_cells(parts.folder, side, u, parts.shape[side is parts.rows]).tocoo()
        found.append(np.stack([X.coords[0] + unit.first, X.coords[1], X.data]))
    i, j, x = np.concatenate(found, axis=1)
    order = np.lexsort((j, i))
    return i[order].astype(int), j[order].astype(int), x[order]


@pytest.mark.parametrize("heavy", [2**19, 60])
def test_cells_are_those_of_memory_along_both_sides(folder, rows, monkeypatch, heavy):
    monkeypatch.setattr(module, "HEAVY", heavy)
    parts, held = PartitionedRatings(folder), cells_of(rows)
    assert parts.shape == held.X.shape
    assert parts.n_ratings == held.X.nnz
    assert np.array_equal(parts.users, held.users)
    assert np.array_equal(parts.items, held.items)
    for side, X in ((parts.rows, held.X), (parts.cols, held.X.T.tocsr())):
        assert len(side.units) > 3
        i, j, x = stack(parts, side)
        truth = X.tocoo()
        order = np.lexsort((truth.coords[1], truth.coords[0]))
        assert np.array_equal(i, truth.coords[0][order])
        assert np.array_equal(j, truth.coords[1][order])
        assert np.array_equal(x, truth.data[order])


@pytest.mark.parametrize("duplicates", ["mean", "last", "sum"])
def test_pairs_that_occur_twice(tmp_path, duplicates):
    rows = pl.DataFrame({"user": [1, 2, 1, 1], "item": [1, 1, 1, 2], "rating": [1.0, 2.0, 4.0, 3.0]})
    folder = tmp_path / "in"
    folder.mkdir()
    rows[:2].write_parquet(folder / "a.parquet")
    rows[2:].write_parquet(folder / "b.parquet")
    parts = PartitionedRatings(folder, duplicates=duplicates)
    assert parts.n_ratings == 3
    assert stack(parts, parts.rows)[2].tolist() == [{"mean": 2.5, "last": 4.0, "sum": 5.0}[duplicates], 3.0, 2.0]


def save_npz(part, path):
    np.savez(f"{path}.npz", **{name: part[name].to_numpy() for name in part.columns})


@pytest.mark.parametrize(
    "write",
    [lambda part, path: part.write_csv(f"{path}.csv"), lambda part, path: part.write_ndjson(f"{path}.jsonl"), save_npz],
    ids=["csv", "jsonl", "npz"],
)
def test_the_format_of_the_files_does_not_matter(rows, folder, tmp_path, write):
    other = PartitionedRatings(write_parts(rows, tmp_path / "other", write))
    same = PartitionedRatings(f"{folder}/*.parquet", tmp_path / "kept")
    assert other.sign() == same.sign() == PartitionedRatings(folder=tmp_path / "kept").sign()
    assert all(np.array_equal(a, b) for a, b in zip(stack(other, other.cols), stack(same, same.cols), strict=True))


def test_ids_may_be_text_in_some_files(rows, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows[:2000].write_parquet(folder / "a.parquet")
    text = rows[2000:].with_columns(pl.concat_str([pl.lit("u"), pl.col("userId").cast(pl.String)]).alias("userId"))
    text.write_parquet(folder / "b.parquet")
    parts = PartitionedRatings(folder)
    every = pl.concat([rows.with_columns(pl.col("userId").cast(pl.String))[:2000], text])
    held = cells_of(every)
    assert parts.users.tolist() == held.users.tolist()
    truth = held.X.tocoo()
    assert np.array_equal(stack(parts, parts.rows)[2], truth.data)


def test_shards_have_about_equally_many_cells_and_heavy_rows_are_alone():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 20, 1000)
    counts[[5, 500]] = 3000
    bounds = cut_rows(counts, 500, 1000)
    cells = np.add.reduceat(counts, bounds[:-1])
    assert {5, 6, 500, 501} <= set(bounds.tolist())
    assert cells[cells < 3000].max() <= 500 + 20
    others = rng.integers(1, 20, 200)
    cut = cut_rows(others, 300, 1000)
    units = make_units(bounds, cut, counts, others, 1000)
    heavy = [unit for unit in units if unit.first == 5]
    assert len(heavy) == 3
    assert [heavy[0].lo, heavy[-1].hi] == [0, 200]
    assert all(a.hi == b.lo and a.hi in cut for a, b in pairwise(heavy))


# ---- fits on threads ------------------------------------------------------------------------------------------------


COUNTS = {"max_iter": 4, "tol": 0.0, "random_state": 0}
VARIANTS = ({}, {"solver": "cholesky"}, {"nonnegative": True}, {"biases": False}, {"reg_power": 0.5})
FITS = [
    *((ALS, SHORT | variant, "mean", 2**19) for variant in VARIANTS),
    *((ImplicitALS, COUNTS | {"solver": solver}, "sum", 2**19) for solver in ("cg", "cholesky", "blocks")),
    *((ALS, SHORT | {"solver": solver}, "mean", 60) for solver in ("cg", "cholesky")),
    *((ImplicitALS, COUNTS | {"solver": solver}, "sum", 60) for solver in ("cg", "cholesky")),
]


@pytest.mark.parametrize(("kind", "options", "duplicates", "heavy"), FITS)
def test_factors_are_those_of_memory_whether_rows_are_cut_or_not(
    folder, rows, monkeypatch, kind, options, duplicates, heavy
):
    monkeypatch.setattr(module, "HEAVY", heavy)
    parts = PartitionedRatings(folder, duplicates=duplicates)
    assert (len(parts.cols.units) > len(parts.cols.bounds)) == (heavy == 60)
    model, held = (kind(14, **options).fit(X) for X in (parts, in_memory(rows, duplicates)))
    for name in FACTORS:
        assert np.allclose(getattr(model, name), getattr(held, name), rtol=1e-4, atol=1e-3 if heavy == 60 else 1e-4)
    assert np.allclose(model.history_["objective"], held.history_["objective"], rtol=1e-5)
    assert model.reg_ == pytest.approx(held.reg_)
    assert np.allclose(model.predict([0, 1], [2, 3]), held.predict([0, 1], [2, 3]), rtol=1e-4, atol=1e-3)


def test_ridges_that_are_found_are_those_of_memory(folder, rows):
    model, held = ALS(random_state=0, max_iter=5).fit(folder), ALS(random_state=0, max_iter=5).fit(in_memory(rows))
    assert model.path_["rmse"] == pytest.approx(held.path_["rmse"])
    assert model.reg_ == pytest.approx(held.reg_)
    assert model.bias_reg_ == pytest.approx(held.bias_reg_)
    assert np.allclose(model.components_, held.components_, rtol=1e-4, atol=1e-5)


def test_ridges_may_be_found_on_some_users(tmp_path, monkeypatch):
    rows = make_rows(n=2000, d=120, m=60_000)
    kept, asked = rows[:50_000], rows[50_000:]
    kept.write_parquet(tmp_path / "kept.parquet")
    held = cells_of(kept)
    at = [
        np.searchsorted(ids, asked[name].to_numpy()) for ids, name in ((held.users, "userId"), (held.items, "movieId"))
    ]
    there = (at[0] < len(held.users)) & (at[1] < len(held.items))
    i, j, x = at[0][there], at[1][there], asked["rating"].to_numpy()[there]
    monkeypatch.setattr(fitting, "SAMPLE_RATINGS", 25_000)
    errors = [
        np.sqrt(np.mean((model.predict(i, j) - x) ** 2))
        for model in (
            ALS(random_state=0).fit(tmp_path / "kept.parquet"),
            ALS(random_state=0).fit(held.X),
            Biases().fit(held.X),
        )
    ]
    assert errors[0] < 1.1 * errors[1] < errors[2]


def test_factors_beyond_the_budget_stay_on_disk(folder, tmp_path):
    whole = ALS(14, **SHORT).fit(PartitionedRatings(folder))
    parts = PartitionedRatings(folder, tmp_path / "kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "keeps_on_disk", lambda *_: True)
        model = ALS(14, **SHORT).fit(parts)
        with pytest.raises(InputError, match="Give PartitionedRatings a folder"):
            ALS(14, **SHORT).fit(PartitionedRatings(folder))
    assert isinstance(model.row_factors_, np.memmap)
    assert np.array_equal(model.row_factors_, whole.row_factors_)
    assert np.array_equal(model.components_, whole.components_)
    assert np.array_equal(model.predict([1, 2], [3, 4]), whole.predict([1, 2], [3, 4]))


@pytest.mark.parametrize(
    "options", [{}, {"intercept": True}, {"max_items": 30}, {"reg": 50.0}], ids=["auto", "intercept", "few", "given"]
)
def test_ease_is_that_of_memory(folder, rows, options, monkeypatch):
    monkeypatch.setattr(fitting, "GRAM_NUMBERS", (1000, 1000))
    monkeypatch.setattr(module, "HEAVY", 60)
    parts, X = PartitionedRatings(folder, duplicates="sum"), in_memory(rows, "sum")
    assert len(parts.rows.units) > len(parts.rows.bounds) - 1  # some rows are cut
    model, held = EASE(**options).fit(parts), EASE(**options).fit(X)
    assert np.array_equal(model.columns_, held.columns_)
    assert model.reg_ == pytest.approx(held.reg_)
    assert np.allclose(model.weights_, held.weights_, atol=1e-5)
    assert np.allclose(model.products_.toarray(), held.products_.toarray(), rtol=1e-5)
    assert np.array_equal(model.seen_.toarray(), held.seen_.toarray())
    assert np.allclose(model.predict([0, 1, 0], [2, 3, 7]), held.predict([0, 1, 0], [2, 3, 7]), atol=1e-4)


def test_what_ease_has_seen_stays_on_disk_beyond_the_budget(tmp_path):
    rows = make_rows(m=60_000, n=4000)
    rows.write_parquet(tmp_path / "rows.parquet")
    parts, X = (
        PartitionedRatings(tmp_path / "rows.parquet", tmp_path / "kept", duplicates="sum"),
        in_memory(rows, "sum"),
    )
    with config(memory="1100KB"):
        model = EASE(reg=50.0).fit(parts)
        with pytest.raises(InputError, match="Give PartitionedRatings a folder"):
            EASE(reg=50.0).fit(tmp_path / "rows.parquet")
    assert isinstance(model.seen_, StoredRows)
    some = [3900, 1, 1, 2000]
    assert np.array_equal(model.seen_[some].toarray(), X[some].toarray())
    assert np.allclose(model.predict(some, [1, 2, 3, 4]), EASE(reg=50.0).fit(X).predict(some, [1, 2, 3, 4]), atol=1e-4)


# ---- by id ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ALS", "ImplicitALS", "EASE"])
def test_a_recommender_of_files_recommends_what_one_of_a_frame_does(folder, rows, name):
    given = {
        "ALS": ALS(6, **SHORT), "ImplicitALS": ImplicitALS(6, max_iter=3, random_state=0), "EASE": EASE(reg=50.0),
    }[name]  # fmt: skip
    parts = PartitionedRatings(folder, duplicates="mean" if name == "ALS" else "sum")
    files, frame = Recommender(given).fit(parts), Recommender(given).fit(rows)
    user, item = int(frame.users_[7]), int(frame.items_[3])
    for ask in (
        lambda rec: rec.recommend(user, 5),
        lambda rec: rec.recommend_new({item: 5.0}, 5),
        lambda rec: rec.explain(user, item, 5),
        lambda rec: pl.concat(list(rec.recommend_all(3))),
    ):
        ours, held = ask(files), ask(frame)
        assert ours.columns == held.columns
        for column in ours.columns:
            assert np.allclose(ours[column].to_numpy(), held[column].to_numpy(), rtol=1e-3, atol=1e-4)
    assert np.allclose(files.predict([user, user], [item, 0]), frame.predict([user, user], [item, 0]), atol=1e-3)
    assert np.isfinite(files.predict([user, -5], [-5, item])).all()
    with pytest.raises(InputError, match="in memory"):
        files.evaluate()


def test_a_recommender_refuses_a_model_that_needs_all_ratings_in_memory(folder):
    with pytest.raises(InputError, match="Give Recommender one of ALS"):
        Recommender(SoftImpute()).fit(PartitionedRatings(folder))


def test_a_dask_frame_is_read_piece_by_piece(rows):
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    held = cells_of(rows)
    pieces = dd.from_pandas(rows.to_pandas(), npartitions=3)
    array = da.from_array(rows.select("userId", "movieId", "rating").to_numpy().astype(float), chunks=(1500, 2))
    for parts in (PartitionedRatings(pieces), PartitionedRatings(array)):
        assert np.array_equal(parts.users, held.users)
        assert np.array_equal(stack(parts, parts.rows)[2], held.X.data)
    assert same_bits(ALS(4, **QUICK).fit(pieces), ALS(4, **QUICK).fit(PartitionedRatings(array)))


class At(Recorder):
    """A callback that does something after a sweep."""

    def __init__(self, sweep, do):
        super().__init__()
        self.sweep, self.do = sweep, do

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if context.parent is not None and self.events.count("end sweep") == self.sweep:
            self.do()


def test_a_checkpoint_goes_on_with_the_same_bits(folder, tmp_path):
    parts = PartitionedRatings(folder)
    whole = ALS(14, **SHORT).fit(parts)
    saved = Checkpoint(tmp_path / "als.checkpoint")
    with pytest.raises(Crash):
        ALS(14, **SHORT).set_callbacks(saved, Recorder(crash_after=4)).fit(parts)
    model = ALS(14, **SHORT).set_callbacks(saved).fit(parts)
    assert np.array_equal(model.row_factors_, whole.row_factors_)
    assert model.history_["objective"] == whole.history_["objective"]


# ---- on worker processes --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes():
    """A cluster of one worker process at first."""
    with start_processes(1) as cluster:
        yield cluster


def kill_one(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_one_worker_and_three_give_the_bits_of_threads(processes, folder, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(fitting, "SWEEPS_PER_FILE", 3)
    monkeypatch.setattr(module, "HEAVY", 200)
    held = PartitionedRatings(folder)
    whole, clicks = ALS(14, **QUICK).fit(held), ImplicitALS(6, max_iter=2, random_state=0).fit(held)
    with Client(processes) as client:
        parts = PartitionedRatings(folder)
        assert parts.sign() == held.sign()
        assert same_bits(ALS(14, **QUICK).fit(parts), whole)
        processes.scale(3)
        client.wait_for_workers(3, timeout=300)
        model = ALS(14, **QUICK).fit(parts)
        assert same_bits(model, whole)
        assert model.history_["objective"] == whole.history_["objective"]
        assert same_bits(ImplicitALS(6, max_iter=2, random_state=0).fit(parts), clicks)


@pytest.mark.parametrize("heavy", [2**19, 200])
def test_shards_taken_together_on_a_cluster_change_no_bit(clusters, folder, monkeypatch, heavy):
    from distributed import Client

    from twofold.completion.partitioned import _tasks

    monkeypatch.setattr(module, "HEAVY", heavy)
    monkeypatch.setattr(module, "SHARDS", 20)
    monkeypatch.setattr(module, "CELLS", (50, 2**20))
    monkeypatch.setattr(_tasks, "SHARDS_PER_THREAD", 1)
    parts = PartitionedRatings(folder)
    models = [lambda: ALS(14, **QUICK), lambda: ImplicitALS(6, max_iter=2, random_state=0)]
    held = [make().fit(parts) for make in models]
    with Client(clusters(2)):
        cells = fitting.PartitionedCells(ALS(14), parts, None, 15)
        for side, taken in ((parts.rows, cells.sides["rows"]), (parts.cols, cells.sides["cols"])):
            assert len(taken.bounds) < len(side.bounds) and set(taken.bounds) <= set(side.bounds)
            assert taken.routes.sum() == side.routes.sum()
        found = [make().fit(parts) for make in models]
    for model, whole in zip(found, held, strict=True):
        assert same_bits(model, whole)
        assert model.history_["objective"] == whole.history_["objective"]


def test_a_worker_killed_in_mid_sweep_changes_no_bit(processes, folder, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(fitting, "SWEEPS_PER_FILE", 3)
    whole, parts = ALS(14, **SHORT).fit(folder), PartitionedRatings(folder)
    with Client(processes) as client:
        late = threading.Timer(0.05, kill_one, [client])
        model = ALS(14, **SHORT).set_callbacks(At(2, late.start)).fit(parts)
        late.join()
    assert same_bits(model, whole)
    assert model.history_["objective"] == whole.history_["objective"]


def test_another_goes_on_when_the_scheduler_is_gone(folder, tmp_path):
    from distributed import Client, LocalCluster

    parts, saved = PartitionedRatings(folder), Checkpoint(tmp_path / "als.checkpoint")
    whole = ALS(14, **SHORT).fit(parts)
    cluster = LocalCluster(processes=False, n_workers=1, dashboard_address=":0", silence_logs=50)
    with Client(cluster), pytest.raises(ConnectionError, match="is gone"):
        ALS(14, **SHORT).set_callbacks(saved, At(3, cluster.close)).fit(parts)
    assert same_bits(ALS(14, **SHORT).set_callbacks(saved).fit(parts), whole)


def test_rows_that_are_not_needed_are_not_sent(processes, folder, monkeypatch):
    from distributed import Client

    from twofold.completion.partitioned import _tasks

    held = ALS(14, **QUICK).fit(folder)
    monkeypatch.setattr(_tasks, "SMALL_SHARD_ROWS", 0)
    monkeypatch.setattr(Tasks, "workers", 100)
    assert same_bits(ALS(14, **QUICK).fit(folder), held)
    with Client(processes):
        assert same_bits(ALS(14, **QUICK).fit(folder), held)


def test_a_folder_that_is_gone_is_one_clear_error(processes, folder, tmp_path):
    from distributed import Client

    for client in (None, processes):
        parts = PartitionedRatings(folder, tmp_path / "kept")
        lost = At(2, lambda: shutil.rmtree(tmp_path / "kept"))
        opened = Client(client) if client else None
        with pytest.raises(InputError, match="kept is gone"):
            ALS(14, **SHORT).set_callbacks(lost).fit(parts)
        if opened:
            opened.close()


# ---- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_truncated_file_is_named(folder, tmp_path):
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"1\.parquet"):
        PartitionedRatings(folder, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
    (folder / "1.parquet").write_bytes(whole)
    parts = PartitionedRatings(folder, tmp_path / "kept")
    shard = tmp_path / "kept" / "cols" / "00001.npz"
    shard.write_bytes(shard.read_bytes()[:500])
    with pytest.raises(InputError, match=r"00001\.npz is damaged"):
        ALS(14, **SHORT).fit(parts)


def test_a_full_disk_is_one_clear_error(folder, tmp_path):
    script = (
        "import resource, sys\nfrom twofold import PartitionedRatings\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try:\n    PartitionedRatings(sys.argv[1], sys.argv[2])\n"
        "except OSError as error:\n    print(error.filename)\n"
    )
    command = [sys.executable, "-c", script, str(folder), str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.startswith(str(tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


def test_refusals(folder, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for options, words in (
        ({"folder": tmp_path / "full", "source": folder}, "is not empty"),
        ({"folder": tmp_path / "full"}, "holds no partitioned ratings"),
        ({}, "needs ratings"),
        ({"source": np.ones((3, 3))}, "ndarray"),
        ({"source": folder, "duplicates": "first"}, "duplicates="),
        ({"source": folder, "user": "who"}, "who"),
    ):
        with pytest.raises(InputError, match=words):
            PartitionedRatings(**options)
    parts = PartitionedRatings(folder)
    with pytest.raises(InputError, match="sample_weight"):
        ALS(3, reg=0.1).fit(parts, sample_weight=np.ones(300))
    with pytest.raises(InputError, match="normalize"):
        ALS(3, reg=0.1, normalize="row").fit(parts)
    for do in (ALS(3, reg=0.1, max_iter=1).fit(parts).transform, SoftImpute().fit):
        with pytest.raises(InputError, match="no table"):
            do(parts)
    bad = make_rows().with_columns(pl.col("rating") - 3)
    bad.write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="Negative values"):
        ImplicitALS(3).fit(tmp_path / "bad.parquet")


def test_a_table_of_numbers_is_still_a_table(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 4))
    pl.DataFrame(X, schema=list("abcd")).write_parquet(tmp_path / "table.parquet")
    assert ALS(1, reg=0.1, max_iter=2).fit(tmp_path / "table.parquet").n_features_in_ == 4


# ---- held out, chosen, listed ----------------------------------------------------------------------------------------


def test_what_is_held_out_and_what_is_fitted_are_all_ratings(folder, rows):
    whole, parts = PartitionedRatings(folder), PartitionedRatings(folder, holdout=0.2)
    held, seen = parts.held_out, StoredRows(parts, whole=True)
    assert parts.n_ratings + held.nnz == whole.n_ratings == seen.nnz
    share, spread = held.nnz / whole.n_ratings, (0.2 * 0.8 / whole.n_ratings) ** 0.5
    assert abs(share - 0.2) < 6 * spread
    every = np.arange(parts.shape[0])
    X = StoredRows(whole)[every]
    assert (seen[every] != X).nnz == 0
    assert np.array_equal(seen.indptr, X.indptr)
    assert np.array_equal(seen.count_columns(), np.bincount(X.indices, minlength=X.shape[1]))
    assert StoredRows(parts)[every].multiply(held).nnz == 0
    for side in (parts.rows, parts.cols):  # both sides hold the same cells out
        assert len(stack(parts, side)[0]) == parts.n_ratings


def test_of_many_ratings_those_of_some_users_are_held_out(folder, monkeypatch):
    monkeypatch.setattr(module, "HELD", 100)
    parts = PartitionedRatings(folder, holdout=0.5)
    rows = np.flatnonzero(np.diff(parts.held_out.indptr))
    assert 0 < parts.held_out.nnz < 400 and len(rows) < parts.shape[0] / 4


def test_baselines_are_those_of_memory(folder, rows):
    parts, X = PartitionedRatings(folder), in_memory(rows)
    for kind, names in ((Biases, ("row_bias_", "column_bias_")), (Popularity, ("popularity_",))):
        there, here = kind().fit(parts), kind().fit(X)
        for name in names:
            assert np.allclose(getattr(there, name), getattr(here, name), atol=1e-5), name
        assert np.isclose(there.history_["objective"][-1], here.history_["objective"][-1])


def test_models_are_chosen_and_do_not_lose_to_the_trivial_ones(folder):
    rec = Recommender(random_state=0).fit(PartitionedRatings(folder, holdout=0.1))
    choice = rec.choice_
    assert set(choice["tried"]) == {"Biases", "ALS"} and "Popularity" in choice["ranking"]["tried"]
    assert choice["score"] <= choice["baseline_score"]
    assert choice["ranking"]["score"] >= choice["ranking"]["baseline_score"]
    assert choice["model"] == "ALS"  # there are factors to be found
    without = Recommender(random_state=0).fit(PartitionedRatings(folder))
    assert "nothing was held out" in without.choice_["why"] and "score" not in without.choice_


@pytest.mark.parametrize("kind", [ImplicitALS, Popularity, EASE])
def test_lists_of_all_users_are_those_of_each(folder, rows, kind):
    model = kind(4, random_state=0) if kind is ImplicitALS else kind()
    rec = Recommender(model).fit(PartitionedRatings(folder, holdout=0.1))
    lists = pl.concat(list(rec.recommend_all(4)))
    seen = {(user, item) for user, item in rows.select("userId", "movieId").iter_rows()}
    assert not seen & set(lists.select("user", "item").iter_rows())  # what was held out is known, too
    for user in rec.users_[::60].tolist():
        mine = rec.recommend(user, 4)
        assert np.allclose(lists.filter(user=user)["score"], mine["score"], atol=1e-5)


def test_a_text_file_in_pieces_is_read_as_a_whole(rows, tmp_path, monkeypatch):
    for name, header in (("a.csv", True), ("b.csv", False)):
        rows.write_csv(tmp_path / name, include_header=header)
    whole = PartitionedRatings(tmp_path / "a.csv")
    monkeypatch.setattr(sources, "TEXT", (1000, 7000))
    for name in ("a.csv", "b.csv"):
        assert len(sources.cut_text(str(tmp_path / name))) > 5
        parts = PartitionedRatings(tmp_path / name)
        assert parts.sign() == whole.sign() and np.array_equal(parts.users, whole.users)
        assert np.array_equal(stack(parts, parts.rows), stack(whole, whole.rows))
    text = (tmp_path / "a.csv").read_text().splitlines()
    text[700] = '"1' + 8000 * "\n" + '",7,3.0,5'  # longer than a piece
    (tmp_path / "c.csv").write_text("\n".join(text))
    with pytest.raises(InputError, match="line break between quotes"):
        PartitionedRatings(tmp_path / "c.csv")


def test_the_memory_budget_changes_no_bit(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "PIECE", (300, 2**21))
    found = []
    for memory in ("1MiB", "1GB"):
        with config(memory=memory):
            parts = PartitionedRatings(folder, tmp_path / memory, holdout=0.1)
            model = ALS(3, **QUICK).fit(parts)
            found.append((parts.sign(), parts.held_out, np.array(model.row_factors_), np.array(model.components_)))
    (sign, held, *factors), (sign_too, held_too, *factors_too) = found
    assert sign == sign_too and (held != held_too).nnz == 0
    assert all(np.array_equal(a, b) for a, b in zip(factors, factors_too, strict=True))


def test_two_models_in_one_folder_keep_their_factors(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "keeps_on_disk", lambda *_: True)
    parts = PartitionedRatings(folder, tmp_path / "kept")
    first = ALS(3, **QUICK).fit(parts)
    before = np.array(first.row_factors_)
    ALS(2, **QUICK).fit(parts)
    assert np.array_equal(first.row_factors_, before)
