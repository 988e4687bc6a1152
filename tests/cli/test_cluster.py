"""twofold cluster on files as users have them."""

import importlib

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.metrics import adjusted_rand_score

from tests.cli.worlds import GROUP_OF, GROUPS, write_groups
from twofold import GaussianMixture, KMeans, load


@pytest.fixture
def groups(folder):
    return write_groups()


@pytest.mark.parametrize("method", ["kmeans", "mixture", "merged", "density", "ward"])
def test_groups_are_found_and_the_saved_model_takes_raw_rows(ask, groups, method):
    options = ["--method", method, "--drop", "kind", "-o", "l.csv", "-o", "l.parquet", "--save", "m.twofold"]
    found = ask("cluster", "groups.csv", *options)
    table = pl.read_csv("l.csv")
    own = pl.read_csv("groups.csv", n_rows=0).columns
    assert table.columns == [*own, "cluster", "confidence" if method in ("mixture", "merged") else "distance"]
    assert pl.read_parquet("l.parquet").columns == table.columns
    assert adjusted_rand_score(GROUP_OF, table["cluster"].fill_null(-1).to_list()) > (
        0.9 if method == "density" else 0.98
    )
    assert found["standardized"] and found["method"] == method and found["n_clusters"] == 3
    assert found["figures"]["silhouette"] > 0.5 and found["figures"]["stability"] > 0.9
    sizes = [part["rows"] for part in found["clusters"]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) + found["outliers"] == len(GROUP_OF)
    model = load("m.twofold")
    frame = pl.DataFrame(groups, schema=GROUPS)
    np.testing.assert_array_equal(model.predict(frame), table["cluster"].fill_null(-1).to_numpy())
    if method in ("mixture", "merged"):
        np.testing.assert_allclose(model.predict_proba(frame).max(axis=1), table["confidence"], atol=1e-8)
    center = groups[table["cluster"].to_numpy() == 0].mean(axis=0)
    np.testing.assert_allclose(list(found["clusters"][0]["center"].values()), center, rtol=1e-2)


def test_scaled_labels_are_those_of_kmeans_on_standardized_columns(ask, groups):
    ask("cluster", "groups.csv", "-k", "5", "--drop", "kind", "-o", "l.csv", "--save", "m.twofold")
    S = groups / groups.std(axis=0)
    want = KMeans(5, random_state=0).fit(S)
    table = pl.read_csv("l.csv")
    assert adjusted_rand_score(want.labels_, table["cluster"].to_list()) == 1.0
    np.testing.assert_allclose(table["distance"], want.transform(S).min(axis=1), rtol=1e-8)
    new = groups + np.random.default_rng(1).standard_normal(groups.shape) * groups.std(axis=0)
    kept = load("m.twofold").predict(pl.DataFrame(new, schema=GROUPS))
    assert adjusted_rand_score(want.predict(new / groups.std(axis=0)), kept) == 1.0


def test_profiles_are_in_standard_deviations(ask, groups):
    found = ask("cluster", "groups.csv", "--no-scale", "-k", "3", "-o", "l.csv")
    labels = pl.read_csv("l.csv")["cluster"].to_numpy()
    z = (groups[labels == 1].mean(axis=0) - groups.mean(axis=0)) / groups.std(axis=0, ddof=1)
    for name, value in found["clusters"][1]["differs"].items():
        assert value == pytest.approx(z[GROUPS.index(name)])
    assert not found["standardized"] and found["tried"] == []


def test_one_cloud_is_one_cluster(ask, people):
    found = ask("cluster", "people.csv")
    assert found["n_clusters"] == 1 and found["figures"] == {}
    assert any("do not fall into groups" in note for note in found["notes"])


def test_values_often_seen_are_not_clusters(ask, groups):
    coin = pl.Series("coin", np.random.default_rng(1).integers(2, size=len(groups)).astype(float))
    pl.DataFrame(groups, schema=GROUPS).with_columns(coin).write_csv("coin.csv")
    found = ask("cluster", "coin.csv")
    assert found["n_clusters"] == 3
    assert any("few values" in note for note in found["notes"])


def test_clusters_that_are_not_there_are_doubted(ask, folder):
    pl.DataFrame(np.random.default_rng(0).standard_normal((300, 5)), schema=list("abcde")).write_csv("cloud.csv")
    found = ask("cluster", "cloud.csv", "-k", "6")
    assert found["figures"]["stability"] < 0.7
    assert any("one cloud" in note for note in found["notes"])


def test_blanks_make_it_a_mixture(twofold, ask, groups):
    holes = np.random.default_rng(0).random(groups.shape) < 0.1
    X = np.where(holes, np.nan, groups)
    pl.DataFrame(X, schema=GROUPS).fill_nan(None).write_csv("holes.csv")
    found = ask("cluster", "holes.csv", "-o", "l.csv", "-o", "l.png", "--save", "m.twofold")
    assert found["method"] == "merged" and found["blank_cells"] == holes.sum()
    assert any("blank" in note for note in found["notes"])
    assert adjusted_rand_score(GROUP_OF, pl.read_csv("l.csv")["cluster"].to_list()) > 0.8
    assert isinstance(load("m.twofold"), GaussianMixture)
    refused = twofold("cluster", "holes.csv", "--method", "kmeans")
    assert refused.exit_code == 2 and "--method mixture" in refused.stderr


