"""Compressive sensing."""
