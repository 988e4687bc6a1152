"""The data of the lab: what is bundled, and what users bring; one `Data` for every method.

Bundled data is what a few lines of Python give, and these lines are both run here and shown to the user. A file that
was brought is read once, by the readers of the command line, and kept beside as arrays, a frame and a description.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # the server lists what is bundled before any of these is loaded
    import numpy as np
    import polars as pl

KINDS = ("table", "ratings", "text", "picture", "pictures", "signal")
ROWS = 20  # shown first
SHORT_TEXT = 40  # letters: a column whose texts are longer on average is prose
MOST_CLASSES = 20  # values of a column that says which class a row is of
SIDE = 640  # pixels of a picture, at most
WIDEST = 2_000_000  # cells of a sparse table that is filled up with zeros


class Bundled(NamedTuple):
    """Data that is always at hand, and the Python that makes it: X, y, ratings, texts, picture, ..."""

    name: str
    kind: str
    about: str
    shape: tuple[int, ...] | None
    code: str


def _of(bunch: str, **parts: str) -> str:
    """Python that takes parts of one of the data sets of `twofold.datasets`."""
    lines = [f"{name} = data.{part}" for name, part in parts.items()]
    return "\n".join(["from twofold import datasets", f"data = datasets.{bunch}", *lines])


def _photo(name: str) -> str:
    return _of("photographs()", picture=name)


def _signal(name: str) -> str:
    return _of("signals()", signal=name)


_TABLE = {"X": "data", "y": "target"}
BUNDLED = {
    "wine": Bundled(
        "Wine", "table", "178 wines of three growers, 13 measurements each.", (178, 13), _of("wine()", **_TABLE)
    ),
    "iris": Bundled(
        "Iris", "table", "150 irises of three kinds, four lengths each.", (150, 4), _of("iris()", **_TABLE)
    ),
    "blobs": Bundled(
        "Blobs", "table", "Five round groups in the plane, 1,500 points.", (1500, 2),
        "from sklearn.datasets import make_blobs\n"
        "X, y = make_blobs(1500, centers=5, cluster_std=[0.5, 1.2, 0.8, 1.0, 0.6], random_state=7)",
    ),
    "stripes": Bundled(
        "Stripes", "table", "Three long groups side by side, 900 points.", (900, 2),
        "from sklearn.datasets import make_blobs\n"
        "X, y = make_blobs(900, centers=3, random_state=170)\n"
        "X = X @ [[0.6, -0.6], [-0.4, 0.8]]",
    ),
    "moons": Bundled(
        "Moons", "table", "Two half moons that hold each other, 1,000 points.", (1000, 2),
        "from sklearn.datasets import make_moons\nX, y = make_moons(1000, noise=0.07, random_state=0)",
    ),
    "many": Bundled(
        "Many points", "table", "Twelve groups in the plane, 100,000 points.", (100_000, 2),
        "from sklearn.datasets import make_blobs\nX, y = make_blobs(100_000, centers=12, random_state=3)",
    ),
    "table_with_holes": Bundled(
        "Wine with holes", "table", "The wine table, a fifth of its cells missing.", (178, 13),
        _of("table_with_holes()", X="data"),
    ),
    "ratings": Bundled(
        "Films", "ratings", "What 500 people gave 300 films, in half stars; made by a seeded generator.", (500, 300),
        _of("ratings()", ratings="ratings"),
    ),
    "docstrings": Bundled(
        "Docstrings", "text", "The English in the documentation of installed Python packages.", (1000,),
        _of("docstrings(1000)", texts="documents", y="target"),
    ),
    "digits": Bundled(
        "Digits", "pictures", "1,797 handwritten digits, 8 by 8 pixels.", (1797, 8, 8),
        _of("digits()", pictures="images", X="data", y="target"),
    ),
    "camera": Bundled("Camera", "picture", "A man and his camera, grey.", (512, 512), _photo("camera")),
    "ascent": Bundled("Ascent", "picture", "A flight of stairs, grey.", (512, 512), _photo("ascent")),
    "aero": Bundled("Aero", "picture", "A place from the air, grey.", (512, 512), _photo("aero")),
    "china": Bundled("China", "picture", "A temple, in color.", (427, 640, 3), _photo("china")),
    "flower": Bundled("Flower", "picture", "A flower, in color.", (427, 640, 3), _photo("flower")),
    "ecg": Bundled("Heart", "signal", "An electrocardiogram.", (1024,), _signal("ecg")),
    "nino": Bundled("Sea", "signal", "The temperature of the sea by the quarter.", (264,), _signal("nino")),
    "doppler": Bundled("Doppler", "signal", "A tone that falls, as Donoho and Johnstone test with.", (1024,),
                       _signal("doppler")),
    "blocks": Bundled("Blocks", "signal", "Steps, as Donoho and Johnstone test with.", (1024,), _signal("blocks")),
    "bumps": Bundled("Bumps", "signal", "Peaks, as Donoho and Johnstone test with.", (1024,), _signal("bumps")),
    "heavisine": Bundled("HeaviSine", "signal", "A wave that jumps twice, as Donoho and Johnstone test with.", (1024,),
                         _signal("heavisine")),
}  # fmt: skip


@dataclass
class Data:
    """What a method gets. Which parts are there depends on `kind`; `code` is Python that makes the same ones.

    ======== ========================================================================================================
    table    ``table`` (n,d) float64, NaN where a cell is blank: ``X`` in the code; ``columns``
    ratings  ``ratings``, a frame of user, item and rating: ``ratings`` in the code
    text     ``texts``, a list: ``texts`` in the code; ``names`` what each is called
    picture  ``picture`` (h,w) or (h,w,3), uint8: ``picture`` in the code
    pictures ``pictures`` (n,h,w): ``pictures`` in the code; ``table``, ``X`` in the code, has them as rows (n,h·w)
    signal   ``signal`` (d,): ``signal`` in the code
    none     nothing: the method makes its own
    ======== ========================================================================================================

    ``target`` (n,) has the classes of rows as numbers from 0, ``target_names`` what they are called; ``y`` in the code.
    """

    id: str
    name: str
    kind: str
    about: str = ""
    code: str = ""
    table: np.ndarray | None = None
    columns: list[str] = field(default_factory=list)
    ratings: pl.DataFrame | None = None
    texts: list[str] | None = None
    picture: np.ndarray | None = None
    pictures: np.ndarray | None = None
    signal: np.ndarray | None = None
    target: np.ndarray | None = None
    target_names: list[str] = field(default_factory=list)
    names: list[str] | None = None
    frame: pl.DataFrame | None = None  # the rows as their owner knows them, with what is no number
    notes: list[str] = field(default_factory=list)

    @property
    def shape(self) -> list[int] | None:
        if self.kind == "ratings" and self.ratings is not None:
            return [self.ratings["user"].n_unique(), self.ratings["item"].n_unique()]
        if self.texts is not None:
            return [len(self.texts)]
        parts = (self.pictures, self.picture, self.signal, self.table)
        return next((list(part.shape) for part in parts if part is not None), None)

    @property
    def n_rows(self) -> int:
        """Of what can be chosen row by row; 0 if nothing can."""
        rows = (self.table, self.texts, self.ratings)
        return next((len(part) for part in rows if part is not None), 0)

    def describe(self) -> dict[str, Any]:
        """What the page is told of it."""
        rows = self.rows(range(min(ROWS, self.n_rows))) if self.n_rows else {"columns": [], "rows": []}
        said: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "kind": self.kind,
            "about": self.about,
            "shape": self.shape,
        }
        said |= {"classes": self.target_names, "notes": self.notes, "n_rows": self.n_rows}
        if self.picture is not None:
            said["picture"] = as_base64(self.picture, self.picture.shape)
        return said | rows

    def rows(self, at: Sequence[int]) -> dict[str, Any]:
        """Some rows as text, and as pictures if they are such."""
        import polars as pl

        frame = self.frame if self.frame is not None else pl.DataFrame({"row": range(self.n_rows)})
        at = [i for i in at if 0 <= i < len(frame)]
        shown = frame[at].with_columns(pl.all().cast(pl.String, strict=False).fill_null(""))
        out: dict[str, Any] = {"columns": shown.columns, "rows": [list(row) for row in shown.iter_rows()]}
        if self.pictures is not None:
            out["pictures"] = as_bytes(self.pictures[at])
        return out


def as_bytes(pictures: np.ndarray) -> dict[str, Any]:
    """Pictures for the page: 8 bits, black to white as they lie between their least and largest number."""
    import numpy as np

    low, high = (float(pictures.min()), float(pictures.max())) if pictures.size else (0.0, 1.0)
    pixels = np.round((pictures - low) * (255 / (high - low or 1.0))).astype(np.uint8)
    return as_base64(pixels, pixels.shape[1:])


def as_base64(pixels: np.ndarray, shape: Sequence[int]) -> dict[str, Any]:
    return {"shape": list(shape), "data": base64.b64encode(pixels.tobytes()).decode()}


# --- bundled ------------------------------------------------------------------------------------------------


def load(id: str, folder: Path | None = None) -> Data:
    """Data by its id: bundled, or kept in the folder under that id by `keep`."""
    if folder is not None and (folder / id / "data.json").is_file():
        return fetch(id, folder)
    if id == "none":
        return Data("none", "none", "none")
    return make(id)


def make(id: str) -> Data:
    """Bundled data, by running its own code."""
    import numpy as np
    import polars as pl

    from twofold.core.checks import InputError

    if id not in BUNDLED:
        raise InputError("this data is no longer there. Bring the file again.")
    known = BUNDLED[id]
    made: dict[str, Any] = {}
    exec(known.code, made)  # our own lines of above
    data = Data(id, known.name, known.kind, known.about, known.code, ratings=made.get("ratings"))
    about = made.get("data", {})  # what the data set has beside: names of columns, classes, rows
    data.texts, data.names, data.picture = made.get("texts"), about.get("names"), made.get("picture")
    data.pictures, data.signal = made.get("pictures"), made.get("signal")
    data.table = made.get("X") if data.pictures is None else data.pictures.reshape(len(data.pictures), -1)
    data.target_names = [str(one) for one in about.get("target_names", [])]
    if "y" in made:
        data.target = np.asarray(made["y"])
        data.target_names = data.target_names or [str(one) for one in np.unique(data.target)]
    if data.pictures is not None:
        data.columns = [f"pixel {i},{j}" for i, j in np.ndindex(data.pictures.shape[1:])]
        data.frame = pl.DataFrame({"class": data.target})
    elif data.table is not None:
        data.columns = [str(one) for one in about.get("feature_names", "xy")]
        data.frame = pl.DataFrame(data.table, schema=data.columns, orient="row").fill_nan(None)
        if data.target is not None:
            data.frame = data.frame.with_columns(pl.Series("class", [data.target_names[i] for i in data.target]))
    elif data.texts is not None:
        data.frame = pl.DataFrame({"name": data.names, "text": data.texts})
    else:
        data.frame = data.ratings
    return data


# --- what users bring ---------------------------------------------------------------------------------------


def read(path: str, name: str, id: str, kind: str | None = None) -> Data:
    """A user's file as data, by the readers of the command line; `name` is what its owner calls it.

    Parameters
    ----------
    path : str
        Where it lies: its ending says how it is read.
    name : str
        Stands in the code and in messages in place of the path.
    id : str
        What the lab knows it by.
    kind : str, optional
        One of KINDS. None: an image by its ending; sound, too; an array with three axes holds pictures; a table with
        columns of users and items holds ratings, one with a column of prose texts.
    """
    from twofold.core.checks import InputError

    try:
        kind = kind or find_kind(path)
        data = {
            "table": read_as_table, "ratings": read_as_ratings, "text": read_as_texts, "picture": read_as_picture,
            "pictures": read_as_pictures, "signal": read_as_signal,
        }[kind](path, name)  # fmt: skip
    except InputError as error:
        raise InputError(str(error).replace(path, name)) from None
    data.id, data.notes = id, [note.replace(path, name) for note in data.notes]
    data.about = "; ".join(data.notes)
    return data


def find_kind(path: str) -> str:
    """What a file seems to hold."""
    from twofold.io import image_sets, images, recordings
    from twofold.io.tables import arrays
    from twofold.io.tables.read import SQLITE, kind

    ending = kind(path)
    if ending in (*images.ENDINGS, ".gif"):
        return "picture"
    if ending in recordings.SOUND:
        return "signal"
    if ending in arrays.ENDINGS:
        return kind_of_array(path, ending)
    if "idx3" in ending or "idx3" in Path(path).name:
        return "pictures"
    from twofold.io.documents import PROSE

    if ending in PROSE or ending in image_sets.SEEN:
        return "text"
    return "table" if ending in SQLITE else kind_of_table(path)


def kind_of_array(path: str, ending: str) -> str:
    import numpy as np

    from twofold.io.tables.arrays import check_npz

    try:
        if ending == ".npz":
            shapes = check_npz(path)
            three = any(len(shapes[name]) == 3 for name in shapes)
            return "pictures" if three else "table"
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape if ending == ".npy" else (0, 0)
    except (ValueError, OSError, EOFError, KeyError):
        return "table"  # whose reader says what is wrong
    return {1: "signal", 3: "pictures"}.get(len(shape), "table")


def kind_of_table(path: str) -> str:
    """By its columns: users and items are ratings, long texts are texts, all else is a table."""
    import polars as pl

    from twofold.io.ratings import named_roles
    from twofold.io.tables.read import read_one
    from twofold.io.tables.table import Piece

    piece = read_one(path)
    if not isinstance(piece, Piece):
        return "table"
    roles = named_roles(piece.frame.columns)
    if roles["user"] is not None and roles["item"] is not None:
        return "ratings"
    for column in piece.frame.iter_columns():
        if column.dtype == pl.String:
            lengths = column.head(1000).str.len_chars().drop_nulls().to_numpy()
            if len(lengths) and lengths.mean() > SHORT_TEXT:
                return "text"
    return "table"


def literal(name: str) -> str:
    """A file's name in Python."""
    return json.dumps(name, ensure_ascii=False)


