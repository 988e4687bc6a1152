"""Networks: codes of two numbers, a space to walk in, digits drawn pixel by pixel, a generator against its critic.

Networks are small, so that an epoch is quick. The methods are offered where torch is installed; it is imported when one
of them runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.linear import Axes
from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Values, last_objective, pack, start_frame
from twofold.lab.methods.setting import Control, Setting, control
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

GRID_SIDE = 8  # pictures of the latent grid
PICTURES = 16  # drawn pixel by pixel
CRITIC_SIDE = 40  # cells of the critic's map
GENERATED_POINTS = 600
MAX_DEVIATIONS = 2.5  # standard deviations of the latent space that are shown
UNITS = Setting(
    "units",
    "hidden units",
    "Units of the first hidden layer; a second one has half as many, and the way back has them in reverse.",
    64,
    min=2,
    max=512,
)
EXAMPLES = Setting(
    "examples",
    "pictures taught",
    "Number of pictures that the network learns from; with few of them an epoch is quick.",
    600,
    min=50,
    max=20_000,
)
SHAPE = Setting(
    "shape",
    "points",
    "The points that the generator is to imitate: eight heaps in a ring, two half-moons, or a spiral.",
    "ring",
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


def training_controls(epochs: int, rate: float, batch: int) -> tuple[Control, ...]:
    step: dict[str, Any] = {"default": rate, "min": 1e-5, "max": 0.1, "log": True, "advanced": True}
    return (
        control("max_iter", "epochs", default=epochs, max=2000, about="Epochs."),
        control("learning_rate_init", "first step", **step),
        control("batch_size", "rows a step", default=batch, max=2000, advanced=True),
    )


def as_gray(pictures: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """Convert pictures to bytes from black to white."""
    low, high = limits
    return np.clip(np.rint((pictures - low) / max(high - low, 1e-300) * 255), 0, 255).astype(np.uint8)


class Plane:
    """Rows by their first two codes."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.X, self.shape = script["X"], () if data.pictures is None else data.pictures.shape[1:]
        self.limits = float(np.nanmin(self.X)), float(np.nanmax(self.X))
        self.target = script.names.get("y")
        names, columns = [str(name) for name in data.target_names], tables.column_names(data, self.X.shape[1])
        static, points = {"colors": tables.class_colors(script)}, {"points": np.zeros((len(self.X), 2))}
        self.first = start_frame(static, points, target_names=names, columns=columns)

    def codes(self, model: Any) -> np.ndarray:
        return tables.first_two(np.asarray(model.transform(self.X)))

    def frame(self, model: Any) -> Frame:
        return pack(points=self.codes(model)), {}


