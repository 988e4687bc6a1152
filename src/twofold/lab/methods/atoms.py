"""Small pictures of which larger ones are made: atoms that sharpen as they are learned.

A method of this file is a class with the name of its estimator and its settings; `Atoms` draws it. A set of pictures is
taken as it is, of a photograph patches are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.lab.methods import tables
from twofold.lab.methods.linear import BATCHES, fit_in_batches, variance_left_out
from twofold.lab.methods.method import Data, Emit, Frame, Method, Setting, numbers, seed, setting
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

PATCHES = 4000  # drawn from a photograph
JUDGED = 400  # rows that are coded after every sweep
PATCH = Setting(
    name="patch",
    label="pixels across a patch",
    about="Of a photograph, patches of so many pixels down and across are drawn; small pictures are taken whole.",
    type="int",
    default=8,
    min=4,
    max=16,
    advanced=True,
)


class Tiles:
    """The atoms as pictures, how much each is used, and how well some rows are rebuilt."""

    def __init__(self, script: Script, shape: tuple[int, int]):
        self.X, self.shape = script["X"], shape
        self.rows = self.X[:: max(1, len(self.X) // JUDGED)][:JUDGED]
        none = np.zeros((0, *shape), np.float32)
        self.first: Frame = {"atoms": none, "usage": none[:, 0, 0]}, {"examples": len(self.X)}

    def frame(self, model: Any) -> Frame:
        codes = np.asarray(model.transform(self.rows))
        weight = np.abs(codes) * np.linalg.norm(model.components_, axis=1)
        usage = weight.sum(axis=0) / max(float(weight.sum()), 1e-300)
        rebuilt = np.asarray(model.inverse_transform(codes))
        error = float(((rebuilt - self.rows) ** 2).sum() / max(float((self.rows**2).sum()), 1e-300))
        atoms = np.asarray(model.components_).reshape(-1, *self.shape)
        return {"atoms": numbers(atoms), "usage": numbers(usage)}, {"error": error}


class Atoms(Method):
    """Rows that are pictures, each a sum of atoms."""

    family, view = "atoms", "atoms"
    kinds = ("pictures", "picture")
    default_data = "camera"
    centered: ClassVar[bool] = True  # whether patches go without their mean

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        if data.kind == "pictures":
            return
        size = min(chosen["patch"], *script["picture"].shape[:2])
        script.do("grey = picture.mean(axis=2)" if script["picture"].ndim == 3 else "grey = picture.astype(float)")
        script.use("sklearn.feature_extraction.image", "extract_patches_2d")
        draw = f"max_patches={PATCHES}, random_state={chosen['random_state']}"
        most = (script["grey"].shape[0] - size + 1) * (script["grey"].shape[1] - size + 1)
        script.do(f"patches = extract_patches_2d(grey, ({size}, {size}), {draw if most > PATCHES else ''})")
        script.do(f"X = patches.reshape(-1, {size * size})")
        if self.centered:
            script.do("X = X - X.mean(axis=1, keepdims=True)")

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        params = self.parameters(chosen)
        params["n_components"] = min(params["n_components"], *self.most(script["X"]))
        return script.build(self.estimator, params)

    def most(self, X: np.ndarray) -> tuple[int, ...]:
        """Atoms that there can be."""
        return (len(X),)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Tiles:
        shape = data.pictures.shape[1:] if data.pictures is not None else script["patches"].shape[1:]
        return Tiles(script, shape)

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        return tables.code_table(script, names, model, "atom")

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.topics import parts_figure

        atoms = sight.frame(model)[0]["atoms"]
        return parts_figure({f"{data.name}: {self.title}": atoms}, per_row=max(4, round(len(atoms) ** 0.5)))


class KSVDMethod(Atoms):
    id, title, estimator, objective = "ksvd", "K-SVD", "KSVD", "half the squared error"
    compare = ("pca_pictures", "nmf_pictures", "online_dictionary")
    settings = (
        setting("KSVD", "n_components", label="atoms", type="int", default=64, min=2, max=256),
        setting("KSVD", "n_nonzero", label="atoms a picture", type="int", default=4, min=1, max=20),
        setting("KSVD", "init", label="start", default="noise", choices=("noise", "samples", "dct")),
        PATCH,
        setting("KSVD", "max_iter", label="sweeps at most", default=40, min=1, max=500, advanced=True),
        seed("KSVD"),
    )


class OnlineDictionaryMethod(Atoms):
    id, title, estimator = "online_dictionary", "Online dictionary", "OnlineDictionary"
    objective = "half the mean squared error"
    compare = ("ksvd",)
    settings = (
        setting("OnlineDictionary", "n_components", label="atoms", type="int", default=64, min=2, max=256),
        setting("OnlineDictionary", "n_nonzero", label="atoms a picture", type="int", default=4, min=1, max=20),
        setting("OnlineDictionary", "init", label="start", default="noise", choices=("noise", "samples", "dct")),
        setting("OnlineDictionary", "batch_size", label="signals a batch", default=512, min=1, max=4000, advanced=True),
        PATCH,
        setting("OnlineDictionary", "max_iter", label="sweeps at most", default=40, min=1, max=500, advanced=True),
        seed("OnlineDictionary"),
    )


class NMFPicturesMethod(Atoms):
    id, title, estimator, objective = "nmf_pictures", "NMF of pictures", "NMF", "divergence"
    compare = ("pca_pictures", "ksvd")
    default_data = "digits"
    centered = False
    settings = (
        setting("NMF", "n_components", label="parts", type="int", default=16, min=2, max=100),
        setting("NMF", "init", label="start", default="random", choices=("random", "nndsvd", "nndsvda")),
        setting("NMF", "beta_loss", label="loss", default="frobenius", choices=("frobenius", "kullback-leibler")),
        PATCH,
        setting("NMF", "max_iter", label="sweeps at most", default=100, min=1, max=2000, advanced=True),
        seed("NMF"),
    )


class PCAPicturesMethod(Atoms):
    id, title, estimator, objective = "pca_pictures", "PCA of pictures", "PCA", "variance left out"
    compare = ("nmf_pictures", "ksvd")
    default_data = "digits"
    settings = (
        setting("PCA", "n_components", label="components", default=25, min=2, max=100),
        BATCHES,
        PATCH,
        seed("PCA"),
    )

    def most(self, X: np.ndarray) -> tuple[int, ...]:
        return X.shape

    def fit(self, script: Script, model: Any, sight: Any, emit: Emit, chosen: Mapping[str, Any]) -> None:
        fit_in_batches(script, model, sight, emit, chosen["batches"])

    def measure(self, model: Any, sight: Any) -> float:
        return variance_left_out(model, sight)


METHODS = (KSVDMethod(), NMFPicturesMethod(), PCAPicturesMethod(), OnlineDictionaryMethod())
