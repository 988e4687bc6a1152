"""What is minimised: loss, constraints and shift, and a word where they or the cells do not go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.factors.constraints import Constraint
from twofold.factors.losses import Loss


@dataclass(frozen=True)
class Problem:
    """What is minimised, as every block needs to know it."""

    loss: Loss
    left: Constraint
    right: Constraint
    k: int
    plain: bool  # squared error, every cell known and alike
    shift: np.ndarray  # (d,) taken off every row before anything else, in the data's precision
    steps: int = 10

    def split(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Z (k,d) and μ (d,) from V (d,k) or, with an intercept, (d,k+1)."""
        Z = np.ascontiguousarray(V[:, : self.k].T)
        return Z, V[:, self.k] if V.shape[1] > self.k else np.zeros(len(V), V.dtype)


def check_choices(loss: Loss, left: Constraint, right: Constraint, intercept: bool) -> None:
    """Refuse what does not go together."""
    if left.joint:
        raise InputError(
            f"left={left!r} ties all rows of X together, which only the right factor can be. Give X transposed, and "
            f"right={left!r}."
        )
    for name, side in (("left", left), ("right", right)):
        if loss.positive and type(side).shares is Constraint.shares:
            raise InputError(
                f"{loss!r} needs values above 0, which {name}={side!r} does not keep. Use NonNegative() or Simplex() "
                'on both sides, or Poisson(link="log").'
            )
    if loss.positive and intercept:
        raise InputError(f"{loss!r} needs values above 0, which an intercept does not keep. Set it to False.")


def count_outside(X: Any, loss: Loss) -> int:
    """How many cells of a block cannot be used; NaN is a hole in a dense one."""
    if sparse.issparse(X):
        return int(np.count_nonzero(loss.outside(X.data) | ~np.isfinite(X.data)))
    return int(np.count_nonzero(loss.outside(X) | np.isinf(X)))


def refuse_values(blocks: Blocks, loss: Loss) -> None:
    """Raise with the place of the first cell that the loss does not know."""
    for i, start in enumerate(blocks.bounds[:-1]):
        if count_outside(blocks[i], loss):
            X = blocks[i].toarray() if sparse.issparse(blocks[i]) else blocks[i]
            row, column = divmod(int(np.argmax(loss.outside(X))), X.shape[1])
            raise InputError(
                f"X[{int(start) + row}, {column}] is {X[row, column]:g}; loss={loss!r} needs {loss.needs}. Scale the "
                "data, or use another loss: Squared()."
            )
