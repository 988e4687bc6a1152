"""The one catalog of examples that tour, lab and documentation share: data with the Python that makes it, and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # the lab lists the catalog before numpy is loaded
    import numpy as np


class Example(NamedTuple):
    """Data at hand, and the Python that makes it: X, y, ratings, texts, picture, ..."""

    name: str
    kind: str
    about: str
    shape: tuple[int, ...]
    code: str
    blanks: bool = False

    def describe(self) -> dict[str, Any]:
        """Return what the lab lists of it."""
        classes = bool(re.search(r"\by = ", self.code))
        return {**self._asdict(), "shape": self.shape or None, "classes": classes, "notes": []}


def _take(bunch: str, **parts: str) -> str:
    """Python that takes parts of one of the data sets of `twofold.datasets`."""
    lines = [f"{name} = data.{part}" for name, part in parts.items()]
    return "\n".join(["from twofold import datasets", f"data = datasets.{bunch}", *lines])


def _photo(name: str) -> str:
    return _take("photographs()", picture=name)


def _signal(name: str) -> str:
    return _take("signals()", signal=name)


_TABLE = {"X": "data", "y": "target"}
EXAMPLES = {
    "wine": Example(
        "Wine", "table", "178 wines of three growers, 13 measurements each.", (178, 13), _take("wine()", **_TABLE)
    ),
    "iris": Example(
        "Iris", "table", "150 irises of three kinds, four lengths each.", (150, 4), _take("iris()", **_TABLE)
    ),
    "blobs": Example(
        "Blobs", "table", "Five round groups in the plane, 1,500 points.", (1500, 2),
        "from sklearn.datasets import make_blobs\n"
        "X, y = make_blobs(1500, centers=5, cluster_std=[0.5, 1.2, 0.8, 1.0, 0.6], random_state=7)",
    ),
    "stripes": Example(
        "Stripes", "table", "Three long groups side by side, 900 points.", (900, 2),
        "from sklearn.datasets import make_blobs\n"
        "X, y = make_blobs(900, centers=3, random_state=170)\n"
        "X = X @ [[0.6, -0.6], [-0.4, 0.8]]",
    ),
    "moons": Example(
        "Moons", "table", "Two half moons that hold each other, 1,000 points.", (1000, 2),
        "from sklearn.datasets import make_moons\nX, y = make_moons(1000, noise=0.07, random_state=0)",
    ),
    "many": Example(
        "Many points", "table", "Twelve groups in the plane, 100,000 points.", (100_000, 2),
        "from sklearn.datasets import make_blobs\nX, y = make_blobs(100_000, centers=12, random_state=3)",
    ),
    "table_with_holes": Example(
        "Wine with holes", "table", "The wine table, a fifth of its cells missing.", (178, 13),
        _take("table_with_holes()", X="data"), blanks=True,
    ),
    "ratings": Example(
        "Films", "ratings", "Half stars that 500 people gave 300 films; made by a seeded generator.", (500, 300),
        _take("ratings()", ratings="ratings"),
    ),
    "docstrings": Example(
        "Docstrings", "text", "The English in the documentation of installed Python packages.", (1000,),
        _take("docstrings(1000)", texts="documents", y="target"),
    ),
    "digits": Example(
        "Digits", "pictures", "1,797 handwritten digits, 8 by 8 pixels.", (1797, 8, 8),
        _take("digits()", pictures="images", X="data", y="target"),
    ),
    "camera": Example("Camera", "picture", "A man and his camera, gray.", (512, 512), _photo("camera")),
    "ascent": Example("Ascent", "picture", "A flight of stairs, gray.", (512, 512), _photo("ascent")),
    "aero": Example("Aero", "picture", "A place from the air, gray.", (512, 512), _photo("aero")),
    "china": Example("China", "picture", "A temple, in color.", (427, 640, 3), _photo("china")),
    "flower": Example("Flower", "picture", "A flower, in color.", (427, 640, 3), _photo("flower")),
    "ecg": Example("Heart", "signal", "An electrocardiogram.", (1024,), _signal("ecg")),
    "nino": Example("Sea", "signal", "The temperature of the sea by the quarter.", (264,), _signal("nino")),
    "doppler": Example("Doppler", "signal", "A tone that falls, as Donoho and Johnstone test with.", (1024,),
                       _signal("doppler")),
    "blocks": Example("Blocks", "signal", "Steps, as Donoho and Johnstone test with.", (1024,), _signal("blocks")),
    "bumps": Example("Bumps", "signal", "Peaks, as Donoho and Johnstone test with.", (1024,), _signal("bumps")),
    "heavisine": Example("HeaviSine", "signal", "A wave that jumps twice, as Donoho and Johnstone test with.", (1024,),
                         _signal("heavisine")),
    "none": Example("made by the method", "none", "The method makes its own.", (), ""),
}  # fmt: skip


class Story(NamedTuple):
    """A run of the lab that shows one thing: what is said of it, and its address, with the frame that tells it."""

    title: str
    sentence: str
    address: str


STORIES = {
    "moons": Story(
        "Why k-means fails on moons",
        "Every point goes to the nearest center, so the border is a straight line: no start makes it follow the moons.",
        "data=moons&method=kmeans&n_clusters=2",
    ),
    "stripes": Story(
        "What a mixture sees",
        "Long groups side by side are one ellipse each for a mixture; k-means cuts across them.",
        "data=stripes&method=gaussian_mixture&n_components=3&right=kmeans&right.n_clusters=3",
    ),
    "rank": Story(
        "A rank that is found again",
        "A fifth of the cells is missing and another tenth is hidden: a product of two thin factors fills them better "
        "than the means of the columns.",
        "data=table_with_holes&method=als&n_components=2",
    ),
    "edges": Story(
        "Atoms that learn edges",
        "From patches of one photograph, each a sum of four atoms, noise turns into edges and stripes.",
        "data=camera&method=ksvd",
    ),
    "topics": Story(
        "Topics settle",
        "Every word begins in a topic at random. Sweep by sweep, words of the same documents gather.",
        "data=docstrings&method=lda&n_components=8",
    ),
    "words": Story(
        "Words by the company they keep",
        "No dictionary is given: words that stand among the same words get neighboring places.",
        "data=docstrings&method=skip_gram",
    ),
    "latent": Story(
        "A walk through latent space",
        "Two numbers a digit. Move over the map: between a 4 and a 9 lie digits that were never written.",
        "data=digits&method=vae",
    ),
    "phase": Story(
        "Where recovery breaks",
        "Few measurements find a sparse signal exactly, until suddenly they do not: the line is what theory says.",
        "data=none&method=phase",
    ),
}

OPPOSITES = [
    ("minimum", "maximum"), ("min", "max"), ("left", "right"), ("lower", "upper"), ("first", "last"), ("start", "end"),
    ("row", "column"), ("rows", "columns"), ("horizontal", "vertical"), ("width", "height"), ("smallest", "largest"),
    ("top", "bottom"), ("before", "after"), ("real", "complex"), ("positive", "negative"), ("true", "false"),
]  # fmt: skip


def write_language(rng: np.random.Generator, words: int, length: int, contrast: float = 1.0) -> list[list[str]]:
    """Write sentences of a made-up language, in which each word is followed by some words rather than others.

    >>> import numpy as np
    >>> sentences = write_language(np.random.default_rng(0), words=5, length=2000)
    >>> len(sentences), sentences[0][:4]
    (2, ['w3', 'w0', 'w3', 'w0'])
    """
    import numpy as np

    taste = np.exp(contrast * rng.standard_normal((words, 4)) @ rng.standard_normal((4, words)) / 2)
    steps = np.cumsum(taste / taste.sum(axis=1, keepdims=True), axis=1)
    at, out = 0, []
    for u in rng.random(length):
        at = min(int(np.searchsorted(steps[at], u)), words - 1)
        out.append(f"w{at}")
    return [out[i : i + 1000] for i in range(0, length, 1000)]