class AutoencoderMethod(Axes):
    id, title, estimator, objective = "autoencoder", "Autoencoder", "Autoencoder", "mean squared error of a row"
    family, view, view_class, needs = "deep", "codes", Plane, "torch"
    compare: ClassVar[tuple[str, ...]] = ("pca", "linear_autoencoder", "vae")
    settings = (
        control("n_components", "numbers a code", max=32),
        UNITS,
        control("activation", about="The activation of hidden units."),
        tables.STANDARDIZE,
        *training_controls(60, 0.003, 128),
    )

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | {
            "hidden_layer_sizes": (chosen["units"], max(1, chosen["units"] // 2))
        }

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        """Draw the codes in the plane, in the colors of the target."""
        from twofold.plots.models.linear import planes_figure

        target = np.zeros(len(view.X), dtype=int) if view.target is None else view.target
        codes = {f"{data.name}: {self.title}": view.codes(model)}
        return planes_figure(codes, np.unique(target, return_inverse=True)[1])


class Latent(Plane):
    """The codes, and the pictures of a grid of codes."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        super().__init__(script, data, chosen)
        from scipy.stats import norm

        at = norm.ppf((np.arange(GRID_SIDE) + 0.5) / GRID_SIDE)
        self.grid = np.stack(np.meshgrid(at, at[::-1]), axis=-1).reshape(-1, 2)
        arrays, meta = self.first
        blank = np.zeros((len(self.grid), *self.shape), np.uint8)
        self.first = arrays | {"samples": blank}, meta | {"range": [-MAX_DEVIATIONS, MAX_DEVIATIONS] * 2}

    def decode(self, model: Any, at: np.ndarray) -> np.ndarray:
        """(n,h,w) the pictures of places in the plane; further numbers of a code are 0."""
        codes = np.zeros((len(at), model.n_components))
        codes[:, :2] = at[:, : model.n_components]
        return as_gray(np.asarray(model.inverse_transform(codes)).reshape(-1, *self.shape), self.limits)

    def frame(self, model: Any) -> Frame:
        arrays, meta = super().frame(model)
        return arrays | {"samples": self.decode(model, self.grid)}, meta


class VAEMethod(AutoencoderMethod):
    id, title, estimator, objective = "vae", "Variational autoencoder", "VAE", "negative evidence lower bound"
    view, view_class = "latent", Latent
    kinds = ("pictures",)
    compare = ("autoencoder", "pca")
    settings = (
        control("n_components", "numbers a code", default=2, min=2, max=32),
        UNITS,
        control("beta", min=0.01, max=20, log=True),
        *training_controls(60, 0.003, 128),
    )

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | {"image_shape": script["pictures"].shape[1:]}

    def ask_decode(self, result: Result, at: Sequence[float]) -> Frame:
        """Return the picture at a place of the plane."""
        place = np.asarray(at, dtype=np.float64)
        if place.shape != (2,) or not np.isfinite(place).all():
            raise InputError(f"at is {at!r}; a place has two numbers.")
        return {"picture": result.view.decode(result.model, place[None])[0]}, {}


class Sheet:
    """Pictures that are drawn, from black to white."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        assert data.pictures is not None
        self.X, self.shape = script["X"], data.pictures.shape[1:]
        self.limits = float(self.X.min()), float(self.X.max())
        self.pixels = np.full((PICTURES, self.X.shape[1]), self.limits[0])
        self.first = start_frame({}, {"samples": self.bytes()}, stage="learning")

    def bytes(self) -> np.ndarray:
        return as_gray(self.pixels.reshape(-1, *self.shape), self.limits)

    def frame(self, model: Any) -> Frame:
        return {"samples": self.bytes()}, {"stage": "learning" if np.all(self.pixels == self.limits[0]) else "drawn"}


class PixelCNNMethod(Method):
    id, title, estimator, objective = "pixelcnn", "PixelCNN", "PixelCNN", "mean −log p of a picture"
    family, view, view_class, needs = "deep", "pixels", Sheet, "torch"
    kinds = ("pictures",)
    default_data = "digits"
    downloads = ("model", "figure", "python")
    settings = (
        control("channels", default=12, min=2, max=128),
        control("n_layers", "layers", default=2, max=12),
        EXAMPLES,
        *training_controls(12, 0.005, 64),
    )

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        if len(script["X"]) > chosen["examples"]:
            script.do(f"X = X[:{chosen['examples']}]")

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | {"image_shape": script["pictures"].shape[1:]}

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Train, then draw all pictures pixel by pixel, each given those before."""
        super().fit(script, model, view, emit, chosen)
        h, w = view.shape
        for pixel in range(h * w):
            place = np.zeros((h, w), dtype=bool)
            place.flat[pixel] = True
            view.pixels = model.complete(view.pixels, place, random_state=chosen["random_state"] + pixel)
            arrays, meta = view.frame(model)
            meta |= {"stage": f"drawing pixel {pixel + 1} of {h * w}"}
            if emit(model.n_iter_ + 1 + pixel, last_objective(model), arrays, meta):
                break

    def count_sweeps(self, model: Any, view: Any) -> int:
        return int(model.n_iter_) + view.X.shape[1]

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.images import training_figure

        return training_figure(model.history_, [("drawn pixel by pixel", view.bytes())], f"{data.name}: {self.title}")


class Game:
    """Real points, points of the generator, and the critic's judgment of each place."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.X = script["X"]
        reach = float(np.abs(self.X).max()) * 1.25
        side = np.linspace(-reach, reach, CRITIC_SIDE)
        self.grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        empty = {"fake": np.zeros((0, 2)), "critic": np.full((CRITIC_SIDE, CRITIC_SIDE), 0.5)}
        self.first = start_frame({"real": self.X}, empty, range=[-reach, reach, -reach, reach])

    def frame(self, model: Any) -> Frame:
        critic = np.asarray(model.judge(self.grid)).reshape(CRITIC_SIDE, CRITIC_SIDE)
        parts = {name: float(model.history_[name][-1]) for name in ("divergence", "diversity")}
        return pack(fake=model.sample(GENERATED_POINTS, random_state=0), critic=critic), parts


class GANMethod(Method):
    id, title, estimator, objective = "gan", "Generator against critic", "GAN", "value of the game"
    family, view, view_class, needs = "deep", "plane", Game, "torch"
    kinds = ("none", "table", "pictures")
    default_data = "none"
    settings = (
        SHAPE,
        UNITS,
        control("penalty"),
        control("penalty_weight", default=0.05, max=100, log=True, advanced=True),
        *training_controls(200, 0.003, 64),
    )

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        if data.kind == "none":
            turn, at = SHAPES[chosen["shape"]]
            script.do(f"rng = np.random.default_rng({chosen['random_state']})")
            script.do(turn)
            script.do(f"X = np.column_stack([{at}]) + rng.normal(0, 0.08, (1000, 2))")
        else:
            tables.standardize(script, data, "auto")
            script.use("twofold", "PCA")
            script.do("plane = PCA(2, random_state=0).fit(X)")
            script.do("X = plane.transform(X)")
            rest = 1 - float(script["plane"].explained_variance_ratio_.sum())
            script.names["said"].append(
                f"points in the plane of the first two principal axes are imitated; the other {rest:.0%} of the "
                "variance are left out"
            )

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | {"hidden_layer_sizes": (chosen["units"],) * 2, "n_components": 4}

    def keep_steps(self, script: Script, data: Data) -> None:
        """Change nothing: the model draws points of the plane, and takes none."""

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(np.asarray(model.sample(1000, random_state=0)), schema=["x", "y"])

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.topics import documents_figure

        made = np.asarray(model.sample(len(view.X), random_state=0))
        groups = ["real"] * len(view.X) + ["generated"] * len(made)
        return documents_figure(np.concatenate([view.X, made]), groups)
