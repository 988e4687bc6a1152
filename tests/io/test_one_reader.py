"""Estimators and commands read alike: the same function, and so the same rows, whatever the file is like."""

import bz2
import gzip
import io
import sys
import textwrap
import zipfile

import numpy as np
import polars as pl
import pytest
import zstandard

from tests.cli.helpers import run_twofold
from twofold import BagOfWords, InputError, Recommender, SkipGram, analyses, datasets, load
from twofold.analyses.common.corpus import read_corpus
from twofold.completion.biases import Biases
from twofold.completion.ratings_table import triples
from twofold.io.documents import read_documents
from twofold.io.ratings import read_ratings
from twofold.text.documents import documents

RATINGS = "user,item,rating\nann,x,5\nbob,y,3\nann,y,4\n"
ROWS = [("ann", "x", 5.0), ("bob", "y", 3.0), ("ann", "y", 4.0)]
TEXTS = ["Köln liegt am Rhein.", "Der Zug fährt nach Bonn.", "Im Sommer blüht der Garten."]


def zipped(data, name="inside.csv"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, data)
        archive.writestr("__MACOSX/._inside.csv", b"\0")
    return out.getvalue()


PACKINGS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
    ".zip": zipped,
}

# ---- ratings ---------------------------------------------------------------------------------------------------------

