"""Ratings as a matrix, feedback of 0 and 1, and tables that say what items are called."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from twofold import InputError, Recommender, load
from twofold.completion.biases import Biases
from twofold.io.ratings import read_names, read_ratings


def jokes(n=60, d=12, seed=0):
    """Ratings from -10 to 10 with two decimals; NaN where there is none. Every row and column has some."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 1)) + 4 * rng.normal(size=(n, d)), -9.9, 9.9).round(2) + 0.05
    return np.where((rng.random((n, d)) < 0.6) | np.eye(n, d, dtype=bool) | (np.arange(d) == 0), X, np.nan)


def cells(found):
    """{(row, column): rating} of what was read, rows and columns by the order of their ids."""
    rows, cols = (sorted(set(ids)) for ids in (found.user, found.item))
    triples = zip(found.user, found.item, found.rating, strict=True)
    return {(rows.index(u), cols.index(i)): r for u, i, r in triples}


def expected(X):
    return {(i, j): X[i, j] for i, j in zip(*np.nonzero(~np.isnan(X)), strict=True)}


NAMES = [f"joke {j:02d}" for j in range(12)]


def write_forms(X, folder):
    """The same matrix as people save it."""
    n, d = X.shape
    coded = np.where(np.isnan(X), 99, X)
    plain = folder / "plain.csv"
    np.savetxt(plain, coded, fmt="%.2f", delimiter=",")
    counted = folder / "counted.tsv"
    np.savetxt(counted, np.column_stack([(~np.isnan(X)).sum(axis=1), coded]), fmt="%.2f", delimiter="\t")
    np.save(folder / "array.npy", coded)
    named = pd.DataFrame(X, columns=NAMES, index=[f"u{i:03d}" for i in range(n)])
    named.to_csv(folder / "named.csv")
    named.to_csv(folder / "semicolon.csv", sep=";", decimal=",")
    named.set_axis(range(1, d + 1), axis=1).to_csv(folder / "numbered.csv")
    named.set_axis(range(1, d + 1), axis=1).set_axis(range(500, 500 + n)).to_csv(folder / "numbers_alone.csv")
    named.reset_index(names="User").to_parquet(folder / "m.parquet")
    stars = pl.DataFrame({"user": np.arange(n)} | dict(zip(NAMES, X.T, strict=True))).fill_nan(None)
    stars.write_ndjson(folder / "m.jsonl")
    return [folder / name for name in ("plain.csv", "counted.tsv", "array.npy", "named.csv", "semicolon.csv",
                                       "numbered.csv", "numbers_alone.csv", "m.parquet", "m.jsonl")]  # fmt: skip


def test_every_form_of_a_matrix_is_read_as_one(tmp_path):
    X = jokes()
    want = expected(X)
    for path in write_forms(X, tmp_path):
        found = read_ratings(path)
        assert found.matrix, path.name
        assert cells(found) == pytest.approx(want), path.name
        assert any("read as a matrix of ratings, 60 users × 12 items" in note for note in found.notes), path.name
    assert any('"column_1" counts the ratings' in note for note in read_ratings(tmp_path / "counted.tsv").notes)
    assert any("99, in" in note for note in read_ratings(tmp_path / "array.npy").notes)
    assert set(read_ratings(tmp_path / "named.csv").item) == set(NAMES)
    assert set(read_ratings(tmp_path / "numbered.csv").item) == set(range(1, 13))


def test_matrices_in_memory():
    X = jokes()
    pivot = pd.DataFrame(X, columns=NAMES, index=pd.Index([f"u{i:03d}" for i in range(60)], name="user"))
    for form in (X, pivot, pl.from_pandas(pivot.reset_index())):
        assert cells(read_ratings(form)) == pytest.approx(expected(X))
    turned = pl.DataFrame({"title": NAMES} | {f"u{i:03d}": X[i] for i in range(60)})
    assert cells(read_ratings(turned)) == pytest.approx(expected(X))  # rows are items where their column says so
    assert any('"title" names the items' in note for note in read_ratings(turned).notes)
    rec = Recommender(Biases()).fit(pivot)
    assert rec.items_.tolist() == NAMES and rec.ratings_.nnz == len(expected(X))


@pytest.mark.parametrize("code", [0, -1, 99])
def test_a_number_that_stands_for_no_rating_is_found(tmp_path, code):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((50, 8)) < 0.5, rng.integers(1, 6, (50, 8)).astype(float), np.nan)
    X[0] = [1, 5, 1, 5, 1, 5, 1, 5]
    np.savetxt(tmp_path / "m.csv", np.where(np.isnan(X), code, X), fmt="%d", delimiter=",")
    found = read_ratings(tmp_path / "m.csv")
    assert found.matrix and found.rating.tolist() == X[~np.isnan(X)].tolist()
    assert any(note.startswith(f"{code}, in ") for note in found.notes)


def triples(n=500, seed=2):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "a": rng.integers(1, 90, n),
            "b": rng.integers(1, 40, n),
            "c": rng.integers(1, 6, n),
            "d": rng.integers(8 * 10**8, 9 * 10**8, n),
        }
    )


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], ["userId", "movieId", "x", "y"]])
def test_rows_of_user_item_and_rating_are_no_matrix(tmp_path, names):
    frame = triples().rename(dict(zip("abcd", names, strict=True)))
    frame.write_csv(tmp_path / "r.csv")
    frame.write_csv(tmp_path / "bare.tsv", separator="\t", include_header=False)
    for form in (frame, frame.select(names[:3]), frame.select(names[:2]), tmp_path / "r.csv", tmp_path / "bare.tsv"):
        found = read_ratings(form)
        assert not found.matrix and found.user.to_list() == frame[names[0]].to_list()
        assert found.item.to_list() == frame[names[1]].to_list()
    assert read_ratings(tmp_path / "bare.tsv").time.cast(pl.Int64).to_list() == frame[names[3]].to_list()


