"""For texts, ratings and networks: a file, what it holds, and the code of the answer give the same answer."""

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.worlds import make_ratings, make_sentences
from twofold import analyses


def give_lines():
    Path("lines.txt").write_text("\n".join(make_sentences()))
    frame = pl.DataFrame({"id": range(300), "body": make_sentences()})
    return ("lines.txt",), [(make_sentences(),), (frame,)], ["data"]


def give_ratings():
    ratings = make_ratings().ratings
    ratings.write_csv("ratings.csv")
    return ("ratings.csv",), [(ratings,), (tuple(ratings[name].to_numpy() for name in ratings.columns),)], ["data"]


def give_digits():
    from sklearn.datasets import load_digits

    images, labels = (load_digits().images[:200] * 15).astype(np.uint8), load_digits().target[:200]
    np.savez("digits.npz", images=images, labels=labels)
    return ("digits.npz",), [(images, labels)], ["data", "target"]


CASES = {
    "topics": (give_lines, lambda data: analyses.topics(data, 3)),
    "embed": (give_lines, partial(analyses.embed, method="pmi")),
    "recommend": (give_ratings, partial(analyses.recommend, n=4, model="als")),
    "train": (give_digits, lambda data, target=None: analyses.train("cnn", data, target=target, epochs=2)),
}


def numbers_of(answer):
    """Return the columns of its table that do not depend on the clock, nor on how rows of the file are called."""
    return answer.table.select(pl.selectors.float() - pl.selectors.by_name("seconds", require_all=False))


@pytest.mark.parametrize("name", CASES)
def test_a_file_its_data_and_the_code_give_the_same(name, folder):
    if name == "train":
        pytest.importorskip("torch")
    give, analyze = CASES[name]
    files, kinds, names = give()
    answer = analyze(*files)
    others = [analyze(*data) for data in kinds]
    for other in others:
        assert other.figures == answer.figures and other.baseline == answer.baseline
        assert numbers_of(other).equals(numbers_of(answer))
    for one, given in ((answer, {}), (others[0], dict(zip(names, kinds[0], strict=True)))):
        exec(one.code, given)
        assert given["answer"].figures == one.figures and numbers_of(given["answer"]).equals(numbers_of(one))
    assert answer.baseline.keys() - {"method"} <= answer.figures.keys()
