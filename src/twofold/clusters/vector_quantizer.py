"""Vector quantization: the number of its nearest code replaces every row.

    minimize  Σ w ‖x − z_c(x)‖²   over a codebook Z (k,d)      a row costs ⌈log2 k⌉ bits instead of d numbers

The codebook is k-means' centers; a palette is the codebook of an image's pixels.
Reference: Gersho & Gray 1992.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.kmeans import KMeans
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.loop import quietly
from twofold.core.params import ITERATIVE, Interval
from twofold.core.types import Seed, Table


class VectorQuantizer(KMeans, auto_wrap_output_keys=None):
    """A codebook learned by k-means: rows to code numbers, and back to the nearest rows of the codebook.

    Parameters
    ----------
    n_codes : int, default=256
        Rows of the codebook; a power of two wastes no bits.
    max_iter : int, default=100
        Sweeps at most.
    tol : float, default=1e-4
        As in :class:`KMeans`.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    codebook_ : ndarray of shape (k, d)
        Also as components_ and cluster_centers_.
    distortion_ : float
        The mean squared distance of a row of the fit to its code.
    bits_per_row_ : int
        Bits that hold one code.
    counts_ : ndarray of shape (k,)
        Number of rows of each code.
    history_, n_iter_, converged_
        As in :class:`KMeans`.

    References
    ----------
    Gersho & Gray (1992), *Vector Quantization and Signal Compression*.

    Examples
    --------
    >>> from twofold import VectorQuantizer, datasets
    >>> X = datasets.digits().data
    >>> model = VectorQuantizer(64, random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> codes.shape, model.bits_per_row_
    ((1797,), 6)
    >>> error = ((model.inverse_transform(codes) - X) ** 2).sum(axis=1).mean()
    >>> bool(np.isclose(error, model.distortion_))
    True
    """

    init = "auto"
    n_init = 1  # with many codes, starts hardly differ
    _parameter_constraints: ClassVar[dict] = {
        "n_codes": [Interval(Integral, 1, None, closed="left")],
        **ITERATIVE,
    }

    def __init__(self, n_codes: int = 256, *, max_iter: int = 100, tol: float = 1e-4, random_state: Seed = None):
        self.n_codes = n_codes
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @property
    def n_clusters(self) -> int:
        """The number of codes, by its name in k-means."""
        return self.n_codes

    @n_clusters.setter
    def n_clusters(self, value: int) -> None:
        self.n_codes = value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "transformer"  # it returns codes, not clusters
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_k(self, blocks: Blocks) -> None:
        if self.n_codes > blocks.shape[0]:
            raise InputError(f"n_codes={self.n_codes} is more than n_samples={blocks.shape[0]}. Ask for fewer codes.")

    @property
    def _n_features_out(self) -> int:
        return 1

    @property
    def codebook_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.cluster_centers_

    def _finish(self, blocks: Blocks, w: np.ndarray | None) -> None:
        super()._finish(blocks, w)
        self.distortion_ = self.inertia_ / float(self.counts_.sum())
        self.bits_per_row_ = (int(self.n_codes) - 1).bit_length()

    def transform(self, X: Table) -> np.ndarray:
        """Return the code of each row: whole numbers (n,)."""
        return self.predict(X)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Return the row of the codebook of each code: (n,d)."""
        check_is_fitted(self)
        codes, k = np.asarray(X), len(self.cluster_centers_)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InputError(f"the codes have shape {codes.shape}, dtype {codes.dtype}; whole numbers (n,) are needed.")
        wrong = (codes < 0) | (codes >= k)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InputError(f"code {i} is {codes[i]}; the codebook has rows 0 to {k - 1}.")
        return self.cluster_centers_[codes]


def palette(image: Any, n_colors: int = 16, *, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
    """Choose a few colors for an image, so that ``colors[indices]`` is nearly the same image.

    Parameters
    ----------
    image : array of shape (h, w) or (h, w, c)
        In any range and dtype.
    n_colors : int, default=16
        Maximum number of colors; an image with fewer is returned exactly.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    colors : ndarray of shape (k,) or (k, c)
        In the image's range and dtype: uint8 stays uint8.
    indices : ndarray of shape (h, w)

    Examples
    --------
    >>> from twofold.clusters import palette
    >>> image = np.repeat(np.arange(256, dtype=np.uint8)[None], 8, axis=0)
    >>> colors, indices = palette(image, 4, random_state=0)
    >>> colors.dtype, indices.shape, int(np.abs(colors[indices].astype(int) - image).max()) <= 40
    (dtype('uint8'), (8, 256), True)
    """
    image = np.asarray(image)
    if image.ndim not in (2, 3) or image.dtype.kind not in "uif" or not image.size:
        raise InputError(
            f"the image has shape {image.shape}, dtype {image.dtype}; numbers (h,w) or (h,w,c) are needed."
        )
    if not np.isfinite(image).all():
        raise InputError("the image has pixels that are NaN or infinite. Fill them first.")
    pixels = image.reshape(image.shape[0] * image.shape[1], -1)
    colors, inverse, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.ravel()
    if len(colors) > n_colors:
        with quietly():
            model = VectorQuantizer(n_colors, random_state=random_state).fit(
                colors.astype(np.float64), sample_weight=counts
            )
        inverse = model.labels_[inverse]
        centers = model.codebook_
        colors = (np.rint(centers) if image.dtype.kind in "ui" else centers).astype(image.dtype)
    return colors.reshape(len(colors), *image.shape[2:]), inverse.reshape(image.shape[:2])
