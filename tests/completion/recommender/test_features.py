"""Features of users and items: how they are read, and lists for items without ratings and people without ratings."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from twofold import EASE, InputError, Recommender, load
from twofold.completion.recommender._features import (
    encode,
    encode_one,
    learn_content,
    make_profiles,
    read_features,
    score_new,
)

KINDS = ("crime", "love", "war")


def world(seed=0, n=120, d=60, new=12):
    """People with a taste for one kind of film, and films of one kind, the last of which have no ratings."""
    rng = np.random.default_rng(seed)
    taste, kind = rng.integers(0, 3, n), rng.integers(0, 3, d)
    liked = taste[:, None] == kind
    seen = rng.random((n, d)) < np.where(liked, 0.5, 0.05)
    seen[:, d - new :] = False
    i, j = np.nonzero(seen)
    films = pl.DataFrame(
        {
            "film": np.arange(d),
            "genre": [KINDS[k] for k in kind],
            "title": [f"the {('alley', 'rose', 'front')[k]} number {a}" for a, k in enumerate(kind)],
            "year": rng.integers(1950, 2000, d),
        }
    )
    people = pl.DataFrame({"user": np.arange(n + 3), "fan": [KINDS[k] for k in taste] + list(KINDS), "age": 30})
    return pl.DataFrame({"user": i, "film": j}), films, people, taste, kind


# ---- reading -----------------------------------------------------------------------------------------------------


def test_columns_become_features_by_what_they_hold():
    frame = pl.DataFrame(
        {
            "item": [5, 3, 9, 7],
            "price": [1.0, None, 3.0, 8.0],
            "kind": ["a", "b", "a", "b"],
            "tags": ["x|y", "y", "x|z", "y|z"],
            "words": ["The red house", "a red car", "The blue house by night", "some blue cars"],
            "same": [1, 1, 1, 1],
        }
    )
    found = read_features(frame, np.array([3, 5, 7]), "item")
    assert [c.kind for c in found.columns] == ["number", "category", "list", "text"]
    assert found.ids.tolist() == [5, 3, 9, 7] and found.F.shape == (4, len(found.names))
    F, at = found.F.toarray(), {name: a for a, name in enumerate(found.names)}
    assert F[1, at["price"]] == 0 and F[3, at["price"]] > F[0, at["price"]]
    assert (F[:, at["kind: a"]] > 0).tolist() == [True, False, True, False]
    assert (F[:, at["tags: y"]] > 0).tolist() == [True, True, False, True]
    assert (F[:, at["words: house"]] > 0).tolist() == [True, False, True, False]
    assert not any("night" in name for name in found.names)  # occurs once
    again, names = encode(frame, found.columns)
    np.testing.assert_array_equal(again.toarray(), F)
    assert names == found.names
    listed = frame.with_columns(pl.col("tags").str.split("|"))
    np.testing.assert_array_equal(read_features(listed, np.array([3, 5, 7]), "item").F.toarray(), F)
    one = encode_one({"kind": "a", "price": 1.0}, found.columns, "item").toarray()[0]
    assert one[at["kind: a"]] == F[0, at["kind: a"]] and one[at["tags: y"]] == 0


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"item": [1, 2, 2], "a": [1.0, 2.0, 3.0]}, r"item 2 occurs more than once in column 'item'"),
        ({"item": [77, 88, 99], "a": [1.0, 2.0, 3.0]}, r"none of the 3 ids in column 'item'.*77.*there"),
        ({"item": [1, None, 3], "a": [1.0, 2.0, 3.0]}, r"1 rows of the items' features have no id"),
        ({"item": [1, 2, 3], "a": [1.0, 1.0, 1.0]}, r"no column that differs between items"),
        ({"item": [1, 2, 3], "a": [1e-320, 2e-320, 4e-320]}, r"no column that differs between items"),
        ({"item": [1, 2, 3], "a": [1e308, -1e308, 0.0]}, r"column 'a'.*too large"),
        ({"x": ["p", "q", "r"], "a": [0.5, 0.6, 0.5]}, r"no column of the items' features holds items.*'x', 'a'"),
    ],
)
def test_bad_features_are_refused(frame, message):
    with pytest.raises(InputError, match=message):
        read_features(pl.DataFrame(frame), np.array([1, 2, 3]), "item")


def test_text_where_a_number_belongs():
    found = read_features(pl.DataFrame({"item": [1, 2, 3], "a": [1.0, 2.0, 3.0]}), np.array([1, 2, 3]), "item")
    with pytest.raises(InputError, match=r"column 'a' of the features holds numbers; 'old' is none"):
        encode_one({"a": "old"}, found.columns, "item")
    with pytest.raises(InputError, match=r"'b' is no feature of the items; these are: 'a'"):
        encode_one({"b": 1}, found.columns, "item")
    with pytest.raises(InputError, match="give a dict"):
        encode_one([1], found.columns, "item")


def test_an_odd_cell_among_numbers_is_said(tmp_path):
    rows = [f"{k},{k % 2},{1950 + k}" for k in range(30)]
    rows[17] = "17,1,ninety"
    (tmp_path / "f.csv").write_text("\n".join(["item,new,year", *rows]))
    with pytest.warns(UserWarning, match=r"'year' of the items' features.*row 18 has 'ninety'"):
        read_features(tmp_path / "f.csv", np.arange(30), "item")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"items": {"item": [1, 1], "a": [1, 2]}}, "more than once"),
        ({"items": {"item": [98, 99], "a": [1, 2]}}, "none of the 2 ids"),
        ({"users": {"user": [1, 2], "a": [3, 3]}}, "no column that differs"),
        ({"users": {"user": ["1", "x"], "a": [3, 4]}}, "no number"),
        ({"items": {"item": [1, None], "a": [3, 4]}}, "have no id"),
        ({"items": 7}, "give a frame"),
    ],
)
def test_features_are_refused_before_anything_is_fitted(features, message, monkeypatch):
    monkeypatch.setattr(Recommender, "_learn", lambda self, cells: pytest.fail("it was fitted"))
    ratings = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 2, 3], "rating": [5, 3, 4, 1]})
    given = {role: pl.DataFrame(one) if isinstance(one, dict) else one for role, one in features.items()}
    with pytest.raises(InputError, match=message):
        Recommender().fit(ratings, **given)


@pytest.mark.parametrize(("users", "items", "role"), [([7, 7], [1, 2], "user"), ([1, 2], [7, 7], "item")])
def test_one_user_or_one_item_is_refused(users, items, role):
    with pytest.raises(InputError, match=f"of one {role}, .*7.*several {role}s"):
        Recommender().fit((users, items, [5, 3]))


def test_files_and_pandas_read_alike(tmp_path):
    _, films, *_ = world()
    films.write_csv(tmp_path / "films.csv")
    pandas = pytest.importorskip("pandas")
    known = np.arange(40)
    a, b, c = (
        read_features(given, known, "item", "film")
        for given in (films, str(tmp_path / "films.csv"), pandas.DataFrame(films.to_dict(as_series=False)))
    )
    for other in (b, c):
        np.testing.assert_array_equal(a.ids, other.ids)
        np.testing.assert_allclose(a.F.toarray(), other.F.toarray())


# ---- the regression ----------------------------------------------------------------------------------------------


def test_scores_of_new_lines_are_a_ridge_regression():
    rng = np.random.default_rng(0)
    F, S, f = rng.normal(size=(30, 5)), rng.normal(size=(7, 30)), rng.normal(size=(4, 5))
    content = learn_content(sparse.csr_array(F), S)
    found = score_new(content, *make_profiles(content, S), sparse.csr_array(f))
    A, R = F - F.mean(axis=0), S - S.mean(axis=1, keepdims=True)
    lam = content.held[0] - np.linalg.eigvalsh(A.T @ A)[0]
    W = np.linalg.solve(A.T @ A + lam * np.eye(5), A.T @ R.T)
    np.testing.assert_allclose(found, S.mean(axis=1)[:, None] + ((f - F.mean(axis=0)) @ W).T, atol=1e-10)


def test_leaving_out_is_what_it_says():
    rng = np.random.default_rng(1)
    F = rng.normal(size=(25, 3))
    S = rng.normal(size=(6, 3)) @ F.T + 0.5 * rng.normal(size=(6, 25))
    content = learn_content(sparse.csr_array(F), S)
    lam, errors = content.held[0] - np.linalg.eigvalsh((F - F.mean(axis=0)).T @ (F - F.mean(axis=0)))[0], []
    for j in range(25):
        rest = np.delete(np.arange(25), j)
        A, R = F[rest] - F[rest].mean(axis=0), S[:, rest] - S[:, rest].mean(axis=1, keepdims=True)
        W = np.linalg.solve(A.T @ A + lam * np.eye(3), A.T @ R.T)
        errors.append(S[:, j] - S[:, rest].mean(axis=1) - (F[j] - F[rest].mean(axis=0)) @ W)
    plain = ((S - S.mean(axis=1, keepdims=True)) ** 2).mean()
    np.testing.assert_allclose(content.explained, 1 - np.mean(np.square(errors)) / plain, rtol=1e-6)
    assert content.explained > 0.5


# ---- lists -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def films():
    ratings, films, people, taste, kind = world()
    rec = Recommender(EASE(), item="film", random_state=0).fit(ratings, users=people, items=films)
    return rec, taste, kind


def test_new_items_join_the_lists_of_those_who_like_their_kind(films):
    rec, taste, kind = films
    right = total = 0
    for frame in rec.recommend_all(n=8):
        for user, item in frame.filter(pl.col("item") >= 48).select("user", "item").iter_rows():
            right, total = right + (taste[user] == kind[item]), total + 1
    assert total > 100 and right > 0.8 * total
    one, both = rec.recommend(7, n=5), next(iter(rec.recommend_all(n=5)))
    assert one["item"].to_list() == both.filter(user=7)["item"].to_list()


def test_without_features_lists_are_what_they_were(films):
    rec, *_ = films
    plain = Recommender(EASE(), item="film", random_state=0).fit(world()[0])
    with_new = rec.recommend(3, n=60).filter(pl.col("item") < 48)
    without = plain.recommend(3, n=48)
    assert with_new["item"].to_list() == without["item"].to_list()
    np.testing.assert_allclose(with_new["score"], without["score"], rtol=1e-5)


def test_someone_known_by_features_alone_gets_a_list(films):
    rec, _, kind = films
    for a, name in enumerate(KINDS):
        of_id, of_dict = rec.recommend(120 + a), rec.recommend_new(features={"fan": name})
        assert of_id["item"].to_list() == of_dict["item"].to_list()
        assert (kind[of_id["item"].to_numpy()] == a).mean() >= 0.8
    with pytest.raises(InputError, match=r"'genre' is no feature of the users"):
        rec.recommend_new(features={"genre": "war"})
    with pytest.raises(InputError, match="the fit had none of users"):
        Recommender(EASE(), item="film").fit(world()[0]).recommend_new(features={"fan": "war"})


def test_reasons_of_a_new_item_are_features(films):
    rec, taste, kind = films
    item = 50
    user = int(np.flatnonzero(taste == kind[item])[0])
    reasons = rec.explain(user, item, n=None)
    assert reasons.columns == ["feature", "value", "share"]
    assert reasons["feature"][0] in (
        f"genre: {KINDS[kind[item]]}",
        *(f"title: {w}" for w in ("alley", "rose", "front")),
    )
    scores = dict(rec.recommend(user, n=60).select("item", "score").iter_rows())
    other = rec.explain(user, 51, n=None)
    np.testing.assert_allclose(scores[50] - scores[51], reasons["share"].sum() - other["share"].sum(), atol=1e-5)
    assert rec.explain(user, int(rec.items_[0])).columns == ["item", "rating", "share"]


def test_features_are_saved_with_the_model(films, tmp_path):
    rec, *_ = films
    rec.save(tmp_path / "films.twofold")
    again = load(tmp_path / "films.twofold")
    assert again.recommend(5).equals(rec.recommend(5))
    assert again.recommend_new(features={"fan": "love"}).equals(rec.recommend_new(features={"fan": "love"}))


def test_stars_and_features_together():
    ratings, films, people, *_ = world()
    rng = np.random.default_rng(0)
    rated = ratings.with_columns(rating=pl.Series(rng.integers(1, 6, len(ratings))))
    rec = Recommender(item="film", random_state=0).fit(rated, users=people, items=films)
    for found in (rec.recommend(0, n=60), rec.recommend(121), rec.recommend_new({3: 5.0}, n=60)):
        assert found.columns == ["item", "score", "rating"]
        assert found["rating"].is_between(1, 5).all()
    assert (rec.recommend(0, n=60)["item"] >= 48).any()
