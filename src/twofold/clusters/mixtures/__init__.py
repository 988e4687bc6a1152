"""Mixture models."""
