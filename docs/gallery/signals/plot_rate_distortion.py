"""
Bytes and error of compressed photographs
=========================================

Three ways to say a picture with few numbers: cosines in blocks of 8 x 8, wavelets at every size, and the principal
directions of the picture's own blocks. Numbers are rounded, and what is left is packed. The rounding step decides: more
bytes, or more error.
"""

from twofold import datasets
from twofold.plots.models.images import comparison_figure, rate_distortion_figure
from twofold.signals import compress_image, rate_distortion

photo = datasets.photographs().flower[60:316, 180:500]
names = {"dct": "DCT blocks", "wavelet": "wavelets", "pca": "PCA of blocks"}
curves = rate_distortion(photo)
made = {
    name: compress_image(photo, size=12_000, method=method)
    for method, name in names.items()
}
order = sorted(made, key=lambda name: -made[name].psnr)
for name in order:
    one = made[name]
    print(
        f"{name:14} {one.size:6,} bytes, {one.bits_per_pixel:.2f} bits a pixel, "
        f"{one.psnr:.2f} dB"
    )

# %%
# Quality against size. Six decibels are half the error. No directions fit the blocks of this picture better than their
# principal ones; but they must be stored with it, while cosines and wavelets are known to everybody.

curve = rate_distortion_figure(
    {names[method]: curves[method] for method in names},
    {name: (made[name].bits_per_pixel, made[name].psnr) for name in order},
)

# %%
# What it looks like when there are too few bytes: blocks show their edges, wavelets blur and ring.

tiny = {
    name: compress_image(photo, size=3_000, method=method)
    for method, name in names.items()
    if method != "pca"
}
pictures = comparison_figure(
    [
        (f"original, {photo.nbytes:,} bytes", photo),
        *(
            (f"{name}, {one.size:,} bytes, {one.psnr:.1f} dB", one.decode())
            for name, one in tiny.items()
        ),
    ]
)
