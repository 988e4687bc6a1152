"""Compiled inner loops: arrays and scalars in, arrays out, nothing else known.

Kernels are serial and release the GIL; the engine runs them on threads. Each has a plain NumPy twin in the tests.
"""
