"""Compression, denoising and inpainting of images."""
