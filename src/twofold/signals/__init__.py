"""Signals: sparse codes. Bases, pursuits, and how far they can be trusted."""

from twofold.signals.dct import DCT
from twofold.signals.diagnostics import babel, coherence, null_space_constant, recovery_bound, rip_estimate
from twofold.signals.fourier import Fourier
from twofold.signals.gabor import Gabor
from twofold.signals.haar import Haar
from twofold.signals.ksvd import KSVD
from twofold.signals.least_l1 import basis_pursuit, basis_pursuit_denoise
from twofold.signals.pca_basis import PCABasis
from twofold.signals.pursuit import matching_pursuit, orthogonal_matching_pursuit
from twofold.signals.sparse_coder import SparseCoder
from twofold.signals.thresholds import keep_largest, threshold
from twofold.signals.union import Union
from twofold.signals.wavelet import Wavelet

__all__ = [
    "DCT",
    "KSVD",
    "Fourier",
    "Gabor",
    "Haar",
    "PCABasis",
    "SparseCoder",
    "Union",
    "Wavelet",
    "babel",
    "basis_pursuit",
    "basis_pursuit_denoise",
    "coherence",
    "keep_largest",
    "matching_pursuit",
    "null_space_constant",
    "orthogonal_matching_pursuit",
    "recovery_bound",
    "rip_estimate",
    "threshold",
]
