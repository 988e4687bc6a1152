"""The data of the lab: the catalog's examples and the files of users; one `Data` for every method.

Data is made by a few lines of Python, and these lines are both run here and shown to the user. A user's file is read
once, by the readers of the command line, and kept as arrays, a frame and a description.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.examples import EXAMPLES
from twofold.io.kinds import find_kind
from twofold.lab.script import PART_NAMES, Script

if TYPE_CHECKING:  # it starts threads, which do not outlive the fork of a job
    import polars as pl

KINDS = ("table", "ratings", "text", "picture", "pictures", "signal")
ROWS = 20  # shown first
MAX_COLUMNS, MAX_SHOWN_COLUMNS = 20_000, 60  # of a table, and of its rows as the page lists them
MAX_CLASSES = 20  # values of a column that gives the class of each row
MAX_SIDE_PIXELS = 640  # of a picture
MAX_FILLED_CELLS = 2_000_000  # of a sparse table that is filled up with zeros


@dataclass
class Data:
    """The input of a method. Its parts depend on `kind`; `code` is Python that makes the same ones.

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
    frame: pl.DataFrame | None = None  # the rows as their owner knows them, with columns that hold no numbers
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
    def blanks(self) -> bool:
        """Say whether cells of the table are unknown."""
        return self.table is not None and bool(np.isnan(self.table).any())

    @property
    def n_rows(self) -> int:
        """Number of rows that can be chosen one by one; 0 if none can."""
        rows = (self.table, self.texts, self.ratings)
        return next((len(part) for part in rows if part is not None), 0)

    def describe_briefly(self) -> dict[str, Any]:
        """Return what the lab lists of it."""
        parts = ("id", "name", "kind", "about", "shape", "notes", "n_rows", "blanks")
        return {part: getattr(self, part) for part in parts} | {"classes": self.target is not None}

    def describe(self) -> dict[str, Any]:
        """Return its description for the page."""
        rows = self.rows(range(min(ROWS, self.n_rows))) if self.n_rows else {"columns": [], "rows": []}
        picture = {} if self.picture is None else {"picture": as_base64(self.picture, self.picture.shape)}
        return self.describe_briefly() | picture | rows

    def rows(self, at: Sequence[int]) -> dict[str, Any]:
        """Return some rows as text, and as pictures if they have them."""
        import polars as pl

        frame = self.frame if self.frame is not None else pl.DataFrame({"row": range(self.n_rows)})
        at = [i for i in at if 0 <= i < len(frame)]
        shown = frame[at, :MAX_SHOWN_COLUMNS].with_columns(pl.all().cast(pl.String, strict=False).fill_null(""))
        out: dict[str, Any] = {"columns": shown.columns, "rows": [list(row) for row in shown.iter_rows()]}
        if self.pictures is not None:
            out["pictures"] = as_bytes(self.pictures[at])
        return out


def as_bytes(pictures: np.ndarray) -> dict[str, Any]:
    """Write pictures for the page: 8 bits, from black, their least number, to white, their largest."""
    low, high = (float(pictures.min()), float(pictures.max())) if pictures.size else (0.0, 1.0)
    pixels = np.round((pictures - low) * (255 / (high - low or 1.0))).astype(np.uint8)
    return as_base64(pixels, pixels.shape[1:])


def as_base64(pixels: np.ndarray, shape: Sequence[int]) -> dict[str, Any]:
    return {"shape": list(shape), "data": base64.b64encode(pixels.tobytes()).decode()}


# --- bundled ------------------------------------------------------------------------------------------------


def load(id: str, folder: Path | None = None) -> Data:
    """Load data by its id: an example, or data that `keep` has written into the folder."""
    if folder is not None and (folder / id / "data.json").is_file():
        return fetch(id, folder)
    return make(id)


