"""Networks as ONNX graphs: encoder, decoder, reconstruction, scores and probabilities, by torch's own exporter.

The input "X" is rows as the model's methods take them, float32, flat; codes come from the encoder, "decoded" is what
they stand for. Of a classifier, "scores" are those of `decision_function`, and "probabilities" those of the classes.
"""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from twofold.core.checks import InputError

OPSET = 17


class Coding(nn.Module):
    """Codes of rows, and what they stand for."""

    names = ("codes", "decoded")

    def __init__(self, module: Any):
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        codes = self.module.encode(x)
        codes = codes[0] if isinstance(codes, tuple) else codes
        return codes, self.decode(codes)

    def decode(self, codes: Tensor) -> Tensor:
        """Return what codes stand for; columns that never varied are put back by a product, for any number of rows."""
        module = self.module
        if not hasattr(module, "columns"):
            return torch.as_tensor(module.decode(codes))
        place = torch.eye(len(module.center))[module.columns]  # (c,d)
        seen = module.raw(codes) * module.scale + module.center[module.columns]
        seen = seen.clamp(*module.range.tolist()) if module.squash else seen
        return seen @ place + module.center * (1 - place.sum(0))


class VariationalCoding(nn.Module):
    """Means of q(z|x) of images, flat as rows, and the mean images of these codes."""

    names = ("codes", "decoded")

    def __init__(self, module: Any, shape: tuple[int, ...], low: float, high: float):
        super().__init__()
        self.module, self.shape = module, (*shape, 1)[:3]  # (h,w,c)
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = (x - self.low) / (self.high - self.low)
        codes = self.module.posterior(x.reshape(-1, *self.shape).permute(0, 3, 1, 2)).mean
        images = self.module.output.mean(self.module.generate(codes)) * (self.high - self.low) + self.low
        return codes, images.permute(0, 2, 3, 1).flatten(1)


class Scores(nn.Module):
    """Scores of rows, and of classes their probabilities."""

    def __init__(self, module: Any, activation: str):
        super().__init__()
        self.module, self.activation = module, activation
        self.names = ("scores",) if activation == "identity" else ("scores", "probabilities")

    def forward(self, x: Tensor) -> Any:
        scores = self.module(x)
        if self.activation == "identity":
            return scores
        return scores, torch.softmax(scores, 1) if self.activation == "softmax" else torch.sigmoid(scores)


def make_onnx(model: Any) -> bytes:
    """The bytes of an ONNX file of a fitted network."""
    module = model.to_torch()
    d = int(model.n_features_in_) if hasattr(model, "n_features_in_") else math.prod(model.image_shape_)
    if hasattr(module, "encode") and hasattr(module, "decode"):
        wrapped: Any = Coding(module)
    elif hasattr(module, "posterior"):
        wrapped = VariationalCoding(module, model.image_shape_, *map(float, model.range_))
    elif hasattr(model, "out_activation_"):
        wrapped = Scores(module, model.out_activation_)
    else:
        raise InputError(f"{type(model).__name__} has no ONNX graph here: it neither encodes rows nor scores them.")
    out: Any = io.BytesIO()
    example = torch.zeros(2, d)
    axes = {name: {0: "n"} for name in ("X", *wrapped.names)}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the newer exporter needs one more package and gives the same graph
        torch.onnx.export(
            wrapped.eval(), (example,), out, dynamo=False, opset_version=OPSET,
            input_names=["X"], output_names=list(wrapped.names), dynamic_axes=axes,
        )  # fmt: skip
    return out.getvalue()
