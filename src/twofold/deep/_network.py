"""The bases of all networks: parameters of the training, rows and images as tensors, the module behind the model."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.utils.data import DataLoader

from twofold.core.checks import InputError, reason_of
from twofold.core.engine.local import fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table
from twofold.deep._rows import PIECE_ROWS, NetworkRows, OpenedRows, hold_rows, open_rows, read_loader, read_rows
from twofold.deep._train import (
    NEW_FIT,
    NO_WEIGHTS,
    SCHEDULES,
    SOLVERS,
    Player,
    PreviousFit,
    State,
    check_device,
    choose_device,
    limit_threads,
    seed_torch,
    train,
)

Shape = tuple[int, int, int]  # of an image in the network: channels, height, width
MIN_UNITS_TO_TRANSPOSE = 16  # of a layer that narrows, whose gradient is faster with weights ordered by input
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "logistic": nn.Sigmoid,
    "tanh": nn.Tanh,
    "identity": nn.Identity,
}


@dataclass(eq=False, repr=False)
class Network(Model):
    """Base of the networks: it holds the parameters of the training.

    Constructors are those of dataclasses: a subclass names its own parameters, and those of its bases that have another
    default. It builds its module in `_build`, and trains it with `_train`.
    """

    _allow_sparse: ClassVar[bool] = False
    _dtype: ClassVar[Any] = np.float32  # of all computations
    _parameter_constraints: ClassVar[dict] = {
        "solver": [StrOptions(set(SOLVERS))],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [StrOptions(set(SCHEDULES))],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "random_state": ["random_state", np.random.Generator],
    }
    weights_: dict[str, np.ndarray] = field(init=False)
    _before: PreviousFit = field(init=False)
    # parameters of the dense networks, which the others have at these values
    power_t = 0.5
    shuffle = True
    tol = 0.0
    n_iter_no_change = math.inf  # all epochs are made
    early_stopping = False
    validation_fraction = 0.1
    warm_start = False
    momentum = 0.9
    nesterovs_momentum = True
    beta_1 = 0.9
    beta_2 = 0.999
    epsilon = 1e-8

    _: KW_ONLY
    solver: str = "adam"
    learning_rate_init: float = 1e-3
    learning_rate: str = "cosine"
    alpha: float = 0.0
    batch_size: int | str = 64
    max_iter: int = 50
    device: str = "auto"
    random_state: Seed = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Add the constraints of the bases to those that a subclass declares."""
        super().__init_subclass__(**options)
        if "_parameter_constraints" in vars(cls):
            rules = [vars(base).get("_parameter_constraints", {}) for base in reversed(cls.__mro__)]
            cls._parameter_constraints = {name: rule for each in rules for name, rule in each.items()}

    def _validate_params(self) -> None:
        if isinstance(self.learning_rate, Real):
            raise InputError(
                f"learning_rate={self.learning_rate!r} of {type(self).__name__} is a number: give it as "
                "learning_rate_init. learning_rate is the name of a schedule."
            )
        super()._validate_params()

    def _build(self) -> Any:
        """The module, untrained, from the parameters and the shapes that `fit` has noted."""
        raise NotImplementedError

    @property
    def module_(self) -> nn.Module:
        """The trained torch module, on the CPU or on the chosen device, in evaluation mode."""
        check_is_fitted(self)
        known = self.__dict__.get("_module")
        if known is None or known[0] is not self.weights_:
            self._module = known = (self.weights_, self._copy().to(choose_device(self.device)).eval())
        return known[1]

    def to_torch(self) -> nn.Module:
        """A copy of the trained torch module, on the CPU and in evaluation mode: it takes rows as float32 tensors."""
        check_is_fitted(self)
        return self._copy().eval()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the torch module, which follows from the weights."""
        return {name: value for name, value in super().__getstate__().items() if name != "_module"}

    def _copy(self) -> nn.Module:
        """A module with the weights of the last fit."""
        with seed_torch(0):  # the weights drawn in building are replaced
            module = self._build()
        weights = {name: torch.from_numpy(np.array(w)) for name, w in self.weights_.items()}
        module.to(next(iter(weights.values())).dtype).load_state_dict(weights)
        return module

    def _check_parts(self, require: Callable[[bool, str], None]) -> None:
        """The weights of a file that is loaded must be those of the network that its parameters describe."""
        name, found = type(self).__name__, self.weights_
        require(isinstance(found, dict), f"is damaged: weights_ of {name} are no arrays by name.")
        require(getattr(self, "n_layers", 0) <= len(found), f"is damaged: {name} has fewer weights than layers.")
        try:
            with torch.device("meta"), seed_torch(0):  # shapes alone: nothing is drawn or held
                wanted = {key: tuple(w.shape) for key, w in self._build().state_dict().items()}
        except (RuntimeError, MemoryError) as error:
            wanted = {}
            require(False, f"is damaged: its parameters describe no {name} ({reason_of(error)}).")
        for key in [*wanted, *found]:
            w, shape = found.get(key), wanted.get(key)
            right = isinstance(w, np.ndarray) and w.dtype.kind == "f" and w.shape == shape
            require(right, f"is damaged: weights_.{key} of {name} has shape {getattr(w, 'shape', None)}, not {shape}.")

    def _build_with(self, seed: int) -> Any:
        """An untrained module, whose weights are drawn with the seed."""
        with seed_torch(seed):
            return self._build().to(torch.float64 if self._dtype is np.float64 else torch.float32)

    def _train(
        self,
        module: nn.Module,
        players: list[Player],
        data: tuple[Any, ...],
        seed: int,
        method: Callable[..., State] = train,
        **options: Any,
    ) -> State:
        """Train on rows, and on arrays of as many targets and weights."""
        blocks = data[0].blocks
        end = method(self, module, players, data, seed=seed, fingerprint=lambda: fingerprint(blocks), **options)
        self.__dict__.pop("_module", None)  # early stopping may have chosen other weights than the last
        self.module_.eval()
        return end

    def _previous_fit(self, once: bool) -> PreviousFit:
        """Values with which training continues."""
        known = vars(self).get("_before", NEW_FIT)  # not in a file, where the optimizer begins again
        return known._replace(epochs=self.n_iter_)

    def _record(self, end: State, continues: bool, n_rows: int) -> None:
        """Add the history of the fits before, if this one continues them, and keep what the next one begins with."""
        before = self._before if continues and "_before" in vars(self) else NEW_FIT
        self._before = PreviousFit(
            rows=before.rows + self.n_iter_ * n_rows, state=end._replace(weights=NO_WEIGHTS, kept=NO_WEIGHTS)
        )

    def _add_history(self, earlier: dict[str, list[float]]) -> None:
        """Put the columns of earlier epochs before those of the last call."""
        columns = {name: [*values, *self.history_[name]] for name, values in earlier.items() if name in self.history_}
        self.history_ = columns or self.history_
        self.n_iter_ = len(self.history_["objective"])

    def _rows(self, X: Any, *, reset: bool = False, **options: Any) -> tuple[NetworkRows, Any]:
        """Rows of X (n,d), numbers that are finite, in the network's precision; with y, that too."""
        if not reset:
            check_is_fitted(self)
        if isinstance(X, DataLoader):
            X = read_loader(X)
        found = self._blocks(X, reset=reset, **options)
        blocks, y = found if isinstance(found, tuple) else (found, None)
        dtype = self._dtype if reset else next(iter(self.weights_.values())).dtype
        rows = read_rows(blocks, dtype)
        if not (np.isfinite(rows.low).all() and np.isfinite(rows.high).all()):
            self._refuse(blocks)
            raise InputError(f"X has numbers beyond {np.finfo(np.float32).max:.0e}, the most of single precision.")
        return rows, y

    def _through(self, fn: Callable[..., Tensor], rows: NetworkRows | np.ndarray, seed: int | None = None) -> Any:
        """fn(module, x) for some rows at a time, without gradients; random numbers, if any, belong to the seed."""
        module, out = self.module_, []
        rows = hold_rows(rows) if isinstance(rows, np.ndarray) else rows
        where = next(module.parameters()).device
        work = min(PIECE_ROWS, len(rows)) * sum(w.size for w in self.weights_.values())
        with torch.inference_mode(), limit_threads(work), seed_torch(0 if seed is None else seed):
            for start in range(0, len(rows), PIECE_ROWS):
                x = np.ascontiguousarray(rows[start : start + PIECE_ROWS])
                out.append(fn(module, torch.from_numpy(x).to(where)).cpu().numpy())
        return np.concatenate(out)