def make(id: str) -> Data:
    """Make an example, by running its own code."""
    import polars as pl

    if id not in EXAMPLES:
        raise InputError("this data is no longer there. Bring the file again.")
    known = EXAMPLES[id]
    script = Script()
    script.run(known.code)
    data = Data(id, known.name, known.kind, known.about, known.code, **find_parts(script))
    source = script.names.get("data", {})  # the data set has names of columns, classes, rows
    data.names = source.get("names")
    data.target_names = [str(one) for one in source.get("target_names", [])]
    if data.target is not None:
        data.target_names = data.target_names or [str(one) for one in np.unique(data.target)]
    if data.pictures is not None:
        data.columns = name_pixels(data.pictures)
        data.frame = pl.DataFrame({"class": data.target})
    elif data.table is not None:
        data.columns = [str(one) for one in source.get("feature_names", "xy")]
        data.frame = pl.DataFrame(data.table, schema=data.columns, orient="row").fill_nan(None)
        if data.target is not None:
            data.frame = data.frame.with_columns(pl.Series("class", [data.target_names[i] for i in data.target]))
    elif data.texts is not None:
        data.frame = pl.DataFrame({"name": data.names, "text": data.texts})
    else:
        data.frame = data.ratings
    return data


def find_parts(script: Script) -> dict[str, Any]:
    """Return the parts of `Data` that the lines of a script have bound."""
    return {part: script[name] for part, name in PART_NAMES.items() if name in script}


def name_pixels(pictures: np.ndarray) -> list[str]:
    return [f"pixel {i},{j}" for i in range(pictures.shape[1]) for j in range(pictures.shape[2])]


# --- what users bring ---------------------------------------------------------------------------------------


def read(path: str, name: str, id: str, kind: str | None = None) -> Data:
    """Read a user's file as data, by the readers of the command line.

    Parameters
    ----------
    path : str
        Its ending says how it is read.
    name : str
        The user's name of the file, which the code and messages have in place of the path.
    id : str
        Its id in the lab.
    kind : str, optional
        One of KINDS. None: an image by its ending; sound, too; an array with three axes holds pictures; a table with
        columns of users and items holds ratings, one with a column of prose texts.
    """
    script = Script()
    script.names["FILE"] = path
    try:
        kind = kind or find_kind(path)
        parts = {
            "table": read_as_table, "ratings": read_as_ratings, "text": read_as_texts, "picture": read_as_picture,
            "pictures": read_as_pictures, "signal": read_as_signal,
        }[kind](script, path)  # fmt: skip
    except InputError as error:
        raise InputError(str(error).replace(path, name)) from None
    parts["notes"] = [note.replace(path, name) for note in parts.get("notes", ())]
    code = script.text.replace("FILE", literal(name), 1).strip()
    return Data(id, name, kind, "; ".join(parts["notes"]), code, **find_parts(script), **parts)


def literal(name: str) -> str:
    """Write a name in Python."""
    return json.dumps(name, ensure_ascii=False)


