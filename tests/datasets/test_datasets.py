"""Bundled data: at hand without a network, the same each time, with the structure it promises."""

import gzip
import hashlib
import http.server
import importlib
import io
import os
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import polars as pl
import pytest

from twofold import datasets
from twofold.core.checks import InputError

SETS = importlib.import_module("twofold.datasets.fetch")  # the function has the name of its module


def test_pictures_tables_and_signals_have_the_shapes_they_say():
    digits = datasets.digits()
    assert digits.data.shape == (1797, 64) and np.array_equal(digits.images.reshape(1797, 64), digits.data)
    assert set(digits.target) == set(range(10))
    assert datasets.iris().data.shape == (150, 4) and datasets.wine().data.shape == (178, 13)
    for name, image in datasets.photographs().items():
        assert image.dtype == np.uint8 and image.ndim == (3 if name in ("china", "flower") else 2)
        assert image.min() < 50 and image.max() > 200
    for signal in datasets.signals().values():
        assert signal.ndim == 1 and signal.dtype == np.float64 and np.isfinite(signal).all() and signal.std() > 0


@pytest.mark.parametrize("share", [0, 0.05, 0.2, 0.8])
def test_holes_hide_the_share_asked_for_and_leave_no_row_or_column_empty(share):
    table = datasets.table_with_holes(share, seed=3)
    assert np.array_equal(np.isnan(table.data), table.holes)
    assert np.array_equal(table.data[~table.holes], table.truth[~table.holes])
    assert abs(table.holes.mean() - share) <= 1 / table.holes.size
    assert not table.holes.all(axis=0).any() and not table.holes.all(axis=1).any()


def test_holes_cannot_be_everywhere():
    with pytest.raises(InputError, match=r"share is 0\.9"):
        datasets.table_with_holes(0.9)


@pytest.fixture(scope="module")
def world():
    return datasets.ratings()


def test_ratings_are_half_stars_of_known_people_and_films(world):
    frame, films = world.ratings, world.films
    assert set(frame["rating"].unique()) <= {i / 2 for i in range(1, 11)}
    assert frame.select("user", "item").is_duplicated().sum() == 0
    assert set(frame["user"]) == set(range(500)) and set(frame["item"]) == set(films["item"])
    assert films["item"].n_unique() == len(films) == 300


def match_pairs(world):
    """Row, column and rating of every pair."""
    column = {title: j for j, title in enumerate(world.films["item"])}
    frame = world.ratings
    return frame["user"].to_numpy(), np.array([column[t] for t in frame["item"]]), frame["rating"].to_numpy()


def test_ratings_follow_the_truth_up_to_the_noise(world):
    rows, columns, stars = match_pairs(world)
    inside = (world.truth.expected[rows, columns] > 1.5) & (world.truth.expected[rows, columns] < 3.5)
    error = (stars - world.truth.expected[rows, columns])[inside]
    assert abs(error.mean()) < 0.05
    assert error.std() == pytest.approx(np.hypot(world.truth.noise, 0.5 / np.sqrt(12)), rel=0.05)  # and rounding


def test_ratings_have_structure_beyond_biases(world):
    """Tastes explain what the best row and column means cannot."""
    centered = world.truth.expected - world.truth.expected.mean(axis=1, keepdims=True)
    centered -= centered.mean(axis=0)
    spectrum = np.linalg.svd(centered, compute_uv=False) ** 2
    assert spectrum[:8].sum() > 0.95 * spectrum.sum() and centered.std() > 0.3


def test_popularity_is_skewed_and_people_rate_what_they_like(world):
    rows, columns, _ = match_pairs(world)
    counts = np.sort(np.bincount(columns, minlength=300))[::-1]
    assert counts[:60].sum() > 0.4 * counts.sum() and counts[-1] >= 1
    assert world.truth.expected[rows, columns].mean() > world.truth.expected.mean() + 0.2


def test_the_seed_decides_everything(world):
    again, other = datasets.ratings(), datasets.ratings(seed=1)
    assert again.ratings.equals(world.ratings) and again.films.equals(world.films)
    assert not other.ratings.equals(world.ratings)


@pytest.mark.parametrize("size", [(2, 2), (3, 2000), (2000, 3)])
def test_odd_sizes_work(size):
    made = datasets.ratings(*size)
    assert made.ratings["user"].n_unique() == size[0] and made.ratings["item"].n_unique() == size[1]


