"""Ratings beyond one memory: partitioned on disk, fitted by tasks on threads or on a cluster."""
