"""AdaGrad and plain steps of GloVe, and the assignment of counts to tiles.

    gap  d = ⟨u, z⟩ + b + c − log n        cost ½ f d²        f = min(1, (n/x_max)^α)

A line of U (n,2,p) is a word's vector and, beside it, the sums of its squared steps, because a cell needs both at once.
Its p numbers are the k factors, the word's bias, a 1 that is multiplied by the bias of the other side, and zeros up to
a multiple of eight; a line of Z has the 1 first and its bias second. So both biases are part of the one product ⟨u, z⟩.

A cell is a record (row, col, log): places in the tile's groups, and log n.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
CLIP = np.float32(100.0)  # the largest gradient of a number
CELL = np.dtype([("row", np.uint16), ("col", np.uint16), ("log", np.float32)])


@njit(cache=True, nogil=True)
def shuffle_cells(cells, seed):
    """Return the cells in a random order: each is copied to a random place among those before it."""
    out = np.empty_like(cells)
    state = np.uint64(seed)
    for q in range(cells.size):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        at = ((state >> np.uint64(32)) * np.uint64(q + 1)) >> np.uint64(32)
        out[q] = out[at]
        out[at] = cells[q]
    return out


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def adagrad_cells(cells, k, rate, alpha, log_max, bias_input, U, Z):
    """Take a step for each cell in turn; U and Z change in place. Returns the sum of the costs before each step.

    Every number moves by g/√G with g = rate times its gradient and G the sum of its earlier g². `bias_input` is 0
    if there are no biases, else 1.
    """
    p = U.shape[2]
    top, zero = CLIP * rate, np.float32(0)
    total = 0.0
    for q in range(cells.size):
        i, j, x = cells[q].row, cells[q].col, cells[q].log
        u, of_u, z, of_z = U[i, 0], U[i, 1], Z[j, 0], Z[j, 1]
        d = zero
        for a in range(p):
            d += u[a] * z[a]
        d -= x
        below = alpha * (x - log_max)
        pull = d if below >= zero else np.float32(np.exp(below)) * d
        total += np.float64(pull) * np.float64(d)
        pull *= rate
        for a in range(p):
            ua, za = u[a], z[a]
            gu, gz = min(max(pull * za, -top), top), min(max(pull * ua, -top), top)
            u[a] = ua - gu / np.sqrt(of_u[a])
            z[a] = za - gz / np.sqrt(of_z[a])
            of_u[a] += gu * gu
            of_z[a] += gz * gz
        u[k + 1], z[k] = bias_input, bias_input  # constant
    return 0.5 * total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def sgd_cells(cells, k, rate, alpha, log_max, bias_input, U, Z):
    """Take plain steps instead of those of `adagrad_cells`: every number moves by g, sums of squares do not change."""
    top, total = CLIP * rate, 0.0
    for q in range(cells.size):
        u, z, x = U[cells[q].row, 0], Z[cells[q].col, 0], cells[q].log
        d = -x
        for a in range(u.size):
            d += u[a] * z[a]
        weight = np.float32(np.exp(min(alpha * (x - log_max), np.float32(0))))
        total += 0.5 * np.float64(weight * d) * np.float64(d)
        pull = rate * weight * d
        for a in range(u.size):
            by = pull * u[a]
            u[a] -= min(max(pull * z[a], -top), top)
            z[a] -= min(max(by, -top), top)
        u[k + 1], z[k] = bias_input, bias_input
    return total


@njit(cache=True, nogil=True)
def count_tiles(indptr, indices, data, row_group, col_group, groups, counts):
    """Add the cells of these rows in each tile to counts (B·B,); row_group is theirs, empty cells are skipped."""
    for i in range(indptr.size - 1):
        base = row_group[i] * groups
        for q in range(indptr[i], indptr[i + 1]):
            if data[q] > 0:
                counts[base + col_group[indices[q]]] += 1


@njit(cache=True, nogil=True)
def assign_cells_to_tiles(indptr, indices, data, row_group, col_group, row_place, col_place, groups, at, out):
    """Write the cells of these rows to their tiles, from out[at[tile]] on; `at` advances."""
    for i in range(indptr.size - 1):
        base, place = row_group[i] * groups, row_place[i]
        for q in range(indptr[i], indptr[i + 1]):
            if data[q] > 0:
                j = indices[q]
                tile = base + col_group[j]
                cell = out[at[tile]]
                cell.row = place
                cell.col = col_place[j]
                cell.log = np.log(np.float64(data[q]))
                at[tile] += 1
