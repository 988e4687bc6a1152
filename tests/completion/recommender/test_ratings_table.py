"""Ratings and ids in every form: what they become, and what is refused."""

import datetime
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold import InputError, Recommender, datasets, load
from twofold.completion.biases import Biases
from twofold.completion.implicit_als import ImplicitALS

RATINGS = datasets.ratings(60, 40, seed=1).ratings


# ---- ratings in every form ---------------------------------------------------------------------------------------


def test_every_form_of_the_same_ratings_is_the_same(tmp_path):
    users, items, stars = (RATINGS[c].to_numpy() for c in RATINGS.columns)
    RATINGS.write_csv(tmp_path / "r.csv")
    RATINGS.write_csv(tmp_path / "r.tsv", separator="\t", include_header=False)
    RATINGS.write_parquet(tmp_path / "r.parquet")
    expected = Recommender(Biases()).fit(RATINGS)
    forms = {
        "pandas": pd.DataFrame({c: RATINGS[c].to_numpy() for c in RATINGS.columns}),
        "lazy": RATINGS.lazy(),
        "arrays": (users, items, stars),
        "rows": list(RATINGS.iter_rows()),
        "csv": tmp_path / "r.csv",
        "tsv without header": str(tmp_path / "r.tsv"),
        "parquet": tmp_path / "r.parquet",
        "text ratings": RATINGS.with_columns(pl.col("rating").cast(pl.String)),
        "comma ratings": RATINGS.with_columns(pl.col("rating").cast(pl.String).str.replace(".", ",", literal=True)),
        "other order": RATINGS.select(pl.col("rating").alias("Stars"), pl.col("item").alias("Movie_ID"), "user"),
        "shuffled": RATINGS.sample(fraction=1, shuffle=True, seed=0),
    }
    for name, form in forms.items():
        rec = Recommender(Biases()).fit(form)
        assert rec.users_.tolist() == expected.users_.tolist(), name
        assert rec.items_.tolist() == expected.items_.tolist(), name
        assert (rec.ratings_ != expected.ratings_).nnz == 0, name


def test_columns_are_found_by_name_and_said():
    frame = pl.DataFrame(
        {"timestamp": [9, 8, 7], "ISBN": ["0x", "1", "0x"], "User-ID": [4, 4, 5], "Book-Rating": [1, 2, 3]}
    )
    rec = Recommender(Biases()).fit(frame)
    assert rec.columns_ == {"user": "User-ID", "item": "ISBN", "rating": "Book-Rating"}
    other = Recommender(Biases(), rating="timestamp").fit(frame)
    assert other.range_ == (7, 9)
    with pytest.raises(InputError, match=r"rating='stars'.*\"ISBN\""):
        Recommender(Biases(), rating="stars").fit(frame)


def test_movielens_own_delimiter(tmp_path):
    (tmp_path / "ratings.dat").write_text("1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n")
    rec = Recommender(Biases()).fit(tmp_path / "ratings.dat")
    assert rec.users_.tolist() == [1, 2] and rec.items_.tolist() == [10, 20]
    np.testing.assert_array_equal(rec.ratings_.toarray(), [[5, 3], [4, 0]])


def test_ids_with_leading_zeros_commas_and_quotes_survive_a_file(tmp_path):
    (tmp_path / "r.csv").write_text(
        'customer,product,score\n007,"Tea, green ""loose""",4.5\n8,Käse,3\n', encoding="utf-8"
    )
    rec = Recommender(Biases()).fit(tmp_path / "r.csv")
    assert rec.users_.tolist() == ["007", "8"]
    assert rec.items_.tolist() == ["Käse", 'Tea, green "loose"']


@pytest.mark.parametrize(("duplicates", "value"), [("mean", 3.0), ("last", 4.0)])
def test_a_pair_that_occurs_twice(duplicates, value):
    rows = [("a", "x", 2), ("b", "y", 1), ("a", "x", 4)]
    rec = Recommender(Biases(), duplicates=duplicates).fit(rows)
    np.testing.assert_array_equal(rec.ratings_.toarray(), [[value, 0], [0, 1]])
    counts = Recommender(ImplicitALS(1), duplicates=duplicates).fit(rows)
    assert counts.ratings_[[0]].toarray()[0, 0] == 6
    assert Recommender(ImplicitALS(1)).fit([r[:2] for r in rows]).ratings_[[0]].toarray()[0, 0] == 2


def test_ratings_that_are_zero_are_ratings():
    rec = Recommender(Biases()).fit([("a", "x", 0), ("a", "y", 2), ("b", "y", -1)])
    assert rec.ratings_.nnz == 3 and rec.range_ == (-1, 2)
    assert rec.recommend("a").is_empty()


def test_without_ratings_or_with_all_alike_the_data_is_implicit():
    pairs = RATINGS.select("user", "item")
    for form in (
        pairs,
        pairs.with_columns(rating=pl.lit(5)),
        pairs.with_columns(plays=pl.Series(range(1, len(pairs) + 1))),
    ):
        rec = Recommender(random_state=0).fit(form)
        assert rec.implicit_ and rec.ranking_ is rec.model_ and rec.baseline_ is None
        assert rec.choice_["measure"] == "ndcg@10" and rec.choice_["baseline"] == "popularity"
        assert rec.recommend(3).columns == ["item", "score"]
    assert not Recommender(Biases()).fit(RATINGS).implicit_


