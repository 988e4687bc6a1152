"""Lists as servers ask for them: many users in one pass, items to leave out or to choose from, in little time."""

import time

import numpy as np
import polars as pl
import pytest

from twofold import ALS, EASE, ImplicitALS, InputError, Neighborhood, Popularity, Recommender, datasets

MODELS = [EASE(), ImplicitALS(8, random_state=0), ALS(4, random_state=0), Neighborhood(), Popularity()]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: type(model).__name__)
def rec(request):
    ratings = datasets.ratings(n_users=60, n_items=50).ratings
    films, people = ([*ratings[name].unique().sort().to_list()] for name in ("item", "user"))
    films, people = [*films, "One", "Two", "Three"], [*people, 1063]
    items = pl.DataFrame({"item": films, "kind": [f"kind {a % 4}" for a in range(len(films))]})
    users = pl.DataFrame({"user": people, "group": [f"group {a % 3}" for a in range(len(people))]})
    return Recommender(request.param, random_state=0).fit(ratings, users=users, items=items)


def list_seen(rec, user):
    row = np.searchsorted(rec.users_, user)
    return set(rec.items_[rec.ratings_[[row]].indices].tolist())


def test_many_users_get_what_each_gets_alone(rec):
    users = [*rec.users_[:20].tolist(), 1063, *rec.users_[20:25].tolist()]  # 1063 is known by features alone
    together = rec.recommend(users, n=5)
    assert together["user"].unique(maintain_order=True).to_list() == users
    for user in users:
        alone = rec.recommend(user, n=5)
        mine = together.filter(user=user).drop("user")
        np.testing.assert_allclose(mine["score"], alone["score"], rtol=1e-4, atol=1e-6)
        assert len(set(mine["item"]) ^ set(alone["item"])) <= 2  # equal scores may take turns


def test_lists_keep_to_what_may_be_in_them(rec):
    user = rec.users_[3].item()
    usual = rec.recommend(user, n=60)
    without = rec.recommend(user, n=60, exclude=usual["item"].to_list()[:3] + ["nothing of this name"])
    assert without["item"].to_list() == usual["item"].to_list()[3:]
    some = usual["item"].to_list()[4:9]
    assert rec.recommend(user, n=60, items=some)["item"].to_list() == some
    everything = rec.recommend(user, n=60, filter_seen=False)
    assert set(everything["item"]) - set(usual["item"]) >= list_seen(rec, user)
    assert list_seen(rec, user).isdisjoint(usual["item"])
    assert rec.recommend(user, items=some, exclude=some).is_empty()


def test_what_is_asked_wrongly_is_said(rec):
    user = rec.users_[0].item()
    with pytest.raises(InputError, match="none of the 1 items to choose from is known"):
        rec.recommend(user, items=["nothing"])
    with pytest.raises(InputError, match="Give a list of ids"):
        rec.recommend(user, exclude="12")
    with pytest.raises(InputError, match="user 'stranger' is not among"):
        rec.recommend([user, "stranger"])
    assert rec.recommend([], n=3).is_empty()


def test_many_new_users_get_what_each_gets_alone(rec):
    rated = [{rec.items_[a]: 5.0, rec.items_[a + 1]: 1.0} for a in range(4)]
    together = rec.recommend_new(rated, n=5)
    for a, one in enumerate(rated):
        alone = rec.recommend_new(one, n=5)
        np.testing.assert_allclose(together.filter(user=a)["score"], alone["score"], rtol=1e-4, atol=1e-6)
    told = [{"group": "group 0"}, {"group": "group 2"}]
    both = rec.recommend_new(features=told, n=5)
    assert both.filter(user=1).drop("user").equals(rec.recommend_new(features=told[1], n=5))
    kept = rec.recommend_new(rated[0], n=60, filter_seen=False)
    assert set(rated[0]) <= set(kept["item"]) and set(rated[0]).isdisjoint(rec.recommend_new(rated[0], n=60)["item"])


def test_similar_users_share_what_they_rate(rec):
    found = rec.similar_users(rec.users_[0].item(), n=5)
    assert found.columns == ["user", "similarity"] and len(found) == 5
    assert found["similarity"].is_sorted(descending=True) and rec.users_[0] not in found["user"]


def test_twins_are_the_most_similar_users():
    rows = [(f"u{a}", f"i{b}", 1.0) for a in range(30) for b in range(40) if (a * 7 + b * 3) % 5 < 2]
    rows += [("twin", item, 1.0) for user, item, _ in rows if user == "u3"]
    for model in (EASE(), ImplicitALS(6, random_state=0)):
        assert "u3" in Recommender(model).fit(rows).similar_users("twin", n=6)["user"]


@pytest.mark.soak  # a speed, which depends on the machine
@pytest.mark.parametrize(("with_features", "milliseconds"), [(False, 0.5), (True, 2.0)])
def test_a_list_takes_no_longer_than_a_server_has(with_features, milliseconds):
    rng = np.random.default_rng(0)
    n, d = 500, 3000
    ratings = pl.DataFrame({"user": rng.integers(0, n, 20_000), "item": rng.zipf(1.3, 20_000) % d})
    words = [f"w{a}" for a in range(900)]
    items = pl.DataFrame(
        {"item": np.arange(d + 500), "title": [" ".join(rng.choice(words, 6)) for _ in range(d + 500)]}
    )
    rec = Recommender(EASE(max_items=500)).fit(ratings, **({"items": items} if with_features else {}))
    if with_features:  # what is kept grows with items, users and features, never with a product of two of them
        kept = rec.content_["item"]
        sizes = [part.nnz if hasattr(part, "nnz") else getattr(part, "size", 0) for part in kept.values()]
        assert sum(sizes) < 5 * kept["F"].nnz + 600 * len(kept["mean"])
    took = []
    for user in np.resize(rec.users_, 300).tolist():
        start = time.thread_time()
        rec.recommend(user)
        took.append(time.thread_time() - start)
    assert 1000 * min(took) < milliseconds, 1000 * min(took)  # of this thread: others may have the processor meanwhile
