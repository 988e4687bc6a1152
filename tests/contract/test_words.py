"""The promises of the word models, whose data is text: bits, inputs, history, callbacks, files, refusals."""

import gzip
import warnings
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import twofold
from tests.callbacks import Crash, Recorder
from twofold import Checkpoint, EarlyStopping, InputError, WordVectors

from .helpers import differences


@dataclass(frozen=True, eq=False)
class Case:
    """One model in one setting."""

    model: str
    params: dict = field(default_factory=dict)
    label: str = ""
    embeds: bool = True  # learns vectors
    sweeps: int = 1  # how many a fit makes
    scores: bool = False
    counted: bool = False  # takes counted pairs, too

    def __call__(self, **changes):
        return getattr(twofold, self.model)(**{"min_count": 2, **self.params, **changes})

    def __str__(self):
        return f"{self.model}-{self.label}" if self.label else self.model


def _skip_gram(label="", **changes):
    params = {"n_components": 6, "window": 3, "max_iter": 4, "random_state": 0, **changes}
    return Case("SkipGram", params, label, sweeps=4, scores=True)


def _glove(label="", sweeps=4, **changes):
    params = {"n_components": 5, "window": 3, "x_max": 10, "max_iter": 4, "random_state": 0, **changes}
    return Case("GloVe", params, label, sweeps=sweeps, scores=True, counted=True)


CASES = [
    Case("Vocabulary", embeds=False),
    Case("Cooccurrence", {"window": 3}, embeds=False),
    _skip_gram(),
    _skip_gram("biases", biases=True, negatives=2),
    _skip_gram("softmax", loss="softmax"),
    _glove(),
    _glove("all", sweeps=1, weighting="all"),
    _glove("observed", weighting="observed"),
    Case("PMIEmbedding", {"n_components": 5, "window": 3, "random_state": 0}, counted=True),
]


def those(test):
    """The cases that pass a test."""
    return pytest.mark.parametrize("case", [c for c in CASES if test(c)], ids=str)


every = pytest.mark.parametrize("case", CASES, ids=str)
embedding, iterative = those(lambda c: c.embeds), those(lambda c: c.sweeps > 1)


def corpus(lines=240, seed=0):
    """Lines of words, most of each line from one of three subjects or common to all; every line a list of words."""
    rng = np.random.default_rng(seed)
    subjects = [[f"{name}{i}" for i in range(12)] for name in ("sea", "law", "art")]
    common = ["the", "of", "and", "Été"]
    zipf = 1 / np.arange(1, 13)
    out = []
    for i in range(lines):
        words = rng.choice(12, size=rng.integers(3, 12), p=zipf / zipf.sum())
        line = [subjects[i % 3 if rng.random() < 0.85 else rng.integers(3)][word] for word in words]
        out.append([w for word in line for w in ([str(rng.choice(common))] if rng.random() < 0.4 else []) + [word]])
    return out


LINES = corpus()


@cache
def fit(case):
    """The fitted model, made once, for tests that only ask it."""
    return case().fit(LINES)


def find_differences(a, b):
    """Return where two models differ, clocks put aside."""
    return [d for d in differences(a, b) if "words_per_second" not in d]


# ---- scikit-learn's manners ----------------------------------------------------------------------------------------


@every
def test_fit_leaves_the_caller_s_text_alone(case):
    lines = [list(line) for line in LINES]
    case().fit(lines, None)
    assert lines == LINES


@every
def test_refitting_forgets(case):
    model = case().fit(corpus(60, seed=3))
    assert not find_differences(model.fit(LINES), fit(case))


# ---- same bits -----------------------------------------------------------------------------------------------------


@every
def test_threads_and_memory_change_no_bit(case, small_blocks):
    made = []
    for threads, memory in ((1, "1GB"), (2, "1GB"), (2, "2MB")):
        with twofold.config(threads=threads, memory=memory):
            made.append(case().fit(LINES))
    assert not any(find_differences(made[0], other) for other in made[1:])


@every
def test_another_seed_gives_another_start(case):
    if case.sweeps == 1:
        pytest.skip("its result does not hang on the start")
    one, other = fit(case), case(random_state=1).fit(LINES)
    assert (one.vectors_.vectors_ != other.vectors_.vectors_).any()


