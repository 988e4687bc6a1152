"""Bases: transforms that are never written out as matrices."""
