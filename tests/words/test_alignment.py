"""Alignment as a tool: what it takes, what it keeps, what it refuses."""

import numpy as np
import pytest
from sklearn.base import clone

from tests.callbacks import Crash, Recorder
from twofold import Alignment, Checkpoint, EarlyStopping, InputError, WordVectors
from twofold.words import align


def two(V=120, k=6, seed=0):
    """English and German words; the latter turned and a little off."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(V, k))
    Q = np.linalg.qr(rng.normal(size=(k, k)))[0]
    english = WordVectors.of([f"word{i}" for i in range(V)], X)
    german = WordVectors.of([f"Wort{i}" for i in range(V)], X @ Q + 0.1 * rng.normal(size=X.shape))
    return english, german, [(f"word{i}", f"Wort{i}") for i in range(V)]


def test_pairs_may_be_a_list_a_dict_a_file_or_spelling(tmp_path):
    english, german, pairs = two()
    listed = align(english, german, pairs[:20])
    (tmp_path / "tabs.txt").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:20]))
    (tmp_path / "spaces.txt").write_text("\n".join(f"{a} {b}" for a, b in pairs[:20]))
    spelled = WordVectors.of([dict(pairs[:20]).get(word, word) for word in english.words], english.vectors_)
    for made in (
        align(english, german, dict(pairs[:20])),
        align(english, german, np.array(pairs[:20])),
        align(english, german, tmp_path / "tabs.txt"),
        align(english, german, str(tmp_path / "spaces.txt")),
        align(spelled, german),
    ):
        np.testing.assert_array_equal(made.matrix_, listed.matrix_)


def test_fitted_models_stand_for_their_vectors():
    english, german, pairs = two()

    class Model:
        vectors_ = english

    np.testing.assert_array_equal(align(Model(), german, pairs).matrix_, align(english, german, pairs).matrix_)


def test_what_is_given_stays_and_unknown_words_are_passed():
    english, german, pairs = two()
    odd = [("word0", "Wort119"), ("unheard", "Wort1"), ("word1", "ungehört"), *pairs[1:20]]
    made = align(english, german, odd)
    assert [0, 119] in made.pairs_.tolist() and len(made.pairs_) > 100
    assert made.history_["pairs"][0] == 20


def test_history_and_rounds():
    english, german, pairs = two()
    made = align(english, german, pairs[:10], refine=4)
    assert set(made.history_) == {"objective", "seconds", "pairs"}
    assert len(made.history_["objective"]) == made.n_iter_ <= 5 and made.converged_
    assert made.history_["pairs"][-1] == len(made.pairs_)
    X, Y = made.transform(english.vectors_), made._sides[1].rows
    a, b = made.pairs_.T
    assert made.history_["objective"][-1] == pytest.approx(np.square(X[a] - Y[b]).sum(axis=1).mean())


def test_only_the_first_words_teach_but_all_are_translated():
    english, german, pairs = two()
    made = align(english, german, pairs[:20], vocabulary=60)
    assert made.pairs_.max() < 60
    assert made.translate("word100", 1)[0][0] == "Wort100"
    assert made.translate(english["word100"], 1) == made.translate("word100", 1)
    for method in ("csls", "nearest"):
        several = made.translate(["word100", "word3"], 4, method=method)
        assert [[word for word, _ in one] for one in several] == [
            [word for word, _ in made.translate(word, 4, method=method)] for word in ("word100", "word3")
        ]


def test_score_counts_words_not_pairs():
    english, german, pairs = two()
    made = align(english, german, pairs)
    assert made.score([("word1", "Wort1"), ("word1", "Wort2"), ("word1", "Wort3")]) == 1.0
    assert made.score([("word1", "Wort1"), ("word2", "Wort3")]) == 0.5
    assert made.score([("word1", "Wort1"), ("unheard", "Wort3")]) == 1.0
    ranks = [word for word, _ in made.translate("word5", 120)]
    at = ranks.index("Wort77")
    assert made.score([("word5", "Wort77")], n=at) == 0.0 and made.score([("word5", "Wort77")], n=at + 1) == 1.0


def test_fitting_again_forgets_the_first_fit():
    english, german, pairs = two()
    other, anders, others = two(seed=5)
    made = Alignment().fit(english, german, pairs[:20])
    made.translate("word3")
    made.fit(other, anders, others[:20])
    fresh = clone(made).fit(other, anders, others[:20])
    assert made.translate("word3") == fresh.translate("word3")


def test_zero_vectors_are_never_matched():
    english, german, pairs = two()
    W = german.vectors_.copy()
    W[[3, 4]] = 0
    made = align(english, WordVectors.of(german.words, W), pairs[10:40])
    assert not {3, 4} & set(made.pairs_[:, 1].tolist())
    assert not {"Wort3", "Wort4"} & {word for word, _ in made.translate("word3", 200)}
    backwards = align(WordVectors.of(german.words, W), english, [(b, a) for a, b in pairs[10:40]])
    with pytest.raises(InputError, match="has no direction"):
        backwards.translate("Wort3")


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([("word1", "Wort1"), ("word2",)], r"pairs\[1\] is \('word2',\), not two words"),
        (["ab"], r"pairs\[0\] is 'ab'"),
        ([(1, 2)], r"pairs\[0\]"),
        ([("Word1", "Wort1")], "none of the 1 pairs .* the first is 'Word1', 'Wort1'"),
        ([], "none of the 0 pairs"),
        (5, "pairs is 5"),
        (None, "no word in common among their first 10,000"),
    ],
)
def test_bad_pairs_are_refused(pairs, message):
    english, german, _ = two()
    with pytest.raises(InputError, match=message):
        align(english, german, pairs)


def test_bad_files_of_pairs_name_the_line(tmp_path):
    english, german, _ = two()
    path = tmp_path / "pairs.txt"
    path.write_text("word1 Wort1\nword2 Wort2 Wort3\n")
    with pytest.raises(InputError, match=r"pairs.txt, line 2 has 3 words"):
        align(english, german, path)


def test_bad_arguments_are_refused():
    english, german, pairs = two()
    wide = WordVectors.of(["a"], np.ones((1, 9)))
    with pytest.raises(InputError, match="6 numbers and target vectors 9"):
        align(english, wide, pairs)
    with pytest.raises(InputError, match="source is a list"):
        align([1], german, pairs)
    with pytest.raises(ValueError, match="WordVectors are empty"):
        align(english, WordVectors(), pairs)
    for bad in ({"refine": -1}, {"neighbors": 0}, {"vocabulary": 0}, {"center": "yes"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            align(english, german, pairs, **bad)
    made = align(english, german, pairs)
    with pytest.raises(InputError, match=r"'wordd1' is not among the 120 words.*'word1"):
        made.translate("wordd1")
    with pytest.raises(InputError, match="csls"):
        made.translate("word1", method="magic")
    with pytest.raises(InputError, match="n=0"):
        made.translate("word1", 0)
    with pytest.raises(InputError, match=r"takes \(n, 6\)"):
        made.transform(np.ones((2, 5)))


def test_callbacks(tmp_path):
    english, german, pairs = two()
    stop = EarlyStopping(pairs[20:], patience=2)
    made = Alignment(refine=10).set_callbacks(stop).fit(english, german, pairs[:20])
    assert len(stop.scores_) == made.n_iter_ and made.score(pairs[20:]) == stop.best_score_
    path, whole = tmp_path / "c", Alignment().fit(english, german, pairs[:8])
    with pytest.raises(Crash):
        Alignment().set_callbacks(Checkpoint(path), Recorder(crash_after=3)).fit(english, german, pairs[:8])
    resumed = Alignment().set_callbacks(Checkpoint(path)).fit(english, german, pairs[:8])
    assert resumed.matrix_.tobytes() == whole.matrix_.tobytes() and resumed.n_iter_ == whole.n_iter_ > 2
    assert not path.exists()
