"""Stop and go on: a fit killed with -9 ends with the bits of one that never stopped."""

import signal
import warnings

import numpy as np
import pytest
from scipy import sparse

from tests.callbacks import Crash, Recorder
from twofold import Checkpoint, EarlyStopping, InputError

from .helpers import differences
from .registry import MODELS, one_each, one_each_package, parametrize, remove_middle, swept, table, with_holes

ITERATIVE = [case for case in MODELS if case.iterative]
iterative = parametrize(ITERATIVE, quick=one_each(ITERATIVE))
of_each_package = parametrize(ITERATIVE, quick=one_each_package(ITERATIVE))  # for what core/loop.py does alone
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def few(case):
    return case(max_iter=7, tol=0.0)


def crash(case, path, X, every=1, after=3, **options):
    """Leaves a checkpoint at `path`."""
    with pytest.raises(Crash):
        few(case).set_callbacks(Checkpoint(path, every=every), Recorder(crash_after=after)).fit(X, **options)
    assert path.exists()


@parametrize(one_each_package(ITERATIVE)[::3])
def test_a_killed_fit_resumes_to_the_same_bits(case, killed, tmp_path):
    """A file does not depend on how its writer ended: few models are killed, the others crash in this process."""
    X, path = table()[0], tmp_path / "fit.checkpoint"
    X = swept(case, with_holes(X) if case.nan else X)
    assert killed(few(case), X, path) == -signal.SIGKILL
    assert path.exists()
    resumed = few(case).set_callbacks(Checkpoint(path)).fit(X)
    assert resumed.n_iter_ == 7 and np.all(np.diff(resumed.history_["seconds"]) >= 0)
    assert not differences(few(case).fit(X), resumed)
    assert not list(tmp_path.iterdir())


@iterative
def test_checkpoints_every_few_sweeps_lose_only_those(case, tmp_path):
    X, path = table()[0], tmp_path / "c"
    X = swept(case, with_holes(X) if case.nan else X)
    crash(case, path, X, every=2, after=5)
    assert not differences(few(case).fit(X), few(case).set_callbacks(Checkpoint(path, every=2)).fit(X))


@parametrize([c for c in ITERATIVE if "random_state" in c.params], quick=one_each_package(ITERATIVE))
@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
def test_any_source_of_randomness_resumes(case, source, tmp_path):
    X, path = swept(case, table()[0]), tmp_path / "c"
    make = lambda: case(max_iter=7, tol=0.0, random_state=source(3))  # noqa: E731
    with pytest.raises(Crash):
        make().set_callbacks(Checkpoint(path), Recorder(crash_after=3)).fit(X)
    assert not differences(make().fit(X), make().set_callbacks(Checkpoint(path)).fit(X))


@of_each_package
def test_a_checkpoint_does_not_change_the_fit(case, tmp_path):
    X = swept(case, table()[0])
    path = tmp_path / "c"
    assert not differences(few(case).fit(X), few(case).set_callbacks(Checkpoint(path)).fit(X))
    assert not path.exists()


@of_each_package
def test_a_checkpoint_of_another_fit_is_refused(case, tmp_path, small_blocks):
    X, path = swept(case, table(400)[0]), tmp_path / "c"
    crash(case, path, X)
    first, middle, last = X.copy(), X.copy(), X.copy()
    first[0, 0], middle[200, 3], last[-1, -1] = 1.0, 1.0, 1.0
    others = {
        "another first row": (few(case), first, {}),
        "another row in the middle": (few(case), middle, {}),
        "another last row": (few(case), last, {}),
        "fewer rows": (few(case), X[:-1], {}),
        "another dtype": (few(case), X.astype(np.float32), {}),
        "other weights": (few(case), X, {"sample_weight": np.arange(len(X)) + 1.0}),
        "another parameter": (case(max_iter=7, tol=1e-30), X, {}),
    }
    if not case.weights:
        del others["other weights"]
    for what, (model, data, options) in others.items():
        with pytest.raises(InputError, match=r"another fit.*Delete it") as why:
            model.set_callbacks(Checkpoint(path)).fit(data, **options)
        assert str(path) in str(why.value), what
        assert path.exists(), what
    few(case).set_callbacks(Checkpoint(path)).fit(X)
    w = np.ones(len(X))
    crash(case, path, X, sample_weight=w * 2)
    with pytest.raises(InputError, match="another fit"):
        few(case).set_callbacks(Checkpoint(path)).fit(X, sample_weight=w)


@parametrize([c for c in ITERATIVE if c.sparse], quick=one_each_package(ITERATIVE))
def test_a_checkpoint_of_another_sparse_table_is_refused(case, tmp_path):
    S, path = remove_middle(case, table()[0])[1], tmp_path / "c"
    crash(case, path, S)
    shifted = sparse.csr_array((S.data, (S.indices + 1) % 8, S.indptr), shape=S.shape)
    shifted.sort_indices()
    moved = sparse.csr_array((S.data, shifted.indices, S.indptr), shape=S.shape)  # the same values elsewhere
    with pytest.raises(InputError, match="another fit"):
        few(case).set_callbacks(Checkpoint(path)).fit(moved)


@of_each_package
def test_a_damaged_checkpoint_is_refused(case, tmp_path):
    X, path = swept(case, table()[0]), tmp_path / "c"
    crash(case, path, X)
    whole = path.read_bytes()
    for bad in (whole[: len(whole) // 2], b"", b"not a checkpoint at all"):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=str(path)):
            few(case).set_callbacks(Checkpoint(path)).fit(X)


@of_each_package
def test_a_model_file_is_no_checkpoint(case, tmp_path):
    X, path = swept(case, table()[0]), tmp_path / "c"
    few(case).fit(X).save(path)
    with pytest.raises(InputError, match=str(path)):
        few(case).set_callbacks(Checkpoint(path)).fit(X)


@parametrize(MODELS, quick=one_each_package(MODELS))
def test_a_fit_killed_after_its_last_sweep_is_complete(case, tmp_path):
    X, y = table()
    loose = {"tol": 1e-3} if case.iterative else {}
    path, whole = tmp_path / "c", case.fit(X, y, **loose)
    with pytest.raises(Crash):
        case(**loose).set_callbacks(Checkpoint(path), Recorder(crash_after=whole.n_iter_)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = case(**loose).set_callbacks(Checkpoint(path)).fit(X, y)
    assert not differences(whole, resumed) and not path.exists()


@of_each_package
def test_early_stopping_goes_on_counting_after_a_kill(case, tmp_path):
    X, path = swept(case, table()[0]), tmp_path / "c"

    def make(*more):
        stop = EarlyStopping(swept(case, table(60, seed=4)[0]), patience=3, min_delta=1e-2)
        return case(tol=0.0, max_iter=200).set_callbacks(stop, *more)

    whole = make().fit(X)
    with pytest.raises(Crash):
        make(Checkpoint(path), Recorder(crash_after=whole.n_iter_ - 1)).fit(X)
    assert not differences(whole, make(Checkpoint(path)).fit(X))
