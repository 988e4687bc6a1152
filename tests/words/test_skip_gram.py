"""SkipGram: what it takes, what it refuses, what it keeps, and which bits its seed fixes."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.callbacks import Crash, Recorder
from twofold import Checkpoint, EarlyStopping, SkipGram, config
from twofold.core.checks import InputError
from twofold.core.progress import report_to
from twofold.words.skip_gram import _steps

WORDS = np.array([f"{a}{b}" for a in "abcdefg" for b in "xyz"])
losses = pytest.mark.parametrize("loss", ["negative", "softmax"])


def lines(n=300, seed=0):
    """Lines of words of one group each, some lines empty or of one word."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[3 * g : 3 * g + 6], rng.integers(0, 12))) for g in rng.integers(0, 6, n)]


def model(k=5, **options):
    return SkipGram(k, **{"min_count": 1, "max_iter": 3, "random_state": 3, **options})


def bits(fitted):
    own = [fitted.vectors_.vectors_, fitted.contexts_.vectors_]
    own += [] if fitted.biases_ is None else [fitted.biases_]
    return b"".join(a.tobytes() for a in own) + np.array(fitted.history_["objective"]).tobytes()


def test_what_is_fitted():
    fitted = model(biases=True).fit(lines())
    assert set(fitted.contexts_.words) == set(WORDS) and fitted.biases_.shape == (21,)
    assert fitted.history_["learning_rate"] == pytest.approx([0.05, 0.05 * 2 / 3, 0.05 / 3])
    assert min(fitted.history_["words_per_second"]) > 0
    assert model().fit(lines()).biases_ is None


@pytest.fixture
def tiles(monkeypatch):
    """Tiles for texts as small as these: 20 runs of 128 words, dealt 5 at a time, and groups of 5 words."""
    monkeypatch.setattr(_steps, "TOKENS_PER_RUN", 128)
    monkeypatch.setattr(_steps, "MIN_RUNS", 5)
    monkeypatch.setattr(_steps, "MIN_GROUP_WORDS", 5)
    used = []

    def visit_tiles(some, state, plan, t):
        used.append(len(some))
        return visit(some, state, plan, t)

    visit = _steps.visit_tiles
    monkeypatch.setattr(_steps, "visit_tiles", visit_tiles)
    yield used
    assert used and max(used) == 5


def test_tiles_give_the_same_bits_on_any_number_of_threads(tiles, tmp_path):
    text = lines(500)
    (tmp_path / "text.txt").write_text("\n".join(text) + "\n")
    fits = []
    for threads in (1, 2, 3, 2):
        with config(threads=threads):
            fits.append(bits(model(biases=True).fit(tmp_path / "text.txt")))
    assert len(set(fits)) == 1 and bits(model(biases=True, random_state=4).fit(text)) != fits[0]


def test_tiles_resume_to_the_same_bits_and_can_be_cut_short(tiles, tmp_path):
    text = lines(500)
    expected, path = bits(model().fit(text)), tmp_path / "fit.checkpoint"
    with pytest.raises(Crash):
        model().set_callbacks(Checkpoint(path), Recorder(crash_after=2)).fit(text)
    assert bits(model().set_callbacks(Checkpoint(path)).fit(text)) == expected


def test_the_way_depends_on_the_text_alone():
    for runs, epochs, words in ((15, 5, 10**5), (10**5, 5, 100)):
        assert _steps.choose_way(runs, epochs, words, False, True)[0] is _steps.visit
    for runs in (16, 100, 10**5):
        way, batch = _steps.choose_way(runs, 5, 1000, False, True)
        assert way is _steps.visit_tiles and _steps.MIN_RUNS <= batch <= _steps.MAX_RUNS
    assert _steps.choose_way(10**5, 5, 10**5, True, False)[0] is _steps.visit


def test_a_text_on_disk_gives_the_same_bits():
    text = lines(6000)
    expected = bits(model(max_iter=1).fit(text))
    with config(memory="1MiB"):
        assert bits(model(max_iter=1).fit(text)) == expected


