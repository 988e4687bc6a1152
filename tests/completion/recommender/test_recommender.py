"""Recommendations by id: what is never recommended, what equals what, and what is refused."""

import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from twofold import EASE, InputError, Popularity, Recommender, config, datasets, load
from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.mean_impute import MeanImpute
from twofold.completion.neighborhood import Neighborhood
from twofold.completion.svd_plus_plus import SVDPlusPlus

RATINGS = datasets.ratings(60, 40, seed=1).ratings
MODELS = {
    "chosen": None,
    "als": ALS(3, max_iter=100, random_state=0),
    "als without biases": ALS(3, biases=False, max_iter=100, random_state=0),
    "als non-negative": ALS(3, nonnegative=True, max_iter=200, random_state=0),
    "implicit": ImplicitALS(3, random_state=0),
    "ease": EASE(),
    "popularity": Popularity(),
    "svd++": SVDPlusPlus(3, random_state=0, max_iter=500),
    "biases": Biases(),
    "mean": MeanImpute(),
    "item neighbors": Neighborhood(),
    "user neighbors": Neighborhood(kind="user"),
}


@pytest.fixture(scope="module")
def get_model():
    """Each model around the same ratings, fitted once."""
    kept = {}

    def get(name):
        if name not in kept:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept[name] = Recommender(MODELS[name], random_state=0).fit(RATINGS)
        return kept[name]

    return get


def items_of(user):
    return set(RATINGS.filter(user=user)["item"])


@pytest.mark.parametrize("name", MODELS)
def test_recommend_is_the_sorted_predictions_without_what_was_seen(name, get_model):
    rec = get_model(name)
    for user in (0, 7, 33):
        found = rec.recommend(user, n=12)
        holes = [item for item in rec.items_ if item not in items_of(user)]
        scores = rec.ranking_.predict(np.full(40, np.searchsorted(rec.users_, user)), np.arange(40))
        scores = dict(zip(rec.items_, scores, strict=True))
        assert not set(found["item"]) & items_of(user)
        assert len(set(found["item"])) == min(12, len(holes))
        best = sorted((scores[item] for item in holes), reverse=True)[:12]
        np.testing.assert_allclose([scores[item] for item in found["item"]], best, rtol=1e-5)
        rating = "score" if rec.implicit_ else "rating"
        np.testing.assert_allclose(found[rating], rec.predict([user] * len(found), found["item"]), rtol=1e-5)
        assert name == "chosen" or rec.implicit_ or found["score"].equals(found["rating"].alias("score"))


@pytest.mark.parametrize("name", MODELS)
def test_all_users_get_what_each_gets(name, get_model, small_blocks):
    rec = get_model(name)
    frame = pl.concat(list(rec.recommend_all(n=5)))
    assert frame.columns == ["user", "item", "score", *(["rating"] if not rec.implicit_ else [])]
    assert frame["user"].unique(maintain_order=True).to_list() == rec.users_.tolist()
    for user in rec.users_[::7]:
        alone, among = rec.recommend(user, n=5), frame.filter(user=user)
        np.testing.assert_allclose(alone["score"], among["score"], rtol=1e-5)
        assert len(set(alone["item"]) & set(among["item"])) >= len(alone) - 1  # ties may fall either way


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_files_hold_what_the_iterator_gives(ending, get_model, tmp_path, small_blocks):
    rec, path = get_model("als"), tmp_path / f"all.{ending}"
    assert rec.recommend_all(n=3, path=path) is None
    read = (
        pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path, separator="\t" if ending == "tsv" else ",")
    )
    expected = pl.concat(list(rec.recommend_all(n=3)))
    assert read.select("user", "item").equals(expected.select("user", "item"))
    np.testing.assert_allclose(read["score"], expected["score"], rtol=1e-6)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_number_of_threads_changes_no_bit(get_model, small_blocks):
    rec, frames = get_model("als"), []
    for threads in (1, 3):
        with config(threads=threads):
            frames.append(pl.concat(list(rec.recommend_all(n=5))))
    assert frames[0].equals(frames[1])


