"""Our fitted models as those of scikit-learn.

Each twin is declared once: the class there, its parameters, and how its fitted attributes follow from ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.sklearn_shim import find_precision_factors


class Twin(NamedTuple):
    """A class of scikit-learn, and what makes a fitted one of a fitted model of ours."""

    module: str
    parameters: Callable[[Any], dict[str, Any]]
    attributes: Callable[[Any], dict[str, Any]]


def copy_attributes(model: Any, *names: str) -> dict[str, Any]:
    """The fitted attributes of these names, as they are."""
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def list_pca(model: Any) -> dict[str, Any]:
    if not np.all(model.scale_ == 1):
        raise InputError(
            "this PCA divides columns by scale_, which scikit-learn's cannot. Fit it without, or export it: to_onnx."
        )
    names = "components_ mean_ explained_variance_ explained_variance_ratio_ singular_values_ noise_variance_"
    return {
        **copy_attributes(model, *names.split()),
        "n_components_": len(model.components_),
        "n_samples_": model.n_samples_,
    }


def list_mixture(model: Any) -> dict[str, Any]:
    kind = model.covariance_type
    factor = find_precision_factors(model.covariances_, kind)
    full = kind in ("full", "tied")
    precisions = factor @ np.swapaxes(factor, -1, -2) if full else factor**2
    names = ("weights_", "means_", "covariances_", "converged_", "n_iter_", "lower_bound_", "lower_bounds_")
    return {**copy_attributes(model, *names), "precisions_cholesky_": factor, "precisions_": precisions}


def list_lda(model: Any) -> dict[str, Any]:
    """Pseudo-counts from p(word | topic), and one prior for all topics: scikit-learn's inference knows no other."""
    d = model.components_.shape[1]
    beta, alpha = float(model.topic_word_prior_), float(np.mean(model.doc_topic_prior_))
    counts = model.components_ * (model.topic_weight_ + d * beta)[:, None]
    from scipy.special import psi

    spread = np.exp(psi(counts) - psi(counts.sum(axis=1))[:, None])
    found = {"components_": counts, "exp_dirichlet_component_": spread, "doc_topic_prior_": alpha}
    return {**found, "topic_word_prior_": beta, "random_state_": np.random.RandomState(0), "n_batch_iter_": 1,
            **copy_attributes(model, "n_iter_", "bound_")}  # fmt: skip


def list_mlp(model: Any) -> dict[str, Any]:
    names = "coefs_ intercepts_ n_outputs_ out_activation_ classes_ loss_curve_ best_loss_ t_ n_iter_"
    found = {**copy_attributes(model, *names.split()), "n_layers_": len(model.coefs_) + 1, "loss_": model.best_loss_}
    if hasattr(model, "classes_"):
        from sklearn.preprocessing import LabelBinarizer

        found["_label_binarizer"] = LabelBinarizer().fit(model.classes_)
    return found


def describe_mlp(model: Any) -> dict[str, Any]:
    return {"hidden_layer_sizes": tuple(len(b) for b in model.intercepts_[:-1]), "activation": model.activation}


def list_kmeans(model: Any) -> dict[str, Any]:
    names = ("cluster_centers_", "labels_", "inertia_", "n_iter_")
    return {**copy_attributes(model, *names), "_n_threads": 1, "_n_features_out": len(model.cluster_centers_)}


def count_components(model: Any) -> dict[str, Any]:
    return {"n_components": len(model.components_)}


def list_factors(model: Any) -> dict[str, Any]:
    return copy_attributes(model, "components_", "mean_", "noise_variance_", "n_iter_")


def describe_nmf(model: Any) -> dict[str, Any]:
    return {**count_components(model), "beta_loss": model.beta_loss, "solver": "cd" if model.solver_ == "cd" else "mu"}


def list_nmf(model: Any) -> dict[str, Any]:
    found = copy_attributes(model, "components_", "reconstruction_err_", "n_iter_")
    return {**found, "n_components_": len(model.components_)}


SPARSE_CODER = (
    "dictionary", "transform_algorithm", "transform_n_nonzero_coefs", "transform_alpha", "split_sign", "positive_code",
    "transform_max_iter",
)  # fmt: skip
TWINS = {
    "PCA": Twin("decomposition", lambda m: {**count_components(m), "whiten": bool(m.whiten)}, list_pca),
    "FactorAnalysis": Twin("decomposition", count_components, list_factors),
    "NMF": Twin("decomposition", describe_nmf, list_nmf),
    "LatentDirichletAllocation": Twin("decomposition", count_components, list_lda),
    "KMeans": Twin("cluster", lambda m: {"n_clusters": len(m.cluster_centers_)}, list_kmeans),
    "GaussianMixture": Twin(
        "mixture", lambda m: {"n_components": len(m.weights_), "covariance_type": m.covariance_type}, list_mixture
    ),
    "MLPClassifier": Twin("neural_network", describe_mlp, list_mlp),
    "MLPRegressor": Twin("neural_network", describe_mlp, list_mlp),
    "SparseCoder": Twin(
        "decomposition",
        lambda m: {name: value for name, value in m.get_params(deep=False).items() if name in SPARSE_CODER},
        lambda m: {},
    ),
}  # fmt: skip


def to_sklearn(model: Any) -> Any:
    """The fitted twin of a model in scikit-learn."""
    name = type(model).__name__
    if name not in TWINS:
        raise InputError(f"{name} has no twin in scikit-learn. These have one: {', '.join(TWINS)}.")
    check_is_fitted(model)
    twin = TWINS[name]
    made = getattr(importlib.import_module(f"sklearn.{twin.module}"), name)(**twin.parameters(model))
    for attribute, value in twin.attributes(model).items():
        setattr(made, attribute, value)
    for attribute in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, attribute):
            setattr(made, attribute, getattr(model, attribute))
    return made
