"""A recommender made for serving is small, keeps its lists nearly as they were, and says what it costs."""

import os

import numpy as np
import polars as pl
import pytest

from twofold import EASE, ImplicitALS, InputError, Recommender, load


def make_ratings(n=400, d=900, kinds=20, seed=0):
    rng = np.random.default_rng(seed)
    taste, kind = rng.integers(0, kinds, n), rng.integers(0, kinds, d)
    chance = np.where(taste[:, None] == kind, 0.35, 0.01) * rng.random(d) * 2
    i, j = np.nonzero(rng.random((n, d)) < chance)
    return pl.DataFrame({"user": i, "item": j, "rating": rng.integers(1, 6, len(i)).astype(float)})


@pytest.fixture(scope="module")
def ratings():
    return make_ratings()


def test_a_file_for_serving_is_a_tenth_and_says_what_it_loses(ratings, tmp_path):
    rec = Recommender(EASE(), random_state=0).fit(ratings)
    small = rec.for_serving(n_neighbors=30)
    rec.save(tmp_path / "full.twofold")
    small.save(tmp_path / "small.twofold")
    assert os.path.getsize(tmp_path / "small.twofold") < 0.1 * os.path.getsize(tmp_path / "full.twofold")
    said = small.choice_["serving"]
    assert said["measure"] == "ndcg@10" and said["users"] > 300
    assert said["score"] > 0.9 * said["full"]
    again = load(tmp_path / "small.twofold")
    users = rec.users_[:50].tolist()
    assert again.recommend(users, 5).equals(small.recommend(users, 5))
    common = [set(rec.recommend(u, 10)["item"]) & set(again.recommend(u, 10)["item"]) for u in users]
    assert np.mean([len(one) for one in common]) > 7
    new = again.recommend_new({1: 5.0, 2: 4.0}, 5)
    assert len(new) == 5 and new.columns == rec.recommend_new({1: 5.0, 2: 4.0}, 5).columns
    assert len(again.explain(users[0], again.recommend(users[0], 1)["item"][0], 3)) == 3
    with pytest.raises(InputError, match="made for serving"):
        again.predict(users[0], 3)


def test_factors_are_only_rounded(ratings, tmp_path):
    rec = Recommender(ImplicitALS(8, random_state=0)).fit(ratings)
    rec.save(tmp_path / "full.twofold")
    rec.for_serving().save(tmp_path / "small.twofold")
    assert os.path.getsize(tmp_path / "small.twofold") < 0.6 * os.path.getsize(tmp_path / "full.twofold")
    again, users = load(tmp_path / "small.twofold"), rec.users_[:50].tolist()
    np.testing.assert_allclose(again.recommend(users)["score"], rec.recommend(users)["score"], atol=2e-3)


def test_two_models_become_one_and_biases(ratings):
    rec = Recommender(random_state=0, time=None, holdout=0.0).fit(ratings)
    small = rec.for_serving()
    lists = small.recommend(3, 5)
    assert lists.columns == ["item", "score", "rating"]
    np.testing.assert_allclose(lists["rating"], rec._baseline([3] * 5, lists["item"].to_list()), atol=1e-2)
