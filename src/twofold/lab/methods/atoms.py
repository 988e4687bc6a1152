"""Atoms, small pictures of which larger ones are made: learned from a set of pictures, or from patches of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.lab.methods.linear import BATCHES, fit_in_batches, variance_left_out
from twofold.lab.methods.method import Data, Emit, Frame, Method, Values, pack, start_frame
from twofold.lab.methods.setting import Control, Setting, control, sweep_limit
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MAX_PATCHES = 4000  # drawn from a photograph
MAX_CODED_ROWS = 400  # after every sweep
PATCH = Setting(
    "patch",
    "pixels across a patch",
    "Height and width of the patches that are drawn from a photograph; small pictures are taken whole.",
    8,
    min=4,
    max=16,
    advanced=True,
)


class Tiles:
    """The atoms as pictures, the share of each in the codes, and the error of some rebuilt rows."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.X = script["X"]
        self.shape = data.pictures.shape[1:] if data.pictures is not None else script["patches"].shape[1:]
        self.rows = self.X[:: max(1, len(self.X) // MAX_CODED_ROWS)][:MAX_CODED_ROWS]
        none = {"atoms": np.zeros((0, *self.shape)), "usage": np.zeros(0)}
        self.first = start_frame({}, none, examples=len(self.X))

    def frame(self, model: Any) -> Frame:
        codes = np.asarray(model.transform(self.rows))
        weight = np.abs(codes) * np.linalg.norm(model.components_, axis=1)
        usage = weight.sum(axis=0) / max(float(weight.sum()), 1e-300)
        rebuilt = np.asarray(model.inverse_transform(codes))
        error = float(((rebuilt - self.rows) ** 2).sum() / max(float((self.rows**2).sum()), 1e-300))
        return pack(atoms=np.reshape(model.components_, (-1, *self.shape)), usage=usage), {"error": error}


class Atoms(Method):
    """Rows that are pictures, each a sum of atoms."""

    family, view, view_class = "atoms", "atoms", Tiles
    kinds = ("pictures", "picture")
    default_data = "camera"
    centered: ClassVar[bool] = True  # True if the mean of every patch is taken off

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        if data.kind == "pictures":
            return
        size = min(chosen["patch"], *script["picture"].shape[:2])
        script.do("grey = picture.mean(axis=2)" if script["picture"].ndim == 3 else "grey = picture.astype(float)")
        script.use("sklearn.feature_extraction.image", "extract_patches_2d")
        draw = f"max_patches={MAX_PATCHES}, random_state={chosen['random_state']}"
        most = (script["grey"].shape[0] - size + 1) * (script["grey"].shape[1] - size + 1)
        script.do(f"patches = extract_patches_2d(grey, ({size}, {size}), {draw if most > MAX_PATCHES else ''})")
        script.do(f"X = patches.reshape(-1, {size * size})")
        if self.centered:
            script.do("X = X - X.mean(axis=1, keepdims=True)")

    def find_limits(self, script: Script) -> tuple[int, ...]:
        return (len(script["X"]),)

    def keep_steps(self, script: Script, data: Data) -> None:
        """Change nothing: pictures come whole, and patches are rows of their own."""

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        if data.kind == "pictures":
            return super().table(script, data, model)
        codes = np.asarray(model.transform(script["X"]))
        return pl.DataFrame({f"code{c + 1}": codes[:, c] for c in range(codes.shape[1])})

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.topics import parts_figure

        atoms = view.frame(model)[0]["atoms"]
        return parts_figure({f"{data.name}: {self.title}": atoms}, per_row=max(4, round(len(atoms) ** 0.5)))


def _dictionary_controls(*more: Control) -> tuple[Control, ...]:
    return (
        control("n_components", "atoms", default=64, min=2, max=256),
        control("n_nonzero", "atoms a picture", default=4, max=20),
        control("init", "start", default="noise"),
        *more,
        PATCH,
        sweep_limit(default=40),
    )


class KSVDMethod(Atoms):
    id, title, estimator, objective = "ksvd", "K-SVD", "KSVD", "half the squared error"
    compare = ("pca_pictures", "nmf_pictures", "online_dictionary")
    settings = _dictionary_controls()


class NMFPicturesMethod(Atoms):
    id, title, estimator, objective = "nmf_pictures", "NMF of pictures", "NMF", "divergence"
    compare = ("pca_pictures", "ksvd")
    default_data = "digits"
    centered = False
    settings = (
        control("n_components", "parts", default=16, min=2, max=100),
        control("init", "start", default="random", choices=("random", "nndsvd", "nndsvda")),
        control("beta_loss", "loss", choices=("frobenius", "kullback-leibler")),
        PATCH,
        sweep_limit(default=100),
    )


class PCAPicturesMethod(Atoms):
    id, title, estimator, objective = "pca_pictures", "PCA of pictures", "PCA", "variance left out"
    compare = ("nmf_pictures", "ksvd")
    default_data = "digits"
    settings = (
        control("n_components", "components", default=25, min=2, max=100),
        BATCHES,
        PATCH,
    )

    def find_limits(self, script: Script) -> tuple[int, ...]:
        return script["X"].shape

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        fit_in_batches(script, model, view, emit, chosen["batches"])

    def measure(self, model: Any, view: Any) -> float:
        return variance_left_out(model, view)


class OnlineDictionaryMethod(Atoms):
    id, title, estimator = "online_dictionary", "Online dictionary", "OnlineDictionary"
    objective = "half the mean squared error"
    compare = ("ksvd",)
    settings = _dictionary_controls(control("batch_size", "signals a batch", max=4000, advanced=True))
