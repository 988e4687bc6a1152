"""With NUMBA_BOUNDSCHECK=1 and a cache of its own, as in `make bounds`, kernels check every index."""

import os
import subprocess
import sys

OUTSIDE = """
import numpy as np
from twofold.kernels.top_k import select_best
items, scores = np.empty((1, 2), np.int64), np.empty((1, 2))
select_best(np.ones((1, 5)), np.array([0, 1]), np.array([7]), items, scores)
"""


def test_an_index_outside_is_an_error(tmp_path):
    checked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", OUTSIDE], env=checked, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "IndexError: index is out of bounds" in done.stderr
