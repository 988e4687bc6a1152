"""Fitted models as ONNX graphs, whose numbers agree with ours to 1e-5.

    linear maps      codes = ((X − mean) / scale) W                          PCA, PPCA, FactorAnalysis, FisherLDA, LSA
    k-means          labels = argmin ‖x − z_c‖², distances                   KMeans, VectorQuantizer
    mixtures         probabilities = softmax of log densities, labels, log-likelihood     GaussianMixture
    networks         encoder, decoder, probabilities                         see deep/export.py

A linear map is found by asking the model: what it gives for 0 and for each unit vector says everything, and a random
row says whether it is one. Input is float32 "X" (n,d), as in most services; n is free.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.files.atomic import replacing
from twofold.core.types import PathLike

OPSET = 17
LINEAR = ("PCA", "PPCA", "BayesianPCA", "FactorAnalysis", "FisherLDA", "LinearAutoencoder")
MAX_DEVIATION = 1e-6  # of a map that is linear, relative to its largest number


class Step(NamedTuple):
    """One node: an operator of ONNX, its inputs, its outputs, its attributes."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = {}  # noqa: RUF012


class Graph(NamedTuple):
    """Nodes and constants that lead from X to the outputs, each (n,) or (n,k) with its type."""

    steps: list[Step]
    constants: dict[str, np.ndarray]
    outputs: dict[str, tuple[int | None, str]]


def to_onnx(model: Any, path: PathLike) -> None:
    """Write a fitted model as an ONNX file, which appears whole or not at all."""
    if find_spec("onnx") is None:
        raise InputError("to_onnx needs onnx: pip install 'twofold[export]'")
    check_is_fitted(model)
    name = type(model).__name__
    if hasattr(type(model), "module_"):
        from twofold.deep.export import make_onnx

        content = make_onnx(model)
    else:
        content = serialize(make_graph(model, name), model.n_features_in_)
    with replacing(path) as file:
        file.write_bytes(content)


def make_graph(model: Any, name: str) -> Graph:
    """The graph of one model."""
    if name in LINEAR:
        return make_linear_graph(model)
    if name in ("KMeans", "VectorQuantizer"):
        return make_nearest_graph(np.asarray(model.cluster_centers_, np.float64))
    if name == "GaussianMixture":
        return make_mixture_graph(model)
    raise InputError(
        f"{name} has no ONNX graph here. These have one: {', '.join(LINEAR)}, KMeans, VectorQuantizer, "
        "GaussianMixture, and networks."
    )


def make_linear_graph(model: Any) -> Graph:
    """codes = (X − center) W + codes of the center, and the rows that codes stand for."""
    d = model.n_features_in_
    center = np.asarray(getattr(model, "mean_", np.zeros(d)), np.float64)
    start = np.asarray(model.transform(center[None]), np.float64)
    unit = float(np.abs(center).max()) or 1.0
    W = (np.asarray(model.transform(center + unit * np.eye(d)), np.float64) - start) / unit  # (d,k)
    probe = center + unit * np.random.default_rng(0).normal(size=(3, d))
    gap = np.abs(model.transform(probe) - ((probe - center) @ W + start)).max()
    if gap > MAX_DEVIATION * max(1.0, float(np.abs(start).max()), float(np.abs(W).max() * unit)):
        raise InputError(f"this {type(model).__name__} is no linear map with these parameters, and has no ONNX graph.")
    constants = {"center": center, "W": W, "start": start}
    steps = [Step("Sub", ("X", "center"), ("centered",)), Step("MatMul", ("centered", "W"), ("raw",))]
    steps += [Step("Add", ("raw", "start"), ("codes",))]
    return Graph(steps, constants, {"codes": (W.shape[1], "float")})


