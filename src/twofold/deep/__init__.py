"""Deep: networks and generators, on torch."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("twofold.deep needs torch, which is not installed: pip install 'twofold[deep]'.") from error

from twofold.deep._variational import CollapseWarning
from twofold.deep.autoencoder import Autoencoder
from twofold.deep.cnn import CNNClassifier
from twofold.deep.dlgm import DLGM
from twofold.deep.gan import GAN, VAEGAN
from twofold.deep.gradient_noise import gradient_variance
from twofold.deep.minimize import minimize
from twofold.deep.mlp import MLPClassifier, MLPRegressor
from twofold.deep.normalizing_flow import NormalizingFlow
from twofold.deep.pixelcnn import PixelCNN
from twofold.deep.sample_quality import frechet_distance, sample_score
from twofold.deep.vae import VAE

__all__ = [
    "DLGM",
    "GAN",
    "VAE",
    "VAEGAN",
    "Autoencoder",
    "CNNClassifier",
    "CollapseWarning",
    "MLPClassifier",
    "MLPRegressor",
    "NormalizingFlow",
    "PixelCNN",
    "frechet_distance",
    "gradient_variance",
    "minimize",
    "sample_score",
]
