"""Networks: codes of two numbers, a space to walk in, digits drawn pixel by pixel, a generator against its critic.

Networks are small, so that an epoch is quick. The methods are offered where torch is installed; it is imported when one
of them runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.linear import Axes
from twofold.lab.methods.method import (
    Data,
    Emit,
    Frame,
    Method,
    Result,
    Setting,
    last_objective,
    marks,
    numbers,
    seed,
    setting,
)
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

ACROSS = 8  # pictures of the latent grid
DRAWN = 16  # pictures drawn pixel by pixel
GRID = 40  # cells of the critic's map
FAKE = 600  # points that the generator draws
REACH = 2.5  # standard deviations of the latent space that are shown
UNITS = Setting(
    name="units",
    label="hidden units",
    about="Units of the first hidden layer; a second one has half as many, and the way back has them in reverse.",
    type="int",
    default=64,
    min=2,
    max=512,
)
EXAMPLES = Setting(
    name="examples",
    label="pictures taught",
    about="The network learns from so many pictures, so that an epoch is quick.",
    type="int",
    default=600,
    min=50,
    max=20_000,
)
SHAPE = Setting(
    name="shape",
    label="points",
    about="What the generator is to imitate: eight heaps in a ring, two half-moons, or a spiral.",
    type="choice",
    default="ring",
    choices=("ring", "moons", "spiral"),
)
SHAPES = {
    "ring": ("turn = 2 * np.pi * rng.integers(8, size=1000) / 8", "2 * np.cos(turn), 2 * np.sin(turn)"),
    "moons": (
        "turn, side = np.pi * rng.random(1000), rng.integers(2, size=1000)",
        "np.where(side, 1 - np.cos(turn), np.cos(turn)) - 0.5, np.where(side, 0.5 - np.sin(turn), np.sin(turn)) - 0.25",
    ),
    "spiral": ("turn = 3 * np.pi * np.sqrt(rng.random(1000))", "turn * np.cos(turn) / 4, turn * np.sin(turn) / 4"),
}


def _training(estimator: str, epochs: int, rate: float, batch: int) -> tuple[Setting, ...]:
    about = {"about": "Epochs."}
    return (
        setting(estimator, "max_iter", label="epochs", default=epochs, min=1, max=2000, **about),
        setting(
            estimator,
            "learning_rate_init",
            label="first step",
            default=rate,
            min=1e-5,
            max=0.1,
            log=True,
            advanced=True,
        ),
        setting(estimator, "batch_size", label="rows a step", default=batch, min=1, max=2000, advanced=True),
        seed(estimator),
    )


def as_bytes(pictures: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """Pictures as bytes from black to white."""
    low, high = limits
    return np.clip(np.rint((pictures - low) / max(high - low, 1e-300) * 255), 0, 255).astype(np.uint8)


class Plane:
    """Rows by their first two codes."""

    def __init__(self, script: Script, data: Data):
        self.X, self.shape = script["X"], () if data.pictures is None else data.pictures.shape[1:]
        self.limits = float(np.nanmin(self.X)), float(np.nanmax(self.X))
        self.target = script.names.get("y")
        static = {"colors": marks(tables.colors_of(script))}
        names = [str(name) for name in data.target_names]
        self.first: Frame = (
            {**static, "points": np.zeros((len(self.X), 2), np.float32)},
            {"static": [*static], "target_names": names, "columns": tables.column_names(data, self.X.shape[1])},
        )

    def codes(self, model: Any) -> np.ndarray:
        codes = np.asarray(model.transform(self.X))[:, :2]
        return np.column_stack([codes, np.zeros((len(codes), 2 - codes.shape[1]))])

    def frame(self, model: Any) -> Frame:
        return {"points": numbers(self.codes(model))}, {}


class AutoencoderMethod(Axes):
    id, title, estimator, objective = "autoencoder", "Autoencoder", "Autoencoder", "mean squared error of a row"
    family, view, needs = "deep", "codes", "torch"
    compare = ("pca", "linear_autoencoder", "vae")
    settings = (
        setting("Autoencoder", "n_components", label="numbers a code", default=2, min=1, max=32),
        UNITS,
        setting(
            "Autoencoder",
            "activation",
            default="relu",
            choices=("relu", "tanh", "logistic", "identity"),
            about="Of hidden units.",
        ),
        tables.STANDARDIZE,
        *_training("Autoencoder", 60, 0.003, 128),
    )

    def parameters(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        units = chosen["units"]
        return super().parameters(chosen) | {"hidden_layer_sizes": (units, max(1, units // 2))}

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Any:
        return Plane(script, data)

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        return planes(sight, data, model, self.title)


def planes(sight: Any, data: Data, model: Any, title: str) -> Figure:
    """The codes in the plane, in the colors of the target."""
    from twofold.plots.models.linear import planes_figure

    target = np.zeros(len(sight.X), dtype=int) if sight.target is None else sight.target
    return planes_figure({f"{data.name}: {title}": sight.codes(model)}, np.unique(target, return_inverse=True)[1])


class Latent(Plane):
    """The codes, and what a grid of codes looks like."""

    def __init__(self, script: Script, data: Data):
        super().__init__(script, data)
        from scipy.stats import norm

        at = norm.ppf((np.arange(ACROSS) + 0.5) / ACROSS)
        self.grid = np.stack(np.meshgrid(at, at[::-1]), axis=-1).reshape(-1, 2)
        arrays, meta = self.first
        blank = np.zeros((len(self.grid), *self.shape), np.uint8)
        self.first = arrays | {"samples": blank}, meta | {"range": [-REACH, REACH, -REACH, REACH]}

    def decode(self, model: Any, at: np.ndarray) -> np.ndarray:
        """Pictures (n,h,w) of places in the plane; further numbers of a code are 0."""
        codes = np.zeros((len(at), model.n_components))
        codes[:, :2] = at[:, : model.n_components]
        return as_bytes(np.asarray(model.inverse_transform(codes)).reshape(-1, *self.shape), self.limits)

    def frame(self, model: Any) -> Frame:
        arrays, meta = super().frame(model)
        return arrays | {"samples": self.decode(model, self.grid)}, meta


class VAEMethod(Method):
    id, title, estimator, objective = "vae", "Variational autoencoder", "VAE", "negative evidence lower bound"
    family, view, needs = "deep", "latent", "torch"
    kinds = ("pictures",)
    default_data = "digits"
    compare = ("autoencoder", "pca")
    settings = (
        setting("VAE", "n_components", label="numbers a code", default=2, min=2, max=32),
        UNITS,
        setting("VAE", "beta", default=1.0, min=0.01, max=20, log=True),
        *_training("VAE", 60, 0.003, 128),
    )

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        params = self.parameters(chosen) | {"hidden_layer_sizes": (chosen["units"], max(1, chosen["units"] // 2))}
        return script.build(self.estimator, params | {"image_shape": script["pictures"].shape[1:]})

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Latent:
        return Latent(script, data)

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        return tables.code_table(script, names, model)

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        return planes(sight, data, model, self.title)

    def ask_decode(self, result: Result, at: Sequence[float]) -> Frame:
        """The picture at a place of the plane."""
        place = np.asarray(at, dtype=np.float64)
        if place.shape != (2,) or not np.isfinite(place).all():
            raise InputError(f"at is {at!r}; a place has two numbers.")
        return {"picture": result.sight.decode(result.model, place[None])[0]}, {}

    def ask_reconstruct(self, result: Result, row: int, k: int = 0) -> dict[str, Any]:
        """A row from its code, beside the row itself."""
        return Axes.ask_reconstruct(self, result, row, k)  # type: ignore[arg-type]


class Sheet:
    """Pictures that are drawn, from black to white."""

    def __init__(self, script: Script, data: Data):
        assert data.pictures is not None
        self.X, self.shape = script["X"], data.pictures.shape[1:]
        self.limits = float(self.X.min()), float(self.X.max())
        self.random_state = 0
        self.drawn = np.full((DRAWN, self.X.shape[1]), self.limits[0])
        self.first: Frame = {"samples": self.bytes()}, {"stage": "learning"}

    def bytes(self) -> np.ndarray:
        return as_bytes(self.drawn.reshape(-1, *self.shape), self.limits)

    def frame(self, model: Any) -> Frame:
        return {"samples": self.bytes()}, {"stage": "learning" if np.all(self.drawn == self.limits[0]) else "drawn"}


class PixelCNNMethod(Method):
    id, title, estimator, objective = "pixelcnn", "PixelCNN", "PixelCNN", "mean −log p of a picture"
    family, view, needs = "deep", "pixels", "torch"
    kinds = ("pictures",)
    default_data = "digits"
    takes = ("model", "figure", "python")
    settings = (
        setting("PixelCNN", "channels", default=12, min=2, max=128),
        setting("PixelCNN", "n_layers", label="layers", default=2, min=1, max=12),
        EXAMPLES,
        *_training("PixelCNN", 12, 0.005, 64),
    )

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        if len(script["X"]) > chosen["examples"]:
            script.do(f"X = X[:{chosen['examples']}]")

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        return script.build(self.estimator, self.parameters(chosen) | {"image_shape": script["pictures"].shape[1:]})

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Sheet:
        return Sheet(script, data)

    def fit(self, script: Script, model: Any, sight: Any, emit: Emit, chosen: Mapping[str, Any]) -> None:
        """Train, then draw all pictures pixel by pixel, each given those before."""
        super().fit(script, model, sight, emit, chosen)
        h, w = sight.shape
        for pixel in range(h * w):
            place = np.zeros((h, w), dtype=bool)
            place.flat[pixel] = True
            sight.drawn = model.complete(sight.drawn, place, random_state=chosen["random_state"] + pixel)
            arrays, meta = sight.frame(model)
            emit(
                model.n_iter_ + 1 + pixel,
                last_objective(model),
                arrays,
                meta | {"stage": f"drawing pixel {pixel + 1} of {h * w}"},
            )

    def count_sweeps(self, model: Any, sight: Any) -> int:
        return int(model.n_iter_) + sight.X.shape[1]

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.deep import training_figure

        return training_figure(model.history_, [("drawn pixel by pixel", sight.bytes())], f"{data.name}: {self.title}")


class Game:
    """Real points, what the generator draws, and how real the critic thinks each place is."""

    def __init__(self, script: Script):
        self.X = script["X"]
        reach = float(np.abs(self.X).max()) * 1.25
        side = np.linspace(-reach, reach, GRID)
        self.grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        static = {"real": numbers(self.X)}
        empty = {"fake": np.zeros((0, 2), np.float32), "critic": np.full((GRID, GRID), 0.5, np.float32)}
        self.first: Frame = static | empty, {"static": ["real"], "range": [-reach, reach, -reach, reach]}

    def frame(self, model: Any) -> Frame:
        critic = np.asarray(model.judge(self.grid)).reshape(GRID, GRID)
        parts = {name: float(model.history_[name][-1]) for name in ("divergence", "diversity")}
        return {"fake": numbers(model.sample(FAKE, random_state=0)), "critic": numbers(critic)}, parts


class GANMethod(Method):
    id, title, estimator, objective = "gan", "Generator against critic", "GAN", "value of the game"
    family, view, needs = "deep", "plane", "torch"
    kinds = ("none", "table", "pictures")
    default_data = "none"
    takes = ("model", "table", "figure", "python")
    settings = (
        SHAPE,
        UNITS,
        setting("GAN", "penalty", default="r1", choices=("r1", "spectral", "none")),
        setting("GAN", "penalty_weight", default=0.05, min=0, max=100, log=True, advanced=True),
        *_training("GAN", 200, 0.003, 64),
    )

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        if data.kind == "none":
            turn, at = SHAPES[chosen["shape"]]
            script.do(f"rng = np.random.default_rng({chosen['random_state']})")
            script.do(turn)
            script.do(f"X = np.column_stack([{at}]) + rng.normal(0, 0.08, (1000, 2))")
        else:
            tables.standardize(script, data, "auto")
            script.use("twofold", "PCA")
            script.do("X = PCA(2, random_state=0).fit_transform(X)")

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        sizes = {"hidden_layer_sizes": (chosen["units"], chosen["units"]), "n_components": 4}
        params = {name: chosen[name] for name in chosen if name not in ("shape", "units")}
        return script.build(self.estimator, params | sizes)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Game:
        return Game(script)

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(np.asarray(model.sample(1000, random_state=0)), schema=["x", "y"])

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.topics import documents_figure

        made = np.asarray(model.sample(len(sight.X), random_state=0))
        groups = ["real"] * len(sight.X) + ["generated"] * len(made)
        return documents_figure(np.concatenate([sight.X, made]), groups)


METHODS = (AutoencoderMethod(), VAEMethod(), PixelCNNMethod(), GANMethod())
