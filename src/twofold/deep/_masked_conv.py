"""Convolutions that see only the pixels before: above, and to the left in the same row.

A masked kernel has only the part that it may see, and the picture is shifted instead of the weights being zeroed, so
that nothing is multiplied by zero. Two stacks run side by side. The vertical one sees all rows above, to both sides;
the horizontal one sees the pixels to the left and, at every layer, what the vertical one saw. One stack alone would
have a blind spot to the upper right.

    vertical    v ← v + K₂ₓ₃ ∗ relu(v)               this row and the one above
    horizontal  h ← h + U relu(K₁ₓ₂ ∗ h + W v)       this column and the one to the left

The first kernels leave out the row, and the pixel, itself (mask A); those behind may look at their own place (mask B).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twofold.deep._network import init_weights


class Layer(nn.Module):
    """A step of both stacks (mask B)."""

    def __init__(self, p: int):
        super().__init__()
        self.down = nn.Conv2d(p, p, (2, 3), padding=1)
        self.across = nn.Conv2d(p, p, (1, 2), padding=(0, 1))
        self.over = nn.Conv2d(p, p, 1)
        self.out = nn.Conv2d(p, p, 1)

    def forward(self, v: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:  # both (n,p,h,w)
        v = v + self.down(F.relu(v))[:, :, :-1]
        return v, h + self.out(F.relu(self.across(h)[..., :-1] + self.over(v)))

    def row(self, before: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The vertical step for a row v (n,p,1,w) and the one before: the next v, and what the horizontal step gets."""
        both = F.relu(torch.cat([before, v], dim=2))
        v = v + F.conv2d(both, self.down.weight, self.down.bias, padding=(0, 1))
        return v, self.over(v)

    def pixel(self, before: Tensor, h: Tensor, above: Tensor) -> Tensor:
        """The horizontal step for one pixel h (n,p), the one before, and what comes from above (n,p)."""
        a = apply_at_pixel(self.across, torch.stack([before, h], dim=2).flatten(1)) + above
        return h + apply_at_pixel(self.out, F.relu(a))