def read_as_table(path: str, name: str) -> Data:
    import numpy as np
    import polars as pl

    from twofold.core.checks import InputError
    from twofold.io.tables.read import read_table

    table = read_table(path)
    lines = ["from twofold.io.tables.read import read_table", f"table = read_table({literal(name)})"]
    X = table.array()
    lines.append("X = table.array()")
    if not isinstance(X, np.ndarray):
        if X.shape[0] * X.shape[1] > WIDEST:
            raise InputError(f"{path} is sparse, {X.shape[0]:,} by {X.shape[1]:,}: too wide for the lab. Use Python.")
        X = X.toarray()
        lines.append("X = X.toarray()")
    columns = list(table.columns)
    blank = np.asarray(np.isnan(X).all(axis=0))
    if blank.any() and not blank.all():
        X, columns = X[:, ~blank], [one for one, empty in zip(columns, blank.tolist(), strict=True) if not empty]
        lines += ["import numpy as np", "X = X[:, ~np.isnan(X).all(axis=0)]"]
    frame = pl.DataFrame(X, schema=columns, orient="row").fill_nan(None)
    ids = [table.ids.alias(fresh(table.ids.name, frame))] if table.ids is not None else []
    others = [one.alias(fresh(one.name, frame)) for one in table.others.iter_columns()]
    data = Data("", name, "table", table=X, columns=columns, notes=table.notes)
    data.frame = pl.DataFrame([*ids, *frame.iter_columns(), *others])
    data.names = None if table.ids is None else [str(one) for one in table.ids]
    for column in table.others.iter_columns():
        values = column.cast(pl.String, strict=False).fill_null("")
        if 2 <= values.n_unique() <= min(MOST_CLASSES, len(values) // 2):
            classes, data.target = np.unique(values.to_numpy().astype(str), return_inverse=True)
            data.target_names = [str(one) for one in classes]
            text = f'table.others[{literal(column.name)}].cast(str).fill_null("").to_numpy().astype(str)'
            lines += ["import numpy as np", f"y = np.unique({text}, return_inverse=True)[1]"]
            break
    data.code = "\n".join(dict.fromkeys(lines))
    return data


def fresh(name: str, frame: pl.DataFrame) -> str:
    return name if name not in frame.columns else f"{name} "


def read_as_ratings(path: str, name: str) -> Data:
    import polars as pl

    from twofold.io.ratings import read_ratings

    found = read_ratings(path)
    parts = {"user": found.user, "item": found.item}
    code = [
        "import polars as pl",
        "from twofold.io.ratings import read_ratings",
        f"found = read_ratings({literal(name)})",
    ]
    if found.rating is not None:
        parts["rating"] = pl.Series(found.rating)
        code.append('ratings = pl.DataFrame({"user": found.user, "item": found.item, "rating": found.rating})')
    else:
        code.append('ratings = pl.DataFrame({"user": found.user, "item": found.item})')
    ratings = pl.DataFrame(parts)
    return Data("", name, "ratings", code="\n".join(code), ratings=ratings, frame=ratings, notes=found.notes)


def read_as_texts(path: str, name: str) -> Data:
    import polars as pl

    from twofold.io.documents import read_documents

    found = read_documents([path])
    names = [found.call(i) for i in range(len(found.texts))]
    code = f"from twofold.io.documents import read_documents\ntexts = read_documents([{literal(name)}]).texts"
    frame = pl.DataFrame({"name": names, "text": found.texts})
    return Data("", name, "text", code=code, texts=found.texts, names=names, frame=frame, notes=found.notes)


def read_as_picture(path: str, name: str) -> Data:
    """A picture of 8 bits, scaled down if it is large: the lab works on it while one watches."""
    import numpy as np
    from PIL import Image

    from twofold.io.images import read_image

    found = read_image(path)
    pixels, notes = found.pixels, list(found.notes)
    code = ["from twofold.io.images import read_image", f"picture = read_image({literal(name)}).pixels"]
    if pixels.dtype != np.uint8:
        pixels = (pixels // 257).astype(np.uint8)
        code.append('picture = (picture // 257).astype("uint8")')
        notes.append("16 bits are cut to 8")
    h, w = pixels.shape[:2]
    if max(h, w) > SIDE:
        size = max(1, round(w * SIDE / max(h, w))), max(1, round(h * SIDE / max(h, w)))
        pixels = np.asarray(Image.fromarray(pixels).resize(size))
        code = ["import numpy as np", "from PIL import Image", *code]
        code.append(f"picture = np.asarray(Image.fromarray(picture).resize({size}))")
        notes.append(f"scaled down from {w:,} × {h:,} to {size[0]} × {size[1]} pixels")
    return Data("", name, "picture", code="\n".join(code), picture=pixels, notes=notes)


def read_as_pictures(path: str, name: str) -> Data:
    import numpy as np
    import polars as pl

    from twofold.core.checks import InputError
    from twofold.io.image_sets import read_pictures

    found = read_pictures(path)
    if found.pixels.ndim != 3:
        raise InputError(f"{path} has shape {found.pixels.shape}; the lab takes grey pictures (n, h, w).")
    if not (np.issubdtype(found.pixels.dtype, np.number) and np.isfinite(found.pixels).all()):
        raise InputError(f"{path} holds values that are no finite numbers. Pictures need one for every pixel.")
    code = ["from twofold.io.image_sets import read_pictures", f"found = read_pictures({literal(name)})"]
    code += ["pictures = found.pixels", "X = pictures.reshape(len(pictures), -1).astype(float)"]
    n, h, w = found.pixels.shape
    data = Data("", name, "pictures", pictures=found.pixels, notes=found.notes)
    data.table = found.pixels.reshape(n, -1).astype(np.float64)
    data.columns = [f"pixel {i},{j}" for i, j in np.ndindex(h, w)]
    data.frame = pl.DataFrame({"row": np.arange(n)})
    if found.labels is not None:
        classes, data.target = np.unique(found.labels, return_inverse=True)
        data.target_names = [str(one) for one in classes]
        data.frame = data.frame.with_columns(pl.Series("class", [data.target_names[i] for i in data.target]))
        code += ["import numpy as np", "y = np.unique(found.labels, return_inverse=True)[1]"]
    data.code = "\n".join(code)
    return data


def read_as_signal(path: str, name: str) -> Data:
    import numpy as np

    from twofold.core.checks import InputError
    from twofold.io.recordings import read_signals

    if path.lower().endswith(".npy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim == 1 and np.issubdtype(array.dtype, np.number):
            signal = np.array(array, dtype=np.float64)
            if not np.isfinite(signal).all():
                raise InputError(f"{path} holds numbers that are not finite. A signal needs all of its numbers.")
            code = f"import numpy as np\nsignal = np.load({literal(name)}).astype(float)"
            return Data("", name, "signal", code=code, signal=signal)
    found = read_signals(path)
    notes = [*found.notes, *([f"the first of {len(found.signals)} signals is used"] if len(found.signals) > 1 else [])]
    code = f"signal = read_signals({literal(name)}).signals[0].astype(float)"
    code = f"from twofold.io.recordings import read_signals\n{code}"
    return Data("", name, "signal", code=code, signal=found.signals[0].astype(np.float64), notes=notes)


# --- kept between processes ---------------------------------------------------------------------------------

_ARRAYS = ("table", "picture", "pictures", "signal", "target")
_TEXTS = ("id", "name", "kind", "about", "code", "columns", "target_names", "names", "notes")


def keep(data: Data, folder: Path) -> None:
    """Write data under its id, for other processes to `load`: the description last, so that it is there whole."""
    import numpy as np

    place = folder / data.id
    place.mkdir(mode=0o700, exist_ok=True)
    for part in _ARRAYS:
        array = getattr(data, part)
        if array is not None and not (part == "table" and data.pictures is not None):
            np.save(place / f"{part}.npy", array, allow_pickle=False)
    if data.frame is not None:
        data.frame.write_parquet(place / "frame.parquet")
    said = {part: getattr(data, part) for part in _TEXTS}
    (place / "data.json").write_text(json.dumps(said), encoding="utf-8")


def fetch(id: str, folder: Path) -> Data:
    """What `keep` wrote."""
    import numpy as np
    import polars as pl

    place = folder / id
    data = Data(**json.loads((place / "data.json").read_text(encoding="utf-8")))
    for part in _ARRAYS:
        if (place / f"{part}.npy").is_file():
            setattr(data, part, np.load(place / f"{part}.npy", allow_pickle=False))
    if data.pictures is not None:
        data.table = data.pictures.reshape(len(data.pictures), -1).astype(np.float64)
    if (place / "frame.parquet").is_file():
        data.frame = pl.read_parquet(place / "frame.parquet")
    if data.kind == "ratings":
        data.ratings = data.frame
    if data.kind == "text" and data.frame is not None:
        data.texts = data.frame["text"].to_list()
    return data