def test_too_few_are_refused():
    with pytest.raises(InputError, match="at least 2"):
        datasets.ratings(n_users=1)


def test_docstrings_are_english_varied_and_always_the_same():
    text = datasets.docstrings(300)
    assert len(text.documents) == len(text.names) == len(text.target) == 300
    assert len(set(text.documents)) == len(set(text.names)) == 300
    assert np.bincount(text.target, minlength=len(text.target_names)).min() > 0
    assert all(name.split(".")[0] == text.target_names[at] for name, at in zip(text.names, text.target, strict=True))
    assert not any(">>>" in document for document in text.documents)
    words = " ".join(text.documents).lower().split()
    assert sum(word in ("the", "of", "a", "is", "to", "in", "and") for word in words) > 0.1 * len(words)
    assert datasets.docstrings(100).documents == text.documents[:100]


def test_no_docstrings_cannot_be_asked_for():
    with pytest.raises(InputError, match="max_documents is 0"):
        datasets.docstrings(0)


def test_docstrings_import_nothing_they_read():
    """Reading the text of a package must not run it."""
    code = (
        "import sys; from twofold import datasets; before = set(sys.modules); datasets.docstrings(50);"
        "print([m for m in set(sys.modules) - before if m.startswith(('matplotlib', 'rich', 'cyclopts'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A machine with no data sets."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TWOFOLD_DATA", str(tmp_path / "data"))
    return tmp_path


def test_unknown_and_unreachable_sets_name_the_remedy(home, monkeypatch):
    with pytest.raises(InputError, match="Choose one of anime"):
        datasets.fetch("netflix")
    with pytest.raises(InputError, match="set TWOFOLD_DATA"):
        datasets.fetch("anime")
    monkeypatch.setitem(SETS._URLS, "mnist", {"http://127.0.0.1:9/nothing.gz": SETS._File("", 1)})
    with pytest.raises(InputError, match=r"Cannot download http.*TWOFOLD_DATA.*go online"):
        datasets.fetch("mnist")
    assert os.listdir(home / "cache" / "twofold") == []


def movielens_zip() -> bytes:
    files = {
        "u.data": "1\t2\t5\t881250949\n2\t1\t3\t881250950\n",
        "u.item": "1|Café (1995)|01-Jan-1995||url|0|1|1\n2|Second (1996)|01-Jan-1996||url|1|0|0\n",
        "u.genre": "unknown|0\nAction|1\nComedy|2\n\n",
        "u1.base": "1\t2\t5\t881250949\n",
        "u1.test": "2\t1\t3\t881250950\n",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"ml-100k/{name}", text.encode("latin-1"))
    return out.getvalue()


class Answers(http.server.BaseHTTPRequestHandler):
    """/ml-100k.zip is the file, /long more than it, /short less, /moved leads elsewhere, /slow never ends."""

    def do_GET(self):
        body, where = movielens_zip(), self.path.removeprefix("/")
        self.send_response(302 if where == "moved" else 404 if where == "none" else 200)
        if where == "moved":
            self.send_header("Location", "data:,x")
        self.end_headers()
        if where == "slow":
            for _ in range(1000):
                self.wfile.write(b"0")
                time.sleep(0.01)
        self.wfile.write({"long": body * 50, "short": body[:-1], "ml-100k.zip": body}.get(where, b""))

    def log_message(self, *_):
        """Nothing is said."""


@pytest.fixture
def server(home, monkeypatch):
    """The address of a server on this machine that is taken for the one of the films; and how to ask it."""
    monkeypatch.setattr(SETS, "_SCHEME", "http")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        data = movielens_zip()
        file = SETS._File(hashlib.sha256(data).hexdigest(), len(data))

        def ask(path):
            monkeypatch.setitem(SETS._URLS, "movielens100k", {f"http://127.0.0.1:{found.server_port}/{path}": file})
            return datasets.fetch("movielens100k")

        yield ask
        found.shutdown()


def test_a_downloaded_set_is_read_and_kept(server, monkeypatch):
    first = server("ml-100k.zip")
    again = server("none")
    assert first.ratings.rows() == again.ratings.rows() == [(1, 2, 5.0, 881250949), (2, 1, 3.0, 881250950)]
    assert first.films["title"].to_list() == ["Café (1995)", "Second (1996)"]
    assert first.films["genres"].to_list() == [["Action", "Comedy"], ["unknown"]]
    assert [len(frame) for frame in first.splits[0]] == [1, 1]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("long", r"not the file it was: it has more than [\d,]+ bytes and SHA-256"),
        ("short", "not the file it was"),
        ("none", "Cannot download .*404.*go online"),
        ("moved", "Cannot download .*not allowed"),
        ("slow", r"Cannot download .*bytes came in 0 s"),
    ],
)
def test_a_download_that_is_not_the_file_it_was_is_refused(server, home, monkeypatch, path, said):
    monkeypatch.setattr(SETS, "_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(InputError, match=said):
        server(path)
    assert os.listdir(home / "cache" / "twofold") == []


def test_downloads_come_by_https_alone(server, home, monkeypatch):
    assert all(url.startswith("https://") for files in SETS._URLS.values() for url in files)
    monkeypatch.setattr(SETS, "_SCHEME", "https")
    with pytest.raises(InputError, match="which is no https address"):
        server("ml-100k.zip")
    assert os.listdir(home / "cache" / "twofold") == []


def test_a_folder_with_other_content_is_named(home):
    (home / "data" / "mnist").mkdir(parents=True)
    with pytest.raises(InputError, match="mnist does not hold"):
        datasets.fetch("mnist")


def test_idx_files_are_read_plain_or_packed(home):
    folder = home / "data" / "mnist"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n, pack in (("train", 5, gzip.compress), ("t10k", 3, bytes)):
        images, labels = rng.integers(256, size=(n, 2, 4)).astype(np.uint8), np.arange(n, dtype=np.uint8)
        for what, array in (("images-idx3", images), ("labels-idx1", labels)):
            sizes = np.array(array.shape, dtype=">i4").tobytes()
            data = pack(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
            (folder / f"{part}-{what}-ubyte{'.gz' if pack is gzip.compress else ''}").write_bytes(data)
    mnist = datasets.fetch("mnist")
    assert np.array_equal(mnist.test.images, images) and mnist.train.images.shape == (5, 2, 4)
    assert mnist.train.target.tolist() == [0, 1, 2, 3, 4]


SIZES = {
    "flixster": lambda b: b.ratings.shape == (26_173, 4) and set(b.ratings["part"]) == {"train", "test"},
    "movielens100k": lambda b: b.ratings.shape == (100_000, 4) and len(b.films) == 1682,
    "anime": lambda b: b.ratings.shape == (419_943, 3),
    "wikipedia_en": lambda b: len(b.documents) == 5395,
    "words": lambda b: sum(map(len, b.analogies.values())) == 19_544 and len(b.simlex999) == 999,
    "newsgroups20": lambda b: len(b.train.documents) == 11_293 and len(b.target_names) == 20,
    "reuters": lambda b: len(b.test.documents) == 2189 and b.counts.shape == (395, len(b.words)),
    "mnist": lambda b: b.train.images.shape == (60_000, 28, 28) and len(b.test.target) == 10_000,
    "images": lambda b: b.barbara.shape == (512, 512) and b.house.shape == (256, 256),
    "cbcl_faces": lambda b: b.images.shape == (2429, 19, 19),
    "kdd_bio": lambda b: b.data.shape == (145_751, 74) and np.isfinite(b.data).all(),
    "clusters": lambda b: b.s1.data.shape == (5000, 2) and b.spambase.data.shape == (4601, 57),
}


def test_every_standard_set_is_checked_below():
    assert SIZES.keys() == SETS._READERS.keys()


@pytest.mark.parametrize("name", SIZES)
def test_standard_sets_are_as_published(name):
    folder = os.environ.get("TWOFOLD_DATA")
    if not folder or not os.path.isdir(os.path.join(folder, name)):
        pytest.skip(f"TWOFOLD_DATA names no folder with {name}")
    assert SIZES[name](datasets.fetch(name))


def test_ratings_have_the_columns_that_real_ones_have(world, server):
    real = server("ml-100k.zip").ratings
    assert real.columns[:3] == world.ratings.columns
    assert real.schema["rating"] == world.ratings.schema["rating"] == pl.Float64
