"""The files that verbs are run on: each writer fills the working folder, and what it makes is made once a session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image
from scipy.fft import idctn
from sklearn.datasets import load_digits

from tests.cli.helpers import run_twofold
from twofold import PCA, KMeans, Recommender, WordVectors, datasets
from twofold.io.images import write_image
from twofold.io.recordings import write_sound

# --- tables -----------------------------------------------------------------------------------------------------

COLUMNS = ["height", "weight", "age", "income", "score"]


def make_numbers(n=60, blanks=0.0):
    """Return rows on a plane, with a little noise and columns of very different spread."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((n, 5))
    X *= [10, 5, 3, 1000, 0.1]
    return np.where(rng.random(X.shape) < blanks, np.nan, X)


def write_people():
    """people.csv: row names, a group, five columns of numbers; returns the numbers."""
    X = make_numbers()
    names = pl.Series("name", [f"p{i}" for i in range(len(X))])
    group = pl.Series("group", list("ab") * (len(X) // 2))
    pl.DataFrame(X, schema=COLUMNS).with_columns(names, group).write_csv("people.csv")
    return X


GROUPS = ["height", "weight", "age", "income"]
GROUP_OF = np.repeat([0, 1, 2], [90, 60, 30])


def write_groups():
    """groups.csv: three groups far apart, columns of very different spread, row names; returns the numbers."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0, 0], [8, 0, 5, 0], [0, 9, 0, 7]])
    X = (centers[GROUP_OF] + rng.standard_normal((len(GROUP_OF), 4))) * [10, 1, 3, 1000] + [170, 70, 40, 30_000]
    frame = pl.DataFrame(X, schema=GROUPS)
    rows = pl.Series("name", [f"p{i}" for i in range(len(X))]), pl.Series("kind", ["x", "y"] * (len(X) // 2))
    frame.with_columns(*rows).write_csv("groups.csv")
    return X


def write_table(X, holes, path="people.csv", blank=""):
    """Write numbers with one to three decimals, blanks in the holes, and a column of text with everything in it."""
    lines = ['name,"height",weight,age,income,score,remark']
    for i, row in enumerate(X):
        cells = [blank if holes[i, j] else f"{v:.{(1, 2, 0, 0, 3)[j]}f}" for j, v in enumerate(row)]
        lines.append(f'p{i},{",".join(cells)},"said ""hm, {i}"""')
    Path(path).write_bytes(("\r\n".join(lines) + "\r\n").encode())


def write_blanks(n=120, **options):
    """people.csv with a tenth of its numbers missing; returns the numbers and where they are missing."""
    X = make_numbers(n)
    holes = np.random.default_rng(1).random(X.shape) < 0.1
    write_table(X, holes, **options)
    return X, holes


@cache
def make_ratings():
    return datasets.ratings(n_users=120, n_items=60, seed=1)


def write_ratings():
    """ratings.csv: user, item, rating and a time; returns the ratings."""
    make_ratings().ratings.with_columns(timestamp=pl.lit(881250949)).write_csv("ratings.csv")
    return make_ratings().ratings


def write_saved_ratings():
    """m.twofold: a fitted recommender; k.twofold, which is none; ratings.csv and films.csv with features of items."""
    write_ratings()
    Recommender(random_state=0).fit(make_ratings().ratings).save("m.twofold")
    KMeans(2, random_state=0).fit(np.random.default_rng(0).standard_normal((20, 2))).save("k.twofold")
    make_ratings().films.with_columns(pl.col("genres").list.join("|")).write_csv("films.csv")
    text = Path("films.csv").read_text()
    Path("twice.csv").write_text(text + text.splitlines()[1] + "\n")
    Path("foreign.csv").write_text("item,year,genres\nnone,1999,Drama\nother,2001,Space\n")
    Path("empty.csv").write_text("")


# --- texts ------------------------------------------------------------------------------------------------------

SUBJECTS = {
    "garden": "rose tulip soil seed compost hedge bulb lawn petal root prune bloom",
    "engine": "piston valve petrol gear clutch torque diesel axle exhaust brake cylinder throttle",
    "music": "violin chord melody rhythm concert cello opera choir tempo sonata quartet tune",
}
SUBJECT_OF = {word: name for name, words in SUBJECTS.items() for word in words.split()}
GLUE = ["the", "of", "and", "to", "in", "is", "it", "that", "for", "was", "on", "with", "as", "are", "this"]


@cache
def make_letters():
    """Return 90 documents, a third about each subject, with a sentence of another, and the subject of each."""
    rng = np.random.default_rng(0)
    lists = [words.split() for words in SUBJECTS.values()]
    texts, truth = [], []
    for i in range(90):
        main, other = i % 3, (i + 1 + i // 3 % 2) % 3
        words = [*rng.choice(lists[main], 24), *rng.choice(lists[other], 4)]
        text = [w for word in words for w in (str(rng.choice(GLUE)), str(word))]
        texts.append(" ".join(text[:30]).capitalize() + ". " + " ".join(text[30:]).capitalize() + ".")
        truth.append(main)
    return texts, np.array(truth)


def write_letters():
    """letters.csv: a key, a title, a day and the text; garden in spring, engines in summer, music in autumn."""
    texts, truth = make_letters()
    columns = {
        "key": [f"L{i:03d}" for i in range(len(texts))],
        "title": [f"Letter {i}" for i in range(len(texts))],
        "sent_date": [f"2021-{3 + 3 * t + i % 2:02d}-{1 + i % 28:02d}" for i, t in enumerate(truth)],
        "body": texts,
    }
    frame = pl.DataFrame(columns)
    frame.write_csv("letters.csv")
    return frame


@cache
def make_sentences():
    """Return sentences of one subject each, content words with grammar between."""
    rng = np.random.default_rng(0)
    lists = [words.split() for words in SUBJECTS.values()]
    return [
        " ".join(f"{rng.choice(GLUE)} {word}" for word in rng.choice(lists[i % 3], 12)).capitalize() + "."
        for i in range(300)
    ]


def write_sentences():
    Path("lines.txt").write_text("\n".join(make_sentences()))
    return make_sentences()


ROYAL, MALE, FEMALE, FRUIT = np.eye(4)
MEANING = {
    "king": ROYAL + MALE,
    "queen": ROYAL + FEMALE,
    "man": MALE,
    "woman": FEMALE,
    "prince": ROYAL + MALE + 0.3 * FRUIT,
    "apple": FRUIT,
    "apples": FRUIT + 0.2 * FEMALE,
}


def write_court():
    """court.twofold and court.txt, the same vectors of seven words."""
    vectors = WordVectors.of(list(MEANING), np.array(list(MEANING.values()), np.float32), np.arange(70, 0, -10))
    vectors.save("court.twofold")
    vectors.save_word2vec("court.txt")
    return vectors


def write_bad_vectors():
    write_court()
    write_rotated()
    PCA(1).fit(np.arange(12.0).reshape(4, 3) ** 2).save("pca.twofold")
    Path("broken.twofold").write_bytes(Path("court.twofold").read_bytes()[:-20])
    Path("broken.txt").write_text("2 3\nking 1 2 x\nqueen 1 2 3\n")
    Path("broken.bin").write_bytes(b"2 3\nking \x00\x00")
    Path("court.npy").write_bytes(b"")


def write_rotated():
    """a.txt and b.txt: 200 words, the same vectors but for a rotation and noise; pairs.tsv names half of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    Y = (X @ rotation + 0.01 * rng.standard_normal(X.shape)).astype(np.float32)
    WordVectors.of([f"word{i}" for i in range(200)], X).save_word2vec("a.txt")
    WordVectors.of([f"Wort{i}" for i in range(200)], Y).save_word2vec("b.txt")
    WordVectors.of([f"word{i}" if i % 2 else f"Wort{i}" for i in range(200)], Y).save_word2vec("half.txt")
    Path("pairs.tsv").write_text("\n".join(f"word{i}\tWort{i}" for i in range(0, 200, 2)))
    return X, Y


# --- images and signals -----------------------------------------------------------------------------------------


def write_photo(name="photo.png", dtype=np.uint8, color=True, alpha=None):
    """Write a picture, smooth but for an edge, and return its pixels."""
    rows, columns = np.mgrid[:48, :40] / 48
    light = 0.2 + 0.4 * rows + 0.3 * (rows + columns > 0.9)
    values = np.dstack([light, 0.7 * light, 1 - light]) if color else light
    pixels = np.rint(values * np.iinfo(dtype).max).astype(dtype)
    write_image(name, pixels, alpha)
    return pixels


def write_noisy(name="noisy.png", sd=20.0, dtype=np.uint8, color=True, alpha=None):
    """Write a picture of two plains with noise, and return it without."""
    rows, columns = np.mgrid[:48, :40]
    light = 60.0 + 100 * (rows > columns) + rows
    clean = np.dstack([light, light, 200 - light / 2]) if color else light
    unit = np.iinfo(dtype).max / 255
    noisy = clean + np.random.default_rng(0).normal(scale=sd, size=clean.shape)
    write_image(name, np.clip(np.rint(noisy * unit), 0, 255 * unit).astype(dtype), alpha)
    return clean * unit


def write_images():
    """Pictures, good and bad, and compressed ones."""
    write_photo()
    write_photo("clear.png", alpha=np.zeros((48, 40), np.uint8))
    write_noisy()
    write_noisy("deep.png", dtype=np.uint16, color=False)
    result = run_twofold("compress", "clear.png", "-o", "good.tfi", "--method", "dct")
    assert result.exit_code == 0, result.stderr
    Path("cut.tfi").write_bytes(Path("good.tfi").read_bytes()[:200])
    Path("cut.png").write_bytes(Path("noisy.png").read_bytes()[:900])
    Path("text.png").write_text("no picture")
    for name in ("old.tfi", "old.png"):
        Path(name).write_text("old")


MAGENTA = (255, 0, 255)


def make_stripes():
    """Return a picture that patches can continue and straight lines cannot, and holes (48,40) in it."""
    rows, columns = np.mgrid[:48, :40]
    stripes = 128 + 80 * np.sin((rows + 2 * columns) / 3.0)
    holes = np.random.default_rng(0).random((48, 40)) < 0.3
    holes[20:24, 10:15] = True
    return np.rint(np.dstack([stripes, 255 - stripes, stripes / 2])).astype(np.uint8), holes


def write_holes():
    """The same holes, marked in every way: mask.png; color.png; clear.png; and the picture beneath, known.png."""
    picture, holes = make_stripes()
    write_image("known.png", picture)
    write_image("mask.png", (255 * holes).astype(np.uint8))
    write_image("color.png", np.where(holes[..., None], np.uint8(MAGENTA), picture))
    write_image("clear.png", np.where(holes[..., None], np.uint8(0), picture), np.where(holes, 0, 255).astype(np.uint8))
    for name, value, shape in [("small", 255, (10, 20)), ("black", 0, (48, 40)), ("white", 255, (48, 40))]:
        Image.fromarray(np.full(shape, value, np.uint8)).save(f"{name}.png")
    Path("old.png").write_text("old")
    return picture, holes


def make_melody(n=4000):
    t = np.arange(n) / 8000
    return 6000 * np.sin(2 * np.pi * 300 * t) * np.exp(-((t - 0.2) ** 2) * 80)


def make_noise(shape, sigma, seed=0):
    return np.random.default_rng(seed).normal(scale=sigma, size=shape)


def write_signals():
    """hum.wav, both.wav, sensors.csv and walk.npy, each with noise; and files that are no signals."""
    clean = make_melody()
    write_sound("hum.wav", (clean + make_noise(clean.shape, 500)).astype(np.int16)[None], 8000)
    write_sound("both.wav", (np.stack([clean, clean[::-1]]) + make_noise((2, 4000), 500)).astype(np.float32), 8000)
    n = 600
    level = np.repeat([1.0, 5.0, 3.0], 200)
    frame = pl.DataFrame({"minute": np.arange(n) * 0.5, "place": ["x"] * n, "level": level + make_noise(n, 0.5)})
    frame.with_columns(heat=20 + np.sin(np.arange(n) / 40) + make_noise(n, 0.2, 1)).write_csv("sensors.csv")
    np.save("walk.npy", level + make_noise(n, 0.5))
    write_image("photo.png", np.full((20, 20), 99, np.uint8))
    Path("cut.wav").write_bytes(Path("hum.wav").read_bytes()[:30])
    Path("text.wav").write_text("no sound at all")
    Path("short.csv").write_text("a\n1\n2\n5\n")
    Path("cut.tfs").write_bytes(b"TFS\x01 and no more")


def make_cosines():
    """Return two signals of 128 numbers, each a sum of three cosines."""
    coefficients = np.zeros((2, 128))
    coefficients[0, [3, 17, 40]] = [5, -4, 3]
    coefficients[1, [8, 30, 71]] = [4, 6, -5]
    return idctn(coefficients, axes=1, norm="ortho")


def write_measured():
    """Signals and pictures of few cosines; returns the colors of photo.png."""
    signals = make_cosines()
    pl.DataFrame({"t": np.arange(128) / 50, "a": signals[0], "b": signals[1]}).write_csv("two.csv")
    np.save("one.npy", signals[0])
    np.save("two.npy", signals)
    pl.DataFrame({"a": [1.0, None, 3.0] * 9}).write_csv("blank.csv")
    pl.DataFrame({"a": [1.0, 2.0]}).write_csv("short.csv")
    coefficients = np.zeros((24, 20, 3))
    coefficients[0, 0] = 2800
    coefficients[[1, 2, 0], [2, 0, 1]] = [[600, 200, 100], [-300, 400, 50], [200, 100, -500]]
    pixels = np.clip(np.rint(idctn(coefficients, axes=(0, 1), norm="ortho")), 0, 255).astype(np.uint8)
    write_image("photo.png", pixels)
    write_image("grey.png", pixels[..., 0])
    Path("old.png").write_text("old")
    Path("text.png").write_text("no picture")
    return pixels


def write_digits():
    """digits.npz: 300 images with labels; and sets and tables that a network cannot be trained on."""
    digits = load_digits()
    np.savez("digits.npz", images=(digits.images[:300] * 15).astype(np.uint8), labels=digits.target[:300])
    np.save("bare.npy", np.zeros((30, 4, 4), np.uint8))
    np.save("few.npy", np.zeros((3, 4, 4), np.uint8))
    Path("table.csv").write_text("a,b\n1,2\n3,4\n")
    Path("holes.csv").write_text("a,b\n1,2\n,4\n")


def write_streamed():
    """gaps: a folder of Parquet files of 3 MB in all, a fifth of the cells missing, of rank 2 and a little noise.

    Returns the table, the numbers (30000,10) and where they are missing.
    """
    Path("gaps").mkdir()
    rng = np.random.default_rng(0)
    X = 5 + rng.normal(size=(30_000, 2)) @ rng.normal(size=(2, 10)) + 0.1 * rng.normal(size=(30_000, 10))
    X[:, 3], X[:, 4] = np.round(10 * X[:, 3]), 7
    holes = rng.random(X.shape) < 0.2
    frame = pl.DataFrame(np.where(holes, np.nan, X), schema=[f"c{j}" for j in range(10)], orient="row")
    kinds = {"c3": pl.Int32, "c5": pl.Float32}
    frame = frame.fill_nan(None).cast(kinds).with_columns(empty=pl.lit(None, pl.Float64))
    for i, part in enumerate(np.array_split(np.arange(30_000), 3)):
        frame[part].write_parquet(f"gaps/{i}.parquet", row_group_size=4_000)
    return frame, X, holes


def write_rated():
    """stars.parquet: ratings that take 1.2 MB in memory, with factors to be found in them."""
    rng = np.random.default_rng(0)
    i, j = (900 * rng.random(50_000) ** 1.5).astype(int), (120 * rng.random(50_000) ** 2).astype(int)
    U, Z = rng.normal(size=(900, 3)), rng.normal(size=(120, 3))
    x = np.clip(np.round(3 + 0.7 * (U[i] * Z[j]).sum(axis=1) + 0.3 * rng.normal(size=len(i))), 1, 5)
    pl.DataFrame({"user": i, "film": j, "rating": x}).write_parquet("stars.parquet")


@cache
def read_files(write: Callable[[], object]) -> dict[str, bytes]:
    """Return the files that a writer writes, by name."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write()
            return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        finally:
            os.chdir(before)


def copy_files(write: Callable[[], object]) -> dict[str, bytes]:
    """Fill the working folder with the files of a writer, and return them."""
    for name, data in read_files(write).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
    return read_files(write)


def read_folder() -> dict[str, bytes]:
    """Return all files of the working folder."""
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
