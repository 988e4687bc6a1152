"""Headers of .npy files, read on many threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
TRIES = 10


def reads_headers(read: Callable[..., T]) -> Callable[..., T]:
    """A function that reads .npy or .npz files, made safe on threads.

    NumPy has Python's parser read a header, and the parser of Python 3.11 counts its depth for all threads together: of
    two that parse at the same time one may end with SystemError ("AST constructor recursion depth mismatch").
    What was read is right whenever there is no error, so it is read again.
    """

    @wraps(read)
    def reading(*args: Any, **kwargs: Any) -> T:
        for _ in range(TRIES - 1):
            try:
                return read(*args, **kwargs)
            except SystemError as why:
                if "AST" not in str(why):
                    raise
        return read(*args, **kwargs)

    return reading
