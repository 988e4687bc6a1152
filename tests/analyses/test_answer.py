"""Every analysis gives an answer that can be shown, kept and given again."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from twofold import analyses, load
from twofold.analyses.common.answer import Answer
from twofold.core.checks import InputError

CALLS = {
    "reduce": lambda **o: analyses.reduce("groups.csv", **o),
    "reduce, blanks": lambda **o: analyses.reduce("holes.csv", **o),
    "cluster": lambda **o: analyses.cluster("groups.csv", **o),
    "cluster, blanks": lambda **o: analyses.cluster("holes.csv", **o),
    "complete": lambda **o: analyses.complete("holes.csv", **o),
}


@pytest.fixture(params=CALLS)
def answer(request, groups):
    return CALLS[request.param]()


def test_the_code_gives_the_same_answer(answer):
    space = {}
    exec(answer.code, space)
    again = space["answer"]
    assert again.figures == answer.figures and again.baseline == answer.baseline and answer.figures
    assert again.table.equals(answer.table)


def test_an_answer_is_shown_everywhere(answer, capsys):
    assert isinstance(answer, Answer)
    text, page, part = repr(answer), answer.to_html(), answer._repr_html_()
    for line in (answer.title, *answer.lines()):
        assert line in " ".join(text.split()) and line.split("<")[0] in page.replace("&#39;", "'")
    assert part.startswith("<div") and "base64" not in part
    json.dumps(answer.to_dict(), allow_nan=False)


def test_an_answer_is_kept_by_the_endings_of_files(answer, folder):
    answer.save("a.csv", "a.parquet", "a.html", "a.png", "a.twofold")
    assert pl.read_parquet("a.parquet").equals(answer.table)
    assert type(load("a.twofold")) is type(answer.model)
    before = (folder / "a.csv").read_bytes()
    with pytest.raises(InputError, match="exists"):
        answer.save("b.csv", "a.csv")
    assert not (folder / "b.csv").exists() and (folder / "a.csv").read_bytes() == before
    answer.save("a.csv", force=True)
    with pytest.raises(InputError, match="end the name"):
        answer.save("a.doc")


@pytest.mark.parametrize("verb", ["reduce", "cluster", "complete"])
def test_files_frames_and_arrays_are_the_same_table(groups, verb):
    analyze = getattr(analyses, verb)
    file = "holes.csv" if verb == "complete" else "groups.csv"
    frame = pl.read_csv(file)
    found = [analyze(file), analyze(frame), analyze(frame.to_pandas())]
    assert all(one.figures == found[0].figures for one in found)
    bare = analyze(frame.drop("name").to_numpy(), **({} if verb == "complete" else {"scale": True}))
    assert found[0].table.columns[: frame.width] == frame.columns
    numbers = [c for c in found[0].table.columns if found[0].table[c].dtype.is_numeric()][-bare.table.width :]
    if verb != "cluster":
        np.testing.assert_allclose(bare.table.to_numpy(), found[0].table.select(numbers).to_numpy(), rtol=1e-6)


def test_importing_the_analyses_is_light():
    heavy = "{'sklearn', 'numba', 'matplotlib', 'torch', 'dask'}"
    code = f"import sys, twofold.analyses; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
