"""Numerical methods that several families share."""
