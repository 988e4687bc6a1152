"""analyses.recommend, asked from Python."""

import numpy as np
import polars as pl
import pytest

from twofold import Recommender, analyses, datasets
from twofold.analyses.recommend.analysis import read_pairs
from twofold.core.checks import InputError


@pytest.fixture(scope="module")
def ratings():
    return datasets.ratings(n_users=60, n_items=40, seed=1).ratings


@pytest.fixture(scope="module")
def answer(ratings):
    return analyses.recommend(ratings, n=4)


def test_lists_are_those_of_the_recommender(ratings, answer):
    whole = pl.concat(list(answer.model.recommend_all(4)))
    assert answer.table.select("user", "item").equals(whole.select("user", "item"))
    often, users = answer.most_recommended
    assert users == 60 and dict(often)[often[0][0]] == (whole["item"] == often[0][0]).sum()


def test_lists_in_files_are_written_as_they_are_computed(answer, tmp_path, monkeypatch):
    """No more than a part of the lists is held, and every part is written."""
    parts = answer.table.partition_by("user", maintain_order=True)
    out = []

    def some_at_a_time(n):
        for part in parts:
            out.append(len(part))
            yield part

    monkeypatch.setattr(answer.model, "recommend_all", some_at_a_time)
    answer.save(tmp_path / "top.csv", tmp_path / "top.parquet")
    assert len(out) == 2 * len(parts)
    for found in (pl.read_csv(tmp_path / "top.csv"), pl.read_parquet(tmp_path / "top.parquet")):
        assert found.equals(answer.table)


def test_a_fitted_recommender_is_asked_and_not_fitted_again(ratings):
    model = Recommender(random_state=0).fit(ratings)
    a, b = model.items_[:2]
    answer = analyses.recommend(model, users=[3], new={a: 5.0, b: 1.0}, names={a: "first"}, n=3)
    assert answer.model is model and answer.figures["rmse"] == model.choice_["score"]  # as when it was chosen
    assert answer.table.columns == ["user", "item", "name", "score", "rating"]
    assert answer.table["user"].to_list() == ["3"] * 3 + ["new"] * 3
    assert answer.table["item"].to_list()[3:] == model.recommend_new({a: 5.0, b: 1.0}, 3)["item"].to_list()
    with pytest.raises(InputError, match="They are numbers"):
        analyses.recommend(model, users=["nobody"])


ODD = ["Matrix, The (1999)", "Alien: Resurrection", "2001: A Space Odyssey", "a:5,b", "7", "Amélie"]


class Known:
    implicit_ = False
    items_ = np.array(sorted(ODD), dtype=object)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Matrix, The (1999):5,Alien: Resurrection:3", [(ODD[0], 5), (ODD[1], 3)]),
        ("2001: A Space Odyssey : 4.5 , Amélie:1", [(ODD[2], 4.5), (ODD[5], 1)]),
        ("a:5,b:2", [(ODD[3], 2)]),  # the whole is an id
        ("7:3", [("7", 3)]),
        ("7:3,7:-1,", [("7", 3), ("7", -1)]),
        ("unknown, thing:2", [("unknown, thing", 2)]),
    ],
)
def test_ids_with_commas_and_colons(text, pairs):
    assert list(read_pairs(text, Known(), {})) == pairs
