"""Figures of fitted models."""
