"""twofold reduce on files as users have them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from twofold import PCA, PPCA, load
from twofold.cli.commands.reduce import parse_k
from twofold.core.checks import InputError


def run_json(twofold, *args):
    result = twofold("reduce", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_no_options_are_needed(twofold, people):
    result = twofold("reduce", "people.csv")
    assert result.exit_code == 0, result.stderr
    for text in ("PC1", "PC2", "columns that weigh most", "held out", "by PCA"):
        assert text in result.stdout
    for choice in ('"name" names the rows', '"group" set aside', "standardized", "knee"):
        assert choice in result.stderr
    assert "·" not in result.stdout


def test_json_tells_the_same_as_the_model(twofold, people, columns):
    found = run_json(twofold, "people.csv", "-k", "3", "--no-scale", "-q")
    model = PCA(3).fit(people)
    assert (found["rows"], found["columns"], found["model"], found["n_components"]) == (60, 5, "PCA", 3)
    shares = [part["variance"] for part in found["components"]]
    np.testing.assert_allclose(shares, model.explained_variance_ratio_)
    top = max(found["components"][0]["weights"], key=lambda c: abs(found["components"][0]["weights"][c]))
    assert top == columns[int(np.argmax(np.abs(model.components_[0])))]


def test_scores_carry_names_and_other_columns(twofold, people):
    result = twofold("reduce", "people.csv", "-k", 2, "--no-scale", "-o", "s.csv", "-o", "s.parquet", "-o", "s.npy")
    assert result.exit_code == 0, result.stderr
    table = pl.read_csv("s.csv")
    assert table.columns == ["name", "group", "PC1", "PC2"]
    assert table["name"].to_list() == [f"p{i}" for i in range(60)]
    want = PCA(2).fit(people).transform(people)
    np.testing.assert_allclose(table.select("PC1", "PC2").to_numpy(), want, atol=1e-8)
    assert pl.read_parquet("s.parquet").columns == table.columns
    np.testing.assert_allclose(np.load("s.npy"), want, atol=1e-8)


def test_standardising_is_dividing_by_the_spread(twofold, people, columns):
    found = run_json(twofold, "people.csv", "-k", "2", "-o", "s.npy", "--save", "m.twofold")
    assert found["standardized"] and found["written"] == ["s.npy", "m.twofold"]
    S = people / people.std(axis=0, ddof=1)
    want = PCA(2).fit(S).transform(S)
    np.testing.assert_allclose(np.load("s.npy"), want, atol=1e-8)
    model = load("m.twofold")
    assert list(model.feature_names_in_) == columns
    frame = pl.DataFrame(people, schema=columns)
    np.testing.assert_allclose(model.transform(frame), want, atol=1e-8)


def test_spreads_alike_are_left_alone(twofold, folder, numbers, columns):
    pl.DataFrame(numbers() / [10, 5, 3, 1000, 0.1], schema=columns).write_csv("alike.csv")
    assert not run_json(twofold, "alike.csv")["standardized"]
    assert run_json(twofold, "alike.csv", "--scale")["standardized"]


def test_held_out_rows_on_a_plane_are_kept(twofold, people):
    held = run_json(twofold, "people.csv", "-k", "2")["figures"]
    assert held["rows"] == 6
    assert 0.9 < held["kept"] <= 1
    worse = run_json(twofold, "people.csv", "-k", "1")["figures"]
    assert worse["kept"] < held["kept"]


def test_blanks_are_fitted_around(twofold, folder, numbers, columns):
    X = numbers(200, blanks=0.1)
    pl.DataFrame(X, schema=columns).fill_nan(None).write_csv("holes.csv")
    found = run_json(twofold, "holes.csv", "-k", "2", "-o", "s.npy", "--save", "m.twofold")
    assert found["model"] == "PPCA" and found["blank_cells"] == int(np.isnan(X).sum())
    held = found["figures"]
    assert held["cells"] > 10 and held["rmse"] < 0.5 * found["baseline"]["rmse"]
    assert np.load("s.npy").shape == (200, 2)
    assert isinstance(load("m.twofold"), PPCA)
    assert run_json(twofold, "holes.csv")["n_components"] >= 1


@pytest.mark.parametrize("ending", [".npy", ".mtx", ".npz"])
def test_arrays(twofold, folder, ending):
    import scipy.io

    X = np.random.default_rng(0).poisson(0.4, (80, 12)).astype(float)
    if ending == ".npy":
        np.save("a.npy", X)
    elif ending == ".mtx":
        scipy.io.mmwrite("a.mtx", sp.coo_array(X))
    else:
        sp.save_npz("a.npz", sp.csr_array(X))
    found = run_json(twofold, f"a{ending}", "-k", "4", "-o", "s.npy")
    want = PCA(4).fit(X)
    np.testing.assert_allclose([p["variance"] for p in found["components"]], want.explained_variance_ratio_)
    np.testing.assert_allclose(np.load("s.npy"), want.transform(X), atol=1e-8)
    assert 0 < found["figures"]["kept"] < 1


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_file_beyond_the_memory_budget_is_streamed(twofold, folder, ending):
    import twofold as library

    X = np.random.default_rng(0).standard_normal((20_000, 16)) * np.arange(1, 17)
    np.save("a.npy", X)
    pl.DataFrame(X).write_parquet("a.parquet")
    with library.config(memory="2MB"):
        found = run_json(twofold, f"a{ending}", "-k", "3", "-o", "s.npy")
    assert any("streamed" in note for note in found["notes"])
    np.testing.assert_allclose(np.abs(np.load("s.npy")), np.abs(PCA(3).fit(X).transform(X)), atol=1e-6)


def test_a_blank_column_of_an_array_is_set_aside(twofold, folder, numbers):
    X = numbers()
    X[:, 2] = np.nan
    np.save("a.npy", X)
    found = run_json(twofold, "a.npy")
    assert found["columns"] == 4 and found["blank_cells"] == 0
    assert any('"column_3"' in note for note in found["notes"])


def test_same_seed_same_bytes(twofold, people):
    for name in ("a", "b"):
        assert twofold("reduce", "people.csv", "--seed", 3, "-o", f"{name}.csv", "-o", f"{name}.png").exit_code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()


def test_pictures_and_reports(twofold, people):
    result = twofold("reduce", "people.csv", "-o", "r.html", "-o", "r.png")
    assert result.exit_code == 0, result.stderr
    from PIL import Image

    with Image.open("r.png") as image:
        assert min(image.size) > 600
        assert len(image.convert("RGB").resize((100, 100)).getcolors(10_000)) > 20
    page = Path("r.html").read_text()
    assert "data:image/png;base64," in page and "PC2" in page and "names the rows" in page
    assert "http" not in page.replace("http-equiv", "")


def test_names_in_a_report_are_text(twofold, folder, numbers):
    pl.DataFrame(numbers(), schema=["<script>x", "[red]b", "c&d", "$e$", "f_{g}"]).write_csv("odd.csv")
    result = twofold("reduce", "odd.csv", "-o", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "<script>x" not in Path("r.html").read_text()
    assert "[red]b" in twofold("reduce", "odd.csv", "-k", 5).stdout


@pytest.mark.parametrize(("k", "n"), [("1", 1), ("5", 5), ("0.9", 2), ("90%", 2), ("knee", 2), ("parallel", 2)])
def test_ways_to_say_how_many(twofold, people, k, n):
    assert run_json(twofold, "people.csv", "-k", k)["n_components"] == n


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "many", "150%", "nan"])
def test_nonsense_for_how_many(text):
    with pytest.raises(InputError, match="-k"):
        parse_k(text)


BAD = {
    "ragged.csv": ("a,b\n1,2\n3\n", "ragged.csv, line 3: 1 field where the header has 2"),
    "text.csv": ("a,b\n" + "1,2\n" * 9 + "3,oops\n", 'text.csv, line 11, column "b": "oops" is not a number'),
    "empty.csv": ("", "empty.csv is empty"),
    "zero.parquet": ("", "zero.parquet is empty"),
    "one.csv": ("a,b\n1,2\n", "one row"),
    "flat.csv": ("a,b\n1,2\n1,2\n1,2\n", "constant"),
    "words.csv": ("a,b\nx,y\nz,y\n", "no column of numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_leaves_nothing_behind(twofold, folder, name):
    content, message = BAD[name]
    Path(name).write_text(content)
    result = twofold("reduce", name, "-o", "out.csv", "-o", "out.png", "--save", "m.twofold")
    assert result.exit_code == 2
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert [p.name for p in folder.iterdir()] == [name]


def test_infinity_in_an_array_is_placed(twofold, folder, numbers):
    X = numbers()
    X[3, 1] = np.inf
    np.save("a.npy", X)
    result = twofold("reduce", "a.npy")
    assert result.exit_code == 2 and 'a.npy, row 4, column "column_2": inf' in result.stderr
    assert run_json(twofold, "a.npy", "--na", "inf")["blank_cells"] == 1


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-o", "people.csv", "--force"], "input"),
        (["-o", "out.xyz"], ".parquet"),
        (["-o", "no/out.csv"], "no folder"),
        (["-o", "a.csv", "-o", "a.csv"], "twice"),
        (["--save", "m.pkl"], ".twofold"),
        (["-k", "9"], "at most 5"),
        (["--drop", "heigth"], '"height"'),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(twofold, people, folder, args, word):
    result = twofold("reduce", "people.csv", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [p.name for p in folder.iterdir()] == ["people.csv"]


def test_nothing_is_replaced_without_force(twofold, people):
    Path("out.csv").write_text("precious")
    result = twofold("reduce", "people.csv", "-o", "out.csv")
    assert result.exit_code == 2 and "--force" in result.stderr
    assert Path("out.csv").read_text() == "precious"
    assert twofold("reduce", "people.csv", "-o", "out.csv", "--force").exit_code == 0
    assert Path("out.csv").read_text().startswith("name,group,PC1")


def test_drop_leaves_a_column_out(twofold, people):
    found = run_json(twofold, "people.csv", "--drop", "income", "--drop", "age", "-k", "3")
    assert found["columns"] == 3


def test_standard_input_and_a_closed_pipe(people):
    command = f"cat people.csv | {sys.executable} -m twofold reduce - -k 5 -q | head -1"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=600)
    assert run.stdout.startswith("standard input: 60 rows")
    assert "Traceback" not in run.stderr


def test_progress_goes_to_a_terminal_on_stderr_only(people):
    pty = pytest.importorskip("pty")
    import os

    master, slave = pty.openpty()
    run = subprocess.run(
        [sys.executable, "-m", "twofold", "reduce", "people.csv", "--json"],
        stdout=subprocess.PIPE,
        stderr=slave,
        timeout=600,
    )
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 65536):
            shown += part
    except OSError:
        pass  # the terminal is closed
    os.close(master)
    assert run.returncode == 0, shown
    assert json.loads(run.stdout)["rows"] == 60
    assert b"reading" in shown and b"writing" in shown


@pytest.mark.parametrize(
    ("method", "model"), [("bayesian", "BayesianPCA"), ("fa", "FactorAnalysis"), ("fisher", "FisherLDA")]
)
def test_other_methods_by_name(twofold, people, method, model):
    label = ["--label", "group"] if method == "fisher" else []
    found = run_json(twofold, "people.csv", "--method", method, *label, "-o", "s.csv", "--save", "m.twofold")
    assert found["model"] == model and 0 < sum(part["variance"] for part in found["components"]) <= 1 + 1e-9
    assert twofold("apply", "m.twofold", "people.csv", "-o", "a.csv").exit_code == 0
    again, scores = pl.read_csv("a.csv"), pl.read_csv("s.csv")
    np.testing.assert_allclose(again["PC1"].to_numpy(), scores["PC1"].to_numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "magic"], "pca, bayesian, fa, ae or fisher"),
        (["--method", "fisher"], "--label NAME"),
        (["--label", "group"], "go together"),
        (["--method", "fisher", "--label", "grop"], 'Did you mean "group"'),
    ],
)
def test_methods_and_labels_that_cannot_be(twofold, people, options, message):
    result = twofold("reduce", "people.csv", *options)
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())
