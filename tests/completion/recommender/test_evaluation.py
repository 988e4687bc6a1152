"""Honest splits and pooled figures."""

import warnings

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from twofold import InputError, Recommender, datasets, metrics
from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.recommender import evaluation
from twofold.completion.recommender.splits import split_cells, split_table
from twofold.core.data.known_cells import keep_stored

RATINGS = datasets.ratings(80, 50, seed=2).ratings
FIGURES = ["model", "rmse", "mae", "precision", "recall", "ndcg", "map", "mrr", "coverage", "novelty"]


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((40, 30)) < 0.3, rng.integers(1, 6, (40, 30)), 0).astype(float))
    return X


# ---- splits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "leave-out"])
@pytest.mark.parametrize(("size", "folds"), [(0.2, None), (3, None), (0.2, 4)])
def test_parts_are_disjoint_and_complete(kind, size, folds, cells):
    fold = split_cells(cells, kind, size, folds, seed=1)
    for f in range(folds or 1):
        train, test = keep_stored(cells, fold != f), keep_stored(cells, fold == f)
        assert (train != 0).multiply(test != 0).nnz == 0
        assert ((train + test) != cells).nnz == 0
        assert test.nnz > 0


@pytest.mark.parametrize("n", [1, 4])
def test_leave_out_takes_exactly_n_of_every_user_who_can_spare_them(n, cells):
    test = keep_stored(cells, split_cells(cells, "leave-out", n, None, seed=0) == 0)
    have = np.diff(cells.indptr)
    np.testing.assert_array_equal(np.diff(test.indptr), np.where(have > n, n, 0))


def test_a_share_is_a_share_of_all_or_of_each(cells):
    test = keep_stored(cells, split_cells(cells, "random", 0.25, None, seed=0) == 0)
    assert test.nnz == round(0.25 * cells.nnz)
    each = keep_stored(cells, split_cells(cells, "leave-out", 0.25, None, seed=0) == 0)
    np.testing.assert_array_equal(np.diff(each.indptr), np.round(0.25 * np.diff(cells.indptr)))


@pytest.mark.parametrize("kind", ["random", "leave-out"])
def test_folds_test_everything_once_in_even_parts(kind, cells):
    fold = split_cells(cells, kind, 0.2, 5, seed=0)
    sizes = np.bincount(fold[fold >= 0], minlength=5)
    if kind == "random":
        assert (fold >= 0).all() and np.ptp(sizes) <= 1
    else:
        row = np.repeat(np.arange(40), np.diff(cells.indptr))
        for i in np.unique(row):
            each = np.bincount(fold[row == i], minlength=5) if (row == i).sum() > 1 else np.zeros(5)
            assert np.ptp(each) <= 1


def test_the_same_seed_splits_the_same(cells):
    a, b, c = (split_cells(cells, "random", 0.2, None, seed) for seed in (3, 3, 4))
    assert (a == b).all() and (a != c).any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "time"}, "split='time'"),
        ({"test_size": 1.5}, "test_size=1.5"),
        ({"test_size": 0}, "test_size=0"),
        ({"test_size": True}, "test_size=True"),
        ({"folds": 1}, "folds=1"),
        ({"folds": 10**6}, "folds=1000000"),
        ({"test_size": 10**6}, "test_size=1000000"),
        ({"test_size": 10**6, "kind": "leave-out"}, "test_size=1000000"),
    ],
)
def test_impossible_splits_are_refused(arguments, words, cells):
    given = {"kind": "random", "test_size": 0.2, "folds": None, "seed": 0} | arguments
    with pytest.raises(InputError, match=words):
        split_cells(cells, **given)


def test_the_last_of_each_user_are_held_out(cells):
    times = np.random.default_rng(0).integers(0, 50, cells.nnz).astype(float)
    fold = split_cells(cells, "last", 3, None, 0, times)
    row = np.repeat(np.arange(40), np.diff(cells.indptr))
    for i in range(40):
        held, kept = times[(row == i) & (fold == 0)], times[(row == i) & (fold < 0)]
        assert len(held) == (3 if (row == i).sum() > 3 else 0)
        assert held.min(initial=99) >= kept.max(initial=-1) or not len(held)


