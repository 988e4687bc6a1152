"""twofold reduce on files as users have them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from tests.cli.worlds import COLUMNS, make_numbers
from twofold import PCA, PPCA, load
from twofold.analyses.reduce.analysis import parse_size
from twofold.core.checks import InputError


def test_json_tells_the_same_as_the_model(ask, people):
    found = ask("reduce", "people.csv", "-k", "3", "--drop", "group", "--no-scale", "-q")
    model = PCA(3).fit(people)
    assert (found["rows"], found["columns"], found["model"], found["n_components"]) == (60, 5, "PCA", 3)
    shares = [part["variance"] for part in found["components"]]
    np.testing.assert_allclose(shares, model.explained_variance_ratio_)
    top = max(found["components"][0]["weights"], key=lambda c: abs(found["components"][0]["weights"][c]))
    assert top == COLUMNS[int(np.argmax(np.abs(model.components_[0])))]


def test_scores_carry_names_and_other_columns(twofold, people):
    result = twofold("reduce", "people.csv", "-k", 2, "-o", "s.csv", "-o", "s.parquet", "-o", "s.npy")
    assert result.exit_code == 0, result.stderr
    table = pl.read_csv("s.csv")
    assert table.columns == [*pl.read_csv("people.csv", n_rows=0).columns, "PC1", "PC2"]
    assert table["name"].to_list() == [f"p{i}" for i in range(60)]
    both = np.column_stack([people, np.arange(60) % 2])
    both = (both - both.mean(axis=0)) / both.std(axis=0)
    want = PCA(2).fit(both).transform(both)
    np.testing.assert_allclose(table.select("PC1", "PC2").to_numpy(), want, atol=1e-8)
    assert pl.read_parquet("s.parquet").columns == table.columns
    np.testing.assert_allclose(np.load("s.npy"), want, atol=1e-8)


def test_standardising_is_dividing_by_the_spread(ask, people):
    found = ask("reduce", "people.csv", "--drop", "group", "-k", "2", "-o", "s.npy", "--save", "m.twofold")
    assert found["standardized"] and found["written"] == ["s.npy", "m.twofold"]
    S = people / people.std(axis=0, ddof=1)
    want = PCA(2).fit(S).transform(S)
    np.testing.assert_allclose(np.load("s.npy"), want, atol=1e-8)
    model = load("m.twofold")
    assert list(model.feature_names_in_) == COLUMNS
    frame = pl.DataFrame(people, schema=COLUMNS)
    np.testing.assert_allclose(model.transform(frame), want, atol=1e-8)


def test_spreads_alike_are_left_alone(ask, folder):
    pl.DataFrame(make_numbers() / [10, 5, 3, 1000, 0.1], schema=COLUMNS).write_csv("alike.csv")
    assert not ask("reduce", "alike.csv")["standardized"]
    assert ask("reduce", "alike.csv", "--scale")["standardized"]


def test_held_out_rows_on_a_plane_are_kept(ask, people):
    held = ask("reduce", "people.csv", "--drop", "group", "-k", "2")["figures"]
    assert held["rows"] == 6
    assert 0.9 < held["kept"] <= 1
    worse = ask("reduce", "people.csv", "--drop", "group", "-k", "1")["figures"]
    assert worse["kept"] < held["kept"]


def test_blanks_are_fitted_around(ask, folder):
    X = make_numbers(200, blanks=0.1)
    pl.DataFrame(X, schema=COLUMNS).fill_nan(None).write_csv("holes.csv")
    found = ask("reduce", "holes.csv", "-k", "2", "-o", "s.npy", "--save", "m.twofold")
    assert found["model"] == "PPCA" and found["blank_cells"] == int(np.isnan(X).sum())
    held = found["figures"]
    assert held["cells"] > 10 and held["rmse"] < 0.5 * found["baseline"]["rmse"]
    assert np.load("s.npy").shape == (200, 2)
    assert isinstance(load("m.twofold"), PPCA)
    assert ask("reduce", "holes.csv")["n_components"] >= 1


@pytest.mark.parametrize("ending", [".npy", ".mtx", ".npz"])
def test_arrays(ask, folder, ending):
    import scipy.io

    X = np.random.default_rng(0).poisson(0.4, (80, 12)).astype(float)
    if ending == ".npy":
        np.save("a.npy", X)
    elif ending == ".mtx":
        scipy.io.mmwrite("a.mtx", sp.coo_array(X))
    else:
        sp.save_npz("a.npz", sp.csr_array(X))
    found = ask("reduce", f"a{ending}", "-k", "4", "-o", "s.npy")
    want = PCA(4).fit(X)
    np.testing.assert_allclose([p["variance"] for p in found["components"]], want.explained_variance_ratio_)
    np.testing.assert_allclose(np.load("s.npy"), want.transform(X), atol=1e-8)
    assert 0 < found["figures"]["kept"] < 1


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_file_beyond_the_memory_budget_is_streamed(ask, folder, ending):
    X = np.random.default_rng(0).standard_normal((20_000, 16)) * np.arange(1, 17)
    np.save("a.npy", X)
    pl.DataFrame(X).write_parquet("a.parquet")
    found = ask("--memory", "2MB", "reduce", f"a{ending}", "-k", "3", "--no-scale", "-o", "s.npy")
    assert any("streamed" in note for note in found["notes"])
    np.testing.assert_allclose(np.abs(np.load("s.npy")), np.abs(PCA(3).fit(X).transform(X)), atol=1e-6)


@pytest.mark.parametrize("options", [[], ["--scale"], ["-k", "0.9"]])
def test_a_streamed_table_gives_what_it_gives_in_memory(ask, folder, options):
    """Standardizing, the number of components, the report and the held-out figure."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 3)) @ rng.standard_normal((3, 12)) + 0.3 * rng.standard_normal((30_000, 12))
    pl.DataFrame(X * 10.0 ** np.arange(-3, 9), schema=[f"sensor {j}" for j in range(12)]).write_parquet("a.parquet")
    here = ask("reduce", "a.parquet", *options, "-o", "here.npy")
    disk = ask("--memory", "2MB", "reduce", "a.parquet", *options, "-o", "disk.npy")
    assert any("streamed" in note for note in disk["notes"]) and disk["standardized"]
    assert disk["n_components"] == here["n_components"] == 3
    np.testing.assert_allclose(np.abs(np.load("disk.npy")), np.abs(np.load("here.npy")), atol=1e-6)
    shares = [[part["variance"] for part in found["components"]] for found in (here, disk)]
    np.testing.assert_allclose(*shares, rtol=1e-8)
    assert disk["figures"]["kept"] == pytest.approx(here["figures"]["kept"], rel=1e-8)


