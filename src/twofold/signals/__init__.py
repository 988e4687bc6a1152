"""Signals: sparse codes. Bases, pursuits, and how far they can be trusted."""

from twofold.signals.bases import DCT, Fourier, Haar, Wavelet
from twofold.signals.basis_pursuit import basis_pursuit, basis_pursuit_denoise
from twofold.signals.coherence import (
    Certificate,
    babel,
    certify_recovery,
    coherence,
    null_space_constant,
    recovery_bound,
    rip_constant,
    rip_estimate,
    sparsest_code,
)
from twofold.signals.compression import (
    CompressedImage,
    CompressedSignal,
    compress_image,
    compress_signal,
    open_image,
    open_signal,
    rate_distortion,
)
from twofold.signals.compressive_sensing import CompressiveSensing, measurements_needed
from twofold.signals.dictionary import SparseCoder
from twofold.signals.images.denoise import denoise_image
from twofold.signals.images.inpaint import inpaint_image
from twofold.signals.ksvd import KSVD
from twofold.signals.online_dictionary import OnlineDictionary
from twofold.signals.overcomplete import Gabor, Shifted, Union
from twofold.signals.pca_basis import PCABasis
from twofold.signals.phase_diagram import PhaseDiagram, donoho_tanner, phase_diagram
from twofold.signals.pursuits import matching_pursuit, orthogonal_matching_pursuit
from twofold.signals.thresholding import denoise_signal, estimate_sigma, keep_largest, threshold

__all__ = [
    "DCT",
    "KSVD",
    "Certificate",
    "CompressedImage",
    "CompressedSignal",
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
    "certify_recovery",
    "coherence",
    "compress_image",
    "compress_signal",
    "denoise_image",
    "denoise_signal",
    "donoho_tanner",
    "estimate_sigma",
    "inpaint_image",
    "keep_largest",
    "matching_pursuit",
    "measurements_needed",
    "null_space_constant",
    "open_image",
    "open_signal",
    "orthogonal_matching_pursuit",
    "phase_diagram",
    "rate_distortion",
    "recovery_bound",
    "rip_constant",
    "rip_estimate",
    "sparsest_code",
    "threshold",
]
