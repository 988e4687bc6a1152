"""A saved model on new rows says what the analysis said."""

import numpy as np
import polars as pl
import pytest

import twofold
from twofold import analyses
from twofold.analyses.common.tables import as_table
from twofold.core.checks import InputError, ModelFileError


@pytest.mark.parametrize(
    ("verb", "file", "options"),
    [
        ("reduce", "groups.csv", {}),
        ("reduce", "holes.csv", {}),
        ("cluster", "groups.csv", {"n_clusters": 2}),
        ("cluster", "holes.csv", {"n_clusters": 2}),
        ("complete", "holes.csv", {}),
    ],
)
def test_the_rows_of_the_fit_get_the_same_again(groups, verb, file, options):
    answer = getattr(analyses, verb)(file, **options)
    answer.save("m.twofold")
    found = analyses.apply("m.twofold", file)
    own = [c for c in answer.table.columns if answer.table[c].dtype.is_numeric()]
    got = found.table.select(own).to_numpy()
    np.testing.assert_allclose(got, answer.table.select(own).to_numpy(), rtol=1e-6, atol=1e-6)
    assert found.table["name"].to_list() == answer.table["name"].to_list()
    space = {}
    exec(found.code, space)
    assert space["answer"].table.equals(found.table)


def test_columns_are_found_by_name(groups):
    analyses.reduce("groups.csv").save("m.twofold")
    frame = pl.read_csv("groups.csv")
    want = analyses.apply("m.twofold", frame).table
    moved = frame.select("income", "name", "age", pl.lit(1.5).alias("new"), "weight", "height")
    found = analyses.apply("m.twofold", moved)
    assert found.table.select(want.columns).equals(want) and any('"new" not used' in note for note in found.notes)
    with pytest.raises(InputError, match='no column of numbers "age"'):
        analyses.apply("m.twofold", frame.drop("age"))


def test_a_classifier_labels_new_rows_and_is_measured_where_labels_are_known(groups):
    y = np.where(np.arange(80) % 2, "late", "early")
    frame = pl.read_csv("groups.csv").drop("name")
    model = twofold.PPCAClassifier(1, random_state=0).fit(frame[:60], y[:60])
    found = analyses.apply(model, frame[60:])
    assert found.what == "labels" and found.table.columns == [*frame.columns, "label", "confidence"]
    assert (found.table["label"].to_numpy() == y[60:]).mean() == 1.0
    model.target_name_ = "kind"
    known = analyses.apply(model, frame[60:].with_columns(pl.Series("kind", y[60:])))
    assert known.figures["accuracy"] == 1.0 and known.baseline["accuracy"] == 0.5


def test_blanks_are_named_where_a_model_cannot_use_them(groups):
    analyses.cluster("groups.csv", 2).save("m.twofold")
    with pytest.raises(InputError, match=r"holes.csv, row \d+, column .* is blank, which KMeans cannot use"):
        analyses.apply("m.twofold", "holes.csv")


def test_what_a_model_cannot_do_is_said_with_what_it_can(groups):
    model = analyses.cluster("groups.csv", 2).model
    with pytest.raises(InputError, match="gives no scores"):
        analyses.apply(model, "groups.csv", what="scores")
    scores = analyses.apply(twofold.PPCA(2).fit(groups), groups, what="scores")
    assert scores.table.columns == ["log_density"] and len(scores.table) == 80
    with pytest.raises(ModelFileError, match="does not exist"):
        analyses.apply("missing.twofold", "groups.csv")


def test_levels_get_the_codes_of_the_fit_and_new_ones_are_said(groups):
    kinds = np.array(["b", "a", "c"])[np.arange(80) % 3]
    frame = pl.DataFrame({"kind": kinds, "flag": np.arange(80) % 2, "x": groups[:, 0], "y": groups[:, 1]})
    table = as_table(frame)
    X, columns = table.coded()
    model = twofold.PPCA(1).fit(pl.DataFrame(X, schema=[column.name for column in columns]))
    model.schema_ = {
        "coded": True,
        "columns": [[c.name, c.role, list(c.levels)] for c in columns if c.role != "number"],
    }
    some = frame.filter(pl.col("kind") == "c", pl.col("flag") == 1)  # alone, "c" would get the code 0
    found = analyses.apply(model, some, what="codes")
    at = ((kinds == "c") & (np.arange(80) % 2 == 1)).nonzero()[0]
    np.testing.assert_allclose(
        found.table["code1"], model.transform(pl.DataFrame(X[at], schema=model.feature_names_in_.tolist()))[:, 0]
    )
    new = analyses.apply(model, some.with_columns(kind=pl.lit("z")), what="codes")
    assert any('"kind": "z" not seen in the fit' in note for note in new.notes)
    filled = analyses.apply(model, some.with_columns(kind=pl.lit(None, dtype=pl.String)), what="filled").table
    assert filled.columns == some.columns and set(filled["kind"]) <= {"a", "b", "c"}
    with pytest.raises(InputError, match='no column "kind"'):
        analyses.apply(model, some.drop("kind"), what="codes")