@every
@pytest.mark.parametrize("kind", ["texts", "generator", "file", "gzip", "array", "again and again"])
def test_text_is_the_same_wherever_it_lies(case, kind, tmp_path):
    texts = [" ".join(line) for line in LINES]
    whole = "\n".join(texts) + "\n"
    (tmp_path / "a.txt").write_text(whole, encoding="utf-8")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(whole.encode()))

    class Again:
        def __iter__(self):
            return iter(texts)

    given = {
        "texts": texts,
        "generator": (line for line in texts),
        "file": str(tmp_path / "a.txt"),
        "gzip": tmp_path / "a.txt.gz",
        "array": np.array(texts, dtype=object),
        "again and again": Again(),
    }[kind]
    assert not find_differences(case().fit(given), fit(case))


@those(lambda c: c.counted)
def test_counted_pairs_do_as_well_as_text(case, tmp_path):
    pairs, whole = twofold.Cooccurrence(min_count=2, window=3), fit(case)
    assert not find_differences(case().fit(pairs.fit(LINES)), whole)
    assert not find_differences(case().fit(pairs.fit(LINES, to=tmp_path / "pairs.csr")), whole)


@every
def test_lower_case_is_a_choice(case):
    low, kept = fit(case), case(lowercase=False).fit(LINES)
    words = [(m if case.model == "Vocabulary" else m.vocabulary_).words_.tolist() for m in (low, kept)]
    assert "été" in words[0] and "Été" not in words[0] and "Été" in words[1]


# ---- what is learned -----------------------------------------------------------------------------------------------


@embedding
def test_vectors_belong_to_the_vocabulary(case):
    model = fit(case)
    counts = model.vocabulary_.counts_
    assert isinstance(model.vectors_, WordVectors)
    assert model.vectors_.words.tolist() == model.vocabulary_.words_.tolist()
    assert np.all(np.diff(counts) <= 0) and counts.min() >= 2
    np.testing.assert_array_equal(model.vectors_.counts_, counts)
    W = model.vectors_.vectors_
    assert W.dtype == np.float32 and W.shape == (len(counts), model.n_components) and np.isfinite(W).all()


@embedding
def test_words_of_one_subject_are_near_each_other(case):
    enough = {"max_iter": 40} if case.sweeps > 1 else {}
    v = case(**enough).fit(corpus(900)).vectors_
    words = [w for w in v.words.tolist() if w[:3] in ("sea", "law", "art") and int(w[3:]) < 6]
    near = [next(other for other, _ in v.nearest(word, 40) if other in words) for word in words]
    assert np.mean([a[:3] == b[:3] for a, b in zip(words, near, strict=True)]) > 0.9


@every
def test_saved_and_loaded_is_the_same_model(case, tmp_path):
    model = fit(case)
    model.save(tmp_path / "m.twofold")
    back = twofold.load(tmp_path / "m.twofold")
    assert type(back) is type(model) and back.get_params() == model.get_params() and not differences(model, back)
    if case.embeds:
        assert back.vectors_.nearest("sea0") == model.vectors_.nearest("sea0")
    if case.scores:
        assert back.score(LINES[:50]) == model.score(LINES[:50])
    assert not find_differences(clone(back).fit(LINES), model)


# ---- progress ------------------------------------------------------------------------------------------------------


