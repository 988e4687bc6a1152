"""twofold cluster on files as users have them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.metrics import adjusted_rand_score

from twofold import GaussianMixture, KMeans, load

NAMES = ["height", "weight", "age", "income"]


@pytest.fixture
def truth():
    return np.repeat([0, 1, 2], [90, 60, 30])


@pytest.fixture
def groups(folder, truth):
    """groups.csv: three groups far apart, columns of very different spread, row names; returns the numbers."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0, 0, 0], [8, 0, 5, 0], [0, 9, 0, 7]])
    X = (centres[truth] + rng.standard_normal((len(truth), 4))) * [10, 1, 3, 1000] + [170, 70, 40, 30_000]
    frame = pl.DataFrame(X, schema=NAMES)
    rows = pl.Series("name", [f"p{i}" for i in range(len(X))]), pl.Series("kind", ["x", "y"] * (len(X) // 2))
    frame.with_columns(*rows).write_csv("groups.csv")
    return X


def run_json(twofold, *args):
    result = twofold("cluster", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_no_options_are_needed(twofold, groups):
    result = twofold("cluster", "groups.csv")
    assert result.exit_code == 0, result.stderr
    for text in ("3 clusters by k-means", "differs from all rows in", "50%", "sd", "silhouette", "halves"):
        assert text in result.stdout
    for choice in ('"name" names the rows', '"kind" set aside', "standardized", "3 clusters fit best by BIC; next"):
        assert choice in result.stderr
    assert "·" not in result.stdout


@pytest.mark.parametrize("method", ["kmeans", "mixture"])
def test_groups_are_found_and_the_saved_model_takes_raw_rows(twofold, groups, truth, method):
    found = run_json(twofold, "groups.csv", "--method", method, "-o", "l.csv", "-o", "l.parquet", "--save", "m.twofold")
    table = pl.read_csv("l.csv")
    assert table.columns == ["name", "kind", "cluster", "confidence" if method == "mixture" else "distance"]
    assert pl.read_parquet("l.parquet").columns == table.columns
    assert adjusted_rand_score(truth, table["cluster"].to_list()) > 0.98
    assert found["standardized"] and found["method"] == method and found["n_clusters"] == 3
    assert found["figures"]["silhouette"] > 0.5 and found["figures"]["stability"] > 0.9
    sizes = [part["rows"] for part in found["clusters"]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == len(truth)
    model = load("m.twofold")
    frame = pl.DataFrame(groups, schema=NAMES)
    np.testing.assert_array_equal(model.predict(frame), table["cluster"].to_numpy())
    centre = groups[table["cluster"].to_numpy() == 0].mean(axis=0)
    np.testing.assert_allclose(list(found["clusters"][0]["center"].values()), centre, rtol=1e-2)


def test_scaled_labels_are_those_of_kmeans_on_standardized_columns(twofold, groups, truth):
    run_json(twofold, "groups.csv", "-k", "5", "-o", "l.csv", "--save", "m.twofold")
    S = groups / groups.std(axis=0)
    want = KMeans(5, random_state=0).fit(S)
    table = pl.read_csv("l.csv")
    assert adjusted_rand_score(want.labels_, table["cluster"].to_list()) == 1.0
    np.testing.assert_allclose(table["distance"], want.transform(S).min(axis=1), rtol=1e-8)
    new = groups + np.random.default_rng(1).standard_normal(groups.shape) * groups.std(axis=0)
    kept = load("m.twofold").predict(pl.DataFrame(new, schema=NAMES))
    assert adjusted_rand_score(want.predict(new / groups.std(axis=0)), kept) == 1.0


def test_a_scaled_mixture_is_carried_over_exactly(twofold, groups):
    run_json(twofold, "groups.csv", "--method", "mixture", "-k", "3", "-o", "l.csv", "--save", "m.twofold")
    model, table = load("m.twofold"), pl.read_csv("l.csv")
    frame = pl.DataFrame(groups, schema=NAMES)
    np.testing.assert_allclose(model.predict_proba(frame).max(axis=1), table["confidence"], atol=1e-8)


def test_profiles_are_in_standard_deviations(twofold, groups):
    found = run_json(twofold, "groups.csv", "--no-scale", "-k", "3", "-o", "l.csv")
    labels = pl.read_csv("l.csv")["cluster"].to_numpy()
    z = (groups[labels == 1].mean(axis=0) - groups.mean(axis=0)) / groups.std(axis=0, ddof=1)
    for name, value in found["clusters"][1]["differs"].items():
        assert value == pytest.approx(z[NAMES.index(name)])
    assert not found["standardized"] and found["tried"] == []


def test_one_cloud_is_one_cluster(twofold, people):
    found = run_json(twofold, "people.csv")
    assert found["n_clusters"] == 1 and found["figures"] == {}
    assert any("do not fall into groups" in note for note in found["notes"])


def test_values_often_seen_are_not_clusters(twofold, groups):
    coin = pl.Series("coin", np.random.default_rng(1).integers(2, size=len(groups)).astype(float))
    pl.DataFrame(groups, schema=NAMES).with_columns(coin).write_csv("coin.csv")
    found = run_json(twofold, "coin.csv")
    assert found["n_clusters"] == 3
    assert any("few values" in note for note in found["notes"])


def test_clusters_that_are_not_there_are_doubted(twofold, folder):
    pl.DataFrame(np.random.default_rng(0).standard_normal((300, 5)), schema=list("abcde")).write_csv("cloud.csv")
    found = run_json(twofold, "cloud.csv", "-k", "6")
    assert found["figures"]["stability"] < 0.7
    assert any("one cloud" in note for note in found["notes"])


def test_blanks_make_it_a_mixture(twofold, groups, truth):
    holes = np.random.default_rng(0).random(groups.shape) < 0.1
    X = np.where(holes, np.nan, groups)
    pl.DataFrame(X, schema=NAMES).fill_nan(None).write_csv("holes.csv")
    found = run_json(twofold, "holes.csv", "-o", "l.csv", "-o", "l.png", "--save", "m.twofold")
    assert found["method"] == "mixture" and found["blank_cells"] == holes.sum()
    assert any("blank" in note for note in found["notes"])
    assert adjusted_rand_score(truth, pl.read_csv("l.csv")["cluster"].to_list()) > 0.8
    assert isinstance(load("m.twofold"), GaussianMixture)
    refused = twofold("cluster", "holes.csv", "--method", "kmeans")
    assert refused.exit_code == 2 and "--method mixture" in refused.stderr


def test_sparse_tables(twofold, folder, truth):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.1, (180, 30)) + rng.poisson(4 * (np.arange(30) // 10 == truth[:, None]))
    sp.save_npz("a.npz", sp.csr_array(X.astype(float)))
    run_json(twofold, "a.npz", "-k", "3", "-o", "l.csv", "-o", "l.png")
    assert adjusted_rand_score(truth, pl.read_csv("l.csv")["cluster"].to_list()) > 0.95
    for option in (["--method", "mixture"], ["--scale"]):
        assert twofold("cluster", "a.npz", *option).exit_code == 2


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_file_beyond_the_memory_budget_is_streamed(twofold, folder, ending):
    import twofold as library

    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=20_000)
    X = rng.standard_normal((20_000, 16)) + 9 * truth[:, None]
    np.save("a.npy", X)
    pl.DataFrame(X).write_parquet("a.parquet")
    with library.config(memory="2MB"):
        found = run_json(twofold, f"a{ending}", "-k", "3", "-o", "l.csv", "--save", "m.twofold")
        assert twofold("cluster", f"a{ending}", "--scale").exit_code == 2
    assert any("streamed" in note for note in found["notes"])
    assert adjusted_rand_score(truth, pl.read_csv("l.csv")["cluster"].to_list()) == 1.0
    assert isinstance(load("m.twofold"), KMeans)


def test_pictures_reports_and_seeds(twofold, groups):
    from PIL import Image

    for name in ("a", "b"):
        args = ["-o", f"{name}.png", "-o", f"{name}.html", "-o", f"{name}.csv", "--seed", 3]
        assert twofold("cluster", "groups.csv", *args).exit_code == 0
    for ending in ("png", "html", "csv"):
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    with Image.open("a.png") as image:
        assert min(image.size) > 600
        assert len(image.convert("RGB").resize((100, 100)).getcolors(10_000)) > 20
    page = Path("a.html").read_text()
    assert "data:image/png;base64," in page and "silhouette" in page and "names the rows" in page
    assert "http" not in page


def test_one_or_two_columns_can_be_drawn(twofold, groups):
    pl.DataFrame(groups[:, :1], schema=NAMES[:1]).write_csv("one.csv")
    X = np.where(np.random.default_rng(0).random((len(groups), 2)) < 0.05, np.nan, groups[:, :2])
    pl.DataFrame(X, schema=NAMES[:2]).fill_nan(None).write_csv("two.csv")
    for name in ("one", "two"):
        result = twofold("cluster", f"{name}.csv", "-o", f"{name}.png")
        assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-o", "groups.csv", "--force"], "input"),
        (["-o", "out.npy"], ".parquet"),
        (["--save", "m.pkl"], ".twofold"),
        (["-k", "999"], "at most 180"),
        (["-k", "0"], "-k"),
        (["--method", "magic"], "kmeans or mixture"),
        (["--drop", "heigth"], '"height"'),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(twofold, groups, folder, args, word):
    result = twofold("cluster", "groups.csv", *args)
    assert result.exit_code == 2 and word in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert [p.name for p in folder.iterdir()] == ["groups.csv"]


@pytest.mark.parametrize("content", ["a,b\n1,2\n3\n", "", "a,b\n1,2\n", "a,b\n1,2\n1,2\n1,2\n", "a,b\nx,y\nz,y\n"])
def test_bad_input_leaves_nothing_behind(twofold, folder, content):
    Path("bad.csv").write_text(content)
    result = twofold("cluster", "bad.csv", "-o", "out.csv", "-o", "out.png", "--save", "m.twofold")
    assert result.exit_code == 2 and "bad.csv" in result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert [p.name for p in folder.iterdir()] == ["bad.csv"]


def test_inspect_tells_the_sizes(twofold, groups):
    for args in ([], ["--no-scale"], ["--method", "mixture"]):
        run_json(twofold, "groups.csv", "-k", "3", "--save", "m.twofold", "--force", *args)
        facts = json.loads(twofold("inspect", "m.twofold", "--json").stdout)
        shares = [part["share"] for part in facts["clusters"]]
        assert sum(shares) == pytest.approx(1) and len(shares) == 3
        if args != ["--no-scale"]:
            np.testing.assert_allclose(shares, [1 / 2, 1 / 3, 1 / 6], atol=0.02)
        assert set(facts["clusters"][0]["center"]) == set(NAMES)
    assert "clusters" in twofold("inspect", "m.twofold").stdout


def test_a_coreset_costs_little_more_than_all_rows(twofold, folder):
    rng = np.random.default_rng(0)
    X = (np.arange(12_000) % 3)[:, None] * 10 + rng.standard_normal((12_000, 3))
    np.save("many.npy", X)
    found = run_json(twofold, "many.npy", "-k", 3, "--coreset", "--no-scale", "-o", "labels.csv")
    figures, labels = found["figures"], pl.read_csv("labels.csv")["cluster"].to_numpy()
    means = np.array([X[labels == c].mean(axis=0) for c in range(3)])
    full = float(((X - means[labels]) ** 2).sum(axis=1).mean())
    assert adjusted_rand_score(np.arange(12_000) % 3, labels) == 1
    assert figures["coreset_rows"] <= 5_000
    assert full <= figures["cost"] < 1.05 * full  # no centers are better than the means of their own rows
    said = twofold("cluster", "many.npy", "-k", 3, "--coreset", "--no-scale").stdout
    assert "over all rows" in said and "over the coreset of" in " ".join(said.split())


def test_few_rows_are_a_coreset_themselves(twofold, groups):
    result = twofold("cluster", "groups.csv", "-k", 3, "--coreset")
    assert result.exit_code == 0 and "all of them are used" in result.stderr
    result = twofold("cluster", "groups.csv", "-k", 3, "--coreset", "--method", "mixture")
    assert result.exit_code == 2 and "--coreset" in result.stderr


@pytest.fixture
def flag(folder):
    """flag.png: half red, a third white, a sixth blue."""
    pixels = np.zeros((12, 20, 3), np.uint8)
    pixels[:6], pixels[6:10], pixels[10:] = (200, 0, 0), (255, 255, 255), (0, 0, 128)
    Image.fromarray(pixels).save("flag.png")
    return pixels


def test_an_image_gives_its_colors(twofold, flag):
    found = run_json(twofold, "flag.png", "-k", 5, "-o", "same.png", "-o", "colors.csv", "-o", "page.html")
    assert [c["color"] for c in found["colors"]] == ["#c80000", "#ffffff", "#000080"]
    assert [c["share"] for c in found["colors"]] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert np.array_equal(np.asarray(Image.open("same.png")), flag)
    assert pl.read_csv("colors.csv")["blue"].to_list() == [0, 255, 128]
    two = run_json(twofold, "flag.png", "-k", 2, "-o", "two.png")
    assert len(np.unique(np.asarray(Image.open("two.png")).reshape(-1, 3), axis=0)) == two["n_colors"] == 2
    assert two["figures"]["psnr"] > two["baseline"]["psnr"]


def test_what_is_transparent_has_no_color(twofold, flag):
    alpha = np.full((12, 20), 255, np.uint8)
    alpha[:6] = 0
    Image.fromarray(np.dstack([flag, alpha])).save("flag.png")
    found = run_json(twofold, "flag.png", "-o", "same.png")
    assert [c["color"] for c in found["colors"]] == ["#ffffff", "#000080"]
    assert np.array_equal(np.asarray(Image.open("same.png"))[..., 3], alpha)
    result = twofold("cluster", "flag.png", "--coreset")
    assert result.exit_code == 2 and "about tables" in result.stderr
