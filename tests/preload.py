"""What worker processes need, imported once by the process that they are forked from; nothing that starts threads, as
pandas and polars do, because threads do not outlive a fork.
"""

import numba.core.registry
import scipy.linalg
import scipy.sparse.linalg
import scipy.special
import scipy.stats  # noqa: F401

import twofold.core.engine.dask_sources  # noqa: F401

numba.core.registry.cpu_target.typing_context.refresh()  # what the first call of a kernel does, half a second each time
numba.core.registry.cpu_target.target_context.refresh()
