"""twofold recommend on ratings as users have them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from tests.cli.worlds import copy_files, make_ratings, write_ratings, write_saved_ratings
from twofold import Recommender, analyses, load

QUICK = ("--model", "als")  # for tests about something else than the choice


@pytest.fixture
def films(folder):
    return write_ratings()


@pytest.fixture
def model_file(folder):
    """m.twofold: a recommender that is fitted once a session."""
    copy_files(write_saved_ratings)
    return "m.twofold"


def test_seen_items_are_never_recommended_and_everybody_has_a_list(ask, films):
    found = ask("recommend", "ratings.csv", *QUICK, "-n", 7, "-o", "top.csv", "-o", "top.parquet", "-o", "top.tsv")
    top = pl.read_csv("top.csv")
    assert top.columns == ["user", "item", "score", "rating"]
    assert top.join(films, on=["user", "item"]).height == 0
    counts = top.group_by("user").len()
    room = 60 - films.group_by("user").len().sort("user")["len"]
    np.testing.assert_array_equal(counts.sort("user")["len"], np.minimum(room, 7))
    assert top["rating"].is_between(0.5, 5).all()
    for _, part in top.group_by("user"):
        assert part["score"].is_sorted(descending=True) and part["item"].is_unique().all()
    assert pl.read_parquet("top.parquet").equals(top) and pl.read_csv("top.tsv", separator="\t").equals(top)
    assert found["written"] == ["top.csv", "top.parquet", "top.tsv"]


def test_figures_are_those_of_the_choice(ask, films):
    found = ask("recommend", "ratings.csv")
    choice = Recommender(random_state=0).fit(films).choice_
    for measure, part, what in (("rmse", choice, "ratings"), ("ndcg", choice["ranking"], "lists")):
        assert found["figures"][measure] == pytest.approx(part["score"])
        assert found["baseline"][measure] == pytest.approx(part["baseline_score"])
        assert next(iter(found["tried"][what])).startswith(part["model"]) and len(found["tried"][what]) > 1
        assert found["tried"][what].keys() <= part["tried"].keys()
        kinds = [name.split(" (")[0] for name in found["tried"][what]]
        assert sorted(kinds) == sorted({name.split(" (")[0] for name in part["tried"]})
    assert found["model"] == choice["model"] and found["ranking"] == choice["ranking"]["model"]
    assert found["figures"]["ndcg"] >= found["baseline"]["ndcg"]


def test_a_split_measures_a_refit_without_the_held_out(ask, films):
    found = ask("recommend", "ratings.csv", "--split", "random")
    own, popularity = found["compared"][0], found["compared"][-1]
    biases = next(row for row in found["compared"][::-1] if "Biases" in row["model"])
    assert popularity["model"] == "popularity" and popularity["rmse"] is None
    assert found["figures"]["rmse"] == own["rmse"] and found["baseline"]["rmse"] == biases["rmse"]
    assert found["figures"]["ndcg"] == own["ndcg"] and found["baseline"]["ndcg"] == popularity["ndcg"]
    again = Recommender(random_state=0).fit(films).evaluate(test_size=0.1, random_state=1)
    figures = [{name: row[name] for name in row if name != "intervals"} for row in found["compared"]]
    assert figures == again.table.to_dicts()  # the choice included, which may differ from that of all ratings
    for name in ("ndcg", "map", "rmse"):
        assert tuple(own["intervals"][name]) == pytest.approx(again.interval(name))
    assert found["figures"]["intervals"] == own["intervals"]
    assert own["rmse"] == pytest.approx(again["rmse"]) and own["ndcg"] == pytest.approx(again["ndcg"])
    assert own["rmse"] < np.std(films["rating"].to_numpy())


def test_other_ways_to_hold_out(twofold, ask, films):
    when = np.random.default_rng(0).permutation(len(films))
    films.with_columns(timestamp=pl.Series(when)).write_csv("r.csv")
    last, new = (ask("recommend", "r.csv", "--split", split)["figures"] for split in ("last", "users"))
    again = Recommender(random_state=0).evaluate("r.csv", split="last", test_size=0.1, random_state=1)
    assert last["ndcg"] == pytest.approx(again["ndcg"]) and last["ratings"] == again.ratings
    assert new["unseen"] == new["ratings"] > 0
    films.write_csv("bare.csv")
    result = twofold("recommend", "bare.csv", "--split", "last")
    assert result.exit_code == 2 and "no column of bare.csv" in result.stderr


def test_new_items_are_held_out_with_their_features(ask, films):
    items = films["item"].unique().sort()
    pl.DataFrame({"item": items, "group": [str(a % 5) for a in range(len(items))]}).write_csv("features.csv")
    found = ask("recommend", "ratings.csv", "--items", "features.csv", "--split", "items")
    again = Recommender(random_state=0).evaluate(
        films, items="features.csv", split="items", test_size=0.1, random_state=1
    )
    assert [{k: v for k, v in row.items() if k != "intervals"} for row in found["compared"]] == again.table.to_dicts()
    assert found["compared"][-1]["model"] == "popularity by features"
    assert found["baseline"]["ndcg"] == found["compared"][-1]["ndcg"]


def test_one_user_and_the_reasons(ask, films, model_file):
    found = ask("recommend", model_file, "--user", 3, "--user", 5, "-n", 4, "--explain", "-o", "two.csv")
    assert [part["user"] for part in found["recommendations"]] == ["3", "5"]
    rated = set(films.filter(pl.col("user") == 3)["item"])
    first = found["recommendations"][0]["items"]
    assert len(first) == 4 and not rated & {entry["item"] for entry in first}
    for entry in first:
        assert {reason["item"] for reason in entry["because"]} <= rated
    model = load(model_file)
    assert [entry["item"] for entry in first] == model.recommend(3, 4)["item"].to_list()
    assert pl.read_csv("two.csv").select("user", "item").rows() == [
        (int(part["user"]), entry["item"]) for part in found["recommendations"] for entry in part["items"]
    ]


def test_a_rating_of_a_new_user_must_be_one(twofold, model_file):
    item = load(model_file).items_[0]
    for new, words in ((f"{item}:9", ["0.5", "5"]), (str(item), ["ITEM:RATING"])):
        result = twofold("recommend", model_file, "--new", new)
        assert result.exit_code == 2 and all(word in result.stderr for word in words), result.stderr


def test_a_new_user(ask, model_file):
    model = load(model_file)
    a, b = model.items_[4], model.items_[9]
    found = ask("recommend", model_file, "--new", f"{a}:5,{b}:1", "--explain", "-n", 6)
    entry = found["recommendations"][0]
    assert [e["item"] for e in entry["items"]] == model.recommend_new({a: 5.0, b: 1.0}, 6)["item"].to_list()
    assert {a, b}.isdisjoint(e["item"] for e in entry["items"])
    again = ask("recommend", model_file, "--new", f"{a}:5,", "--new", f"{b}:1", "-n", 6)
    assert [e["item"] for e in again["recommendations"][0]["items"]] == [e["item"] for e in entry["items"]]


def test_names_instead_of_ids(ask, films):
    titles = films["item"].unique().sort()
    number = dict(zip(titles, range(1, len(titles) + 1), strict=True))
    coded = films.with_columns(pl.col("item").replace_strict(number).alias("item"))
    coded.write_csv("r.tsv", separator="\t", include_header=False)
    Path("names.txt").write_text("".join(f"{j}|{title}|x\n" for title, j in number.items()))
    found = ask("recommend", "r.tsv", *QUICK, "--names", "names.txt", "--new", f"{titles[3]}:5", "-o", "new.csv")
    for entry in found["recommendations"][0]["items"]:
        assert number[entry["name"]] == entry["item"] != 4
    assert pl.read_csv("new.csv").columns == ["user", "item", "name", "score", "rating"]
    assert any("no header" in note for note in found["notes"])


def write_without_header(films):
    films.select(pl.format("u{}", "user"), "item", "rating").write_csv("r.csv", include_header=False)
    return "r.csv"


def write_with_colons(films):
    Path("r.dat").write_text("".join(f"{u}::{i}::{r}::1\n" for u, i, r in films.iter_rows()))
    return "r.dat"


def write_renamed(films):
    films.select(c="rating", b="item", a="user").write_csv("r.csv")
    return "r.csv --user-column a --item-column b --rating-column c"


def write_sparse(films):
    number = {title: j for j, title in enumerate(films["item"].unique().sort())}
    places = films["user"].to_numpy(), [number[title] for title in films["item"]]
    scipy.io.mmwrite("r.mtx", sp.coo_array((films["rating"].to_numpy(), places)))
    return "r.mtx"


@pytest.mark.parametrize("write", [write_without_header, write_with_colons, write_renamed, write_sparse])
def test_every_way_to_write_ratings_is_read_whole(ask, films, write):
    assert ask("recommend", *write(films).split(), *QUICK)["ratings"] == len(films)


def test_ids_stay_as_they_are(ask, folder):
    names = {j: f"00{j}" for j in range(120)}
    films = make_ratings().ratings.with_columns(pl.col("user").replace_strict(names).alias("customer"))
    films = films.select("rating", pl.format('{}, "é"', "item").alias("movieId"), "customer")
    films.write_csv("r.csv")
    found = ask("recommend", "r.csv", *QUICK, "--user", "007", "-o", "top.csv")
    assert found["columns"] == {"user": "customer", "item": "movieId", "rating": "rating"}
    assert pl.read_csv("top.csv", infer_schema=False)["user"].unique().to_list() == ["007"]
    assert pl.read_csv("top.csv")["item"].str.ends_with(', "é"').all()


def test_data_without_ratings(ask, films):
    films.select("user", "item").write_csv("seen.csv")
    found = ask("recommend", "seen.csv", "-o", "top.csv", "--new", films["item"][0])
    assert found["implicit"] and found["figures"]["rmse"] is None
    assert any("there are no ratings" in note for note in found["notes"])
    assert len(found["recommendations"][0]["items"]) == 10


def test_repeated_and_blank_ratings_are_said(ask, films):
    more = pl.concat([films, films.head(3)]).with_columns(
        pl.when(pl.int_range(len(films) + 3) == 10).then(None).otherwise("rating").alias("rating")
    )
    more.write_csv("r.csv")
    found = ask("recommend", "r.csv", *QUICK)
    assert found["ratings"] == len(films) - 1
    assert any("1 row without a rating" in note for note in found["notes"])
    assert any("3 rows repeat a user and an item" in note for note in found["notes"])


def test_a_matrix_of_ratings_is_used_as_one_and_so_does_the_code(ask, folder):
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(80, 1)) + 4 * rng.normal(size=(80, 20)), -10, 10).round(2)
    X[rng.random(X.shape) < 0.5] = 99
    np.savetxt("jokes.csv", np.column_stack([(X != 99).sum(axis=1), X]), fmt="%g", delimiter=",")
    found = ask("recommend", "jokes.csv", "-n", 3, "-o", "top.csv")
    assert found["users"] == 80 and found["items"] == 20 and found["ratings"] == (X != 99).sum()
    assert any("read as a matrix of ratings" in note for note in found["notes"])
    hints = any("say --model" in note for note in found["notes"])  # where taste shows in ratings alone
    assert hints == (found["ranking"] == "Popularity" and found["model"] != "Biases")
    top = pl.read_csv("top.csv")
    assert top["user"].n_unique() == 80 and (X[top["user"] - 1, top["item"] - 1] == 99).all()
    answer = analyses.recommend("jokes.csv", n=3)
    names: dict = {}
    exec(answer.code, names)
    assert names["answer"].table.equals(answer.table) and answer.table.select("user", "item").equals(top[:, :2])


def test_names_stay_with_a_saved_model(twofold, ask, films):
    titles = films["item"].unique().sort().to_list()
    number = {title: j for j, title in enumerate(titles, 1)}
    films.with_columns(pl.col("item").replace_strict(number)).write_csv("r.csv")
    episodes = [1 + j % 30 for j in range(60)]  # also ids of items, but they tell no item from another
    shows = pl.DataFrame({"episodes": episodes, "key": list(number.values()), "what": titles})
    shows.write_csv("names.csv")
    found = ask("recommend", "r.csv", *QUICK, "--names", "names.csv", "--save", "m.twofold", "--user", 3)
    note = 'names of 60 of 60 items from names.csv: ids in "key", names in "what"'
    assert note in found["notes"]
    again = ask("recommend", "m.twofold", "--user", 3, "-o", "top.csv")
    assert again["recommendations"] == found["recommendations"]
    for row in pl.read_csv("top.csv").iter_rows(named=True):
        assert number[row["name"]] == row["item"]
    applied = twofold("apply", "m.twofold", "r.csv", "-n", 2, "-o", "applied.csv")
    assert applied.exit_code == 0, applied.stderr
    for row in pl.read_csv("applied.csv").iter_rows(named=True):
        assert number[row["name"]] == row["item"]
    assert "knows the names of 60 items" in twofold("inspect", "m.twofold").stdout
    columns = ["--names-id", "key", "--names-column", "episodes"]
    chosen = ask("recommend", "m.twofold", "--names", "names.csv", *columns, "--user", 3)
    assert chosen["recommendations"][0]["items"][0]["name"].isdigit()


def test_a_model_can_be_chosen(ask, films):
    found = ask("recommend", "ratings.csv", "--model", "als", "--user", 3)
    assert found["model"] == found["ranking"] == "ALS" and found["compared"][0]["model"] == "ALS"
    assert any("lists and ratings by ALS: it was given" in note for note in found["notes"])
    lists = ask("recommend", "ratings.csv", "--model", "EASE", "--user", 3)
    assert lists["implicit"] and lists["figures"]["rmse"] is None


@pytest.fixture
def features(films):
    """films.csv and people.csv beside ratings.csv without one film and one person."""
    gone = {"user": int(films["user"][0]), "item": films["item"][-1]}
    films.filter(pl.col("user") != gone["user"], pl.col("item") != gone["item"]).write_csv("ratings.csv")
    make_ratings().films.with_columns(pl.col("genres").list.join("|")).write_csv("films.csv")
    tastes = {f"taste {j}": taste.round(3) for j, taste in enumerate(make_ratings().truth.tastes.T)}
    pl.DataFrame({"user": range(120), **tastes}).write_csv("people.csv")
    return gone


def test_what_is_known_of_users_and_items_serves_those_without_ratings(ask, features):
    both = ["--items", "films.csv", "--users", "people.csv"]
    found = ask("recommend", "ratings.csv", *QUICK, *both, "-n", 60, "-o", "all.csv", "--save", "m.twofold")
    lists = pl.read_csv("all.csv")
    assert (lists["item"] == features["item"]).any()
    assert any("features of items are used: 1 item without" in note for note in found["notes"])
    pl.read_csv("films.csv").select("item", title=pl.col("item").str.to_uppercase()).write_csv("names.csv")
    ask("recommend", "m.twofold", "-n", 60, "--names", "names.csv", "--save", "named.twofold")
    ask("recommend", "named.twofold", "-n", 60, "-o", "named.csv")
    named = pl.read_csv("named.csv").filter(pl.col("item") == features["item"])
    assert set(named["name"]) == {features["item"].upper()}
    one = ask("recommend", "m.twofold", "--user", features["user"], "-n", 3, "--explain")
    assert len(one["recommendations"][0]["items"]) == 3 and one["recommendations"][0]["user"] == str(features["user"])