AWKWARD = {
    "plain": (RATINGS, ROWS),
    "byte order mark": ("\ufeff" + RATINGS, ROWS),
    "CRLF": (RATINGS.replace("\n", "\r\n"), ROWS),
    "semicolons and decimal commas": ("user;item;rating\nann;x;5,0\nbob;y;3\nann;y;4\n", ROWS),
    "quoted delimiters": ('user,item,rating\n"a, b",x,5\nc,"y ""z""",3\n', [("a, b", "x", 5.0), ("c", 'y "z"', 3.0)]),
    "blank ratings": (RATINGS + "bob,x,\nann,z,NA\n", ROWS),
    "no header": ("ann,x,5\nbob,y,3\nann,y,4\n", ROWS),
    "other order": ("stars,movie_id,userId\n5,x,ann\n3,y,bob\n4,y,ann\n", ROWS),
    "trailing empty field": (RATINGS.replace("\n", ",\n"), ROWS),
    "spaces": (RATINGS.replace(",", ", "), ROWS),
    "duplicates": (RATINGS + "ann,x,1\n", [*ROWS, ("ann", "x", 1.0)]),
    "numbers": ("user,item,rating\n7,10,5\n8,11,3\n", [(7, 10, 5.0), (8, 11, 3.0)]),
    "leading zeros": ("user,item,rating\n007,10,5\n8,11,3\n", [("007", 10, 5.0), ("8", 11, 3.0)]),
    "MovieLens": ("1::10::5::978300760\n2::20::3::978302109\n", [(1, 10, 5.0), (2, 20, 3.0)]),
    "latin-1": ("user,item,rating\nJürgen,Käse,5\nEva,Öl,3\n".encode("latin-1"),
                [("Jürgen", "Käse", 5.0), ("Eva", "Öl", 3.0)]),
    "UTF-16": (RATINGS.encode("utf-16"), ROWS),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("name", AWKWARD)
def test_ratings_are_the_same_for_estimator_and_command(folder, name):
    text, rows = AWKWARD[name]
    (folder / "r.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    for found in (triples("r.csv"), triples(folder / "r.csv"), read_ratings(["r.csv"])):
        assert list(zip(found.user, found.item, found.rating, strict=True)) == rows
        assert found.notes  # which column is which is always said
    with_columns = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    own, other = (Recommender(Biases()).fit(form) for form in ("r.csv", with_columns))
    assert own.users_.tolist() == other.users_.tolist() and own.items_.tolist() == other.items_.tolist()
    assert (own.ratings_ != other.ratings_).nnz == 0


@pytest.mark.parametrize("ending", PACKINGS)
def test_packing_does_not_matter(folder, ending):
    (folder / f"r.csv{ending}").write_bytes(PACKINGS[ending](RATINGS.encode()))
    found = read_ratings(f"r.csv{ending}")
    assert list(zip(found.user, found.item, found.rating, strict=True)) == ROWS
    (folder / f"t.txt{ending}").write_bytes(PACKINGS[ending]("\n".join(TEXTS).encode(), *["t.txt"][: ending == ".zip"]))
    assert list(documents(f"t.txt{ending}")) == read_documents([f"t.txt{ending}"]).texts == TEXTS
    table = analyses.cluster(f"r.csv{ending}", 2).source if ending == ".zst" else None
    assert table in (None, f"r.csv{ending}")


def test_an_archive_of_several_files_names_them(folder):
    with zipfile.ZipFile("several.zip", "w") as archive:
        archive.writestr("a.csv", RATINGS)
        archive.writestr("b/c.csv", "user,item\n1,2\n")
    with pytest.raises(InputError, match=r"2 files.*several\.zip::FILE, of: a\.csv, b/c\.csv"):
        read_ratings("several.zip")
    found = read_ratings("several.zip::a.csv")
    assert list(zip(found.user, found.item, found.rating, strict=True)) == ROWS


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst", ".zip"])
def test_a_damaged_file_is_named(folder, ending):
    rng = np.random.default_rng(0)
    raw = PACKINGS[ending]("\n".join(f"{i},{j},{k}" for i, j, k in rng.integers(0, 10**6, (5000, 3))).encode())
    (folder / f"r.csv{ending}").write_bytes(raw[: len(raw) // 2])
    for read in (read_ratings, BagOfWords().fit):
        with pytest.raises(InputError, match=rf"r\.csv\{ending} is a damaged") as caught:
            read(f"r.csv{ending}")
        assert len(str(caught.value).splitlines()) == 1


def test_a_recommender_is_the_same_from_a_path_and_from_the_command(folder):
    frame = datasets.ratings(n_users=60, n_items=30, seed=1).ratings.with_columns(pl.col("rating").cast(pl.String))
    blank = pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("")).otherwise(pl.col("rating")).alias("stars")
    frame.select("rating", "item", "user").select(blank, "item", "user").write_csv("r.csv", separator=";")
    with pytest.warns(UserWarning, match="without a rating left out"):
        own = Recommender(random_state=0).fit("r.csv")
    result = run_twofold("recommend", "r.csv", "--save", "m.twofold", "--quiet")
    assert result.exit_code == 0, result.stderr
    saved = load("m.twofold")
    assert saved.users_.tolist() == own.users_.tolist() and saved.items_.tolist() == own.items_.tolist()
    assert (saved.ratings_ != own.ratings_).nnz == 0 and saved.columns_ == own.columns_
    assert saved.choice_ == own.choice_ and saved.recommend(3).equals(own.recommend(3))


# ---- documents -------------------------------------------------------------------------------------------------------


def write_folder(folder):
    """Text files in three encodings, an empty one, and much that is no text."""
    (folder / "d" / "sub").mkdir(parents=True)
    (folder / "d" / ".hidden").mkdir()
    (folder / "d" / ".hidden" / "a.txt").write_text("secret")
    (folder / "d" / "1.txt").write_bytes(TEXTS[0].encode("utf-16"))
    (folder / "d" / "2.md").write_bytes(TEXTS[1].encode("latin-1"))
    (folder / "d" / "sub" / "3").write_bytes(b"\xef\xbb\xbf" + TEXTS[2].encode())
    (folder / "d" / "4.txt.gz").write_bytes(gzip.compress(TEXTS[0].encode()))
    (folder / "d" / "empty.txt").write_text("")
    (folder / "d" / "photo.jpg").write_bytes(b"\xff\xd8")
    (folder / "d" / "table.csv").write_text("a,b\n1,2\n")
    (folder / "d" / "program.txt").write_bytes(bytes(range(32)) * 9)
    return [TEXTS[0], TEXTS[1], TEXTS[0], "", TEXTS[2]]


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_folder_is_the_same_for_estimator_and_command(folder):
    want = write_folder(folder)
    found = read_documents(["d"])
    assert found.texts == want == list(documents("d"))
    assert found.ids.to_list() == ["1.txt", "2.md", "4.txt.gz", "empty.txt", "sub/3"]
    assert any("1 .csv, 1 .jpg" in note for note in found.notes) and any("program.txt" in note for note in found.notes)
    assert (BagOfWords().fit_transform("d") != BagOfWords().fit_transform(want)).nnz == 0
    with pytest.warns(UserWarning, match="left out in d"):
        BagOfWords().fit("d")


LINES = {
    "lines": ("\n".join(TEXTS), TEXTS),
    "CRLF and a mark": ("\ufeff" + "\r\n".join(TEXTS) + "\r\n", TEXTS),
    "CR alone": ("\r".join(TEXTS), TEXTS),
    "blank lines": ("\n\n".join(TEXTS) + "\n\n", TEXTS),
    "wrapped": ("\n\n".join(text.replace(" ", "\n") for text in TEXTS), TEXTS),
    "UTF-16": ("\n".join(TEXTS).encode("utf-16"), TEXTS),
    "UTF-16 without a mark": ("\n".join(TEXTS).encode("utf-16-be"), TEXTS),
    "latin-1": ("\n".join(TEXTS).encode("latin-1"), TEXTS),
    "Cyrillic": ("Все счастливые семьи похожи.\nКаждая несчастлива по-своему.".encode("cp1251"),
                 ["Все счастливые семьи похожи.", "Каждая несчастлива по-своему."]),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_text_file_is_the_same_for_estimator_and_command(folder, monkeypatch, name):
    text, want = LINES[name]
    (folder / "t.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert read_documents(["t.txt"]).texts == want
    assert [one.strip() for one in documents("t.txt")] == want
    assert [one.strip() for one in read_corpus(["t.txt"], None).lines if one.strip()] == want
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "t.txt").read_bytes())))
    assert read_documents(["-"]).texts == want


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_of_texts_is_the_same_for_estimator_and_command(folder, ending):
    frame = pl.DataFrame({"id": [3, 1, 2], "body": TEXTS, "year": [2001, 2002, 2003]})
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](f"t.{ending}")
    assert list(documents(f"t.{ending}")) == read_documents([f"t.{ending}"]).texts == TEXTS
    assert (BagOfWords().fit_transform(f"t.{ending}") != BagOfWords().fit_transform(TEXTS)).nnz == 0


