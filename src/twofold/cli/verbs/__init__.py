"""Verbs that are no analysis, one file each."""
