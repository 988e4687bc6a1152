"""Which model makes the lists: chosen on what was held out, never worse than popularity, and asked for lists alone."""

import time

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from twofold import ALS, EASE, Biases, Popularity, Recommender, datasets, metrics
from twofold.completion.recommender._choose import TableCandidates
from twofold.completion.recommender._lists import (
    DENSE_OPS_PER_SECOND,
    Clock,
    Plan,
    Trial,
    choose_ranking,
    count_ease,
    count_ratings,
    limit_input_columns,
    measure_cells,
    split_parts,
    value_cells,
)

WORLD = datasets.ratings(80, 50, seed=2)
RATINGS = WORLD.ratings


@pytest.fixture(scope="module")
def rec():
    return Recommender(random_state=0).fit(RATINGS)


def kinds(n=300, d=40, seed=0):
    """People of two kinds, with the columns of their kind, all equally often."""
    rng = np.random.default_rng(seed)
    chance = np.where(np.arange(n)[:, None] % 2 == np.arange(d) % 2, 0.4, 0.02)
    return sparse.csr_array((rng.random((n, d)) < chance).astype(np.float32))


def alike(n=300, d=40, seed=0):
    """People with one taste: some columns are common, some rare."""
    rng = np.random.default_rng(seed)
    return sparse.csr_array((rng.random((n, d)) < 0.6 / np.arange(1, d + 1) ** 0.7).astype(np.float32))


def test_taste_is_found_where_there_is_some():
    plan, said = choose_ranking(kinds(), True, 0.1, Clock(None), 0)
    assert not isinstance(plan.model, Popularity)
    assert said["score"] > said["baseline_score"] + 6 * said["error"]
    assert said["score"] >= max(figure["score"] for name, figure in said["tried"].items() if "three times" not in name)


def test_without_taste_lists_are_not_worse_than_popularity():
    X = alike()
    plan, said = choose_ranking(X, True, 0.1, Clock(None), 0)
    new = alike(seed=1)
    model = plan.model.fit(X)
    popular = Popularity().fit(X).popularity_
    lists = np.argsort(-model.predict(sparse.csr_array(X.shape, dtype=X.dtype)), axis=1, kind="stable")[:, :10]
    best = np.tile(np.argsort(-popular, kind="stable")[:10], (len(lists), 1))
    own, base = (metrics.ndcg_at_k(found, new, 10, average=False) for found in (lists, best))
    gap = own - base
    if not isinstance(plan.model, Popularity):
        assert gap.mean() > -6 * gap.std() / np.sqrt(len(gap)) - 1e-9
    assert said["tried"]["Popularity"]["score"] == said["baseline_score"]


def test_a_model_no_better_by_a_standard_error_is_not_taken():
    trial = Trial(split_parts(alike(), True, 0.1, 0))
    trial.run(Plan(Popularity()))
    trial.figures["other"] = trial.figures["Popularity"] + np.random.default_rng(0).permutation(
        np.linspace(-0.5, 0.5, len(trial.figures["Popularity"]))
    )
    assert not trial.better("other", "Popularity")
    trial.figures["other"] += 0.1
    assert trial.better("other", "Popularity")


def test_a_newcomer_without_ratings_gets_what_most_users_have(rec):
    nobody, counts = rec.recommend_new({}, n=3), RATINGS["item"].value_counts()
    assert counts.filter(item=nobody["item"][0])["count"][0] == counts["count"].max()
    assert nobody["rating"].is_between(*rec.range_).all()


def test_what_was_chosen_is_said_for_both_questions(rec):
    lists, ratings = rec.choice_["ranking"], rec.choice_
    assert lists["measure"] == "ndcg@10" and ratings["measure"] == "rmse"
    assert lists["model"] == type(rec.ranking_).__name__ and ratings["model"] == type(rec.model_).__name__
    assert "Popularity" in lists["tried"] and "Biases" in ratings["tried"]
    assert all({"score", "error"} <= set(figure) for said in (lists, ratings) for figure in said["tried"].values())
    assert ratings["score"] <= ratings["baseline_score"] and lists["score"] >= lists["baseline_score"]
    assert ratings["held_out"] == round(0.1 * rec.ratings_.nnz)
    again = Recommender(random_state=0).fit(RATINGS)
    assert again.choice_ == rec.choice_ and again.recommend(3).equals(rec.recommend(3))


def test_a_model_that_is_given_answers_both():
    rec = Recommender(ALS(2, max_iter=100, random_state=0)).fit(RATINGS)
    assert rec.ranking_ is rec.model_
    found = rec.recommend(3)
    assert found["score"].equals(found["rating"].alias("score"))
    lists = Recommender(EASE()).fit(RATINGS)
    assert lists.implicit_ and lists.recommend(3).columns == ["item", "score"]