def test_scores_of_all_users_never_exist_together(tmp_path):
    n, d, k = 3_000, 4_000, 8
    rng = np.random.default_rng(0)
    pairs = (rng.integers(n, size=20_000), rng.integers(d, size=20_000), rng.random(20_000).astype(np.float32))
    rec = Recommender(Biases()).fit(pairs)
    model = ALS(k).fit(np.eye(k))
    model.row_factors_ = rng.normal(size=(len(rec.users_), k))
    model.components_ = rng.normal(size=(k, len(rec.items_)))
    model.row_bias_, model.column_bias_ = np.zeros(len(rec.users_)), np.zeros(len(rec.items_))
    rec.model_ = model
    rec.recommend_all(n=5, path=tmp_path / "warm.csv")
    tracemalloc.start()
    rec.recommend_all(n=5, path=tmp_path / "all.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # the scores of all would be 96 MB


@pytest.mark.parametrize("name", MODELS)
def test_shares_add_up_to_the_prediction_less_that_of_a_newcomer(name, get_model):
    rec = get_model(name)
    nobody = rec.ranking_.predict(sparse.csr_array((1, len(rec.items_)), dtype=rec.ratings_.dtype))[0]
    for user in (3, 20):
        item = rec.recommend(user, n=1)["item"][0]
        shares = rec.explain(user, item, n=None)
        row, col = np.searchsorted(rec.users_, user), np.searchsorted(rec.items_, item)
        folded = rec.ranking_.predict(rec._rank_values(rec.ratings_[[row]]))[0, col]
        assert shares["share"].sum() == pytest.approx(folded - nobody[col], abs=1e-4)
        assert shares["share"].sum() == pytest.approx(rec.ranking_.predict([row], [col])[0] - nobody[col], abs=2e-3)
        assert set(shares["item"]) == items_of(user)
        assert dict(zip(shares["item"], shares["rating"], strict=True)) == dict(
            RATINGS.filter(user=user).select("item", "rating").iter_rows()
        )
        top = rec.explain(user, item, n=2)
        assert top["share"].to_list() == sorted(shares["share"], reverse=True)[:2]


def test_joining_shares_are_the_terms_of_a_linear_model(get_model):
    """The general way of sharing agrees with the exact one where a model adds up cell by cell."""
    from twofold.completion.recommender.explain import _split_by_joining, split_prediction

    rec = get_model("mean")
    model = Biases(reg=5.0).fit(rec.ratings_)
    x = rec.ratings_[[4]]
    general = _split_by_joining(model, x, 3)
    assert general.sum() == pytest.approx(split_prediction(model, x, 3).sum(), abs=1e-5)
    assert np.corrcoef(general, split_prediction(model, x, 3))[0, 1] > 0.9


@pytest.mark.parametrize("name", ["als", "svd++", "implicit", "item neighbors", "chosen"])
def test_a_newcomer_with_a_users_ratings_gets_the_users_list(name, get_model):
    rec = get_model(name)
    for user in (5, 41):
        own = dict(RATINGS.filter(user=user).select("item", "rating").iter_rows())
        new, old = rec.recommend_new(own, n=8), rec.recommend(user, n=8)
        np.testing.assert_allclose(new["score"], old["score"], atol=5e-3)
        assert len(set(new["item"]) & set(old["item"])) >= 7


def test_newcomers_without_known_items_get_what_is_liked_most(get_model):
    rec = get_model("als")
    liked = rec.recommend_new({}, n=40)
    bias = rec.baseline_.column_bias_
    assert liked["item"].to_list() == rec.items_[np.argsort(-bias, kind="stable")].tolist()
    with pytest.warns(UserWarning, match="'no such film'"):
        unknown = rec.recommend_new({"no such film": 5}, n=40)
    assert unknown.equals(liked)
    counts = Recommender(ImplicitALS(3)).fit(RATINGS.select("user", "item")).recommend_new({}, n=1)
    assert counts["item"][0] == RATINGS["item"].mode().sort()[0]


def test_similar_items_move_together():
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(200, 2))
    X = 3 + taste @ np.repeat(np.eye(2), 5, axis=1)
    i, j = np.nonzero(rng.random(X.shape) < 0.7)
    for model in (ALS(2), Neighborhood(), MeanImpute()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rec = Recommender(model).fit((i, j, X[i, j]))
        found = rec.similar_items(1, n=4)
        assert set(found["item"]) == {0, 2, 3, 4}
        assert found["similarity"].to_list() == sorted(found["similarity"], reverse=True)
        assert found["similarity"].max() <= 1


def test_predictions_stay_in_the_range_unless_asked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1)) + rng.normal(size=12)
    i, j = np.nonzero((rng.random(X.shape) < 0.5) & (X.max() > X))
    rec = Recommender(Biases(reg=0.0)).fit((i, j, X[i, j]))
    grid = np.repeat(np.arange(30), 12), np.tile(np.arange(12), 30)
    inside = rec.predict(*grid)
    assert inside.min() >= X[i, j].min() and inside.max() <= X[i, j].max()
    free = rec.set_params(clip=False).predict(*grid)
    assert free.max() > inside.max()
    np.testing.assert_allclose(np.clip(free, inside.min(), inside.max()), inside)


