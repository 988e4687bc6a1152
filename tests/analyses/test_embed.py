"""analyses.embed, asked from Python."""

import numpy as np
import pytest

from twofold import analyses
from twofold.core.checks import InputError

SUBJECTS = ["rose tulip soil seed compost hedge", "piston valve petrol gear clutch torque"]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(SUBJECTS[i % 2].split(), 12)) for i in range(200)]


def test_figures_stand_beside_chance(texts):
    answer = analyses.embed(texts, method="pmi", n_components=4)
    assert answer.figures["right"] > answer.baseline["right"] == 0.5
    assert answer.settings.k == 4 == answer.vectors.vectors_.shape[1]


def test_faults_are_told_in_words_of_the_command(texts):
    with pytest.raises(InputError, match="choose skipgram, cbow, glove or pmi"):
        analyses.embed(texts, method="fasttext")
    with pytest.raises(InputError, match="PMI has none"):
        analyses.embed(texts, method="pmi", epochs=3)
    with pytest.raises(InputError, match="text='body': the documents are texts without columns"):
        analyses.embed(texts, text="body")
    with pytest.raises(InputError, match="n_components=100: there are only 12 words"):
        analyses.embed(texts, method="pmi", n_components=100)