def test_ratings_are_worth_more_the_higher_they_are():
    rng = np.random.default_rng(0)
    X = sparse.random_array((40, 20), density=0.5, rng=rng, data_sampler=lambda size: rng.integers(1, 6, size))
    X = X.tocsr().astype(np.float32)
    scale = measure_cells(X, False)
    assert set(value_cells(X, "seen", scale).data) == {1.0}
    np.testing.assert_allclose(value_cells(X, "rating", scale).data, 0.5 + (X.data - 1) / 8)
    worth = value_cells(X, "deviation", scale).data
    expected = scale.baseline.predict(X)[X.nonzero()]
    np.testing.assert_allclose(worth, np.maximum(1 + 0.5 * (X.data - expected) / scale.spread, 0.05), rtol=1e-4)
    counts = sparse.csr_array(np.array([[1.0, 10.0]]))
    np.testing.assert_allclose(value_cells(counts, "count", measure_cells(counts, True)).data, [1, 1 + np.log(10)])


def test_what_would_take_too_long_is_not_tried():
    X = kinds()
    plan, said = choose_ranking(X, True, 0.1, Clock(1e-9), 0)
    assert isinstance(plan.model, Popularity) and said["skipped"] == ["EASE", "ImplicitALS"]
    assert list(said["tried"]) == ["Popularity"]
    cells = np.arange(400_000)
    wide = sparse.csr_array((np.ones(len(cells), np.float32), (cells // 4, cells % 5_000)), shape=(100_000, 5_000))
    m = limit_input_columns(wide, 10**3 * 1e8)
    assert 500 <= m < 5_000 and count_ease(wide, m) <= 10**3 * 1e8 < count_ease(wide, m + 2)
    assert limit_input_columns(wide, 30 * DENSE_OPS_PER_SECOND) == limit_input_columns(wide, np.inf) == 5_000
    few = wide[:1_000]
    assert limit_input_columns(few, np.inf) ** 2 <= 64 * few.nnz  # memory grows with cells, not with columns squared


@pytest.mark.soak
def test_the_time_is_that_of_the_clock():
    rng = np.random.default_rng(0)
    cells = rng.choice(2_000 * 1_500, 200_000, replace=False)
    ratings = cells // 1_500, cells % 1_500, rng.integers(1, 6, len(cells)).astype(float)
    Recommender(time=0.5).fit(ratings)  # what is compiled is compiled now
    start = time.perf_counter()
    Recommender(random_state=0, time=6.0).fit(ratings)
    assert time.perf_counter() - start < 1.2 * 6.0


def test_models_of_ratings_are_bound_by_the_time_as_well(rec):
    X = rec.ratings_
    candidates = TableCandidates(X, False, 0.1, 0, [])
    fitted, said = candidates.choose_rating(Clock(1e-9))
    assert isinstance(fitted, Biases) and said["skipped"] == ["Neighborhood", "SVDPlusPlus"]
    cost, clock = count_ratings(X), Clock(None)
    clock.end = time.perf_counter() + 1e6
    clock.rate = (cost.neighbors + cost.trial + 31 * cost.sweep) / 1e6
    models, skipped = candidates.list_rating_models(clock)
    assert models["SVDPlusPlus"].max_iter == 15 and not skipped


def test_where_everything_is_rated_lists_hold_what_would_be_rated_highest():
    rng = np.random.default_rng(0)
    truth = 3 + rng.normal(size=(200, 2)) @ rng.normal(size=(2, 20))
    i, j = np.nonzero(rng.random(truth.shape) < 0.8)
    rec = Recommender(random_state=0).fit((i, j, truth[i, j] + 0.3 * rng.normal(size=len(i))))
    assert rec.ranking_ is rec.model_ and "rated highest" in rec.choice_["ranking"]["why"]
    lists = pl.concat(rec.recommend_all(1))
    best, hidden = truth[lists["user"], lists["item"]], np.ones(truth.shape, bool)
    hidden[i, j] = False
    chance = np.array([row[free].mean() for row, free in zip(truth, hidden, strict=True) if free.any()])
    gain = best - chance
    assert gain.mean() > 6 * gain.std() / np.sqrt(len(gain))
    assert rec.choice_["score"] < rec.choice_["baseline_score"]


def test_similar_items_are_seen_together():
    X = kinds()
    rows, cols = X.nonzero()
    found = Recommender(random_state=0).fit((rows, cols)).similar_items(3, n=10)
    assert all(item % 2 == 1 for item in found["item"]) and found["similarity"].max() <= 1