def test_topics_of_a_folder_count_the_words_that_a_bag_counts(folder):
    text = datasets.docstrings(60).documents
    (folder / "d").mkdir()
    for i, one in enumerate(text):
        (folder / "d" / f"{i:02d}.txt").write_bytes(one.encode("utf-16" if i % 3 == 0 else "utf-8"))
    (folder / "d" / "notes.pdf").write_bytes(b"%PDF")
    result = run_twofold("topics", "d", "-k", "2", "-o", "out.csv", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert pl.read_csv("out.csv")["file"].to_list() == [f"{i:02d}.txt" for i in range(60)]
    words = pl.read_csv("out_words.csv")
    with pytest.warns(UserWarning, match=r"1 \.pdf"):
        bag = BagOfWords().fit("d")
    counts = np.asarray(bag.transform(text).sum(axis=0)).ravel()
    own = dict(zip(bag.vocabulary_.tolist(), counts.tolist(), strict=True))
    assert all(own[word] == count for word, count in words.select("word", "count").iter_rows())


def test_word_vectors_are_the_same_from_lines_paragraphs_and_folders(folder):
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{n}" for n in rng.integers(0, 30, 12)) for _ in range(60)]
    (folder / "lines.txt").write_text("\n".join(lines))
    (folder / "wrapped.txt").write_text("\n\n".join(textwrap.fill(line, 20) for line in lines))
    (folder / "d").mkdir()
    (folder / "d" / "a.txt").write_text("\n".join(lines[:30]))
    (folder / "d" / "b.txt.zst").write_bytes(zstandard.compress("\n".join(lines[30:]).encode()))
    options = {"n_components": 4, "min_count": 1, "max_iter": 1, "random_state": 0}
    want = SkipGram(**options).fit(lines).vectors_.vectors_
    for path in ("lines.txt", "wrapped.txt", "d"):
        np.testing.assert_array_equal(SkipGram(**options).fit(path).vectors_.vectors_, want)
