"""Errors that named the wrong thing or gave no remedy say what is wrong and what to do."""

import pickle

import numpy as np
import pytest

from twofold import NMF, PCA, Biases, InputError, LatentDirichletAllocation, ModelFileError, Recommender, load

X = np.random.default_rng(0).normal(size=(20, 4))
ROWS = [(a % 30, a % 17, 1.0 + a % 5) for a in range(400)]


@pytest.mark.parametrize("hole", [np.nan, 0.0])
def test_an_infinite_cell_is_refused_by_the_model_that_was_asked(hole):
    with_holes = X.copy()
    with_holes[3, 2], with_holes[5, 1] = np.inf, hole
    with pytest.raises(InputError, match=r"^X\[3, 2\] is inf: PCA needs finite numbers"):
        PCA(2).fit(with_holes)


@pytest.mark.parametrize("model", [LatentDirichletAllocation(2), NMF(2), PCA(1)], ids=str)
def test_texts_are_counted_first(model):
    with pytest.raises(InputError, match=r"X is a list of texts.*BagOfWords\(\).fit_transform\(X\)"):
        model.fit(["a text of words", "another one"])


def test_a_file_of_another_program_is_named(tmp_path):
    path = tmp_path / "model.joblib"
    path.write_bytes(pickle.dumps({"weights": X}))
    with pytest.raises(ModelFileError, match=r"no twofold file but a pickle.*can run code.*model.save"):
        load(path)
    path.write_bytes(b"PK\x03\x04" + bytes(99))
    with pytest.raises(ModelFileError, match="no twofold file but a zip archive"):
        load(path)


def test_an_unknown_number_gets_no_near_number():
    rec = Recommender(Biases()).fit(ROWS)
    for user in (99_999, "bob"):
        with pytest.raises(InputError, match=r"They are numbers, 0 to 29\.$"):
            rec.recommend(user)
