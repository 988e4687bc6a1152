"""New users, items and ratings join a fitted recommender."""

import numpy as np
import polars as pl
import pytest

from twofold import InputError, Recommender, datasets
from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.neighborhood import Neighborhood

RATINGS = datasets.ratings(60, 40, seed=1).ratings


@pytest.mark.parametrize("biases", [True, False])
def test_new_users_and_items_join_without_a_fit(biases):
    base = RATINGS.filter((pl.col("user") < 50) & (pl.col("item") != RATINGS["item"][0]))
    rec = Recommender(ALS(3, biases=biases, max_iter=300, random_state=0), clip=False).fit(base)
    unchanged = [u for u in range(50) if RATINGS["item"][0] not in set(RATINGS.filter(user=u)["item"])][:3]
    before = {u: rec.recommend(u, 40) for u in unchanged}
    rest = RATINGS.join(base, on=["user", "item"], how="anti")
    stranger = pl.DataFrame({"user": [-5, -5], "item": [RATINGS["item"][1], "a new one"], "rating": [5.0, 4.0]})
    rec.add_ratings(pl.concat([rest, stranger]))
    assert rec.users_.tolist() == sorted({-5, *RATINGS["user"]})
    assert rec.items_.tolist() == sorted({"a new one", *RATINGS["item"]})
    expected = Recommender(Biases()).fit(pl.concat([RATINGS, stranger]))
    assert (rec.ratings_ != expected.ratings_).nnz == 0
    # everyone who has new ratings has the factor that belongs to them; everyone else the one they had
    changed = np.isin(rec.users_, pl.concat([rest, stranger])["user"])
    folded = rec.model_.predict(rec.ratings_)
    grid = np.repeat(np.arange(len(rec.users_)), len(rec.items_)), np.tile(np.arange(len(rec.items_)), len(rec.users_))
    trained = rec.model_.predict(*grid).reshape(folded.shape)
    np.testing.assert_allclose(trained[changed], folded[changed], atol=1e-3)
    for user in unchanged:
        now = rec.recommend(user, 50).join(before[user], on="item", suffix="_before")
        np.testing.assert_allclose(now["score"], now["score_before"], atol=1e-5)
    item = RATINGS["item"][0]
    who = RATINGS.filter(item=item)
    error = rec.predict(who["user"], [item] * len(who)) - who["rating"].to_numpy()
    assert np.sqrt((error**2).mean()) < 0.9 * who["rating"].std()
    assert not rec.recommend(-5, 50)["item"].is_in(["a new one", RATINGS["item"][1]]).any()


def test_a_model_that_cannot_grow_says_so():
    rec = Recommender(Neighborhood()).fit(RATINGS)
    with pytest.raises(InputError, match=r"Neighborhood cannot .* ALS"):
        rec.add_ratings([(1, "x", 2.0)])
