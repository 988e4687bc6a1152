"""The networks and generators that `train` offers."""

from __future__ import annotations

from typing import Any

import twofold
from twofold.core.checks import InputError

MODELS = {
    "vae": "VAE",
    "dlgm": "DLGM",
    "gan": "GAN",
    "vaegan": "VAEGAN",
    "pixelcnn": "PixelCNN",
    "autoencoder": "Autoencoder",
    "mlp": "MLPClassifier",
    "cnn": "CNNClassifier",
}
GENERATORS = ("vae", "dlgm", "gan", "vaegan", "pixelcnn")
CODED = ("vae", "dlgm", "gan", "vaegan", "autoencoder")
RECONSTRUCTING = ("vae", "dlgm", "vaegan", "autoencoder")
PREDICTING = ("mlp", "cnn")


def find_class(name: str) -> Any:
    """The class of that name; without torch, an error of one line."""
    try:
        return getattr(twofold, name)
    except ImportError as error:
        raise InputError(f"training needs torch, which is not installed: {str(error).split(': ')[-1]}") from None
