"""Saved models of text, ratings and images on new ones."""

import numpy as np
import polars as pl
import pytest

import twofold
from twofold import analyses, datasets
from twofold.core.checks import InputError

PETS = "the cat and the dog sat in the garden while the bird sang to the cat"
BANKS = "the bank sold bonds and stocks because the market fell and money was lost"


def write_letters(folder, n=12):
    folder.mkdir()
    for i in range(n):
        (folder / f"{i:02}.txt").write_text(f"{PETS if i % 2 else BANKS} {'cat' if i % 2 else 'bank'} number{i}")


@pytest.mark.parametrize("method", ["lda", "nmf"])
def test_topics_of_new_texts(folder, method):
    write_letters(folder / "letters")
    analyses.topics("letters", 2, method=method).save("t.twofold")
    found = analyses.apply(
        "t.twofold", ["the dog sat with the cat in the garden", "the bank lost money and bonds fell"]
    )
    shares = found.table.select("topic1", "topic2").to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert shares.argmax(axis=1)[0] != shares.argmax(axis=1)[1]
    again = analyses.apply("t.twofold", "letters")
    space = {}
    exec(again.code, space)
    assert len(again.table) == 12 and space["answer"].table.equals(again.table)


def test_vectors_of_new_texts(folder):
    (folder / "corpus.txt").write_text("\n".join([PETS, BANKS] * 40))
    analyses.embed("corpus.txt", method="pmi", n_components=4).save("w.twofold")
    found = analyses.apply("w.twofold", ["the cat and the dog", "stocks and bonds fell", "zzz qqq"])
    V = found.table.select(pl.selectors.float()).to_numpy()
    assert V.shape == (3, 4) and not V[2].any() and any("without a known word" in note for note in found.notes)


def test_lists_for_new_users(folder):
    ratings = datasets.ratings(n_users=60, n_items=40).ratings
    ratings.write_csv("r.csv")
    analyses.recommend("r.csv").save("r.twofold")
    user, item = ratings.columns[:2]
    own = ratings.filter(pl.col(user) == ratings[user][0]).with_columns(pl.lit("someone new").alias(user))
    found = analyses.apply("r.twofold", own, n=3).table
    assert found["user"].to_list() == ["someone new"] * 3
    assert not set(found["item"].to_list()) & set(own[item].to_list())


def test_labels_of_new_images(folder):
    pytest.importorskip("torch")
    digits = datasets.digits()
    np.savez("digits.npz", images=digits.images[:400].astype(np.float32), labels=digits.target[:400])
    analyses.train("mlp", "digits.npz", epochs=15).save("m.twofold")
    np.savez("new.npz", images=digits.images[400:500].astype(np.float32), labels=digits.target[400:500])
    found = analyses.apply("m.twofold", "new.npz")
    assert found.figures["accuracy"] > 0.5 > found.baseline["accuracy"]
    with pytest.raises(InputError):
        analyses.apply("m.twofold", np.zeros((3, 7)))


def test_images_that_have_no_code_get_their_likelihood(folder):
    pytest.importorskip("torch")
    images = datasets.digits().images[:40].astype(np.float32)
    model = twofold.PixelCNN(max_iter=1, random_state=0).fit(images)
    found = analyses.apply(model, images[:5])
    assert found.what == "scores"
    np.testing.assert_allclose(found.table["log_density"], model.score_samples(images[:5]), rtol=1e-5)
    with pytest.raises(InputError, match="twofold generate"):
        analyses.apply(twofold.GAN(max_iter=1, random_state=0).fit(images), images)
