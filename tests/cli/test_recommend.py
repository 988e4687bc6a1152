"""twofold recommend on ratings as users have them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from twofold import Recommender, analyses, datasets, load


@pytest.fixture(scope="session")
def world():
    return datasets.ratings(n_users=120, n_items=60, seed=1)


@pytest.fixture
def films(folder, world):
    """ratings.csv: user, item, rating and a time; returns the ratings."""
    world.ratings.with_columns(timestamp=pl.lit(881250949)).write_csv("ratings.csv")
    return world.ratings


@pytest.fixture(scope="session")
def saved(tmp_path_factory, world):
    """A recommender fitted once, for tests that only ask it."""
    path = tmp_path_factory.mktemp("model") / "m.twofold"
    Recommender(random_state=0).fit(world.ratings).save(path)
    return path


def run_json(twofold, *args):
    result = twofold("recommend", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_no_options_are_needed_and_nothing_is_written(twofold, films, folder):
    result = twofold("recommend", "ratings.csv")
    assert result.exit_code == 0, result.stderr
    for text in (f"{len(films):,} ratings by 120 users of 60 items", "lists by ", "ratings by ", "RMSE", "NDCG@10",
                 "Biases", "Popularity", "recommended most", "best for them"):  # fmt: skip
        assert text in result.stdout
    for choice in (
        'users in "user", items in "item", ratings in "rating"; "timestamp" not used',
        "lists by ",
        "ratings by ",
    ):
        assert choice in result.stderr
    assert [p.name for p in folder.iterdir()] == ["ratings.csv"]


def test_seen_items_are_never_recommended_and_everybody_has_a_list(twofold, films):
    found = run_json(twofold, "ratings.csv", "-n", 7, "-o", "top.csv", "-o", "top.parquet", "-o", "top.tsv")
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


def test_figures_are_those_of_the_choice(twofold, films):
    found = run_json(twofold, "ratings.csv")
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


def test_a_split_measures_a_refit_without_the_held_out(twofold, films):
    found = run_json(twofold, "ratings.csv", "--split", "random")
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


def test_other_ways_to_hold_out(twofold, films, world):
    when = np.random.default_rng(0).permutation(len(films))
    films.with_columns(timestamp=pl.Series(when)).write_csv("r.csv")
    last, new = (run_json(twofold, "r.csv", "--split", split)["figures"] for split in ("last", "users"))
    again = Recommender(random_state=0).evaluate("r.csv", split="last", test_size=0.1, random_state=1)
    assert last["ndcg"] == pytest.approx(again["ndcg"]) and last["ratings"] == again.ratings
    assert new["unseen"] == new["ratings"] > 0
    for name, split, words in (("ratings.csv", "soon", "split='soon'"), ("bare.csv", "last", "no column of bare.csv")):
        films.write_csv("bare.csv")
        refused = twofold("recommend", name, "--split", split)
        assert refused.exit_code == 2 and words in refused.stderr


def test_new_items_are_held_out_with_their_features(twofold, films, world):
    refused = twofold("recommend", "ratings.csv", "--split", "items")
    assert refused.exit_code == 2 and "--items FILE" in refused.stderr
    items = films["item"].unique().sort()
    pl.DataFrame({"item": items, "group": [str(a % 5) for a in range(len(items))]}).write_csv("features.csv")
    found = run_json(twofold, "ratings.csv", "--items", "features.csv", "--split", "items")
    again = Recommender(random_state=0).evaluate(
        films, items="features.csv", split="items", test_size=0.1, random_state=1
    )
    assert [{k: v for k, v in row.items() if k != "intervals"} for row in found["compared"]] == again.table.to_dicts()
    assert found["compared"][-1]["model"] == "popularity by features"
    assert found["baseline"]["ndcg"] == found["compared"][-1]["ndcg"]
    shown = twofold("recommend", "ratings.csv", "--items", "features.csv", "--split", "items")
    assert shown.exit_code == 0 and "popularity by features" in shown.stdout


def test_one_user_and_the_reasons(twofold, films, saved):
    found = run_json(twofold, saved, "--user", 3, "--user", 5, "-n", 4, "--explain", "-o", "two.csv")
    assert [part["user"] for part in found["recommendations"]] == ["3", "5"]
    rated = set(films.filter(pl.col("user") == 3)["item"])
    first = found["recommendations"][0]["items"]
    assert len(first) == 4 and not rated & {entry["item"] for entry in first}
    for entry in first:
        assert {reason["item"] for reason in entry["because"]} <= rated
    model = load(saved)
    assert [entry["item"] for entry in first] == model.recommend(3, 4)["item"].to_list()
    assert pl.read_csv("two.csv").select("user", "item").rows() == [
        (int(part["user"]), entry["item"]) for part in found["recommendations"] for entry in part["items"]
    ]


def test_somebody_new(twofold, saved):
    model = load(saved)
    a, b = model.items_[4], model.items_[9]
    found = run_json(twofold, saved, "--new", f"{a}:5,{b}:1", "--explain", "-n", 6)
    entry = found["recommendations"][0]
    assert [e["item"] for e in entry["items"]] == model.recommend_new({a: 5.0, b: 1.0}, 6)["item"].to_list()
    assert {a, b}.isdisjoint(e["item"] for e in entry["items"])
    again = run_json(twofold, saved, "--new", f"{a}:5,", "--new", f"{b}:1", "-n", 6)
    assert [e["item"] for e in again["recommendations"][0]["items"]] == [e["item"] for e in entry["items"]]


def test_names_instead_of_ids(twofold, films):
    titles = films["item"].unique().sort()
    number = dict(zip(titles, range(1, len(titles) + 1), strict=True))
    coded = films.with_columns(pl.col("item").replace_strict(number).alias("item"))
    coded.write_csv("r.tsv", separator="\t", include_header=False)
    Path("names.txt").write_text("".join(f"{j}|{title}|x\n" for title, j in number.items()))
    found = run_json(twofold, "r.tsv", "--names", "names.txt", "--new", f"{titles[3]}:5", "-o", "new.csv")
    for entry in found["recommendations"][0]["items"]:
        assert number[entry["name"]] == entry["item"] != 4
    assert pl.read_csv("new.csv").columns == ["user", "item", "name", "score", "rating"]
    assert any("no header" in note for note in found["notes"])


def test_text_ids_without_a_header_lose_no_line(twofold, folder, world):
    films = world.ratings.with_columns(pl.format("u{}", "user").alias("user"))
    films.write_csv("r.csv", include_header=False)
    assert run_json(twofold, "r.csv")["ratings"] == len(films)
    Path("r.dat").write_text("".join(f"{u}::{i}::{r}::1\n" for u, i, r in films.iter_rows()))
    assert run_json(twofold, "r.dat")["ratings"] == len(films)


def test_ids_stay_as_they_are(twofold, folder, world):
    names = {j: f"00{j}" for j in range(120)}
    films = world.ratings.with_columns(pl.col("user").replace_strict(names).alias("customer"))
    films = films.select("rating", pl.format('{}, "é"', "item").alias("movieId"), "customer")
    films.write_csv("r.csv")
    found = run_json(twofold, "r.csv", "--user", "007", "-o", "top.csv")
    assert found["columns"] == {"user": "customer", "item": "movieId", "rating": "rating"}
    assert pl.read_csv("top.csv", infer_schema=False)["user"].unique().to_list() == ["007"]
    assert pl.read_csv("top.csv")["item"].str.ends_with(', "é"').all()


def test_columns_can_be_named(twofold, films):
    films.rename({"user": "a", "item": "b", "rating": "c"}).select("c", "b", "a").write_csv("r.csv")
    names = ["--user-column", "a", "--item-column", "b", "--rating-column", "c"]
    assert run_json(twofold, "r.csv", *names)["users"] == 120
    refused = twofold("recommend", "r.csv", "--user-column", "x")
    assert refused.exit_code == 2 and '"a"' in refused.stderr


def test_data_without_ratings(twofold, films):
    films.select("user", "item").write_csv("seen.csv")
    found = run_json(twofold, "seen.csv", "-o", "top.csv", "--new", films["item"][0])
    assert found["implicit"] and found["figures"]["rmse"] is None
    assert any("there are no ratings" in note for note in found["notes"])
    assert len(found["recommendations"][0]["items"]) == 10


def test_repeated_and_blank_ratings_are_said(twofold, films):
    more = pl.concat([films, films.head(3)]).with_columns(
        pl.when(pl.int_range(len(films) + 3) == 10).then(None).otherwise("rating").alias("rating")
    )
    more.write_csv("r.csv")
    found = run_json(twofold, "r.csv")
    assert found["ratings"] == len(films) - 1
    assert any("1 row without a rating" in note for note in found["notes"])
    assert any("3 rows repeat a user and an item" in note for note in found["notes"])


def test_a_sparse_matrix_is_a_table_of_ratings(twofold, films):
    index = {title: j for j, title in enumerate(films["item"].unique().sort())}
    j = [index[title] for title in films["item"]]
    X = sp.coo_array((films["rating"].to_numpy(), (films["user"].to_numpy(), j)))
    scipy.io.mmwrite("r.mtx", X)
    assert run_json(twofold, "r.mtx", "--user", 1)["ratings"] == X.nnz


def test_pictures_reports_seeds_and_models(twofold, films):
    from PIL import Image

    for name in ("a", "b"):
        args = [
            "-o",
            f"{name}.png",
            "-o",
            f"{name}.html",
            "-o",
            f"{name}.csv",
            "--save",
            f"{name}.twofold",
            "--seed",
            3,
        ]
        assert twofold("recommend", "ratings.csv", *args).exit_code == 0
    for ending in ("png", "html", "csv"):
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    with Image.open("a.png") as image:
        assert min(image.size) > 600
        assert len(image.convert("RGB").resize((100, 100)).getcolors(10_000)) > 20
    page = Path("a.html").read_text()
    assert "data:image/png;base64," in page and "held out" in page.lower() and "http" not in page
    left, right = (
        run_json(twofold, f, "--seed", 3, "--user", 4)["recommendations"] for f in ("a.twofold", "ratings.csv")
    )
    assert left == right


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-o", "ratings.csv", "--force"], "input"),
        (["-o", "out.npy"], ".parquet"),
        (["--save", "m.pkl"], ".twofold"),
        (["-n", "0"], "-n"),
        (["--rating-column", "stars"], '"rating"'),
        (["--names", "missing.csv"], "missing.csv"),
        (["--model", "EASY"], "EASE"),
        (["--time", "0"], "--time"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(twofold, films, folder, args, word):
    result = twofold("recommend", "ratings.csv", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert [p.name for p in folder.iterdir()] == ["ratings.csv"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--user", "999"], ["999", "Close to it"]),
        (["--new", "The Golden:5"], ["The Golden", "Close to it"]),
        (["--new", "{item}:9"], ["0.5", "5"]),
        (["--new", "{item}"], ["ITEM:RATING"]),
    ],
)
def test_unknown_ids_are_refused_with_those_close_to_them(twofold, saved, folder, args, words):
    args = [arg.format(item=load(saved).items_[0]) for arg in args]
    result = twofold("recommend", saved, *args, "-o", "out.csv")
    assert result.exit_code == 2 and all(word in result.stderr for word in words), result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("user,item,rating\na,x,5\nb,y,good\nc,z,3\nd,x,4\n", ["line 3", 'column "rating"', '"good"', "--missing"]),
        ("user,item,rating\na,x,5\n,y,4\n", ["line 3", 'column "user"', "blank", "remove"]),
        ("user,item,rating\na,x,5\nb,y\n", ["line 3", "2 fields"]),
        ("user,item,rating\na,x,inf\nb,y,2\n", ["line 2", 'column "rating"', "finite"]),
        ("user\na\nb\n", ["one column", "user, an item"]),
        ("", ["empty"]),
        ("user,item,rating\na,x,\nb,y,NA\n", ["every one is blank"]),
        ("user,item,rating\na,x,5\na,y,4\n", ["one user alone, 'a'", "--user-column"]),
        ("user,item,rating\na,x,5\nb,x,4\n", ["one item alone, 'x'", "--item-column"]),
        ("length,mass,age\n1.5,80.2,3\n1.7,90.1,4\n", ["fractions such as 1.5", "--user-column"]),
    ],
)
def test_bad_input_leaves_nothing_behind(twofold, folder, content, words):
    Path("bad.csv").write_text(content)
    result = twofold("recommend", "bad.csv", "-o", "out.csv", "-o", "out.png", "--save", "m.twofold")
    assert result.exit_code == 2 and "bad.csv" in result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert [p.name for p in folder.iterdir()] == ["bad.csv"]


def test_the_model_file_must_be_a_recommender(twofold, folder):
    from twofold import KMeans

    KMeans(2, random_state=0).fit(np.random.default_rng(0).standard_normal((20, 2))).save("k.twofold")
    result = twofold("recommend", "k.twofold")
    assert result.exit_code == 2 and "KMeans" in result.stderr
    assert twofold("recommend", "none.twofold").exit_code == 2


def test_ratings_that_are_all_equal_say_who_has_what(twofold, folder):
    Path("equal.csv").write_text("user,item,rating\nann,x,5\nann,y,5\nbob,y,5\nbob,z,5\ncy,x,5\n")
    result = twofold("recommend", "equal.csv", "--user", "ann")
    assert result.exit_code == 0 and "every rating is 5" in result.stderr


def test_a_matrix_of_ratings_is_used_as_one_and_so_does_the_code(twofold, folder):
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(80, 1)) + 4 * rng.normal(size=(80, 20)), -10, 10).round(2)
    X[rng.random(X.shape) < 0.5] = 99
    np.savetxt("jokes.csv", np.column_stack([(X != 99).sum(axis=1), X]), fmt="%g", delimiter=",")
    found = run_json(twofold, "jokes.csv", "-n", 3, "-o", "top.csv")
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


def test_names_stay_with_a_saved_model(twofold, films):
    titles = films["item"].unique().sort().to_list()
    number = {title: j for j, title in enumerate(titles, 1)}
    films.with_columns(pl.col("item").replace_strict(number)).write_csv("r.csv")
    episodes = [1 + j % 30 for j in range(60)]  # also ids of items, but they tell no item from another
    shows = pl.DataFrame({"episodes": episodes, "key": list(number.values()), "what": titles})
    shows.write_csv("names.csv")
    found = run_json(twofold, "r.csv", "--names", "names.csv", "--save", "m.twofold", "--user", 3)
    note = 'names of 60 of 60 items from names.csv: ids in "key", names in "what"'
    assert note in found["notes"]
    again = run_json(twofold, "m.twofold", "--user", 3, "-o", "top.csv")
    assert again["recommendations"] == found["recommendations"]
    for row in pl.read_csv("top.csv").iter_rows(named=True):
        assert number[row["name"]] == row["item"]
    applied = twofold("apply", "m.twofold", "r.csv", "-n", 2, "-o", "applied.csv")
    assert applied.exit_code == 0, applied.stderr
    for row in pl.read_csv("applied.csv").iter_rows(named=True):
        assert number[row["name"]] == row["item"]
    assert "knows the names of 60 items" in twofold("inspect", "m.twofold").stdout
    chosen = run_json(twofold, "m.twofold", "--names", "names.csv", "--names-id", "key", "--names-column", "episodes",
                      "--user", 3)  # fmt: skip
    assert chosen["recommendations"][0]["items"][0]["name"].isdigit()


def test_a_model_can_be_chosen(twofold, films):
    found = run_json(twofold, "ratings.csv", "--model", "als", "--user", 3)
    assert found["model"] == found["ranking"] == "ALS" and found["compared"][0]["model"] == "ALS"
    assert any("lists and ratings by ALS: it was given" in note for note in found["notes"])
    lists = run_json(twofold, "ratings.csv", "--model", "EASE", "--user", 3)
    assert lists["implicit"] and lists["figures"]["rmse"] is None


def test_less_time_tries_less(twofold, films):
    found = run_json(twofold, "ratings.csv", "--time", "0.1")
    assert found["figures"]["ndcg"] is not None  # whatever was tried, popularity was


@pytest.fixture
def features(films, world):
    """films.csv and people.csv beside ratings.csv without one film and one person."""
    gone = {"user": int(films["user"][0]), "item": films["item"][-1]}
    films.filter(pl.col("user") != gone["user"], pl.col("item") != gone["item"]).write_csv("ratings.csv")
    world.films.with_columns(pl.col("genres").list.join("|")).write_csv("films.csv")
    tastes = {f"taste {j}": world.truth.tastes[:, j].round(3) for j in range(world.truth.tastes.shape[1])}
    pl.DataFrame({"user": range(120), **tastes}).write_csv("people.csv")
    return gone


def test_what_is_known_of_users_and_items_serves_those_without_ratings(twofold, features):
    both = ["--items", "films.csv", "--users", "people.csv"]
    found = run_json(twofold, "ratings.csv", *both, "-n", 60, "-o", "all.csv", "--save", "m.twofold")
    lists = pl.read_csv("all.csv")
    assert (lists["item"] == features["item"]).any()
    assert any("features of items are used: 1 item without" in note for note in found["notes"])
    pl.read_csv("films.csv").select("item", title=pl.col("item").str.to_uppercase()).write_csv("names.csv")
    run_json(twofold, "m.twofold", "-n", 60, "--names", "names.csv", "--save", "named.twofold")
    run_json(twofold, "named.twofold", "-n", 60, "-o", "named.csv")
    named = pl.read_csv("named.csv").filter(pl.col("item") == features["item"])
    assert set(named["name"]) == {features["item"].upper()}
    one = run_json(twofold, "m.twofold", "--user", features["user"], "-n", 3, "--explain")
    assert len(one["recommendations"][0]["items"]) == 3 and one["recommendations"][0]["user"] == str(features["user"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text + text.splitlines()[1] + "\n", ["more than once", "Keep one row of each"]),
        (lambda text: "item,year,genres\nnone,1999,Drama\nother,2001,Space\n", ["item", "ratings"]),
        (lambda text: "", ["films.csv is empty"]),
    ],
)
def test_features_that_cannot_be_used_are_refused(twofold, features, change, words):
    Path("films.csv").write_text(change(Path("films.csv").read_text()))
    result = twofold("recommend", "ratings.csv", "--items", "films.csv", "--quiet", "--time", 1)
    assert result.exit_code == 2 and all(word in result.stderr for word in words), result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""


def test_a_handful_of_ratings_is_enough(twofold, folder):
    Path("few.csv").write_text("user,item,rating\nann,x,5\nann,y,1\nbob,x,4\nbob,z,5\ncy,y,2\n")
    result = twofold("recommend", "few.csv", "--user", "cy")
    assert result.exit_code == 0, result.stderr
    assert "too few to hold" in result.stderr and "for user cy" in result.stdout
