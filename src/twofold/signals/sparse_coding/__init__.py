"""Sparse codes over a given dictionary."""