@pytest.mark.parametrize(("size", "folds"), [(0.25, None), (7, None), (0.25, 3)])
def test_new_users_are_not_in_training_and_show_four_fifths(size, folds, cells):
    tested = []
    for train, shown, test in split_table(cells, "users", size, folds, seed=0):
        assert ((train + shown + test) != cells).nnz == 0 and train.nnz + shown.nnz + test.nnz == cells.nnz
        users = np.flatnonzero(np.diff(test.indptr))
        assert np.diff(train.indptr)[users].sum() == 0
        counts = np.diff(cells.indptr)[users]
        np.testing.assert_array_equal(np.diff(test.indptr)[users], np.maximum(1, np.round(0.2 * counts)))
        assert (np.diff(shown.indptr)[users] > 0).all()
        tested += users.tolist()
    able = int((np.diff(cells.indptr) > 1).sum())
    assert len(set(tested)) == len(tested) == (able if folds else 7 if size == 7 else round(0.25 * able))


# ---- figures -------------------------------------------------------------------------------------------------------


def by_hand(train, test, model, n, relevant):
    """RMSE and lists of an evaluation, with loops and dicts."""
    rec = Recommender(model).fit(train)
    errors = rec.predict(test["user"], test["item"]) - test["rating"].to_numpy()
    lists, right = [], []
    for user in test["user"].unique().sort():
        good = set(test.filter((pl.col("user") == user) & (pl.col("rating") >= relevant))["item"])
        if good:
            known = user in rec.users_
            lists.append((rec.recommend(user, n) if known else rec.recommend_new({}, n))["item"].to_list())
            right.append(good)
    return errors, lists, right, len(rec.items_)


@pytest.fixture(scope="module")
def halves():
    """A test part with a user and items that training never saw."""
    test = RATINGS.sample(fraction=0.25, seed=0)
    train = RATINGS.join(test, on=["user", "item"], how="anti").filter(pl.col("user") != 3)
    test = pl.concat([test, RATINGS.filter(user=3)]).unique(["user", "item"])
    return train.filter(pl.col("item") != test["item"][0]), test