def read_as_table(script: Script, path: str) -> dict[str, Any]:
    import polars as pl

    table = script.read("twofold.io.tables.read", "table = read_table(FILE)")
    if len(table.columns) > MAX_COLUMNS:
        raise InputError(f"{path} has {len(table.columns):,} columns; the lab takes up to {MAX_COLUMNS:,}. Use Python.")
    X = script.do("X = table.array()")
    if not isinstance(X, np.ndarray):
        if X.shape[0] * X.shape[1] > MAX_FILLED_CELLS:
            raise InputError(f"{path} is sparse, {X.shape[0]:,} by {X.shape[1]:,}: too wide for the lab. Use Python.")
        X = script.do("X = X.toarray()")
    columns = script.do("columns = np.array(table.columns, dtype=object)")
    blank = np.asarray(np.isnan(X).all(axis=0))
    if blank.any() and not blank.all():
        script.do("columns = columns[~np.isnan(X).all(axis=0)]")
        X = script.do("X = X[:, ~np.isnan(X).all(axis=0)]")
    columns = [str(one) for one in script["columns"]]
    frame = pl.DataFrame(X, schema=columns, orient="row").fill_nan(None) if table.frame is None else table.frame
    classes: list[str] = []
    for column in table.others.iter_columns():
        values = column.cast(pl.String, strict=False).fill_null("")
        if 2 <= values.n_unique() <= min(MAX_CLASSES, len(values) // 2):
            text = f'table.others[{literal(column.name)}].cast(str).fill_null("").to_numpy().astype(str)'
            script.do(f"y = np.unique({text}, return_inverse=True)[1]")
            classes = [str(one) for one in np.unique(values.to_numpy().astype(str))]
            break
    return {
        "columns": columns,
        "frame": frame,
        "names": None if table.ids is None else [str(one) for one in table.ids],
        "target_names": classes,
        "notes": table.notes,
    }


def read_as_ratings(script: Script, path: str) -> dict[str, Any]:
    found = script.read("twofold.io.ratings", "found = read_ratings(FILE)")
    script.use("polars", "DataFrame")
    rating = "" if found.rating is None else ', "rating": found.rating'
    ratings = script.do(f'ratings = DataFrame({{"user": found.user, "item": found.item{rating}}})')
    return {"frame": ratings, "notes": found.notes}


def read_as_texts(script: Script, path: str) -> dict[str, Any]:
    import polars as pl

    found = script.read("twofold.io.documents", "found = read_documents([FILE])")
    texts = script.do("texts = found.texts")
    names = [found.call(i) for i in range(len(texts))]
    return {"names": names, "frame": pl.DataFrame({"name": names, "text": texts}), "notes": found.notes}


def read_as_picture(script: Script, path: str) -> dict[str, Any]:
    """Read a picture of 8 bits, scaled down if it is large: the lab works on it while one looks."""
    found = script.read("twofold.io.images", "found = read_image(FILE)")
    picture, notes = script.do("picture = found.pixels"), list(found.notes)
    if picture.dtype != "uint8":
        script.do('picture = (picture // 257).astype("uint8")')
        notes.append("16 bits are cut to 8")
    h, w = picture.shape[:2]
    if max(h, w) > MAX_SIDE_PIXELS:
        size = max(1, round(w * MAX_SIDE_PIXELS / max(h, w))), max(1, round(h * MAX_SIDE_PIXELS / max(h, w)))
        script.use("PIL", "Image")
        script.do(f"picture = np.asarray(Image.fromarray(picture).resize({size}))")
        notes.append(f"scaled down from {w:,} × {h:,} to {size[0]} × {size[1]} pixels")
    return {"notes": notes}


def read_as_pictures(script: Script, path: str) -> dict[str, Any]:
    import polars as pl

    found = script.read("twofold.io.image_sets", "found = read_pictures(FILE)")
    pictures = script.do("pictures = found.pixels")
    if pictures.ndim != 3:
        raise InputError(f"{path} has shape {pictures.shape}; the lab takes gray pictures (n, h, w).")
    if not (np.issubdtype(pictures.dtype, np.number) and np.isfinite(pictures).all()):
        raise InputError(f"{path} holds values that are no finite numbers. Pictures need one for every pixel.")
    script.do("X = pictures.reshape(len(pictures), -1).astype(float)")
    frame, classes = pl.DataFrame({"row": np.arange(len(pictures))}), list[str]()
    if found.labels is not None:
        target = script.do("y = np.unique(found.labels, return_inverse=True)[1]")
        classes = [str(one) for one in np.unique(found.labels)]
        frame = frame.with_columns(pl.Series("class", [classes[i] for i in target]))
    return {"columns": name_pixels(pictures), "target_names": classes, "frame": frame, "notes": found.notes}


def read_as_signal(script: Script, path: str) -> dict[str, Any]:
    if path.lower().endswith(".npy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim == 1 and np.issubdtype(array.dtype, np.number):
            if not np.isfinite(script.do("signal = np.load(FILE).astype(float)")).all():
                raise InputError(f"{path} holds numbers that are not finite. A signal needs all of its numbers.")
            return {}
    found = script.read("twofold.io.recordings", "found = read_signals(FILE)")
    script.do("signal = found.signals[0].astype(float)")
    several = len(found.signals) > 1
    return {"notes": [*found.notes, *([f"the first of {len(found.signals)} signals is used"] if several else [])]}


# --- kept between processes ---------------------------------------------------------------------------------

_ARRAYS = ("table", "picture", "pictures", "signal", "target")
_TEXTS = ("id", "name", "kind", "about", "code", "columns", "target_names", "names", "notes")


def keep(data: Data, folder: Path) -> None:
    """Write data under its id, for other processes to `load`: the description last, so that it is there whole."""
    place = folder / data.id
    place.mkdir(mode=0o700, exist_ok=True)
    for part in _ARRAYS:
        array = getattr(data, part)
        if array is not None and not (part == "table" and data.pictures is not None):
            np.save(place / f"{part}.npy", array, allow_pickle=False)
    if data.frame is not None:
        data.frame.write_parquet(place / "frame.parquet")
    texts = {part: getattr(data, part) for part in _TEXTS}
    (place / "data.json").write_text(json.dumps(texts), encoding="utf-8")


def fetch(id: str, folder: Path) -> Data:
    """Read what `keep` wrote."""
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
