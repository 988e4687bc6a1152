"""twofold inspect explains good files and refuses others in one line."""

from pathlib import Path

import numpy as np

from tests.cli.worlds import make_numbers
from twofold import PCA, PPCA, GaussianMixture, KMeans, PPCAClassifier


def test_a_model_is_explained(twofold, people):
    assert twofold("reduce", "people.csv", "--drop", "group", "--save", "m.twofold", "-k", 3).exit_code == 0
    result = twofold("inspect", "m.twofold")
    assert result.exit_code == 0, result.stderr
    for text in ("PCA", "n_components", "float64 (3, 5)", "history", "sweep", "components", "income", "█", "kB"):
        assert text in result.stdout
    assert "fitted to 5 columns (height, weight, age, income, score) by twofold reduce" in result.stdout
    assert "twofold apply m.twofold NEW: codes of new rows" in result.stdout
    assert twofold("apply", "m.twofold", "people.csv").exit_code == 0


def test_json_has_what_the_model_has(ask, folder):
    model = PPCA(2, random_state=0).fit(make_numbers(100, blanks=0.1))
    model.save("m.twofold")
    facts = ask("inspect", "m.twofold")
    assert facts["class"] == "PPCA" and facts["params"]["n_components"] == 2
    assert facts["history"]["sweeps"] == model.n_iter_
    assert facts["history"]["objective_last"] == model.history_["objective"][-1]
    assert facts["bytes"] == Path("m.twofold").stat().st_size
    total = model.explained_variance_.sum() + 3 * model.noise_variance_
    shares = [part["share"] for part in facts["components"]]
    np.testing.assert_allclose(shares, model.explained_variance_ / total)


def test_other_files_are_refused_in_one_line(twofold, people):
    PCA(2).fit(people).save("m.twofold")
    whole = Path("m.twofold").read_bytes()
    Path("cut.twofold").write_bytes(whole[:-40])
    Path("empty.twofold").write_bytes(b"")
    Path("damaged.twofold").write_bytes(whole[:8] + b"#" * 20 + whole[28:])
    for name in ("cut.twofold", "empty.twofold", "damaged.twofold", "people.csv", "missing.twofold"):
        for extra in ((), ("--json",)):
            result = twofold("inspect", name, *extra)
            assert result.exit_code == 2, name
            assert result.stdout == "" and len(result.stderr.splitlines()) == 1
            assert name in result.stderr
    assert "m.twofold" in twofold("inspect", "mm.twofold").stderr


def test_what_can_be_done_follows_from_the_model(ask, folder):
    X = np.random.default_rng(0).normal(size=(60, 3))
    KMeans(2, random_state=0).fit(X).save("k.twofold")
    GaussianMixture(2, random_state=0).fit(X).save("g.twofold")
    PPCAClassifier(1).fit(X, np.repeat(["low", "high"], 30)).save("c.twofold")
    uses = {name: ask("inspect", f"{name}.twofold") for name in "kgc"}
    assert uses["k"]["uses"] == ["twofold apply k.twofold NEW: labels of new rows"]
    assert "twofold generate g.twofold: draw new rows" in uses["g"]["uses"]
    assert "predicts one of 2 classes: high, low" in uses["c"]["in_words"]