class Causal(nn.Module):
    """Pixels (n,1,h,w) from 0 to 1 in; log-odds of each (n,1,h,w), or a score for every level (n,L,h,w), out."""

    def __init__(self, size: tuple[int, int], levels: int, channels: int, layers: int, reach: int):
        super().__init__()
        p = channels
        self.levels, self.reach, self.size = levels, reach, size
        self.above = nn.Conv2d(reach, p, (1, 2 * reach + 1), padding=(0, reach))  # mask A: rows i − reach … i − 1
        self.left = nn.Linear(reach, p)  # mask A: columns j − reach … j − 1
        self.place = nn.Parameter(torch.zeros(2, p, *size))  # what a stack should know of where it is
        self.layers = nn.ModuleList([Layer(p) for _ in range(layers)])
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv2d(p, 2 * p, 1), nn.ReLU(), nn.Conv2d(2 * p, levels if levels > 2 else 1, 1)
        )
        init_weights(self, "relu")
        layer: Any
        with torch.no_grad():  # a sum over many layers should start no larger than one over few
            for layer in self.layers:
                layer.down.weight /= (1 + layers) ** 0.5
                layer.out.weight /= (1 + layers) ** 0.5

    def forward(self, x: Tensor) -> Tensor:
        before = F.pad(x[:, 0], (self.reach, 0, self.reach, 0))  # (n, reach + h, reach + w)
        rows = before[:, :-1, self.reach :].unfold(1, self.reach, 1)  # (n,h,w,reach): as channels they are quicker
        columns = before[:, self.reach :, :-1].unfold(2, self.reach, 1)  # (n,h,w,reach)
        v = self.above(rows.contiguous().movedim(-1, 1)) + self.place[0]
        h = self.left(columns).movedim(-1, 1) + self.place[1]
        for layer in self.layers:
            v, h = layer(v, h)
        return self.head(h)

    def pixels(self, k: Tensor) -> Tensor:  # levels (n,h,w) -> (n,1,h,w) from 0 to 1
        return k.unsqueeze(1).float() / (self.levels - 1)

    def nats(self, k: Tensor) -> Tensor:
        """−log p of each of the pixels (n,h,w), given as levels."""
        out = self(self.pixels(k))
        if self.levels == 2:
            return F.binary_cross_entropy_with_logits(out[:, 0], k.float(), reduction="none")
        return F.cross_entropy(out, k.long(), reduction="none")

    def choose(self, out: Tensor, u: Tensor) -> Tensor:
        """Levels (n,) that lie at the shares u of their distributions; out (n,1) or (n,L)."""
        if self.levels == 2:
            return (u >= torch.sigmoid(-out[:, 0])).to(torch.uint8)
        shares = out.double().softmax(dim=1).cumsum(dim=1)[:, :-1]
        return (u[:, None] >= shares).sum(dim=1).to(torch.uint8)

    def draw(self, k: Tensor, missing: np.ndarray, u: Tensor, tell: Callable[[float], object]) -> Tensor:
        """Levels k (n,h,w) of which the missing are drawn in raster order, with shares u; every pixel costs once.

        The vertical stack keeps one row of each layer, the horizontal one pixel of each: as much as a kernel looks
        back. Rows without a missing pixel, and what comes after the last one, need no horizontal stack.
        """
        x = F.pad(self.pixels(k), (self.reach, 0, self.reach, 0))  # (n, 1, reach + h, reach + w)
        (rows, columns), n = self.size, len(k)
        gone = torch.from_numpy(missing).to(k.device)
        memory = [x.new_zeros(n, self.place.shape[1], 1, columns) for _ in self.layers]
        for i in range(rows):
            above = self._row(x[:, :, i : i + self.reach, self.reach :], i, memory)
            gaps = np.flatnonzero(missing[:, i].any(axis=0))
            if len(gaps):
                line = x[:, 0, i + self.reach]  # of x itself
                self._fill(line, above, i, gaps[-1] + 1, k[:, i], gone[:, i], u[:, i])
            tell((i + 1) / rows)
        return k

    def _row(self, x: Tensor, i: int, memory: list[Tensor]) -> list[Tensor]:
        """What the vertical stack says to each layer about row i, from the rows x (n,1,reach,w) above it."""
        v = self.above(x.movedim(2, 1)) + self.place[0, :, i : i + 1]
        out = []
        layer: Any
        for j, layer in enumerate(self.layers):
            memory[j], (v, over) = v, layer.row(memory[j], v)
            out.append(over[:, :, 0])
        return out

    def _fill(self, line: Tensor, above: list[Tensor], i: int, end: int, k: Tensor, missing: Tensor, u: Tensor) -> None:
        """Draw the missing pixels of row i, up to `end`, into its levels k (n,w) and its pixels line (n,reach + w)."""
        memory = [line.new_zeros(len(line), self.place.shape[1]) for _ in self.layers]
        layer: Any
        for j in range(end):
            h = self.left(line[:, j : j + self.reach]) + self.place[1, :, i, j]
            for m, layer in enumerate(self.layers):
                memory[m], h = h, layer.pixel(memory[m], h, above[m][:, :, j])
            if missing[:, j].any():
                out = apply_at_pixel(self.head[3], F.relu(apply_at_pixel(self.head[1], F.relu(h))))
                k[:, j] = torch.where(missing[:, j], self.choose(out, u[:, j]), k[:, j])
                line[:, self.reach + j] = k[:, j].float() / (self.levels - 1)


def apply_at_pixel(conv: Any, x: Tensor) -> Tensor:
    """A convolution at one place: its kernel over all that it sees there, (n,q) -> (n,p)."""
    return F.linear(x, conv.weight.flatten(1), conv.bias)