def test_scoring_changes_nothing():
    fitted = model().fit(lines())
    before = bits(fitted)
    assert fitted.score(lines(seed=1)) == fitted.score(lines(seed=1))
    assert bits(fitted) == before


def test_epochs_report_how_far_they_are(monkeypatch):
    monkeypatch.setattr(_steps, "TOKENS_PER_RUN", 512)
    monkeypatch.setattr(_steps, "MAX_RUNS", 1)
    reports = []
    with report_to(SimpleNamespace(report=lambda done, total, label="": reports.append((done, total, label)))):
        model(max_iter=2).fit(lines())
    done = [done for done, total, label in reports if total == 2]
    assert done == sorted(done) and len(set(done)) > 4 and done[-1] == 2
    assert any("words a second" in label for *_, label in reports)


@losses
@pytest.mark.parametrize(
    "corpus",
    [
        ["a b"],
        ["a", "b", "a b", "a"],
        ["a a a a"],
        ["", "a b a b", ""],
        [["a", "b", "c"], []],
    ],
    ids=["two words", "lines of one", "one word only", "empty lines", "lists"],
)
@pytest.mark.parametrize("k", [1, 3])
def test_small_texts(loss, corpus, k):
    for subsample in (None, 1e-3):
        fitted = model(k, loss=loss, window=20, negatives=7, subsample=subsample, biases=True).fit(corpus)
        assert np.isfinite(fitted.vectors_.vectors_).all() and np.isfinite(fitted.score(corpus))
        assert fitted.vectors_.vectors_.shape == (len(fitted.vocabulary_), k)


def test_a_long_line_is_not_cut_short(monkeypatch):
    """Words that meet only where a long line is divided into runs are met all the same."""
    monkeypatch.setattr(_steps, "TOKENS_PER_RUN", 64)
    text = np.full(6400, "gap", dtype=object)
    text[63::64], text[64::64] = "left", "right"
    fitted = model(window=1, subsample=None, max_iter=30).fit([text.tolist()])
    Z = fitted.vectors_.vectors_ @ fitted.contexts_.vectors_.T
    left, right, gap = (fitted.vocabulary_[word] for word in ("left", "right", "gap"))
    assert fitted.vocabulary_.counts_.sum() == 6400
    assert Z[left, right] > Z[left, gap] and Z[right, left] > Z[right, gap]


def test_any_score_may_stop_it_early(tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("cat kitten 9\nboat ship 9\ncat boat 1\nkitten ship 1\n")
    lines = 20 * ["the cat purrs", "the kitten purrs", "one boat sails", "one ship sails"]
    stop = EarlyStopping(score=lambda model: model.vectors_.evaluate_similarity(pairs).spearman, patience=2)
    model = SkipGram(8, subsample=None, max_iter=30, random_state=0).set_callbacks(stop).fit(lines)
    assert len(stop.scores_) == model.n_iter_ < 30
    assert stop.best_score_ == max(stop.scores_)


def test_threads_skip_locks_only_without_deterministic(monkeypatch):
    calls, expected = [], bits(model().fit(lines()))
    at_once = lambda some, *rest: calls.append(some) or _steps.visit(some, *rest)  # noqa: E731
    monkeypatch.setattr(_steps, "visit_at_once", at_once)
    assert bits(model().fit(lines())) == expected and not calls
    with config(threads=1):
        assert bits(model(deterministic=False).fit(lines())) == expected and calls


@pytest.mark.parametrize(
    "options, corpus, message",
    [
        ({}, ["a", "b", "a"], "no line of the corpus has two of the 2 words"),
        ({"window": 0}, lines(), "window"),
        ({"loss": "softmax"}, [f"w{i} w{i + 1}" for i in range(20_001)], "20,002 words"),
    ],
)
def test_refusals(options, corpus, message):
    with pytest.raises(ValueError, match=message):
        model(**options).fit(corpus)
    with pytest.raises(InputError, match="no line of the corpus has two"):
        model().fit(lines()).score(["unheard of"])
