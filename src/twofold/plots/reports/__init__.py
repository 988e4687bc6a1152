"""Figures of analyses, one a verb."""
