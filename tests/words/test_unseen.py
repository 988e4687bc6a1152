"""Words never seen, phrases, CBOW, and vectors of documents."""

import numpy as np
import pytest

from twofold import SkipGram, WordVectors, analyses
from twofold.core.checks import InputError
from twofold.kernels.skip_gram import step_mean
from twofold.text.phrases import join_phrases

STEMS = ["walk", "jump", "paint", "build", "climb", "wander", "gather", "whisper"]
ENDINGS = ["", "s", "ed", "ing", "er", "able", "ers"]


def test_letters_tell_words_never_seen_from_others():
    """Words of one stem share a direction; of each stem one form is hidden, and is nearest to its own stem."""
    directions = np.eye(len(STEMS))
    words = [stem + end for stem in STEMS for end in ENDINGS if end != "er"]
    v = WordVectors.of(words, [directions[STEMS.index(s)] for s in STEMS for end in ENDINGS if end != "er"])
    for stem in STEMS:
        assert v.nearest(v.unseen(stem + "er"), n=1)[0][0].startswith(stem)
    with pytest.raises(InputError, match="not among"):
        v.unseen("漢字")


def test_most_similar_is_the_analogy_and_takes_several_words():
    rng = np.random.default_rng(0)
    v = WordVectors.of([f"w{i}" for i in range(30)], rng.standard_normal((30, 5)))
    ours, other = v.most_similar(["w1", "w2"], "w0", n=3), v.analogy("w0", "w1", "w2", n=3)
    assert [word for word, _ in ours] == [word for word, _ in other]
    assert v.most_similar("w4", n=2) == v.nearest("w4", n=2)
    with pytest.raises(InputError, match="one word at least"):
        v.most_similar()


def test_documents_lose_what_all_have_in_common():
    rng = np.random.default_rng(1)
    shared, own = np.eye(6)[0], np.eye(6)[1:3]
    words = [f"{'ab'[i % 2]}{i}" for i in range(20)]
    v = WordVectors.of(words, [3 * shared + own[i % 2] for i in range(20)])
    texts = [" ".join(rng.choice([w for w in words if w[0] == "ab"[i % 2]], 6)) for i in range(10)]
    D = v.documents([*texts, "nothing known"])
    assert not D[-1].any()
    cosine = (D[:-1] @ D[:-1].T) / np.outer(*[np.linalg.norm(D[:-1], axis=1)] * 2)
    same = np.equal.outer(np.arange(10) % 2, np.arange(10) % 2)
    assert cosine[same].min() > 0.99 and cosine[~same].max() < -0.9
    np.testing.assert_allclose(v.documents(texts, common=0)[0], v.document(texts[0]), rtol=1e-6)


def test_a_step_of_cbow_is_its_gradient():
    """X and Y move by −rate times the gradient of the loss, found by differences."""
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((6, 4)).astype(np.float32) / 2 for _ in range(2))
    rows, cols, rate = np.array([0, 2, 3]), np.array([1, 4, 5]), 1e-3

    def loss(X, Y):
        z = X[rows].mean(axis=0) @ Y[cols].T
        return np.log1p(np.exp(-z[0])) + np.log1p(np.exp(z[1:])).sum()

    made, moved = X.copy(), Y.copy()
    h, e = np.empty(4, np.float32), np.empty(4, np.float32)
    found = step_mean(made, moved, -1, rows, 3, cols, 3, np.float32(rate), h, e)
    X, Y = X.astype(float), Y.astype(float)
    assert found == pytest.approx(loss(X, Y), rel=1e-5)
    for A, B in ((X, made), (Y, moved)):
        gradient = np.zeros_like(A)
        for at in np.ndindex(A.shape):
            value = A[at]
            A[at] = value + 1e-5
            above = loss(X, Y)
            A[at] = value - 1e-5
            gradient[at] = (above - loss(X, Y)) / 2e-5
            A[at] = value
        np.testing.assert_allclose((A - B) / rate, gradient, atol=2e-3)


def test_cbow_finds_words_that_are_used_alike_and_a_seed_gives_the_same_bits():
    lines = ["the cat purrs", "the kitten purrs", "the cat sleeps", "the kitten sleeps"]
    lines += ["one boat sails", "one ship sails", "one boat sinks", "one ship sinks"]
    options = {"architecture": "cbow", "subsample": None, "max_iter": 40, "random_state": 0}
    model = SkipGram(8, **options).fit(50 * lines)
    assert model.vectors_.nearest("cat", n=1)[0][0] == "kitten" and model.vectors_.nearest("ship", n=1)[0][0] == "boat"
    assert model.history_["objective"][-1] < 0.8 * model.history_["objective"][0]
    again = SkipGram(8, **options).fit(50 * lines)
    np.testing.assert_array_equal(again.vectors_.vectors_, model.vectors_.vectors_)
    with pytest.raises(InputError, match="softmax"):
        SkipGram(8, architecture="cbow", loss="softmax").fit(50 * lines)


def test_phrases_are_words_and_few_long_texts_have_a_figure():
    rng = np.random.default_rng(0)
    text = " ".join(f"the {rng.choice(['tea', 'silk', 'ship', 'port'])} from Hong Kong" for _ in range(400))
    lines, phrases = join_phrases([text])
    assert phrases == ["hong_kong"] and lines[0][3] == "hong_kong"
    answer = analyses.embed([text], phrases=True, method="pmi", n_components=3)
    assert "hong_kong" in answer.vectors and "hong" not in answer.vectors
    assert 0 <= answer.figures["right"] <= 1  # although there is but one text
