"""Model files: what goes in comes out, and nothing else ever does."""

import copy
import json
import os
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file, save_file
from scipy import sparse
from sklearn.base import BaseEstimator

import twofold
from tests.attack.model_files import damage
from twofold.core.checks import InputError, ModelFileError
from twofold.core.files import atomic, model_file, safetensors_file


class Pair(NamedTuple):
    left: np.ndarray
    right: float


class Stranger(NamedTuple):
    left: np.ndarray


class Toy(BaseEstimator):
    """Holds whatever a test puts into it."""

    _records = (Pair,)

    def __init__(self, n_components=2, *, extra=None, random_state=None):
        self.n_components, self.extra, self.random_state = n_components, extra, random_state


@pytest.fixture(autouse=True)
def loadable(monkeypatch):
    monkeypatch.setattr(twofold, "_MODELS", frozenset({"Toy"}), raising=False)
    monkeypatch.setattr(twofold, "Toy", Toy, raising=False)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # thousands of them would wait for a slow disk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.twofold"


def toy(**fitted: Any) -> Toy:
    model = Toy()
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def round_trip(value: Any, path: Any) -> Any:
    model_file.save(toy(value_=value), path)
    return model_file.load(path).value_


def same(a: Any, b: Any) -> bool:
    """Equal in type, structure and every bit; the byte order of an array is the machine's own."""
    if isinstance(a, np.ndarray):
        native = a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and b.dtype.isnative
        texts = a.dtype.kind in "OUS"
        equal = a.tolist() == b.tolist() if texts else a.astype(b.dtype).tobytes() == b.tobytes()
        return type(b) is np.ndarray and b.flags.writeable and native and a.shape == b.shape and equal
    if type(a) is not type(b):
        return False
    if sparse.issparse(a):
        return a.shape == b.shape and a.dtype == b.dtype and (a != b).nnz == 0
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Toy):
        return same(dict(sorted(vars(a).items())), dict(sorted(vars(b).items())))
    return a == b or (a != a and b != b)


ANY_DTYPE = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
    hnp.complex_number_dtypes(sizes=(64, 128), endianness="?"),
    hnp.unicode_string_dtypes(max_len=9),
    hnp.byte_string_dtypes(max_len=9),
    hnp.datetime64_dtypes(),
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
LAYOUTS = {
    "as it is": lambda a: a,
    "Fortran": np.asfortranarray,
    "transposed": lambda a: a.T,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2] if a.ndim else a,
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "broadcast": lambda a: np.broadcast_to(a, (3, *a.shape)),
    "read-only": lambda a: (a.setflags(write=False), a)[1],
}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=hnp.arrays(ANY_DTYPE, SHAPES), layout=st.sampled_from(list(LAYOUTS)))
def test_every_array_comes_back_whatever_its_dtype_and_layout(array, layout, path):
    array = LAYOUTS[layout](array)
    assert same(array, round_trip(array, path))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner).map(tuple),
        max_leaves=12,
    )
)
def test_every_nest_of_plain_values_comes_back(value, path):
    assert same(value, round_trip(value, path))


PLAIN_VALUES = {
    "object strings": np.array([["ä", "", "x" * 300]], dtype=object),
    "lone surrogate": np.array(["\ud800", "b"], dtype=object),
    "uneven strings": np.array(["x" * 10_000] + [""] * 200),
    "empty strings": np.array([], dtype=object),
    "long floats": [float(i) for i in range(100)] + [float("nan"), float("inf"), -0.0],
    "long ints": list(range(-50, 50)),
    "huge ints": [2**70] * 100,
    "long strings": [f"word {i}" for i in range(100)],
    "mixed list": [1, 2.0, "3", None, True] * 20,
    "large dict": {f"word {i}": i for i in range(1000)},
    "dollar keys": {"$array": "x", "": {"$model": 1}},
    "float32 scalar": np.float32(0.1),
    "nan scalar": np.float64("nan"),
    "int8 scalar": np.int8(-3),
    "bool scalar": np.bool_(True),
    "complex scalar": np.complex128(1 - 2j),
    "record": Pair(np.arange(3.0), 2.5),
    "records": [Pair(np.arange(3.0), float("inf")), (Pair(np.ones((2, 2)), 0.0),)],
    "csr array": sparse.random_array((20, 30), density=0.1, rng=0, format="csr"),
    "csr matrix": sparse.csr_matrix(np.eye(3, dtype=np.float32)),
    "empty csr": sparse.csr_array((0, 5)),
    "complex csr": sparse.csr_array(np.diag([1j, 2])),
}


