"""Every method of the lab runs on its own data, shows what its view needs, and leaves a script with the same bits."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from twofold import InputError
from twofold.examples import EXAMPLES, STORIES
from twofold.lab.data import find_parts, make
from twofold.lab.methods import Cancelled, Data, catalog, find
from twofold.lab.methods.setting import read_parameter
from twofold.lab.script import Script

METHODS = [method.id for method in catalog()]
QUICK: dict[str, dict] = {  # settings that make a run short
    "kmeans": {"n_clusters": 10},
    "gaussian_mixture": {"n_components": 10},
    "kmedoids": {"n_clusters": 10},
    "skip_gram": {"n_components": 5, "max_iter": 2},
    "glove": {"n_components": 5, "max_iter": 2},
    "pmi": {"n_components": 5},
    "denoise": {"side": 48, "max_iter": 1, "n_atoms": 64},
    "denoise_dct": {"side": 48, "n_atoms": 64},
    "denoise_threshold": {"side": 48, "shifts": 2},
    "inpaint": {"side": 32, "max_iter": 1, "n_atoms": 64},
    "compress": {"side": 64, "rate": 2.0},
    "phase": {"n": 20, "trials": 2, "cells": 4},
    "ksvd": {"max_iter": 5, "n_components": 16},
    "online_dictionary": {"max_iter": 5, "n_components": 16},
    "nmf_pictures": {"max_iter": 5},
    "factorization": {"max_iter": 5},
    "autoencoder": {"max_iter": 2, "units": 8},
    "vae": {"max_iter": 2, "units": 8},
    "pixelcnn": {"max_iter": 1, "channels": 2, "n_layers": 1, "examples": 50},
    "gan": {"max_iter": 2, "units": 8},
    "mixture_of_ppca": {"n_components": 2, "max_iter": 5},
    "linear_autoencoder": {"max_iter": 20},
    "bayesian_pca": {"max_iter": 20},
    "lda": {"max_iter": 5},
    "nmf": {"max_iter": 5},
    "plsa": {"max_iter": 5},
}
VIEWS = {  # arrays of a view: those of the first frame, and those of the last with the kinds of their shapes
    "points": ({"points": "n2", "plane": "2d"}, {"labels": "n", "centers": "k2"}),
    "codes": ({"colors": "n", "points": "n2"}, {"points": "n2"}),
    "latent": ({"colors": "n", "samples": "shw"}, {"points": "n2", "samples": "shw"}),
    "pixels": ({"samples": "shw"}, {"samples": "shw"}),
    "plane": ({"real": "n2", "critic": "gg"}, {"fake": "f2", "critic": "gg"}),
    "atoms": ({"atoms": "0hw"}, {"atoms": "khw", "usage": "k"}),
    "picture": ({"original": "hw", "input": "hw", "output": "hw"}, {"output": "hw"}),
    "phase": ({"success": "aa", "theory": "t2"}, {"success": "aa"}),
    "factors": ({"left": "nk", "right": "kd", "residual": "nd"}, {"left": "nk", "right": "kd", "residual": "nd"}),
    "topics": ({"documents": "n2"}, {"sizes": "k", "map": "k2", "documents": "n2", "labels": "n"}),
    "words": ({"map": "m2"}, {"map": "m2"}),
    "matrix": ({"truth": "rc", "hidden": "rc"}, {"filled": "rc", "singular": "k"}),
    "ratings": ({"counts": "m"}, {"items": "m2"}),
    "axes": ({"colors": "n"}, {"points": "n2", "loadings": "kd"}),
}


CODE = {  # small parts of the examples, so that runs are short
    "digits": (
        "pictures",
        "d = datasets.digits()\nX, pictures, y = d.data[:400], d.images[:400], d.target[:400]",
    ),
    "camera": ("picture", "picture = datasets.photographs().camera[100:228, 200:328]"),
    "docstrings": ("text", "data = datasets.docstrings(60)\ntexts = [text[:600] for text in data.documents]"),
    "table_with_holes": ("table", "data = datasets.table_with_holes()\nX = data.data"),
    "ratings": ("ratings", "ratings = datasets.ratings(100, 60).ratings"),
    "wine": ("table", "data = datasets.wine()\nX, y = data.data, data.target"),
}


@cache
def load_part(id: str) -> Data:
    """Load part of an example, by its id."""
    if id == "none":
        return Data(id, "nothing", "none")
    kind, lines = CODE[id]
    script = Script()
    script.run(f"from twofold import datasets\n\n{lines}")
    source = script.names.get("data", {})
    named = {"columns": list(source.get("feature_names", [])), "target_names": list(source.get("target_names", []))}
    return Data(id, id, kind, code=script.text, names=source.get("names"), **named, **find_parts(script))


class Frames(list):
    """Receives what a run sends."""

    def __call__(self, sweep, objective, arrays, meta, final=False):
        self.append((sweep, objective, arrays, meta, final))


@pytest.fixture(scope="module")
def ran():
    """Each method, run once: its frames and its result."""
    kept = {}

    def run(id):
        if id not in kept:
            method, frames = find(id), Frames()
            result = method.run(load_part(method.default_data), QUICK.get(id, {}), frames)
            kept[id] = frames, result
        return kept[id]

    return run


@pytest.mark.parametrize("id", METHODS)
def test_frames_hold_the_arrays_of_the_view_and_sweeps_rise(id, ran):
    frames, result = ran(id)
    sweeps = [frame[0] for frame in frames]
    assert frames[0][:2] == (0, None) and sweeps == sorted(sweeps) and len(set(sweeps)) > 1
    assert all(math.isfinite(frame[1]) for frame in frames[1:])
    assert [frame[4] for frame in frames] == [False] * (len(frames) - 1) + [True]
    method = find(id)
    assert ("table" in method.downloads) == (result.table is not None)
    assert ("picture" in method.downloads) == (result.picture is not None)
    assert result.figure().get_axes()
    sizes: dict[str, int] = {"0": 0, "2": 2}
    for place, wanted in zip((0, -1), VIEWS[find(id).view], strict=True):
        arrays = frames[place][2]
        for name, shape in wanted.items():
            assert arrays[name].ndim == len(shape), name
            for letter, size in zip(shape, arrays[name].shape, strict=True):
                assert sizes.setdefault(letter, size) == size, (name, letter)
            holes = name == "truth" or (name == "success" and place == 0)  # what is not known, or not yet
            assert holes or np.isfinite(arrays[name]).all(), name
    for _, _, arrays, _, _ in frames:
        assert all(array.dtype.str in ("<f4", "|u1", "<i4") for array in arrays.values())
    assert set(frames[0][3].get("static", ())) <= set(frames[0][2])


def same_bits(a, b):
    """Return True if two arrays are equal, bit for bit."""
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def list_fitted_arrays(model):
    """Return the arrays that a fit has set on a model, and on the models within it."""
    found = {}
    if isinstance(model, tuple):  # a NamedTuple
        return {name: value for name, value in model._asdict().items() if isinstance(value, np.ndarray)}
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            found[name] = value
        elif name == "weights_" and isinstance(value, dict):
            found |= value
        elif name.endswith("_") and isinstance(value, BaseEstimator):
            found |= {f"{name}.{inner}": array for inner, array in list_fitted_arrays(value).items()}
    return found


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("id", METHODS)
def test_the_script_gives_the_same_bits(id, ran):
    _, result = ran(id)
    names: dict = {}
    exec(result.script, names)
    if result.picture is not None:
        found = names["result"].decode() if id == "compress" else names["result"]
        assert same_bits(result.picture, found)
        return
    mine, theirs = (list_fitted_arrays(find(id).inner_model(model)) for model in (result.model, names["model"]))
    assert mine and mine.keys() == theirs.keys()
    assert not [name for name in mine if not same_bits(mine[name], theirs[name])]


@pytest.mark.parametrize("id", {type(one).fit: one.id for one in catalog()}.values())
def test_a_cancelled_run_ends_at_once(id):
    """One method is cancelled for every way to fit."""
    method, seen = find(id), []

    def emit(sweep, objective, arrays, meta, final=False):
        seen.append(sweep)
        if sweep >= 1 or final:
            raise Cancelled

    with pytest.raises(Cancelled):
        method.run(load_part(method.default_data), QUICK.get(id, {}), emit)
    assert len(seen) == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("id", sorted({type(one).fit: one.id for one in catalog() if one.id != "gan"}.values()))
def test_a_stopped_run_keeps_what_it_has_and_its_script_stops_there(id):
    """One method is stopped for every way to fit."""
    method, frames = find(id), Frames()

    def emit(*frame, **more):
        frames(*frame, **more)
        return frame[0] >= 1

    settings = {"model": "ALS"} if id == "recommender" else QUICK.get(id, {})
    result = method.run(load_part(method.default_data), settings, emit)
    assert frames[-1][4] and len(frames) <= 4
    names: dict = {}
    exec(result.script, names)
    if result.picture is not None:
        assert same_bits(result.picture, names["result"].decode() if id == "compress" else names["result"])
        return
    mine, theirs = (list_fitted_arrays(method.inner_model(model)) for model in (result.model, names["model"]))
    assert mine and not [name for name in mine if not same_bits(mine[name], theirs[name])]


@pytest.mark.parametrize("id", STORIES)
def test_a_story_is_an_address_of_the_catalog(id):
    query = dict(part.split("=") for part in STORIES[id].address.split("&"))
    for side, prefix in (("method", ""), ("right", "right.")):
        if side not in query or query[side] not in METHODS:
            continue
        method, entry = find(query[side]), EXAMPLES[query["data"]].describe()
        assert method.reason_against(entry) == ""
        numbers = {name.removeprefix(prefix): int(value) for name, value in query.items() if value.isdigit()}
        method.check({name: value for name, value in numbers.items() if name in method.controls})
    assert STORIES[id].sentence.endswith(".")


def test_what_the_stories_of_groups_say_is_so():
    """k-means splits the moons, and a mixture finds the stripes that k-means cuts."""
    from sklearn.metrics import adjusted_rand_score

    def agree(data: str, method: str, **settings: int) -> float:
        frames, found = Frames(), make(data)
        find(method).run(found, settings, frames)
        return adjusted_rand_score(found.target, frames[-1][2]["labels"])

    assert agree("moons", "kmeans", n_clusters=2) < 0.6
    assert agree("stripes", "gaussian_mixture", n_components=3) > 0.95 > agree("stripes", "kmeans", n_clusters=3)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("id", {type(one).table: one.id for one in catalog() if "table" in one.kinds}.values())
def test_a_selection_of_rows_is_fitted_alone(id):
    """One method is given a selection for every way to make a table."""
    rows, frames, data = list(range(0, 150, 2)), Frames(), load_part("wine")
    few = {one.name: 2 for one in find(id).controls.values() if one.name in ("n_clusters", "n_components")}
    result = find(id).run(data, QUICK.get(id, {}) | few, frames, rows)
    names: dict = {}
    exec(result.script, names)
    assert names["rows"] == rows and len(names["X"]) == len(rows)
    assert id == "gan" or result.table["row"].to_list() == rows


@pytest.mark.parametrize("id", METHODS)
def test_settings_are_checked_and_explained(id):
    method = find(id)
    entry = method.describe()
    assert entry["about"].endswith((".", ":"))
    assert 1 <= sum(not one["advanced"] for one in entry["settings"]) <= 4
    for one in entry["settings"]:
        assert one["about"].endswith("."), one
        meaning = read_parameter(method.estimator, one["name"]).meaning
        free = one["name"] in ("random_state", "mask") or not meaning or "As in" in meaning
        assert free or one["about"] == meaning
    with pytest.raises(InputError, match="has no setting"):
        method.check({"nonsense": 1})
    for one in method.controls.values():
        if one.type in ("int", "float"):
            with pytest.raises(InputError):
                method.check({one.name: "<b>"})
            if one.max is not None:
                with pytest.raises(InputError):
                    method.check({one.name: one.max + 1})


def test_the_catalog_names_methods_that_exist():
    ids = set(METHODS)
    assert len(ids) == len(METHODS)
    for method in catalog():
        for other in method.describe()["compare"]:
            assert set(find(other).kinds) & set(method.kinds), (method.id, other)
    with pytest.raises(InputError, match="Did you mean kmeans"):
        find("kmean")


def test_a_newcomer_gets_a_list_with_reasons(ran):
    _, result = ran("recommender")
    method, title = find("recommender"), result.view.titles[0]
    assert title in method.ask(result, {"question": "search", "text": title.upper()})["titles"]
    lists = method.ask(result, {"question": "like", "ratings": {title: 5.0}})["lists"]
    assert lists and title not in [row["title"] for row in lists] and title in lists[0]["why"]
    for wrong in ({"question": "nonsense"}, {"question": "like"}, {"question": "like", "ratings": {"<b>": 1.0}}):
        with pytest.raises(InputError):
            method.ask(result, wrong)


def test_a_row_is_rebuilt_from_its_codes(ran):
    _, result = ran("pca")
    answer = find("pca").ask(result, {"question": "reconstruct", "row": 3, "k": 0})
    X = result.view.X
    np.testing.assert_allclose(answer["original"], X[3])
    np.testing.assert_allclose(answer["values"], result.model.inverse_transform(result.model.transform(X))[3])
    assert answer["shape"] == [8, 8]
    with pytest.raises(InputError, match="row 400"):
        find("pca").ask(result, {"question": "reconstruct", "row": 400, "k": 1})


def test_a_topic_has_its_documents(ran):
    frames, result = ran("lda")
    assert [len(words) for words in frames[-1][3]["topics"]] == [12] * 8
    found = find("lda").ask(result, {"question": "documents", "topic": 2})["documents"]
    shares = [document["share"] for document in found]
    assert shares == sorted(shares, reverse=True) and all(len(document["text"]) <= 400 for document in found)
    assert found[0]["name"] == result.table["name"][found[0]["row"]]
    with pytest.raises(InputError, match="topic 8"):
        find("lda").ask(result, {"question": "documents", "topic": 8})


def test_words_have_neighbors_and_analogies(ran):
    frames, result = ran("pmi")
    method, words = find("pmi"), frames[0][3]["words"]
    assert words[3] in method.ask(result, {"question": "search", "text": words[3]})["words"]
    near = method.ask(result, {"question": "neighbors", "word": words[0]})["neighbors"]
    assert [entry["word"] for entry in near] == [word for word, _ in result.model.vectors_.nearest(words[0], 12)]
    assert len(method.ask(result, dict(question="analogy", a=words[0], b=words[1], c=words[2]))["answers"]) == 5
    with pytest.raises(InputError, match="not among the words"):
        method.ask(result, {"question": "neighbors", "word": "<script>"})


def test_hidden_cells_are_filled_better_than_by_means(ran):
    for id in ("svt", "als", "soft_impute", "svp", "svd_impute"):
        frames, _ = ran(id)
        assert frames[-1][3]["error"] < frames[-1][3]["baseline"]


def test_a_photograph_gets_better(ran):
    for id in ("denoise", "denoise_dct", "denoise_threshold", "inpaint"):
        frames, _ = ran(id)
        assert frames[-1][3]["psnr"] > frames[-1][3]["psnr_input"]
    frames, result = ran("compress")
    (smaller, _), meta = find("compress").ask(result, {"question": "compress", "rate": 1.0}), frames[-1][3]
    assert smaller["output"].shape == result.picture.shape
    assert meta["bytes"] <= 64 * 64 * 2.0 / 8 and meta["ratio"] == 64 * 64 / meta["bytes"]


def test_a_hole_that_was_painted_is_filled():
    frames, picture = Frames(), load_part("camera").picture[:24, :32]
    data = Data("p", "p", "picture", picture=np.ascontiguousarray(picture))
    painted = {"width": 32, "height": 24, "runs": [[5 * 32 + 8, 4], [6 * 32 + 8, 4]]}
    find("inpaint").run(data, {"mask": painted, "max_iter": 1, "n_atoms": 64}, frames)
    before, after = frames[0][2]["input"], frames[-1][2]["output"]
    hole = np.zeros((24, 32), bool)
    hole[5:7, 8:12] = True
    assert (before[hole] == 0).all() and (after[~hole] == picture[~hole]).all() and (after[hole] > 0).all()
    for wrong in ({"width": 32}, {"width": 3, "height": 3, "runs": [[0, 4]]}, {**painted, "runs": [[0, 10**9]]}, "x"):
        with pytest.raises(InputError, match="hole"):
            find("inpaint").run(data, {"mask": wrong}, Frames())


@pytest.mark.parametrize(
    "loss, left, right, name", [("squared", "one-hot", "free", "k-means"), ("squared", "free", "orthonormal", "PCA")]
)
def test_factors_are_called_by_their_names(loss, left, right, name):
    frames, chosen = Frames(), {"loss": loss, "left": left, "right": right, "n_components": 3, "max_iter": 20}
    find("factorization").run(load_part("wine"), chosen, frames)
    assert frames[0][3]["name"] == name and "U" in frames[0][3]["formula"]
    left = frames[-1][2]["left"]
    if name == "k-means":
        assert (np.sort(left, axis=1)[:, :2] == 0).all() and (left.max(axis=1) == 1).all()


@pytest.mark.skipif("vae" not in METHODS, reason="torch is not installed")
def test_the_latent_space_can_be_walked(ran):
    _, result = ran("vae")
    method = find("vae")
    arrays, _ = method.ask(result, {"question": "decode", "at": [0.5, -1.0]})
    assert arrays["picture"].shape == (8, 8) and arrays["picture"].dtype == np.uint8
    for wrong in ([0.0], [0.0, "x"], [float("nan"), 0.0], None):
        with pytest.raises(InputError):
            method.ask(result, {"question": "decode", "at": wrong})


def test_the_file_of_a_topic_model_reads_new_texts(ran, tmp_path):
    from twofold import analyses, load

    _, result = ran("lda")
    result.model.save(tmp_path / "topics.twofold")
    assert list(load(tmp_path / "topics.twofold").bag_of_words_.vocabulary_) == list(result.view.words)
    (tmp_path / "new.txt").write_text(" ".join(result.view.words[:30]), encoding="utf-8")
    assert analyses.apply(tmp_path / "topics.twofold", tmp_path / "new.txt").table.height == 1


def test_two_methods_begin_at_the_same_centers(ran):
    (one, _), (other, _) = ran("kmeans"), ran("gaussian_mixture")
    np.testing.assert_array_equal(one[0][2]["centers"], other[0][2]["centers"])
    assert len(one[0][2]["centers"]) == 10 and not one[0][3]["flat"]  # cells are drawn in a plane


def test_without_torch_no_network_is_offered(monkeypatch):
    from twofold.lab import methods

    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    catalog.cache_clear()
    try:
        left = {method.id for method in catalog()}
        assert "pca" in left and not left & {"autoencoder", "vae", "pixelcnn", "gan"}
        assert "autoencoder" not in find("pca").describe()["compare"]
    finally:
        monkeypatch.undo()
        catalog.cache_clear()


@pytest.mark.parametrize("id", ["pca", "ppca", "factor_analysis", "bayesian_pca", "linear_autoencoder", "kmeans"])
def test_two_columns_are_enough(id):
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 3.0]
    data = Data("two", "two", "table", table=X, columns=["a", "b"])
    frames = Frames()
    find(id).run(data, {}, frames)
    assert frames[-1][2]["points" if "points" in frames[-1][2] else "centers"].shape[1] == 2


def test_what_a_method_cannot_use_is_refused():
    blank = np.zeros((5, 2))
    for bad, match in ((blank, "constant"), (blank[:1], "two rows")):
        data = Data("bad", "bad.csv", "table", table=bad, columns=["a", "b"])
        with pytest.raises(InputError, match=match):
            find("pca").run(data, {}, Frames())
    for rows in ([], [-1], [0, 178]):
        with pytest.raises(InputError, match="selection"):
            find("pca").run(load_part("wine"), {}, Frames(), rows)
    with pytest.raises(InputError, match="text is needed"):
        find("lda").run(load_part("wine"), {}, Frames())
    with pytest.raises(InputError, match="blank cells"):
        find("fisher_lda").run(load_part("table_with_holes"), {}, Frames())
    with pytest.raises(InputError, match="blank cells"):
        find("linear_autoencoder").run(load_part("table_with_holes"), {}, Frames())
