"""Signals: sparse codes. Bases, pursuits, and how far they can be trusted."""

from twofold.signals.compression import CompressedImage, compress_image, open_image, rate_distortion
from twofold.signals.dct import DCT
from twofold.signals.denoising import denoise_image
from twofold.signals.diagnostics import babel, coherence, null_space_constant, recovery_bound, rip_estimate
from twofold.signals.fourier import Fourier
from twofold.signals.gabor import Gabor
from twofold.signals.haar import Haar
from twofold.signals.inpainting import inpaint_image
from twofold.signals.ksvd import KSVD
from twofold.signals.least_l1 import basis_pursuit, basis_pursuit_denoise
from twofold.signals.online_dictionary import OnlineDictionary
from twofold.signals.pca_basis import PCABasis
from twofold.signals.pursuit import matching_pursuit, orthogonal_matching_pursuit
from twofold.signals.sensing import CompressiveSensing, measurements_needed
from twofold.signals.shifted import Shifted
from twofold.signals.sparse_coder import SparseCoder
from twofold.signals.thresholds import keep_largest, threshold
from twofold.signals.transition import PhaseDiagram, donoho_tanner, phase_diagram
from twofold.signals.union import Union
from twofold.signals.wavelet import Wavelet

__all__ = [
    "DCT",
    "KSVD",
    "CompressedImage",
    "CompressiveSensing",
    "Fourier",
    "Gabor",
    "Haar",
    "OnlineDictionary",
    "PCABasis",
    "PhaseDiagram",
    "Shifted",
    "SparseCoder",
    "Union",
    "Wavelet",
    "babel",
    "basis_pursuit",
    "basis_pursuit_denoise",
    "coherence",
    "compress_image",
    "denoise_image",
    "donoho_tanner",
    "inpaint_image",
    "keep_largest",
    "matching_pursuit",
    "measurements_needed",
    "null_space_constant",
    "open_image",
    "orthogonal_matching_pursuit",
    "phase_diagram",
    "rate_distortion",
    "recovery_bound",
    "rip_estimate",
    "threshold",
]
