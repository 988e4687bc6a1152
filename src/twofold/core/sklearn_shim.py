"""What twofold needs of scikit-learn beyond its documented names: all of it is here.

scikit-learn's callback protocol is public but marked experimental, and has no public way to ask a model for its
callbacks or to open the context of a fit. `pyproject.toml` bounds the version; a version beyond it that renames these
is told apart here, at the first fit, rather than silently losing callbacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.callback import CallbackSupportMixin, ProgressBar, with_callbacks
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

__all__ = [
    "CallbackSupportMixin",
    "ProgressBar",
    "as_chosen_output",
    "callbacks_of",
    "find_precision_factors",
    "gives_arrays",
    "open_fit",
    "with_callbacks",
]


def gives_arrays(model: Any) -> bool:
    """Tell whether `set_output` leaves a model's results as arrays."""
    return _get_output_config("transform", model)["dense"] == "default"


def as_chosen_output(model: Any, X: Any, values: np.ndarray) -> Any:
    """Values shaped like X as `set_output` wants a model's results: an array, or a frame with the columns of X."""
    chosen = _get_output_config("transform", model)["dense"]
    if chosen == "default":
        return values
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(values.shape[1])] if names is None else list(names)
    return ADAPTERS_MANAGER.adapters[chosen].create_container(values, X, columns=names, inplace=False)


def find_precision_factors(covariances: Any, covariance_type: str) -> Any:
    """The Cholesky factors of precisions, as a fitted GaussianMixture of scikit-learn holds them."""
    from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

    return _compute_precision_cholesky(covariances, covariance_type)


def callbacks_of(model: Any) -> list[Any]:
    """The callbacks that `set_callbacks` gave a model."""
    return getattr(model, "_skl_callbacks", [])


def open_fit(model: Any, n_subtasks: int) -> Any:
    """The root context of a fit with `n_subtasks`; the callbacks are set up."""
    if not hasattr(CallbackSupportMixin, "_init_callback_context"):
        raise ImportError(
            f"twofold's callbacks do not fit scikit-learn {sklearn.__version__}. Install 1.9: pip install "
            "'scikit-learn>=1.9,<1.10'."
        )
    return model._init_callback_context(max_subtasks=n_subtasks)