def test_few_ratings_are_enough():
    for rows in ([("a", "x", 5), ("b", "y", 3)], [("a", "x", 5), ("b", "y", 3), ("b", "x", 1)]):
        rec = Recommender(random_state=0).fit(rows)
        assert np.isfinite(rec.predict(["a", "b"], ["y", "x"])).all()
        assert set(rec.recommend("a")["item"]) == set(rec.items_) - {item for user, item, _ in rows if user == "a"}


# ---- ids -----------------------------------------------------------------------------------------------------------


def check_round_trip(users, items, tmp_path):
    rec = Recommender(Biases()).fit((users, items, 1 + np.arange(len(users)) % 3))
    rec.save(tmp_path / "r.twofold")
    back = load(tmp_path / "r.twofold")
    for a, b in ((rec.users_, back.users_), (rec.items_, back.items_)):
        assert a.dtype == b.dtype and a.tolist() == b.tolist() == sorted(set(a.tolist()))
    for user, item in zip(users, items, strict=True):
        i, j = back.users_.tolist().index(_key(user)), back.items_.tolist().index(_key(item))
        assert back.ratings_[[i]].toarray()[0, j] == rec.ratings_[[i]].toarray()[0, j]
        assert back.recommend(user).equals(rec.recommend(user))
    return back


def _key(item):
    return item if isinstance(item, (int, float, str, np.integer)) and not isinstance(item, bool) else str(item).lower()


@pytest.mark.parametrize(
    "ids",
    [
        [5, 3, 2**62, -1],
        [2**63, 1, 5, 7],
        [0.5, 1.5, -2.0, 0.5],
        ["ü, x", "", "日本", 'a"b\n'],
        [uuid.UUID(int=i) for i in range(4)],
        [datetime.date(2024, 1, d) for d in (3, 1, 2, 9)],
        [True, False, True, True],
        [10**40, 5, 6, 7],
        np.array([3, 1, 1, 2], np.uint8),
    ],
    ids=lambda ids: type(ids[0]).__name__,
)
def test_ids_of_any_type_round_trip(ids, tmp_path):
    if max(map(_size, ids)) > 2**64:
        ids = [str(i) for i in ids]
    check_round_trip(list(ids), [1, 2, 1, 3], tmp_path)


def _size(item):
    return abs(item) if isinstance(item, int) else 0


def test_ids_of_mixed_types_become_text():
    rec = Recommender(Biases()).fit([(1, "a", 5), ("x", "b", 3)])
    assert rec.users_.tolist() == ["1", "x"]
    assert rec.recommend(1).equals(rec.recommend("1"))


MANY = {"min_size": 2, "max_size": 12, "unique": True}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=50)
@given(ids=st.lists(TEXTS, **MANY) | st.lists(st.integers(-(2**63), 2**63 - 1), **MANY))
def test_any_text_and_any_integer_is_an_id(ids, tmp_path_factory):
    back = check_round_trip(ids, ids[::-1], tmp_path_factory.mktemp("ids"))
    assert back.users_.tolist() == sorted(set(ids))


def test_rows_without_a_rating_are_left_out_and_said(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\na,x,5\na,y,\nb,x,NA\nb,y,2\n")
    for form in (tmp_path / "r.csv", [("a", "x", 5), ("a", "y", None), ("b", "x", float("nan")), ("b", "y", 2)]):
        with pytest.warns(UserWarning, match="2 rows without a rating left out"):
            rec = Recommender(Biases()).fit(form)
        assert rec.ratings_.nnz == 2 and rec.users_.tolist() == ["a", "b"]


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratings", "words"),
    [
        ([("a", "x", "great"), ("a", "y", 1)], ["row 0", '"great"', "rating"]),
        ([("a", "x", 1), ("a", "y", float("inf"))], ["row 1", "inf"]),
        ([("a", "x", None), ("a", "y", None)], ["every one is blank"]),
        ([("a", "x", 1), (None, "y", 2)], ["row 1", "user is blank", "remove the row"]),
        (pd.DataFrame({"user": [1, 2], "item": ["x", None], "rating": [1, 2]}), ["row 1", "item is blank"]),
        ((np.array([1.0, np.nan]), ["x", "y"], [1, 2]), ["row 1", "user is blank"]),
        ([], ["0 rows"]),
        ([(1, 2, 3), (1, 2)], ["row 1", "(1, 2)"]),
        (["ab", "cd"], ["ab does not exist"]),
        (([1, 2], ["x"], [3, 4]), ["[2, 1, 2]"]),
        (7, ["int", "frame"]),
        ("no/such/file.csv", ["no/such/file.csv", "does not exist"]),
        (pl.DataFrame({"user": [1]}), ["one column"]),
    ],
)
def test_refused_ratings_are_named(ratings, words):
    with pytest.raises(InputError) as caught:
        Recommender(Biases()).fit(ratings)
    for word in words:
        assert word in str(caught.value)