def test_a_blank_column_of_an_array_is_set_aside(ask, folder):
    X = make_numbers()
    X[:, 2] = np.nan
    np.save("a.npy", X)
    found = ask("reduce", "a.npy")
    assert found["columns"] == 4 and found["blank_cells"] == 0
    assert any('"column_3"' in note for note in found["notes"])


def test_names_in_a_report_are_text(twofold, folder):
    pl.DataFrame(make_numbers(), schema=["<script>x", "[red]b", "c&d", "$e$", "f_{g}"]).write_csv("odd.csv")
    result = twofold("reduce", "odd.csv", "-o", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "<script>x" not in Path("r.html").read_text()
    assert "[red]b" in twofold("reduce", "odd.csv", "-k", 5).stdout


@pytest.mark.parametrize(("k", "n"), [("1", 1), ("5", 5), ("0.9", 2), ("90%", 2), ("knee", 2), ("parallel", 2)])
def test_ways_to_say_how_many(ask, people, k, n):
    assert ask("reduce", "people.csv", "--drop", "group", "-k", k)["n_components"] == n


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "many", "150%", "nan"])
def test_nonsense_for_how_many(text):
    with pytest.raises(InputError, match=r"n_components=.*: give a count"):
        parse_size(text)


def test_infinity_in_an_array_is_placed(twofold, ask, folder):
    X = make_numbers()
    X[3, 1] = np.inf
    np.save("a.npy", X)
    result = twofold("reduce", "a.npy")
    assert result.exit_code == 2 and 'a.npy, row 4, column "column_2": inf' in result.stderr
    assert ask("reduce", "a.npy", "--na", "inf")["blank_cells"] == 1


def test_nothing_is_replaced_without_force(twofold, people):
    Path("out.csv").write_text("precious")
    result = twofold("reduce", "people.csv", "-o", "out.csv")
    assert result.exit_code == 2 and "--force" in result.stderr
    assert Path("out.csv").read_text() == "precious"
    assert twofold("reduce", "people.csv", "-o", "out.csv", "--force").exit_code == 0
    assert ",PC1" in Path("out.csv").read_text().splitlines()[0]


def test_drop_leaves_a_column_out(ask, people):
    found = ask("reduce", "people.csv", "--drop", "income", "--drop", "age", "-k", "3")
    assert found["columns"] == 4


@pytest.mark.parametrize(
    ("method", "model"), [("bayesian", "BayesianPCA"), ("fa", "FactorAnalysis"), ("fisher", "FisherLDA")]
)
def test_other_methods_by_name(twofold, ask, people, method, model):
    label = ["--label", "group"] if method == "fisher" else []
    found = ask("reduce", "people.csv", "--method", method, *label, "-o", "s.csv", "--save", "m.twofold")
    assert found["model"] == model and 0 < sum(part["variance"] for part in found["components"]) <= 1 + 1e-9
    assert twofold("apply", "m.twofold", "people.csv", "-o", "a.csv").exit_code == 0
    again, scores = pl.read_csv("a.csv"), pl.read_csv("s.csv")
    np.testing.assert_allclose(again["PC1"].to_numpy(), scores["PC1"].to_numpy(), atol=1e-6)