def test_every_figure_is_what_it_says(halves):
    train, test = halves
    model = ALS(3, max_iter=100, random_state=0)
    result = Recommender(model).evaluate(train, test=test, n=5, relevant=3.5)
    errors, lists, right, n_items = by_hand(train, test, model, 5, 3.5)
    assert result["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-5)
    assert result["mae"] == pytest.approx(np.mean(np.abs(errors)), rel=1e-5)
    assert result["precision"] == pytest.approx(metrics.precision_at_k(lists, right, 5), abs=1e-9)
    assert result["recall"] == pytest.approx(metrics.recall_at_k(lists, right, 5), abs=1e-9)
    assert result["ndcg"] == pytest.approx(metrics.ndcg_at_k(lists, right, 5), abs=1e-9)
    assert result["map"] == pytest.approx(metrics.map_at_k(lists, right, 5), abs=1e-9)
    assert result["mrr"] == pytest.approx(metrics.mrr_at_k(lists, right, 5), abs=1e-9)
    assert result["coverage"] == pytest.approx(metrics.coverage(lists, n_items, 5))
    counts = dict(train["item"].value_counts().iter_rows())
    assert result["novelty"] == pytest.approx(metrics.novelty(lists, counts, train["user"].n_unique(), 5))
    assert result.table.columns == FIGURES
    assert result.table["model"].to_list() == ["ALS", "Biases", "popularity"]
    unseen = ~test["user"].is_in(train["user"].implode()) | ~test["item"].is_in(train["item"].implode())
    assert result.unseen == unseen.sum() > 0
    assert result.ratings == len(test) and result.users == len(right)
    assert f"{len(test):,} test ratings" in str(result)


def test_new_users_are_judged_by_what_they_show():
    """The lists and errors of an evaluation by new users are those of `recommend_new`."""
    rec = Recommender(ALS(3, max_iter=100, random_state=0), random_state=0)
    often = RATINGS.filter(pl.len().over("item") > 20)  # so that all items are in training
    result = rec.evaluate(often, split="users", test_size=10, n=5, relevant=3.5)
    whole = Recommender(Biases()).fit(often)
    (part,) = split_table(whole.ratings_, "users", 10, None, seed=0)
    rows = [(int(i), int(j), float(x)) for i, j, x in zip(*part.train.nonzero(), part.train.data, strict=True)]
    again = Recommender(ALS(3, max_iter=100, random_state=0), random_state=0).fit(rows)
    lists, right, errors = [], [], []
    for user in np.flatnonzero(np.diff(part.test.indptr)):
        shown, test = (dict(zip(X[[user]].indices.tolist(), X[[user]].data.tolist(), strict=True)) for X in part[1:])
        found = again.recommend_new(shown, len(again.items_))
        scores = dict(found.select("item", "score").iter_rows())
        errors += [scores[item] - rating for item, rating in test.items()]
        if any(rating >= 3.5 for rating in test.values()):
            lists.append(found["item"].to_list()[:5])
            right.append({item for item, rating in test.items() if rating >= 3.5})
    assert result["ndcg"] == pytest.approx(metrics.ndcg_at_k(lists, right, 5), abs=1e-6)
    assert result["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-4)
    assert result.users == len(lists) and result.ratings == result.unseen == part.test.nnz


def test_what_comes_last_needs_times():
    when = RATINGS.with_columns(date=pl.Series(np.random.default_rng(0).permutation(len(RATINGS))))
    rec = Recommender(Biases(), random_state=0)
    result = rec.evaluate(when, split="last", test_size=2)
    last = when.filter(pl.len().over("user") > 2).sort("date").group_by("user").tail(2)
    train = when.join(last, on=["user", "item"], how="anti")
    other = rec.evaluate(train.drop("date"), test=last.drop("date"))
    assert result.table.equals(other.table)
    dated = when.with_columns(pl.from_epoch("date", time_unit="d").cast(pl.String))
    assert rec.evaluate(dated, split="last", test_size=2).table.equals(result.table)
    for given, words in ((RATINGS, "no column says when"), (None, "not kept")):
        with pytest.raises(InputError, match=words):
            rec.fit(RATINGS).evaluate(given, split="last")
    with pytest.raises(InputError, match="'soon' is no time"):
        rec.evaluate(when.with_columns(date=pl.lit("soon")), split="last")


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Users drawn again and again from the same many: 95 % of the intervals hold the mean over all of them."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 20, 5000)
    level = rng.gamma(2.0, 1.0, 5000)  # users differ in how badly they are predicted, by as much as their ratings do
    truth = float((sizes * level).sum() / sizes.sum())
    held = 0
    for _ in range(400):
        drawn = rng.integers(0, 5000, 150)
        rows = np.repeat(np.arange(150), sizes[drawn])
        mean, end = evaluation.bound_ratio(rng.exponential(level[drawn][rows]), rows)
        held += abs(mean - truth) <= end
    assert abs(held - 380) <= 6 * np.sqrt(400 * 0.95 * 0.05) + 8  # an interval of so few users is a little short


def test_intervals_are_around_the_figures():
    result = Recommender(Biases(), random_state=0).evaluate(RATINGS)
    for model, measure, value, low, high in result.intervals.iter_rows():
        assert low < value < high
        assert value == pytest.approx(result.table.filter(model=model)[measure][0])
    assert result.interval("ndcg") == tuple(result.intervals.filter(measure="ndcg").row(0)[3:])
    assert result.interval("rmse", "popularity") is None and "±" in str(result)


def test_biases_as_a_baseline_are_biases_as_a_model(halves):
    train, test = halves
    model, base = (Recommender(m).evaluate(train, test=test, n=5) for m in (Biases(), ALS(2)))
    own, beside = model.table.row(0), base.table.filter(model="Biases").row(0)
    assert own[0] == beside[0] == "Biases"
    np.testing.assert_allclose(own[1:], beside[1:], rtol=1e-5)


def test_popularity_is_the_count_in_training(halves):
    train, test = halves
    table = Recommender(Biases()).evaluate(train, test=test, n=3, relevant=0).table
    counts = train["item"].value_counts().sort(["count", "item"], descending=[True, False])
    hits, users = 0, test["user"].unique()
    liked = Recommender(Biases()).fit(train).recommend_new({}, 3)["item"].to_list()
    for user in users:
        seen = set(train.filter(user=user)["item"])
        best = [item for item in counts["item"] if item not in seen][:3] if seen else liked
        hits += len(set(best) & set(test.filter(user=user)["item"]))
    assert table.filter(model="popularity")["precision"][0] == pytest.approx(hits / 3 / len(users))
    assert table.filter(model="popularity")["rmse"][0] is None


def test_rmse_is_pooled_and_no_mean_of_means():
    """One user with many well-predicted ratings and many users with a badly predicted one each."""
    train = [(u, i, 3) for u in range(20) for i in range(10)] + [("a lot", i, 3) for i in range(10)]
    train[0] = (0, 0, 5)
    test = [("a lot", i, 3) for i in range(100, 150)] + [(u, 200, 1) for u in range(20)]
    rec = Recommender(Biases()).fit(train)
    errors = rec.predict([r[0] for r in test], [r[1] for r in test]) - np.array([r[2] for r in test])
    result = Recommender(Biases()).evaluate(train, test=test)
    assert result["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    users = [np.sqrt(np.mean(errors[[r[0] == u for r in test]] ** 2)) for u in {r[0] for r in test}]
    assert abs(result["rmse"] - np.mean(users)) > 0.3


def test_folds_are_pooled():
    rec = Recommender(Biases(), random_state=0)
    result = rec.evaluate(RATINGS, folds=4)
    assert result.ratings == len(RATINGS)
    cells = rec.fit(RATINGS).ratings_
    fold = split_cells(cells, "random", 0.2, 4, seed=0)
    square = 0.0
    for f in range(4):
        train, test = (
            [(i, j, x) for i, j, x in zip(*np.nonzero(p.toarray()), p.data, strict=True)]
            for p in (keep_stored(cells, fold != f), keep_stored(cells, fold == f))
        )
        again = Recommender(Biases()).fit(train)
        found = again.predict([r[0] for r in test], [r[1] for r in test])
        square += float(((found - np.array([r[2] for r in test])) ** 2).sum())
    assert result["rmse"] == pytest.approx(np.sqrt(square / cells.nnz), rel=1e-5)


def test_training_knows_nothing_of_the_test_part():
    """Noise cannot be predicted: an evaluation that did better than the noise's own spread would have seen it."""
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((60, 40)) < 0.4)
    noise = rng.normal(size=len(i))
    twice = (np.tile(i, 2), np.tile(j, 2), np.tile(noise, 2))  # every pair occurs twice, which must not leak
    for split in ("random", "leave-out"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = Recommender(ALS(10, random_state=0), random_state=0).evaluate(twice, split=split)
        assert result["rmse"] > 0.95
        assert result.ratings == pytest.approx(0.2 * len(i), rel=0.1)


def test_a_pair_in_both_parts_is_refused():
    with pytest.raises(InputError, match=r"user 'b' with item 'y' .*1 pairs"):
        Recommender(Biases()).evaluate([("a", "x", 1), ("b", "y", 2)], test=[("b", "y", 3), ("a", "z", 1)])


def test_implicit_data_has_no_rmse():
    result = Recommender(ImplicitALS(3, random_state=0), random_state=0).evaluate(RATINGS.select("user", "item"))
    assert result["rmse"] is None and result.relevant is None
    assert result.table["model"].to_list() == ["ImplicitALS", "popularity"]
    assert 0 < result["ndcg"] <= 1


def test_a_fitted_recommender_is_left_as_it_was():
    rec = Recommender(Biases(), random_state=0).fit(RATINGS)
    before = rec.model_.row_bias_.copy()
    first, second = rec.evaluate(), rec.evaluate(RATINGS)
    assert first.table.equals(second.table)
    np.testing.assert_array_equal(rec.model_.row_bias_, before)
    assert not rec.evaluate(random_state=5).table.equals(first.table)


def test_relevance_is_the_training_mean_unless_given():
    rec = Recommender(Biases(), random_state=0)
    result = rec.evaluate(RATINGS)
    assert abs(result.relevant - RATINGS["rating"].mean()) < 0.1
    with pytest.raises(InputError, match="ratings to train on"):
        rec.fit(RATINGS).evaluate(test=RATINGS)


def test_no_relevant_item_is_no_figure():
    result = Recommender(Biases(), random_state=0).evaluate(RATINGS, relevant=99)
    assert result["precision"] is None and result["rmse"] is not None and result.users == 0


# ---- new items -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "folds"), [(0.2, None), (3, None), (0.2, 4)])
def test_items_are_held_out_wholly(size, folds, cells):
    tested = []
    for train, shown, test in split_table(cells, "items", size, folds, seed=1):
        assert shown is None
        assert not np.intersect1d(train.indices, test.indices).size
        assert (np.diff(train.indptr)[np.diff(test.indptr) > 0] > 0).all()  # who is tested is known
        new = np.setdiff1d(cells.indices, train.indices)
        assert folds or len(new) == (size if size > 1 else round(size * cells.shape[1]))
        tested += new.tolist()
    assert len(tested) == len(set(tested)) and (not folds or len(tested) == cells.shape[1])


def _two_tastes(seed=0, n=120, d=60):
    """Half of the users see items of one color, half of the other; the brightness says nothing."""
    rng = np.random.default_rng(seed)
    color = np.arange(d) % 2
    there = rng.random((n, d)) < np.where(color == (np.arange(n) % 2)[:, None], 0.5, 0.02)
    i, j = np.nonzero(there)
    names = np.array([f"item {a}" for a in range(d)])
    ratings = pl.DataFrame({"user": i, "item": names[j]})
    features = pl.DataFrame({"item": names, "color": np.array(["red", "blue"])[color], "light": rng.random(d)})
    return ratings, features


def test_new_items_are_ranked_by_their_features():
    ratings, features = _two_tastes()
    rec = Recommender(ImplicitALS(4, random_state=0), random_state=0)
    found = rec.evaluate(ratings, items=features, split="items", test_size=0.25, n=5)
    assert found.table.columns == FIGURES
    assert found.table["model"].to_list() == ["ImplicitALS and features", "content alone", "popularity by features"]
    own, alone, popular = found.table["ndcg"]
    assert min(own, alone) > popular + 0.1  # which of two colors is liked is what popularity does not know
    assert found.table["rmse"].null_count() == 3
    assert found.unseen == found.ratings > 0
    assert (found.table["coverage"] <= 1).all()
    mixed = features.with_columns(color=features["color"].shuffle(seed=1))
    assert rec.evaluate(ratings, items=mixed, split="items", test_size=0.25, n=5)["ndcg"] < own - 0.1


def test_new_items_need_features():
    ratings, features = _two_tastes()
    rec = Recommender(ImplicitALS(4, random_state=0), random_state=0)
    with pytest.raises(InputError, match="items=frame"):
        rec.evaluate(ratings, split="items")
    with pytest.raises(InputError, match='split="items"'):
        rec.evaluate(ratings, items=features)
    with pytest.raises(InputError, match="to train on"):
        rec.evaluate(ratings, items=features, split="items", test_size=60)