@embedding
def test_history_has_a_row_a_sweep_and_the_fit_is_silent(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case().fit(LINES)
    assert model.n_iter_ == case.sweeps and type(model.converged_) is bool
    assert {"objective", "seconds"} <= set(model.history_)
    assert {len(column) for column in model.history_.values()} == {model.n_iter_}
    assert all(type(value) is float for column in model.history_.values() for value in column)
    seconds = np.array(model.history_["seconds"])
    assert seconds[0] >= 0 and np.all(np.diff(seconds) >= 0) and np.isfinite(model.history_["objective"]).all()


@iterative
def test_the_objective_falls(case):
    objective = case(max_iter=15).fit(LINES).history_["objective"]
    assert objective[-1] < objective[0]


@embedding
def test_callbacks_see_the_fit_in_order_and_change_nothing(case):
    seen = Recorder()
    model = case().set_callbacks(seen).fit(LINES)
    sweeps = ["begin sweep", "end sweep"] * case.sweeps
    assert seen.events == ["setup", "begin fit", *sweeps, "end fit", "teardown"]
    assert not find_differences(model, fit(case))


@those(lambda c: c.scores and c.sweeps > 1)
def test_early_stopping_keeps_the_best_sweep(case):
    new = corpus(60, seed=7)
    stop = EarlyStopping(new, patience=2, min_delta=10.0)  # nothing is ever so much better: the first sweep stays
    model = case(max_iter=9).set_callbacks(stop).fit(LINES)
    assert model.n_iter_ == len(stop.scores_) == 3 and stop.best_sweep_ == 0
    assert model.score(new) == pytest.approx(stop.best_score_, rel=1e-9)
    assert stop.best_score_ == stop.scores_[0] != stop.scores_[-1]


# ---- stop and go on ------------------------------------------------------------------------------------------------


def crash(case, path, **options):
    with pytest.raises(Crash):
        case().set_callbacks(Checkpoint(path, **options), Recorder(crash_after=3)).fit(LINES)
    assert path.exists()


@iterative
@pytest.mark.parametrize("every_few", [1, 2])
def test_a_fit_that_broke_resumes_to_the_same_bits(case, every_few, tmp_path):
    path = tmp_path / "c"
    crash(case, path, every=every_few)
    resumed = case().set_callbacks(Checkpoint(path, every=every_few)).fit(LINES)
    assert resumed.n_iter_ == 4 and np.all(np.diff(resumed.history_["seconds"]) >= 0)
    assert not find_differences(fit(case), resumed) and not path.exists()


@iterative
def test_a_checkpoint_of_another_fit_is_refused(case, tmp_path):
    path = tmp_path / "c"
    crash(case, path)
    moved = [list(line) for line in LINES]
    moved[7][0], moved[7][1] = moved[7][1], moved[7][0] + "x"
    for model, lines in ((case(), moved), (case(), LINES[:-1]), (case(n_components=4), LINES)):
        with pytest.raises(InputError, match=r"another fit.*Delete it"):
            model.set_callbacks(Checkpoint(path)).fit(lines)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=str(path)):
        case().set_callbacks(Checkpoint(path)).fit(LINES)


# ---- refusals ------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    "text, message",
    [
        ([], "no words in it"),
        (["", "...", "!?"], "no words in it"),
        (["each word once only"], "min_count=2"),
        (["fine words", 5, "more"], "document 1 is '5'.*not text"),
        (["fine words", None], "document 1 is 'None'"),
        ([["fine", "words"], ["fine", 7]], "word 1 of document 1 is 7"),
        ([b"bytes are no text"], "document 0 is .*Decode"),
        ("no/such/file.txt", "no such file or folder"),
        ({"a": 1}, "dict"),
        (7, "int"),
        (np.ones((3, 3)), "ndarray of shape"),
        (pd.DataFrame({"text": ["a b"]}), "a whole table"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_corpus_is_refused(case, text, message):
    with pytest.raises(InputError, match=message):
        case().fit(text)


@every
def test_files_that_are_no_text_are_refused(case, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine words\nbad \0 words\n")
    with pytest.raises(InputError, match=r"a.txt, line 2 is not text"):
        case().fit(tmp_path / "a.txt")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"fine words\n" * 1000)[:-20])
    with pytest.raises(InputError, match=r"a.txt.gz is a damaged gzip file"):
        case().fit(tmp_path / "a.txt.gz")


BAD = {
    "min_count": 0, "max_size": 0, "lowercase": "", "window": 0, "n_components": 0, "max_iter": 0, "random_state": "",
}  # fmt: skip


@every
def test_bad_parameters_are_refused_by_name(case):
    for name in BAD.keys() & case().get_params().keys():
        with pytest.raises(ValueError, match=f"'{name}' parameter of {case.model}"):
            case(**{name: BAD[name]}).fit(LINES)


@every
def test_nothing_works_before_the_fit(case, tmp_path):
    model = case()
    asks = [lambda: model.save(tmp_path / "m.twofold")]
    asks += [lambda: model.score(LINES)] if case.scores else []
    asks += (
        [lambda: model["sea0"], lambda: model.encode("sea0"), lambda: len(model)] if case.model == "Vocabulary" else []
    )
    for ask in asks:
        with pytest.raises(NotFittedError):
            ask()
    assert not (tmp_path / "m.twofold").exists()


@those(lambda c: c.model in ("SkipGram", "GloVe", "PMIEmbedding"))
def test_lines_of_one_word_leave_nothing_to_learn(case):
    with pytest.raises(InputError):
        case().fit([["alone"], ["other"]] * 5)