def test_named_columns_are_never_a_matrix():
    X = jokes()
    frame = pl.DataFrame(dict(zip(NAMES, X.T, strict=True))).with_columns(pl.int_range(pl.len()).alias("who"))
    found = read_ratings(frame.fill_nan(None), user="who", item=NAMES[0], rating=NAMES[1])
    assert not found.matrix and len(found.user) == (~np.isnan(X[:, 1])).sum()


def test_a_table_of_measurements_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    pl.DataFrame({"length": rng.normal(5, 1, 50), "mass": rng.normal(900, 200, 50), "age": rng.integers(1, 90, 50),
                  "height": rng.normal(170, 9, 50)}).write_csv(tmp_path / "t.csv")  # fmt: skip
    with pytest.raises(InputError, match=r'"length" would be the users.*no matrix.*user_column='):
        read_ratings(tmp_path / "t.csv")


def test_zeros_and_ones_are_feedback():
    rng = np.random.default_rng(0)
    yes = rng.random((30, 10)) < 0.4
    yes[np.arange(30), np.arange(30) % 10] = True
    i, j = np.indices(yes.shape).reshape(2, -1)
    for form in ((i, j, yes.ravel().astype(int)), yes.astype(float)):
        found = read_ratings(form)
        assert found.rating is None and len(found.user) == yes.sum()
        assert any("0 and 1" in note for note in found.notes)
        rec = Recommender(random_state=0, holdout=0).fit(form)
        assert rec.implicit_ and rec.ratings_.nnz == yes.sum()
        assert rec.refused_ is None  # a 0 fills a gap where every pair has a number
    stars = read_ratings((i, j, 1 + yes.ravel()))
    assert stars.rating is not None


def test_what_was_answered_with_no_is_not_recommended(tmp_path):
    rng = np.random.default_rng(0)
    answered, yes = rng.random((40, 12)) < 0.5, rng.random((40, 12)) < 0.6
    yes[np.arange(40), np.arange(40) % 12] = answered[np.arange(40), np.arange(40) % 12] = True
    i, j = np.nonzero(answered)
    rec = Recommender(random_state=0, holdout=0).fit((i, j, yes[i, j].astype(int)))
    rec.save(tmp_path / "m.twofold")
    for model in (rec, load(tmp_path / "m.twofold")):
        lists = pl.concat(model.recommend_all(12))
        found = np.zeros_like(answered)
        found[lists["user"].to_numpy(), lists["item"].to_numpy()] = True
        np.testing.assert_array_equal(found, ~answered)
        assert set(model.recommend(3, 12)["item"]) == set(np.flatnonzero(~answered[3]))


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def shows(tmp_path):
    """A list of 60 shows: a rank, ids in any order, titles, genres, and episodes, of which every number is an id."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(200)[:60] + 1
    episodes = np.append(np.arange(1, 51), np.arange(1, 11))
    frame = pl.DataFrame(
        {
            "genre": [["Drama", "Comedy, Music"][k] for k in rng.integers(0, 2, 60)],
            "episodes": episodes,
            "anime_ids": ids,
            "title": [f"Show &amp; {k}" for k in ids],
        }
    )
    frame.write_csv(tmp_path / "shows.csv")
    return frame, str(tmp_path / "shows.csv")


def test_names_are_joined_on_the_column_that_identifies_items(shows):
    frame, path = shows
    items = np.arange(1, 51)  # every number of episodes is among them, and only some of the true ids are
    assert frame["episodes"].is_in(items.tolist()).all() and not frame["anime_ids"].is_in(items.tolist()).all()
    names, note = read_names(path, items)
    both = set(items.tolist()) & set(frame["anime_ids"].to_list())
    assert {k: names[k] for k in both} == {k: f"Show & {k}" for k in both}
    assert set(names) == set(frame["anime_ids"].to_list())  # those that nobody has rated as well
    assert 'ids in "anime_ids", names in "title"' in note and f"{len(both)} of 50" in note


def test_columns_of_names_can_be_chosen(shows):
    frame, path = shows
    names, _ = read_names(path, np.arange(1, 51), "episodes", "genre")
    assert names[50] == frame.filter(episodes=50)["genre"][0]
    with pytest.raises(InputError, match=r"names_id=.ids.*no column"):
        read_names(path, np.arange(3), "ids")
    with pytest.raises(InputError, match='"genre" holds no id'):
        read_names(path, np.arange(3), "genre", "title")


def test_repeated_ids_must_agree_on_the_name(tmp_path):
    path = str(tmp_path / "n.csv")
    pl.DataFrame({"id": [1, 1, 2], "name": ["x", "x", "y"], "tag": ["a", "b", "a"]}).write_csv(path)
    assert read_names(path, np.array([1, 2]))[0] == {1: "x", 2: "y"}
    pl.DataFrame({"episodes": [1, 1, 2], "name": ["x", "z", "y"]}).write_csv(path)
    with pytest.raises(InputError, match=r"no column holds the ids.*names_id="):
        read_names(path, np.array([1, 2]))


def test_names_in_the_ratings_stay_with_the_model(tmp_path):
    rows = {"user": [1, 1, 2, 2, 3], "item_id": [7, 9, 7, 8, 9], "rating": [5, 1, 4, 2, 2]}
    frame = pl.DataFrame(rows | {"title": ["x", "z", "x", None, "z"]})
    Recommender(Biases()).fit(frame).save(tmp_path / "m.twofold")
    assert load(tmp_path / "m.twofold").names_.tolist() == ["x", "", "z"]
    assert Recommender(Biases()).fit(frame.drop("title")).names_ is None
