"""Dates, files and sentences as people write them, and words that tell nothing."""

import textwrap
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from twofold.analyses.topics.stop_words import spread_evenly
from twofold.io.dates import in_periods, to_days
from twofold.io.documents import read_documents
from twofold.text.snippets import cut, snippet


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["2020-01-31", "2020-02-01T10:30", "NA"], ["2020-01-31", "2020-02-01", "NaT"]),
        (["01/02/2020", "13/02/2020", ""], ["2020-02-01", "2020-02-13", "NaT"]),
        (["01/02/2020", "02/13/2020", ""], ["2020-01-02", "2020-02-13", "NaT"]),
        (["31.12.1999", "1.1.2000"], ["1999-12-31", "2000-01-01"]),
        (["Mon, 3 Jan 2011 10:00:00 +0100", "4 Feb 2011"], ["2011-01-03", "2011-02-04"]),
        (["March 5, 2020", "April 1, 2020"], ["2020-03-05", "2020-04-01"]),
        (["1999", "2001"], ["1999-01-01", "2001-01-01"]),
        (["1577836800", "1580515200"], ["2020-01-01", "2020-02-01"]),
        (["2020-05", "2020-06"], ["2020-05-01", "2020-06-01"]),
        (["20200531", "20200601"], ["2020-05-31", "2020-06-01"]),
        (["soon", "later"], ["NaT", "NaT"]),
    ],
)
def test_dates_as_people_write_them(cells, days):
    np.testing.assert_array_equal(to_days(pl.Series(cells))[0], np.array(days, dtype="datetime64[D]"))


@pytest.mark.parametrize(
    ("last", "name"),
    [("2020-01-20", "day"), ("2020-06-01", "week"), ("2022-01-01", "month"), ("2026-01-01", "quarter"),
     ("2050-01-01", "year"), ("2300-01-01", "decade")],
)  # fmt: skip
def test_periods_are_few_and_hold_their_dates(last, name):
    days = np.arange("2020-01-01", last, dtype="datetime64[D]")
    days = np.append(days[:: max(1, len(days) // 500)], np.datetime64("NaT"))
    starts, period, found = in_periods(days)
    assert found == name and len(starts) <= 40 and period[-1] == -1
    ends = np.append(starts[1:], np.datetime64("9999-01-01"))
    assert ((starts[period[:-1]] <= days[:-1]) & (days[:-1] < ends[period[:-1]])).all()
    assert (np.diff(starts.astype(int)) > 0).all()


def test_a_snippet_is_the_sentence_about_the_topic():
    text = "We met on Monday. The violin and the cello played a sonata! Then it rained, and we left early."
    assert snippet(text, {"violin": 1.0, "sonata": 0.5}, 80) == "The violin and the cello played a sonata!"
    assert len(snippet(text, {"rained": 1.0}, 20)) <= 20
    assert cut("abcdef", 6) == "abcdef" and cut("hello there world", 12) == "hello there…"


def test_hidden_and_foreign_files_are_not_documents(folder):
    Path("d/.git").mkdir(parents=True)
    Path("d/.git/config").write_text("secret")
    for name in ("a.txt", "b.md", "message.1034", "README"):
        Path("d", name).write_text(f"text of {name}")
    Path("d/photo.jpg").write_bytes(b"\xff\xd8")
    found = read_documents(["d"], None, None, None)
    assert sorted(found.ids.to_list()) == ["README", "a.txt", "b.md", "message.1034"]
    assert any("1 .jpg" in note for note in found.notes)


def test_words_dealt_at_random_are_told_from_words_in_bursts():
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 200, 2000)
    even = rng.poisson(np.outer(lengths, [0.01, 0.03, 0.1]))
    burst = rng.poisson(np.outer(lengths, [0.04, 0.1]) * 4) * (rng.random((2000, 2)) < 0.25)
    rest = lengths[:, None] - np.minimum(lengths[:, None] - 1, even.sum(1, keepdims=True) + burst.sum(1, keepdims=True))
    X = sp.csr_array(np.hstack([even, burst, np.eye(2000, 50, dtype=int) * rest]))
    assert spread_evenly(X, 0.85, 0.05, 20)[:5].tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("width", [40, 72])
def test_wrapped_prose_is_told_from_lines_with_gaps(folder, width):
    rng = np.random.default_rng(0)
    words = ["a", "word", "sentence", "paragraph", "of", "the", "reader"]
    prose = [" ".join(rng.choice(words, size)) for size in rng.integers(60, 150, 8)]
    Path("prose.txt").write_text("\n\n".join(textwrap.fill(one, width) for one in prose))
    assert read_documents(["prose.txt"]).texts == prose
    lines = [" ".join(rng.choice(words, size)) for size in rng.integers(1, 15, 90)]
    gaps = ["\n" + line if i % 11 == 5 else line for i, line in enumerate(lines)]
    Path("lines.txt").write_text("\n".join(gaps))
    assert read_documents(["lines.txt"]).texts == lines