@pytest.mark.parametrize("name", PLAIN_VALUES)
def test_values_come_back(name, path):
    assert same(PLAIN_VALUES[name], round_trip(PLAIN_VALUES[name], path))


def test_models_inside_models_come_back_with_parameters_and_attributes(path):
    inner = [toy(mean_=np.full(3, i)) for i in range(3)]
    model = Toy(n_components=0.5, extra=Toy("mle", extra=[1.5, "x"], random_state=3), random_state=np.int64(7))
    model.models_ = inner
    model._private, model.scratch = 1, 2
    model_file.save(model, path)
    loaded = model_file.load(path)
    assert same(loaded.models_, inner)
    assert loaded.n_components == 0.5 and same(loaded.extra, model.extra) and loaded.random_state == 7
    assert not hasattr(loaded, "_private") and not hasattr(loaded, "scratch")


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_a_generator_is_forgotten(state, path):
    model_file.save(Toy(random_state=state), path)
    assert model_file.load(path).random_state is None


def test_safetensors_reads_the_same_arrays(path):
    arrays = {"f": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "s": np.arange(9)[::-2], "z": np.array(True)}
    model_file.write_file(path, {"kind": "checkpoint"}, arrays)
    theirs, (header, ours) = load_file(path), model_file.read_file(path)
    assert header["kind"] == "checkpoint" and header["version"] == twofold.__version__
    for name, array in arrays.items():
        assert same(array, theirs[name]) and same(array, ours[name])