def make_nearest_graph(Z: np.ndarray) -> Graph:
    """‖x − z‖² = ‖x‖² − 2⟨x, z⟩ + ‖z‖² about the mean of the centers, which loses fewer digits."""
    middle = Z.mean(axis=0)
    Z = Z - middle
    constants = {"middle": middle, "Z": -2 * Z.T, "lengths": (Z**2).sum(axis=1)[None], "zero": np.zeros(1)}
    steps = [
        Step("Sub", ("X", "middle"), ("x",)),
        Step("MatMul", ("x", "Z"), ("products",)),
        Step("Add", ("products", "lengths"), ("partial",)),
        Step("ArgMin", ("partial",), ("labels",), {"axis": 1, "keepdims": 0}),
        Step("Mul", ("x", "x"), ("squares",)),
        Step("ReduceSum", ("squares", "axes"), ("own",), {"keepdims": 1}),
        Step("Add", ("partial", "own"), ("squared",)),
        Step("Max", ("squared", "zero"), ("above",)),
        Step("Sqrt", ("above",), ("distances",)),
    ]
    return Graph(
        steps, {**constants, "axes": np.array([1])}, {"labels": (None, "int64"), "distances": (len(Z), "float")}
    )


def make_mixture_graph(model: Any) -> Graph:
    """log p(x, c) = log π_c − ½ ‖(x − μ_c) L_c‖² + log |L_c| − d/2 log 2π, with L_c the roots of the precisions."""
    means = np.asarray(model.means_, np.float64)
    k, d = means.shape
    roots = find_roots(np.asarray(model.covariances_, np.float64), model.covariance_type, k, d)  # (k,d,d)
    middle = means.mean(axis=0)
    logs = np.linalg.slogdet(roots)[1] + np.log(model.weights_) - 0.5 * d * np.log(2 * np.pi)
    shifts = np.einsum("cd,cde->ce", means - middle, roots)
    constants = {
        "middle": middle,
        "roots": roots,
        "shifts": shifts[:, None],
        "logs": logs[None],
        "half": np.array(-0.5),
    }
    constants |= {"front": np.array([0]), "last": np.array([2]), "axes": np.array([1])}
    steps = [
        Step("Sub", ("X", "middle"), ("x",)),
        Step("Unsqueeze", ("x", "front"), ("wide",)),  # (1,n,d)
        Step("MatMul", ("wide", "roots"), ("turned",)),  # (k,n,d)
        Step("Sub", ("turned", "shifts"), ("gaps",)),
        Step("Mul", ("gaps", "gaps"), ("squares",)),
        Step("ReduceSum", ("squares", "last"), ("sums",), {"keepdims": 0}),
        Step("Transpose", ("sums",), ("far",), {"perm": [1, 0]}),
        Step("Mul", ("far", "half"), ("halved",)),
        Step("Add", ("halved", "logs"), ("joint",)),
        Step("Softmax", ("joint",), ("probabilities",), {"axis": 1}),
        Step("ArgMax", ("joint",), ("labels",), {"axis": 1, "keepdims": 0}),
        Step("ReduceLogSumExp", ("joint",), ("log_likelihood",), {"axes": [1], "keepdims": 0}),
    ]
    outputs = {"labels": (None, "int64"), "probabilities": (k, "float"), "log_likelihood": (None, "float")}
    return Graph(steps, constants, outputs)


def find_roots(S: np.ndarray, kind: str, k: int, d: int) -> np.ndarray:
    """(k,d,d) matrices L with L Lᵀ = Σ⁻¹, from covariances of any type."""
    if kind in ("full", "tied", "fixed"):
        full = S if S.ndim == 3 else np.repeat(S[None], k, axis=0)
        return np.swapaxes(np.linalg.inv(np.linalg.cholesky(full)), 1, 2)
    spread = S if S.ndim == 2 else np.repeat(S[:, None], d, axis=1)
    return np.stack([np.diag(1 / np.sqrt(one)) for one in spread])


def serialize(graph: Graph, d: int) -> bytes:
    """The bytes of an ONNX file."""
    from onnx import TensorProto, checker, helper, numpy_helper

    kinds = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64}
    outputs = [
        helper.make_tensor_value_info(name, kinds[kind], ["n"] if width is None else ["n", width])
        for name, (width, kind) in graph.outputs.items()
    ]
    constants = [
        numpy_helper.from_array(value if value.dtype.kind == "i" else value.astype(np.float32), name)
        for name, value in graph.constants.items()
    ]
    nodes = [helper.make_node(one.operator, one.inputs, one.outputs, **one.attributes) for one in graph.steps]
    X = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", d])
    made = helper.make_model(
        helper.make_graph(nodes, "twofold", [X], outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="twofold",
    )
    made.ir_version = 8  # read by runtimes of the last years
    checker.check_model(made)
    return bytes(made.SerializeToString())