# ---- images: (n,h,w), (n,h,w,c) or flat rows (n,d) in, the same out, pixels from 0 to 1 in between -----------------


class ImageNetwork(Network):
    """Base of the networks for images.

    Fitted: ``image_shape_`` (h,w) or (h,w,c); ``flat_``, whether they came as rows; ``range_``, black and white.
    """

    _parameter_constraints: ClassVar[dict] = {
        "image_shape": [None, tuple, list],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like", None],
        "architecture": [StrOptions({"dense", "convolutional"})],
    }
    _clip: ClassVar[bool] = True  # whether pixels beyond black and white are cut off there
    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...]
    flat_: bool
    range_: tuple[float, float]

    @property
    def _shape(self) -> Shape:
        h, w, *c = self.image_shape_
        return (c[0] if c else 1), h, w

    def _choose_hidden_sizes(self: Any, usual: Mapping[str, tuple[int, ...]]) -> list[int]:
        """Units, or channels, of each layer: the parameter, or the usual ones of the architecture."""
        sizes = usual[self.architecture] if self.hidden_layer_sizes is None else self.hidden_layer_sizes
        return check_layer_sizes("hidden_layer_sizes", sizes)

    def _flatten_images(self, X: Any, reset: bool) -> Any:
        """X with one image in each row; a fit notes whether they came so, and their shape."""
        if not reset:
            check_is_fitted(self)
        X = open_rows(X)
        if isinstance(X, OpenedRows):
            shape = X.image_shape
        else:
            shape = np.shape(X)[1:] if isinstance(X, (np.ndarray, list, tuple)) and np.ndim(X) in (3, 4) else None
        if shape is None:
            if reset:
                self.flat_ = True
            return X
        if not reset and shape != self.image_shape_:
            raise InputError(f"the images are {shape}; this model was fitted to {self.image_shape_}.")
        if reset:
            self.flat_, self.image_shape_ = False, shape
        return X if isinstance(X, OpenedRows) else flatten_array(np.asarray(X))

    def _read_images(self, X: Any, *, reset: bool = False, **options: Any) -> tuple[NetworkRows, Any]:
        """X as pixels (n,c,h,w) from 0 to 1, and y if it was given."""
        eight_bit = getattr(X, "dtype", None) == np.uint8
        X = self._flatten_images(X, reset)
        rows, y = self._rows(X, reset=reset, **options)
        if reset:
            eight_bit = eight_bit or getattr(X, "eight_bit", False)
            self.range_ = find_pixel_range(float(rows.low.min()), float(rows.high.max()), eight_bit)
            self.image_shape_ = choose_shape(rows.shape[1], self.image_shape) if self.flat_ else self.image_shape_
        low, high = self.range_
        shape, clip = self._shape, self._clip
        return rows.map(partial(as_pixels, low=low, high=high, shape=shape, clip=clip)), y

    def _restore_images(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels (n,c,h,w) from 0 to 1 as images like those of the fit."""
        low, high = self.range_
        images = pixels.transpose(0, 2, 3, 1) * (high - low) + low
        return images.reshape(len(images), -1) if self.flat_ else images.reshape(len(images), *self.image_shape_)


class ImageLearner(ImageNetwork):
    """Base of the networks that learn from images or rows without targets."""

    @fitting
    def fit(self, X: Table | DataLoader, y: Any = None) -> Self:
        """Learn from images X, (n,h,w), (n,h,w,c) or rows (n,d).

        X may also be the path of a .npy, .parquet or .csv file or of a folder of these, a dask array, or a torch
        DataLoader. What exceeds the memory budget is read in every epoch; a DataLoader is read once, in its order.
        """
        return self._learn(X, once=False)

    @fitting
    def partial_fit(self, X: Table | DataLoader, y: Any = None) -> Self:
        """Train for one epoch on some images, from where the last call ended.

        Black and white, and what the model knows of the average image, are those of the first call. The learning rate
        stays where it begins, and what grows during the training grows over `max_iter` calls.
        """
        return self._learn(X, once=True)

    def _learn(self, X: Any, once: bool) -> Self:
        check_device(self.device)
        continues = once and hasattr(self, "weights_")
        rows, seed = self._read(X, reset=not continues), seed_of(self.random_state)
        if continues:
            module, before, earlier = self._copy(), self._previous_fit(once), self.history_
        else:
            module, before, earlier = self._build_for(rows, seed), NEW_FIT, {}
        rows = self._prepare(module, rows, new=not continues)
        note, players = self._make_note(module, rows, seed), self._make_players(module)
        end = self._train(module, players, (rows,), seed, X=X, note=note, before=before, once=once)
        self._record(end, continues, len(rows))
        self._add_history(earlier)
        self._check_result(rows)
        return self

    def _read(self, X: Any, reset: bool = False) -> NetworkRows:
        """X as the network takes it."""
        return self._read_images(X, reset=reset)[0]

    def _build_for(self, rows: NetworkRows, seed: int) -> Any:
        """An untrained module."""
        return self._build_with(seed)

    def _prepare(self, module: Any, rows: NetworkRows, new: bool) -> NetworkRows:
        """Rows to train on; a new module first learns what does not need training."""
        if new and hasattr(module, "learn"):
            module.learn(rows)
        return rows

    def _make_players(self, module: Any) -> list[Player]:
        """The parts of the module that are trained, each with its loss; the loss of the first is the objective."""
        raise NotImplementedError

    def _make_note(self, module: Any, rows: NetworkRows, seed: int) -> Callable[[dict], dict[str, float]] | None:
        """A function that adds columns to the history after an epoch."""
        return None

    def _check_result(self, rows: NetworkRows) -> None:
        """Set attributes that follow from the trained network, and warn of a collapse."""


@dataclass(eq=False, repr=False)
class ImageModel(ImageLearner):
    """Base of those whose images may come as rows of another shape than a square."""

    _: KW_ONLY
    image_shape: tuple[int, ...] | None = None


def standardize_by(module: Any, device: str) -> Callable[[np.ndarray], np.ndarray]:
    """Rows as the layers of a module take them. What it does to them does not change while it is trained."""
    module = module if choose_device(device).type == "cpu" else copy.deepcopy(module)  # which stays here

    def change(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return module.standardize(torch.from_numpy(rows)).contiguous().numpy()

    return change


def flatten_array(images: np.ndarray) -> np.ndarray:
    """Images as rows; bytes in single precision, which holds them exactly."""
    rows = images.reshape(len(images), -1)
    return rows.astype(np.float32) if images.dtype == np.uint8 else rows


def as_pixels(
    rows: np.ndarray, low: float, high: float, shape: Shape, clip: bool
) -> np.ndarray:  # (n,d) -> (n,c,h,w), from 0 to 1
    c, h, w = shape
    pixels = (rows - np.float32(low)) / np.float32(high - low)
    pixels = np.clip(pixels, 0, 1) if clip else pixels
    return np.ascontiguousarray(pixels.reshape(-1, h, w, c).transpose(0, 3, 1, 2))


def choose_shape(d: int, image_shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """The (h,w) or (h,w,c) of images that come as rows: the parameter, a square, or one line of pixels."""
    if image_shape is not None:
        if len(image_shape) not in (2, 3) or math.prod(image_shape) != d:
            raise InputError(f"image_shape={image_shape!r} is not {d} numbers, as a row is. Give (h, w) or (h, w, c).")
        return tuple(int(s) for s in image_shape)
    side = math.isqrt(d)
    return (side, side) if side * side == d else (1, d)


def find_pixel_range(low: float, high: float, eight_bit: bool) -> tuple[float, float]:
    """Black and white: 0 and 255 for bytes, 0 and 1 for values between, else the least and the largest value."""
    if eight_bit and high > 1:
        return 0.0, 255.0
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return min(low, 0.0), high if high > min(low, 0.0) else low + 1.0


# ---- layers ----------------------------------------------------------------------------------------------------------


def find_varying(rows: NetworkRows) -> np.ndarray:
    """The columns (c,) of rows (n,d) that are not constant; the first if all are, as a network needs one."""
    columns = np.flatnonzero(rows.high > rows.low)
    return columns if len(columns) else np.zeros(1, np.int64)


def build_dense(sizes: list[int], activation: str, dropout: float = 0.0, last: bool = False) -> nn.Sequential:
    """Affine maps from size to size with an activation after each, the last one only on request.

    The memory of a weight (b,a) is ordered by unit or, where the layer narrows, by input: its gradient is then the
    faster of gᵀx and xᵀg, up to twice as fast as the other.
    """
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(sizes)):
        affine = nn.Linear(a, b)
        if MIN_UNITS_TO_TRANSPOSE <= b < a:
            affine.weight = nn.Parameter(torch.empty(a, b).T)
        layers.append(affine)
        if last or i < len(sizes) - 2:
            layers.append(ACTIVATIONS[activation]())
            if dropout:
                layers.append(Dropout(dropout))
    network = nn.Sequential(*layers)
    init_weights(network, activation)
    return network


def check_layer_sizes(name: str, value: Any) -> list[int]:
    """Units of each layer, checked: a whole number is one layer."""
    sizes: list[Any] = [value] if isinstance(value, Integral) else list(value)
    if not all(isinstance(s, Integral) and not isinstance(s, bool) and int(s) > 0 for s in sizes):
        raise InputError(f"{name}={value!r}: give the units of each layer, whole numbers of at least 1, as (128, 64).")
    return [int(s) for s in sizes]


def check_count(name: str, value: Any, low: int = 1) -> int:
    """A whole number of at least `low`, checked."""
    if not isinstance(value, Integral) or value < low:
        raise InputError(f"{name}={value!r}: give a whole number of at least {low}.")
    return int(value)


def init_weights(module: nn.Module, activation: str) -> None:
    """Draw weights that keep the variance from layer to layer: He et al. 2015 for ReLU, Glorot & Bengio 2010 else.

    Biases are those that torch draws, not zero: with one input column all ReLUs would have their kink at one place.
    """
    for m in module.modules():
        if isinstance(m, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
            if activation == "relu":
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
            else:
                nn.init.xavier_normal_(m.weight)


class Dropout(nn.Module):
    """In training a share of the numbers is set to 0, and the others are raised so that the mean stays.

    Four draws come from one random word, in steps of 2⁻¹⁶: torch's own dropout takes a word for each, which is most
    of its time.
    """

    def __init__(self, share: float):
        super().__init__()
        self.threshold = min(round(2**16 * share), 2**16 - 1)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.threshold:
            return x
        n = x.numel()
        words = torch.empty(-(-n // 4), dtype=torch.int64, device=x.device).random_(-(2**63), None)
        kept = words.view(torch.int16)[:n].reshape(x.shape) >= self.threshold - 2**15
        return x * kept.to(x.dtype).mul_(2**16 / (2**16 - self.threshold))


class Standard(nn.Module):
    """Columns with mean 0 and variance 1; a constant one is always 0."""

    mean: Tensor
    scale: Tensor

    def __init__(self, d: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("scale", torch.ones(d))

    def learn(self, mean: np.ndarray, variance: np.ndarray, still: float = np.inf) -> None:
        """Take means and variances (d,); `still` is the scale of a constant column, finite to be undone."""
        spread = np.sqrt(variance)
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(np.where(spread > 1e-6 * np.abs(mean), spread, still)))

    def forward(self, x: Tensor) -> Tensor:  # (n,d) -> (n,d)
        return (x - self.mean) / self.scale

    def back(self, z: Tensor) -> Tensor:
        return z * self.scale + self.mean