def test_unknown_ids_are_predicted_from_what_is_known(get_model):
    rec = get_model("als")
    b = rec.baseline_
    item = rec.items_[3]
    got = rec.predict([0, "nobody", 0, "nobody"], [item, item, "no film", "no film"])
    low, high = rec.range_
    assert got[1] == pytest.approx(np.clip(b.mean_ + b.column_bias_[3], low, high))
    assert got[2] == pytest.approx(np.clip(b.mean_ + b.row_bias_[0], low, high))
    assert got[3] == pytest.approx(b.mean_)
    assert np.isfinite(got).all()
    assert rec.predict(0, rec.items_[:5]).shape == (5,)


# ---- files and parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_recommender_is_the_same(name, get_model, tmp_path):
    rec = get_model(name)
    rec.save(tmp_path / "r.twofold")
    back = load(tmp_path / "r.twofold")
    assert back.recommend(3).equals(rec.recommend(3))
    assert back.choice_ == rec.choice_ and back.columns_ == rec.columns_
    item = rec.recommend(3)["item"][0]
    assert back.explain(3, item).equals(rec.explain(3, item))
    assert repr(back) == repr(rec)


def test_parameters_are_stored_and_cloned():
    rec = Recommender(ALS(3), user="u", duplicates="last", clip=False, random_state=3)
    copy = clone(rec)
    assert repr(copy) == repr(rec) and copy.model is not rec.model
    assert copy.get_params()["model__n_components"] == 3
    given = ALS(3)
    Recommender(given).fit(RATINGS)
    assert not hasattr(given, "components_")


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_unknown_ids_are_refused_with_those_there_are(get_model):
    rec = get_model("als")
    with pytest.raises(InputError, match=r"user 61 .* They are numbers, 0 to 59"):
        rec.recommend(61)
    film = rec.items_[5]
    with pytest.raises(InputError) as caught:
        rec.similar_items(film.lower().replace("the ", ""))
    assert repr(film) in str(caught.value)
    with pytest.raises(InputError, match="item 'zzz'"):
        rec.explain(3, "zzz")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda rec: rec.recommend(3, n=0), "n=0"),
        (lambda rec: rec.recommend_new([1, 2]), "dict"),
        (lambda rec: rec.recommend_new({rec.items_[0]: "good"}), "'good'"),
        (lambda rec: rec.recommend_all(path="out.docx"), ".docx"),
        (lambda rec: rec.recommend_all(path="no/such/folder/out.csv"), "no/such/folder"),
        (lambda rec: rec.predict([1, 2, 3], ["a", "b"]), "3 users and 2 items"),
    ],
)
def test_refused_questions(call, words, get_model):
    with pytest.raises(InputError, match=words):
        call(get_model("als"))


def test_a_model_of_another_kind_is_refused():
    from twofold import PCA

    with pytest.raises(ValueError, match="model"):
        Recommender(PCA(2)).fit(RATINGS)
