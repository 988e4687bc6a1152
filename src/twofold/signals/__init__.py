"""Signals: sparse codes."""
