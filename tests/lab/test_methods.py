"""Every method of the lab runs on its own data, shows what its view needs, and leaves a script with the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from twofold import InputError, datasets
from twofold.lab.methods import Cancelled, Data, catalog, docs, find

METHODS = [method.id for method in catalog()]
QUICK: dict[str, dict] = {  # settings that make a run short
    "skip_gram": {"n_components": 5, "max_iter": 2},
    "glove": {"n_components": 5, "max_iter": 2},
    "pmi": {"n_components": 5},
    "lda": {"max_iter": 5},
    "nmf": {"max_iter": 5},
    "plsa": {"max_iter": 5},
}
VIEWS = {  # arrays of a view: those of the first frame, and those of the last with the kinds of their shapes
    "points": ({"points": "n2", "plane": "2d"}, {"labels": "n", "centers": "k2"}),
    "topics": ({"documents": "n2"}, {"sizes": "k", "map": "k2", "documents": "n2", "labels": "n"}),
    "words": ({"map": "m2"}, {"map": "m2"}),
    "matrix": ({"truth": "rc", "hidden": "rc"}, {"filled": "rc", "singular": "k"}),
    "ratings": ({"counts": "m"}, {"items": "m2"}),
    "axes": ({"colors": "n"}, {"points": "n2", "ratio": "k", "loadings": "kd"}),
}


def bundled(id: str) -> Data:
    """The bundled data by its id."""
    head = "from twofold import datasets\n\n"
    if id == "digits":
        digits = datasets.digits()
        keep = slice(0, 400)
        return Data(
            id=id,
            name="digits",
            kind="pictures",
            code=head + "digits = datasets.digits()\nX, pictures, y = digits.data[:400], digits.images[:400], "
            "digits.target[:400]",
            table=digits.data[keep],
            pictures=digits.images[keep],
            target=digits.target[keep],
        )
    if id == "docstrings":
        few = datasets.docstrings(120)
        code = head + "texts = datasets.docstrings(120).documents"
        return Data(id=id, name="docstrings", kind="text", code=code, texts=few.documents, names=few.names)
    if id == "table_with_holes":
        holes = datasets.table_with_holes()
        code = head + "X = datasets.table_with_holes().data"
        return Data(id=id, name="holes", kind="table", code=code, table=holes.data, columns=holes.feature_names)
    if id == "ratings":
        few = datasets.ratings(100, 60).ratings
        return Data(
            id=id,
            name="ratings",
            kind="ratings",
            code=head + "ratings = datasets.ratings(100, 60).ratings",
            ratings=few,
        )
    wine = datasets.wine()
    return Data(
        id=id,
        name="wine",
        kind="table",
        code=head + "wine = datasets.wine()\nX, y = wine.data, wine.target",
        table=wine.data,
        target=wine.target,
        columns=wine.feature_names,
        target_names=wine.target_names,
    )


class Frames(list):
    """What a run has sent."""

    def __call__(self, sweep, objective, arrays, meta, final=False):
        self.append((sweep, objective, arrays, meta, final))


@pytest.fixture(scope="module")
def ran():
    """Each method, run once: its frames and its result."""
    kept = {}

    def run(id):
        if id not in kept:
            method, frames = find(id), Frames()
            result = method.run(bundled(method.default_data), QUICK.get(id, {}), frames)
            kept[id] = frames, result
        return kept[id]

    return run


@pytest.mark.parametrize("id", METHODS)
def test_frames_hold_what_the_view_draws(id, ran):
    frames, _ = ran(id)
    sizes: dict[str, int] = {"2": 2}
    for place, wanted in zip((0, -1), VIEWS[find(id).view], strict=True):
        arrays = frames[place][2]
        for name, shape in wanted.items():
            assert arrays[name].ndim == len(shape), name
            for letter, size in zip(shape, arrays[name].shape, strict=True):
                assert sizes.setdefault(letter, size) == size, (name, letter)
            assert name == "truth" or np.isfinite(arrays[name]).all(), name
    for _, _, arrays, _, _ in frames:
        assert all(array.dtype.str in ("<f4", "|u1", "<i4") for array in arrays.values())
    assert set(frames[0][3].get("static", ())) <= set(frames[0][2])


@pytest.mark.parametrize("id", METHODS)
def test_sweeps_rise_and_objectives_are_numbers(id, ran):
    frames, _ = ran(id)
    sweeps = [frame[0] for frame in frames]
    assert frames[0][:2] == (0, None)
    assert sweeps == sorted(sweeps) and len(set(sweeps)) > 1
    assert all(math.isfinite(frame[1]) for frame in frames[1:])
    assert [frame[4] for frame in frames] == [False] * (len(frames) - 1) + [True]


def same_bits(a, b):
    """Whether two arrays are equal, bit for bit."""
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def fitted_arrays(model):
    """What a fit has set on a model, and on the models within it."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            found[name] = value
        elif name.endswith("_") and isinstance(value, BaseEstimator):
            found |= {f"{name}.{inner}": array for inner, array in fitted_arrays(value).items()}
    return found


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("id", METHODS)
def test_the_script_gives_the_same_bits(id, ran):
    _, result = ran(id)
    names: dict = {}
    exec(result.script, names)
    mine, theirs = (fitted_arrays(find(id).watched(model)) for model in (result.model, names["model"]))
    assert mine and mine.keys() == theirs.keys()
    assert not [name for name in mine if not same_bits(mine[name], theirs[name])]


