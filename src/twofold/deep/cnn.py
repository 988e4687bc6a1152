"""A network of convolutions, for classes of images.

    a⁰ = x standardized,  aˡ = pool(relu(Wˡ ∗ aˡ⁻¹ + bˡ)),  then dense layers, the last one linear
    minimize the mean softmax cross-entropy (logistic for two classes) + ½ alpha Σ‖W‖² / n

One epoch:  every batch  a step along the gradient, which automatic differentiation gives
References: LeCun et al. 1998; Srivastava et al. 2014 (dropout).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from twofold.core.checks import InputError
from twofold.core.params import Interval
from twofold.deep._network import Dropout, ImageNetwork, Standard, build_dense, check_layer_sizes, init_weights
from twofold.deep._rows import NetworkRows
from twofold.deep._supervised import Classifier


class Convolutions(nn.Module):
    """Images of which each channel is standardized, convolutions with pooling, dense layers."""

    def __init__(self, shape: tuple[int, int, int], outputs: int, model: CNNClassifier):
        super().__init__()
        if model.kernel_size % 2 == 0:
            raise InputError(f"kernel_size={model.kernel_size} has no middle. Give an odd number.")
        c, h, w = shape
        self.inputs = Standard(c)
        layers: list[nn.Module] = []
        for width in check_layer_sizes("channels", model.channels):
            layers.append(nn.Conv2d(c, width, model.kernel_size, padding=model.kernel_size // 2))
            c, pool = width, (min(model.pooling, h), min(model.pooling, w))  # only as far as it fits
            if max(pool) > 1:
                layers.append(nn.MaxPool2d(pool))
                h, w = h // pool[0], w // pool[1]
            layers.append(nn.ReLU())  # (n,c,h,w); before the pooling it would give the same from more numbers
        self.layers = nn.Sequential(*layers)
        init_weights(self.layers, "relu")
        sizes = [c * h * w, *check_layer_sizes("hidden_layer_sizes", model.hidden_layer_sizes), outputs]
        self.silence = Dropout(model.dropout)
        self.dense = build_dense(sizes, "relu", model.dropout)  # (n,c·h·w) -> (n,outputs)
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def learn(self, rows: NetworkRows, w: np.ndarray | None, still: float) -> None:
        """Means and scales of the channels, over the pixels of images (n,c,h,w) with weights w."""
        moments = rows.moments(w)
        means, variances = (a.reshape(rows.shape[1], -1) for a in (moments.mean, moments.variance))  # (c,h·w)
        mean = means.mean(axis=1)
        self.inputs.learn(mean, variances.mean(axis=1) + np.square(means - mean[:, None]).mean(axis=1), still)

    def standardize(self, x: Tensor) -> Tensor:  # (n,c,h,w) -> (n,c,h,w), standardized
        return self.inputs(x.movedim(1, -1)).movedim(-1, 1)

    def raw(self, x: Tensor) -> Tensor:  # (n,c,h,w), standardized -> (n,outputs)
        return self.dense(self.silence(self.layers(x.contiguous(memory_format=torch.channels_last)).flatten(1)))

    def forward(self, x: Tensor) -> Tensor:
        return self.raw(self.standardize(x))


@dataclass(eq=False, repr=False)
class CNNClassifier(Classifier, ImageNetwork):
    """A network of convolutions that classifies images.

    Parameters
    ----------
    channels : tuple of int, default=(32, 64)
        Channels of each convolution, which is followed by a ReLU and a pooling.
    hidden_layer_sizes : int or tuple of int, default=128
        Units of the dense layers behind them; () is none.
    kernel_size : int, default=3
        Height and width of the kernels, an odd number; the border is padded with the channel's mean.
    pooling : int, default=2
        Height and width of the squares of which only the largest number remains; 1 is none. An image that has become
        smaller than that is pooled as far as it goes, so that any size of image works.
    dropout : float, default=0.25
        Share of the pooled numbers and of the hidden units that are 0 in a training step.
    image_shape : tuple, optional
        (h, w) or (h, w, c) of images that come as rows; squares are recognized, other rows are one line of pixels.
    solver, alpha, learning_rate, learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`MLPClassifier`.

    Attributes
    ----------
    classes_ : ndarray
    image_shape_ : tuple of int
    weights_ : dict of str to ndarray
        Weights, biases and the channels' means and scales, by the names they have in `module_`.
    module_ : torch.nn.Module
        The network: pixels (n,c,h,w) from 0 to 1 in, log-odds out, one for two classes.
    history_, n_iter_, converged_
        The objective is the mean cross-entropy of an epoch's batches, with the part of `alpha`.

    References
    ----------
    LeCun, Bottou, Bengio & Haffner (1998), *Proc. IEEE* 86, 2278-2324.

    Examples
    --------
    >>> from twofold import CNNClassifier, datasets
    >>> digits = datasets.digits()
    >>> X, y = digits.data.reshape(-1, 8, 8), digits.target
    >>> model = CNNClassifier((16, 32), learning_rate_init=5e-3, batch_size=32, max_iter=8, random_state=0)
    >>> model.fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "channels": ["array-like", Integral],
        "hidden_layer_sizes": ["array-like", Integral],
        "kernel_size": [Interval(Integral, 1, None, closed="left")],
        "pooling": [Interval(Integral, 1, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
    }

    channels: tuple[int, ...] = (32, 64)
    _: KW_ONLY
    hidden_layer_sizes: int | tuple[int, ...] = 128
    kernel_size: int = 3
    pooling: int = 2
    dropout: float = 0.25
    image_shape: tuple[int, ...] | None = None
    alpha: float = 1e-4
    max_iter: int = 20

    _inputs = ImageNetwork._read_images

    def _build(self) -> Convolutions:
        return Convolutions(self._shape, self.n_outputs_, self)