def test_sparse_tables(twofold, ask, folder):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.1, (180, 30)) + rng.poisson(4 * (np.arange(30) // 10 == GROUP_OF[:, None]))
    sp.save_npz("a.npz", sp.csr_array(X.astype(float)))
    ask("cluster", "a.npz", "-k", "3", "-o", "l.csv", "-o", "l.png")
    assert adjusted_rand_score(GROUP_OF, pl.read_csv("l.csv")["cluster"].to_list()) > 0.95
    for option in (["--method", "mixture"], ["--scale"]):
        assert twofold("cluster", "a.npz", *option).exit_code == 2


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
@pytest.mark.parametrize("options", [[], ["-k", "3"]])
def test_a_file_beyond_the_memory_budget_has_the_answer_of_a_table_in_memory(ask, folder, monkeypatch, ending, options):
    monkeypatch.setattr(importlib.import_module("twofold.analyses.cluster.analysis"), "SAMPLE", 500)
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=20_000)
    X = (rng.standard_normal((20_000, 16)) + 9 * truth[:, None]) * np.where(np.arange(16) < 8, 1.0, 100.0)
    np.save("a.npy", X)
    pl.DataFrame(X, schema=[f"x{j}" for j in range(16)]).write_parquet("a.parquet")
    streamed = ask(
        "--memory", "2MB", "cluster", f"a{ending}", *options, "--scale", "-o", "l.csv", "--save", "m.twofold"
    )
    whole = ask("cluster", f"a{ending}", *options, "--scale", "-o", "m.csv")
    assert any("streamed" in note for note in streamed["notes"]) and streamed["standardized"]
    own, other = (pl.read_csv(f"{name}.csv")["cluster"].to_list() for name in "lm")
    assert own == other and adjusted_rand_score(truth, own) == 1.0
    assert streamed["n_clusters"] == whole["n_clusters"] and streamed["method"] == whole["method"]
    for here, there in zip(streamed["clusters"], whole["clusters"], strict=True):
        assert here["center"] == pytest.approx(there["center"]) and here["rows"] == there["rows"]
    assert streamed["figures"] == pytest.approx(whole["figures"])
    new = X[:50] if ending == ".npy" else pl.DataFrame(X[:50], schema=[f"x{j}" for j in range(16)])
    assert load("m.twofold").predict(new).tolist() == own[:50]


def test_one_or_two_columns_can_be_drawn(twofold, groups):
    pl.DataFrame(groups[:, :1], schema=GROUPS[:1]).write_csv("one.csv")
    X = np.where(np.random.default_rng(0).random((len(groups), 2)) < 0.05, np.nan, groups[:, :2])
    pl.DataFrame(X, schema=GROUPS[:2]).fill_nan(None).write_csv("two.csv")
    for name in ("one", "two"):
        result = twofold("cluster", f"{name}.csv", "-o", f"{name}.png")
        assert result.exit_code == 0, result.stderr


def test_inspect_tells_the_sizes(ask, groups):
    for args in ([], ["--no-scale"], ["--method", "mixture"]):
        ask("cluster", "groups.csv", "-k", "3", "--drop", "kind", "--save", "m.twofold", "--force", *args)
        facts = ask("inspect", "m.twofold")
        shares = [part["share"] for part in facts["clusters"]]
        assert sum(shares) == pytest.approx(1) and len(shares) == 3
        if args != ["--no-scale"]:
            np.testing.assert_allclose(shares, [1 / 2, 1 / 3, 1 / 6], atol=0.02)
        assert set(facts["clusters"][0]["center"]) == set(GROUPS)


def test_a_coreset_costs_little_more_than_all_rows(twofold, ask, folder):
    rng = np.random.default_rng(0)
    X = (np.arange(12_000) % 3)[:, None] * 10 + rng.standard_normal((12_000, 3))
    np.save("many.npy", X)
    found = ask("cluster", "many.npy", "-k", 3, "--coreset", "--no-scale", "-o", "labels.csv")
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


def test_an_image_gives_its_colors(ask, flag):
    found = ask("cluster", "flag.png", "-k", 5, "-o", "same.png", "-o", "colors.csv", "-o", "page.html")
    assert [c["color"] for c in found["colors"]] == ["#c80000", "#ffffff", "#000080"]
    assert [c["share"] for c in found["colors"]] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert np.array_equal(np.asarray(Image.open("same.png")), flag)
    assert pl.read_csv("colors.csv")["blue"].to_list() == [0, 255, 128]
    two = ask("cluster", "flag.png", "-k", 2, "-o", "two.png")
    assert len(np.unique(np.asarray(Image.open("two.png")).reshape(-1, 3), axis=0)) == two["n_colors"] == 2
    assert two["figures"]["psnr"] > two["baseline"]["psnr"]


def test_what_is_transparent_has_no_color(twofold, ask, flag):
    alpha = np.full((12, 20), 255, np.uint8)
    alpha[:6] = 0
    Image.fromarray(np.dstack([flag, alpha])).save("flag.png")
    found = ask("cluster", "flag.png", "-o", "same.png")
    assert [c["color"] for c in found["colors"]] == ["#ffffff", "#000080"]
    assert np.array_equal(np.asarray(Image.open("same.png"))[..., 3], alpha)
    result = twofold("cluster", "flag.png", "--coreset")
    assert result.exit_code == 2 and "about tables" in result.stderr


def test_four_discs_are_four_groups(ask, folder):
    """BIC sees many Gaussians in evenly filled discs; merged where they overlap, they are four."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 1200), np.sqrt(rng.uniform(size=1200))
    truth = np.arange(1200) % 4
    X = 2.5 * np.column_stack([truth % 2, truth // 2]) + radius[:, None] * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    )
    np.save("discs.npy", X)
    found = ask("cluster", "discs.npy", "-o", "l.csv")
    assert found["n_clusters"] == 4
    assert adjusted_rand_score(truth, pl.read_csv("l.csv")["cluster"].to_list()) > 0.99
    by_kmeans = ask("cluster", "discs.npy", "--method", "kmeans", "-o", "k.csv")
    assert by_kmeans["n_clusters"] == 4 and by_kmeans["method"] == "kmeans"


@pytest.mark.parametrize("kind", ["one cloud", "noise", "heavy tails"])
def test_where_no_groups_are_one_is_found(ask, folder, kind):
    rng = np.random.default_rng(1)
    drawn = {
        "one cloud": rng.standard_normal((300, 2)) * [3, 1],
        "noise": rng.uniform(size=(300, 2)),
        "heavy tails": rng.standard_t(3, (300, 2)),
    }
    np.save("x.npy", drawn[kind])
    found = ask("cluster", "x.npy")
    assert found["n_clusters"] == 1 and any("do not fall into groups" in note for note in found["notes"])


def test_noise_of_dense_regions_is_called_outliers(ask, twofold, folder):
    rng = np.random.default_rng(0)
    angle, radius = np.linspace(0, 6 * np.pi, 400, endpoint=False), np.repeat([1.0, 2.0], [133, 267])
    rings = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.concatenate([rings + 0.03 * rng.standard_normal((400, 2)), [[9.0, 9.0], [-9.0, 9.0]]])
    np.save("x.npy", X)
    found = ask("cluster", "x.npy", "--method", "density", "-o", "l.csv", "--save", "m.twofold")
    cells = pl.read_csv("l.csv")["cluster"]
    assert found["outliers"] >= 2 and cells[-2:].to_list() == [None, None]
    assert adjusted_rand_score(np.repeat([0, 1, 2], [133, 267, 2]), cells.fill_null(-1).to_list()) > 0.95
    assert "outliers" in twofold("cluster", "x.npy", "--method", "density").stdout
    np.save("new.npy", np.array([[1.0, 0.0], [0.0, 2.0], [30.0, 0.0]]))
    assert twofold("apply", "m.twofold", "new.npy", "-o", "new.csv").exit_code == 0
    near, far, none = pl.read_csv("new.csv")["cluster"].to_list()
    assert {near, far} == {0, 1} and none is None
    refused = twofold("cluster", "x.npy", "--method", "density", "-k", "3")
    assert refused.exit_code == 2 and "leave -k out" in refused.stderr


def test_groups_are_told_in_the_units_of_the_table(ask, twofold, folder):
    """Penguins-like: grams and millimeters, a shuffled running number, a species that is not fitted."""
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 3
    frame = pl.DataFrame(
        {
            "no": rng.permutation(300) + 1001,
            "mass_g": 3700 + 900 * (kind == 2) + rng.normal(0, 150, 300),
            "sex": np.array(["female", "male"])[rng.integers(2, size=300)],
            "bill_mm": 38 + 10 * (kind > 0) + rng.normal(0, 0.9, 300),
            "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[kind],
        }
    )
    frame.write_csv("birds.csv")
    found = ask("cluster", "birds.csv", "--drop", "species", "-o", "l.csv")
    labels = pl.read_csv("l.csv")
    assert labels.columns[: frame.width] == frame.columns
    assert adjusted_rand_score(kind, labels["cluster"].to_list()) > 0.95
    for part in found["clusters"]:
        own = labels.filter(pl.col("cluster") == part["cluster"])
        assert part["center"]["mass_g"] == pytest.approx(own["mass_g"].mean())
        (share,) = [value for name, value in part["not_fitted"].items() if name.startswith("species = ")]
        assert share > 0.95 or share < 0.05
    text = " ".join(twofold("cluster", "birds.csv", "--drop", "species").stdout.split())
    heavy = frame.filter(pl.col("species") == "Gentoo")["mass_g"].mean()
    assert "mass_g" in text and f"{heavy:,.0f}"[:3] in text and "columns that were not fitted" in text
    assert " sd" not in text