REFUSED = {
    "function": print,
    "set": {1},
    "int keys": {1: 2},
    "unlisted record": Stranger(np.ones(2)),
    "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
    "objects": np.array([1, "a", None], dtype=object),
    "structured": np.zeros(2, dtype=[("a", "f8")]),
    "long double": np.zeros(2, dtype=np.longdouble),
    "other estimator": BaseEstimator(),
    "csc": sparse.csc_array(np.eye(2)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("place", ["extra", "value_"])
def test_what_cannot_be_stored_is_named_and_nothing_is_written(name, place, path):
    model = toy(**{place: {"deep": [REFUSED[name]]}})
    with pytest.raises(InputError, match=rf"{place}\.deep\.0 is "):
        model_file.save(model, path)
    assert os.listdir(path.parent) == []


def test_a_cycle_is_refused(path):
    loop: list = []
    loop.append(loop)
    with pytest.raises(InputError, match="nested"):
        model_file.save(toy(value_=loop), path)


def test_a_foreign_estimator_of_the_same_name_is_refused(path):
    with pytest.raises(InputError, match="no model of twofold"):
        model_file.save(type("Toy", (BaseEstimator,), {})(), path)


@pytest.mark.parametrize("stage", ["safetensors_file._write", "atomic._sync", "atomic.os.replace"])
def test_a_failed_write_leaves_the_old_file_and_no_other(stage, path, monkeypatch):
    model_file.save(toy(value_=1), path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"twofold.core.files.{stage}", fail)
    with pytest.raises(OSError, match="No space"):
        model_file.save(toy(value_=2), path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_the_bytes_are_on_disk_before_the_name_is_theirs(path, monkeypatch):
    steps = []
    replace = os.replace
    monkeypatch.setattr(atomic, "_sync", lambda target: steps.append(("sync", target.is_dir())))
    monkeypatch.setattr(safetensors_file.os, "replace", lambda a, b: (steps.append(("rename", False)), replace(a, b)))
    model_file.save(toy(), path)
    assert steps == [("sync", False), ("rename", False), ("sync", True)]


def rewrite(path: Any, change: Any) -> None:
    """Change the table of a file (not its data) and write it back with the right length."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + length])
    change(table)
    text = json.dumps(table).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def test_foreign_files_are_told_apart(path, tmp_path):
    cases = {
        "does not exist": lambda: None,
        "only 0 bytes": lambda: path.write_bytes(b""),
        "no twofold file": lambda: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1000)),
        "not one that twofold wrote": lambda: save_file({"a": np.ones(3)}, path, metadata={"format": "pt"}),
        "not a model": lambda: model_file.write_file(path, {"kind": "checkpoint"}, {"a": np.ones(2)}),
        "describes no model": lambda: model_file.write_file(path, {"kind": "model"}, {}),
    }
    for message, make in cases.items():
        make()
        with pytest.raises(ModelFileError, match=message) as caught:
            model_file.load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_file.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_file.load(tmp_path / "pipe")


def test_a_newer_format_says_upgrade(path, monkeypatch):
    monkeypatch.setattr(safetensors_file, "FORMAT", safetensors_file.FORMAT + 1)
    model_file.save(toy(), path)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="Upgrade twofold"):
        model_file.load(path)


def test_damage_is_named(path):
    model_file.save(toy(a_=np.arange(4.0), b_=np.arange(6)), path)
    data = path.read_bytes()
    damages = {
        "cut short": lambda: path.write_bytes(data[:-1]),
        "belong to no array": lambda: path.write_bytes(data + b"x"),
        "checksum": lambda: path.write_bytes(data[:-1] + bytes([data[-1] ^ 1])),
        "array 'a_' makes no sense": lambda: rewrite(path, lambda t: t["a_"].update(shape=[2**62, 2**62])),
        "where the one before ends": lambda: rewrite(path, lambda t: t["a_"].update(t["b_"])),
        "its first bytes do not fit": lambda: path.write_bytes(b"\xff" * 7 + b"\x7f" + data[8:]),
        "not JSON": lambda: path.write_bytes(data[:8] + b"[" * (len(data) - 8)),
        "twice": lambda: path.write_bytes(data.replace(b'"dtype"', b'"shape"')),
    }
    for message, spoil in damages.items():
        path.write_bytes(data)
        spoil()
        for read in (model_file.load, model_file.describe):
            with pytest.raises(ModelFileError, match=message):
                read(path)


def rich_model() -> Toy:
    rng = np.random.default_rng(0)
    return toy(
        components_=rng.standard_normal((3, 5)),
        mask_=rng.random((4, 4)) < 0.5,
        names_=np.array(["one", "zwei", "три"], dtype=object),
        classes_=np.array(["a", "bb"]),
        spectrum_=rng.standard_normal(4) * 1j,
        counts_=sparse.random_array((6, 7), density=0.3, rng=1, format="csr"),
        history_={"objective": [3.0, 2.0, float("nan")], "seconds": [float(i) for i in range(40)]},
        moments_=Pair(np.arange(4.0), 1.5),
        models_=[toy(mean_=np.ones(2, np.float32), n_=np.int32(3))],
        shape_=(2, None, "x"),
    )


def test_2000_damaged_files_give_a_clear_error_or_the_right_model(path):
    model, rng = rich_model(), np.random.default_rng(20260)
    model_file.save(model, path)
    data, refused = path.read_bytes(), 0
    assert same(model_file.load(path), model)  # so that nothing is left to be imported
    tracemalloc.start()
    peak = 0  # of one file: other threads of the test process may keep more and more meanwhile
    for _ in range(2000):
        path.write_bytes(damage(data, rng))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            assert same(model_file.load(path), model)
        except ModelFileError as error:
            refused += 1
            assert str(path) in str(error)
        peak = max(peak, tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert refused > 1800  # the others were not changed by their damage
    assert peak < 20 * len(data) + 2**23  # a length that a damaged header claims would be more


def nodes_of(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON tree, as (container, key)."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    return [(tree, key) for key, _ in items] + [place for _, item in items for place in nodes_of(item)]


def test_forged_headers_with_a_right_checksum_are_refused_or_harmless(path):
    """A hand that knows the format still gets only the types and classes a file may hold."""
    rng = np.random.default_rng(5)
    model_file.save(rich_model(), path)
    header, arrays = model_file.read_file(path)
    values = [None, -1, 0, 2**80, 1e308, float("nan"), "", "x", "Toy", "Popen", "components_", [], [[]], {},
              {"$array": "components_"}, {"$model": {"class": "Toy", "params": {}, "fitted": {}}},
              {"$record": "Pair", "values": [1]}, {"$tuple": 3}, {"$scalar": "x", "dtype": "int8"},
              {"$array": "mask_", "dtype": "<U99999999"}, {"$dict": [[[]], [1]]}]  # fmt: skip
    refused = 0
    for _ in range(1500):
        forged = copy.deepcopy(header)
        places = nodes_of(forged["model"])
        container, key = places[int(rng.integers(len(places)))]
        other, other_key = places[int(rng.integers(len(places)))]
        if rng.random() < 0.7:
            container[key] = values[int(rng.integers(len(values)))]
        else:
            container[key] = copy.deepcopy(other[other_key])
        model_file.write_file(path, forged, arrays)
        try:
            assert type(model_file.load(path)) is Toy
            model_file.describe(path)
        except ModelFileError:
            refused += 1
    assert refused > 700


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update({"class": "Popen"}), "'Popen'"),
        (lambda m: m["params"].update(color=1), "parameter 'color'"),
        (lambda m: m["fitted"].update(fit=1), "attribute 'fit'"),
        (lambda m: m["fitted"].update(__class__=1), "attribute '__class__'"),
        (lambda m: m["fitted"].pop("mask_"), "nothing refers to"),
        (lambda m: m["fitted"].update(twice_={"$array": "mask_"}), "mask_"),
        (lambda m: m["fitted"]["counts_"].update(shape=[6, 2]), "damaged"),
        (lambda m: m["fitted"]["classes_"].update(width=2**40), "strings"),
        (lambda m: m["fitted"]["moments_"].update({"$record": "Popen"}), "makes no sense"),
    ],
)
def test_what_a_file_may_not_say(change, message, path):
    model_file.save(rich_model(), path)
    header, arrays = model_file.read_file(path)
    change(header["model"])
    model_file.write_file(path, header, arrays)
    with pytest.raises(ModelFileError, match=message):
        model_file.load(path)


def test_describe_tells_shapes_without_building_anything(path, monkeypatch):
    model_file.save(rich_model(), path)
    monkeypatch.setattr(twofold, "Toy", None)
    about = model_file.describe(path)
    assert (about["kind"], about["class"], about["version"]) == ("model", "Toy", twofold.__version__)
    assert about["params"] == {"n_components": 2, "extra": None, "random_state": None}
    fitted = about["fitted"]
    assert fitted["components_"] == "float64 (3, 5)" and fitted["spectrum_"] == "complex128 (4,)"
    assert fitted["names_"] == "text (3,)" and fitted["counts_"].startswith("csr (6, 7)")
    assert fitted["models_"][0]["fitted"] == {"mean_": "float32 (2,)", "n_": 3}
    assert about["bytes"] == path.stat().st_size


def test_describe_and_load_hold_no_more_than_they_must(path):
    model_file.save(toy(value_=np.zeros(2**21)), path)
    for read, most in ((model_file.describe, 2**22), (model_file.load, 2**24 + 2**22)):
        tracemalloc.start()
        read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most