@pytest.mark.parametrize("id", METHODS)
def test_a_cancelled_run_ends_at_once(id):
    method, seen = find(id), []

    def emit(sweep, objective, arrays, meta, final=False):
        seen.append(sweep)
        if sweep >= 1 or final:
            raise Cancelled

    with pytest.raises(Cancelled):
        method.run(bundled(method.default_data), QUICK.get(id, {}), emit)
    assert len(seen) == 2


@pytest.mark.parametrize("id", METHODS)
def test_tables_and_figures_can_be_taken_away(id, ran):
    _, result = ran(id)
    method = find(id)
    assert ("table" in method.takes) == (result.table is not None)
    assert result.figure().get_axes()


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("id", [method.id for method in catalog() if "table" in method.kinds])
def test_a_selection_of_rows_is_fitted_alone(id):
    rows, frames, data = list(range(0, 150, 2)), Frames(), bundled("wine")
    few = {one.name: 2 for one in find(id).settings if one.name in ("n_clusters", "n_components")}
    result = find(id).run(data, QUICK.get(id, {}) | few, frames, rows)
    names: dict = {}
    exec(result.script, names)
    assert names["rows"] == rows and len(names["X"]) == len(rows)
    assert result.table["row"].to_list() == rows


@pytest.mark.parametrize("id", METHODS)
def test_settings_are_checked_and_explained(id):
    method = find(id)
    entry = method.describe()
    assert entry["about"].endswith((".", ":"))
    assert 1 <= sum(not one["advanced"] for one in entry["settings"]) <= 4
    for one in entry["settings"]:
        assert one["about"].endswith("."), one
        documented = docs.describe_parameter(method.estimator, one["name"])
        assert one["name"] in ("random_state", "seed") or not documented or one["about"] == documented
    with pytest.raises(InputError, match="has no setting"):
        method.check({"nonsense": 1})
    for one in method.settings:
        if one.type in ("int", "float"):
            with pytest.raises(InputError):
                method.check({one.name: "<b>"})
            if one.max is not None:
                with pytest.raises(InputError):
                    method.check({one.name: one.max + 1})


def test_the_catalog_names_methods_that_exist():
    ids = set(METHODS)
    assert len(ids) == len(METHODS)
    with pytest.raises(InputError, match="Did you mean kmeans"):
        find("kmean")


def test_a_newcomer_gets_a_list_with_reasons(ran):
    _, result = ran("recommender")
    method, title = find("recommender"), result.sight.titles[0]
    assert title in method.ask(result, {"question": "search", "text": title.upper()})["titles"]
    lists = method.ask(result, {"question": "like", "ratings": {title: 5.0}})["lists"]
    assert lists and title not in [row["title"] for row in lists] and title in lists[0]["why"]
    for wrong in ({"question": "nonsense"}, {"question": "like"}, {"question": "like", "ratings": {"<b>": 1.0}}):
        with pytest.raises(InputError):
            method.ask(result, wrong)


def test_a_row_is_rebuilt_from_its_codes(ran):
    _, result = ran("pca")
    answer = find("pca").ask(result, {"question": "reconstruct", "row": 3, "k": 0})
    X = result.sight.X
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
    near = method.ask(result, {"question": "neighbors", "word": words[0]})["words"]
    assert [entry["word"] for entry in near] == [word for word, _ in result.model.vectors_.nearest(words[0], 12)]
    assert len(method.ask(result, dict(question="analogy", a=words[0], b=words[1], c=words[2]))["words"]) == 5
    with pytest.raises(InputError, match="not among the words"):
        method.ask(result, {"question": "neighbors", "word": "<script>"})


def test_hidden_cells_are_filled_better_than_by_means(ran):
    for id in ("svt", "als", "soft_impute", "svp", "svd_impute"):
        frames, _ = ran(id)
        assert frames[-1][3]["error"] < frames[-1][3]["baseline"]
