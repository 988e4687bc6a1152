"""Texts in files, cut into blocks: the same texts, words and counts, on any machine."""

import gzip
import json
import threading
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import twofold
from tests.contract.helpers import differences
from twofold import BagOfWords, GloVe, InputError, PMIEmbedding
from twofold.analyses.common.corpus import hold_out
from twofold.core.callbacks import _Quiet
from twofold.io import documents
from twofold.io.documents import find_documents
from twofold.text.vocabulary import Vocabulary
from twofold.words.cooccurrence.cooccurrence import Cooccurrence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LETTERS = np.array(list("aeinorstéß"))
WORDS = ["".join(LETTERS[[i % 10, i // 10 % 10, i // 100]]) for i in range(400)]


def lines(n, seed):
    """Lines of a few words each, some frequent; now and then a blank one, or one with nothing but white space."""
    rng = np.random.default_rng(seed)
    some = [" ".join(WORDS[i] for i in np.minimum(rng.zipf(1.4, rng.integers(3, 15)), 400) - 1) for _ in range(n)]
    some[n // 3], some[n // 2] = "", " \t "
    return some


def paragraphs(n, seed):
    rng = np.random.default_rng(seed)
    parts = [lines(6, seed + i)[: rng.integers(1, 3)] for i in range(n)]
    return ("\n" * 2).join("\n".join(part) for part in parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus of every kind."""
    root = tmp_path_factory.mktemp("corpus")
    (root / "texts").mkdir()
    for i in range(5):
        (root / "texts" / f"{i}.txt").write_bytes(["\n", "\r\n"][i % 2].join(lines(40 + i, i)).encode())
    (root / "texts" / "packed.txt.gz").write_bytes(gzip.compress("\n".join(lines(50, 9)).encode()))
    (root / "texts" / "wide.txt").write_bytes("\n".join(lines(30, 11)).encode("utf-16"))
    (root / "one.txt").write_bytes(b"\xef\xbb\xbf" + "\n".join(lines(200, 5)).encode())
    (root / "long.txt").write_text(" ".join(lines(200, 6)) + "\n" + "\n".join(lines(20, 7)), encoding="utf-8")
    (root / "old.txt").write_bytes("\n".join(lines(100, 8)).encode("cp1252"))
    (root / "wrapped.txt").write_text(paragraphs(80, 20), encoding="utf-8")
    rows = [{"id": i, "text": text} for i, text in enumerate(lines(150, 12))]
    (root / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    (root / "rows.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (root / "tables").mkdir()
    for i in range(3):
        texts = lines(60, 30 + i)
        pl.DataFrame({"n": range(60), "text": texts}).write_parquet(root / "tables" / f"{i}.parquet", row_group_size=17)
    (root / "sheets").mkdir()
    for i in range(3):
        pl.DataFrame({"n": range(60), "text": lines(60, 40 + i)}).write_csv(root / "sheets" / f"{i}.csv")
    return root


CORPORA = ["texts", "texts/*.txt", "one.txt", "long.txt", "old.txt", "wrapped.txt", "tables", "sheets"]
CORPORA += ["rows.jsonl", "rows.jsonl.gz"]
every = pytest.mark.parametrize("name", CORPORA)


@pytest.fixture
def many_blocks(monkeypatch):
    monkeypatch.setattr(documents, "BLOCK_BYTES", 700)


@pytest.fixture
def some_blocks(monkeypatch):
    monkeypatch.setattr(documents, "BLOCK_BYTES", 3000)


@every
@pytest.mark.parametrize("split", [False, True])
def test_blocks_hold_every_text_once_and_in_order(folder, name, split, many_blocks):
    whole = find_documents([str(folder / name)], split=split, stream=True)
    blocks = whole.blocks()
    assert len(blocks) > 1 or name in ("rows.jsonl.gz",)
    assert [text for block in blocks for text in block] == list(whole)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "tables", "sheets"])
def test_rows_that_are_streamed_are_those_of_the_table(folder, name):
    streamed, read = (find_documents([str(folder / name)], stream=stream) for stream in (True, False))
    assert list(streamed) == read.texts


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10**6])
def test_lines_are_cut_at_any_size(folder, size):
    for name in ("one.txt", "wrapped.txt"):
        whole = find_documents([str(folder / name)], split=True)
        assert [text for block in whole.blocks(size) for text in block] == list(whole)


# ---- models ----------------------------------------------------------------------------------------------------


def models(path, to=None):
    """Everything that counts, from one corpus."""
    bag = BagOfWords(min_df=2, max_df=0.9, stem="english", max_features=200)
    yield bag.fit(path)
    yield bag.fit_transform(path)
    yield BagOfWords(vocabulary=["aaa", "eaa", "iaa", "none"], stop_words=None).fit(path)
    yield Vocabulary(min_count=2).fit(path)
    yield Vocabulary(max_size=30).fit(path)
    yield Cooccurrence(window=3, min_count=2).fit(path)
    yield Cooccurrence(window=30, min_count=2, symmetric=False).fit(path)
    yield Cooccurrence(vocabulary=["eaa", "aaa", "none"], weighting="flat").fit(path)


def same(a, b):
    if hasattr(a, "indptr"):
        pairs = [(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr")]
        return all(np.array_equal(x, y) and x.dtype == y.dtype for x, y in pairs)
    return not [found for found in differences(a, b) if "words_per_second" not in found]  # a clock


@pytest.fixture(scope="module")
def get_models(folder):
    made = {}

    def get(name):
        if name not in made:
            made[name] = list(models(str(folder / name)))
        return made[name]

    return get


@pytest.mark.parametrize("name", ["texts", "wrapped.txt", "rows.jsonl", "tables"])
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_workers_count_what_one_machine_counts(folder, name, workers, get_models, clusters, some_blocks):
    distributed = pytest.importorskip("distributed")
    wanted = get_models(name)
    with distributed.Client(clusters(workers)):
        for one, other in zip(wanted, models(str(folder / name)), strict=True):
            assert same(one, other), one


def test_collections_are_counted_like_lists(clusters, folder):
    bag, frame = pytest.importorskip("dask.bag"), pytest.importorskip("dask.dataframe")
    import pandas as pd
    from distributed import Client

    texts = lines(60, 1)
    wanted = list(models(texts))
    for lazy in (bag.from_sequence(texts, npartitions=4), frame.from_pandas(pd.Series(texts), npartitions=3)):
        assert same(wanted[3], Vocabulary(min_count=2).fit(lazy))
        with Client(clusters(3)):
            assert all(same(one, other) for one, other in zip(wanted, models(lazy), strict=True))


def test_vectors_are_the_same(folder, clusters, some_blocks, tmp_path):
    distributed = pytest.importorskip("distributed")
    made = {
        "glove": lambda: GloVe(4, min_count=2, max_iter=3, random_state=0),
        "all": lambda: GloVe(4, min_count=2, weighting="all", random_state=0),
        "pmi": lambda: PMIEmbedding(4, min_count=2, random_state=0),
    }
    path = str(folder / "texts")
    wanted = {name: make().fit(path) for name, make in made.items()}
    with distributed.Client(clusters(3)):
        pairs = Cooccurrence(window=5, min_count=2).fit(path, to=tmp_path / "pairs.csr")
        assert same(wanted["pmi"], made["pmi"]().fit(pairs))
        for name, make in made.items():
            assert same(wanted[name], make().fit(path)), name
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pairs.csr"]


def test_counts_on_disk_are_fitted_there(folder, clusters, some_blocks, tmp_path):
    distributed = pytest.importorskip("distributed")
    path, to = str(folder / "one.txt"), tmp_path / "counts.csr"
    make = lambda: twofold.LatentDirichletAllocation(3, random_state=0, max_iter=3)  # noqa: E731
    wanted = make().fit(BagOfWords(min_df=2).fit_transform(path))
    with distributed.Client(clusters(3)):
        assert same(wanted, make().fit(BagOfWords(min_df=2).fit_transform(path, to=to)))


class Watch(_Quiet):
    """A callback that stays in its process, as bars of progress do."""

    def __init__(self):
        self.lock, self.seen = threading.Lock(), 0

    def on_fit_task_end(self, estimator, context):
        self.seen += 1


def test_shards_of_skip_gram_do_not_know_how_many_workers_there_are(folder, clusters, processes, some_blocks):
    distributed = pytest.importorskip("distributed")
    model, found = twofold.SkipGram(5, min_count=2, max_iter=3, biases=True, random_state=0), []
    for cluster in (clusters(1), processes(3)):
        watch = Watch()
        with distributed.Client(cluster):
            found.append(clone(model).set_callbacks(watch).fit(str(folder / "one.txt")))
        assert watch.seen >= 3
    assert same(*found)
    alone = model.fit(str(folder / "one.txt"))
    assert same(alone.vocabulary_, found[0].vocabulary_) and not same(alone, found[0])
    objective = found[0].history_["objective"]
    assert objective[-1] < objective[0]


# ---- analyses --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Files about one of two subjects each, 1.2 MB of them."""
    root = tmp_path_factory.mktemp("library")
    rng = np.random.default_rng(0)
    for i in range(24):
        words = rng.choice(WORDS[200 * (i % 2) : 200 * (i % 2) + 200], size=(900, 14))
        (root / f"{i:02d}.txt").write_text("\n".join(map(" ".join, words)), encoding="utf-8")
    return root


@pytest.mark.parametrize("method", ["lda", pytest.param("nmf", marks=pytest.mark.soak)])
def test_topics_of_a_folder_beyond_the_budget(library, method, clusters, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(documents, "BLOCK_BYTES", 2**18)
    wanted = twofold.analyses.topics(str(library), 2, method=method)
    with twofold.config(memory=2**20), distributed.Client(clusters(3)):
        found = twofold.analyses.topics(str(library), 2, method=method)
    assert any("larger than the memory budget" in note for note in found.notes)
    assert found.table.drop("file").columns == wanted.table.drop("file").columns
    assert found.table["file"].to_list() == wanted.table["file"].to_list()
    assert np.array_equal(found.vocabulary, wanted.vocabulary)
    assert np.array_equal(found.topics, wanted.topics) and np.array_equal(found.mixtures, wanted.mixtures)
    assert found.figures == wanted.figures and found.to_dict()["topics"] == wanted.to_dict()["topics"]
    assert str(found.grids()) == str(wanted.grids()) and found.heading == wanted.heading


def test_vectors_of_a_folder_beyond_the_budget(library, clusters, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(documents, "BLOCK_BYTES", 2**18)
    found = []
    for workers in (0, 3):
        with twofold.config(memory=2**20), distributed.Client(clusters(workers)) if workers else nullcontext():
            found.append(twofold.analyses.embed(str(library), method="pmi", n_components=4))
    assert same(found[0].model, found[1].model) and found[0].figures == found[1].figures
    assert found[0].figures["right"] > 0.6  # words of a line are of one subject


def test_what_is_held_out_and_the_rest_are_all(folder, many_blocks):
    for name in CORPORA:
        whole = find_documents([str(folder / name)], split=True, stream=True)
        rest, held = hold_out(whole)
        texts = [text for text in whole if text.strip()]
        assert sorted([*held, *(text for text in rest if text.strip())]) == sorted(texts)


# ---- damage ----------------------------------------------------------------------------------------------------


def test_damaged_files_are_named(folder, clusters, some_blocks, tmp_path):
    distributed = pytest.importorskip("distributed")
    from shutil import copytree

    def damage(file):
        file.write_bytes(file.read_bytes()[:-20])

    packed = copytree(folder / "texts", tmp_path / "texts")
    damage(packed / "packed.txt.gz")
    tables = copytree(folder / "tables", tmp_path / "tables")
    damage(tables / "1.parquet")
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes((folder / "rows.jsonl").read_bytes().replace(b'"id": 100', b'"id: 100'))
    text = tmp_path / "one.txt"
    text.write_bytes((folder / "one.txt").read_bytes() + b"\nno \0 text")
    with distributed.Client(clusters(3)):
        for corpus, message in [
            (packed, "packed.txt.gz"),
            (tables, "1.parquet"),
            (rows, "rows.jsonl, line 101"),
            (text, "one.txt, line 201"),
        ]:
            for fit in (BagOfWords().fit, Vocabulary().fit, Cooccurrence().fit):
                with pytest.raises(InputError, match=message):
                    fit(str(corpus))
