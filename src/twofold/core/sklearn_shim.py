"""What twofold needs of scikit-learn beyond its documented names: all of it is here.

scikit-learn's callback protocol is public but marked experimental, and has no public way to ask a model for its
callbacks or to open the context of a fit. `pyproject.toml` bounds the version; a version beyond it that renames these
is told apart here, at the first fit, rather than silently losing callbacks.
"""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.callback import CallbackSupportMixin, ProgressBar, with_callbacks

__all__ = ["CallbackSupportMixin", "ProgressBar", "callbacks_of", "open_fit", "with_callbacks"]


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
