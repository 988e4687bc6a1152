"""What jobs need, imported once by the process that they are forked from, so that one starts in tenths of a second.

Nothing here may start threads, as polars does: they do not outlive a fork.
"""

import numba.core.registry
import scipy.stats  # noqa: F401

import twofold.clusters
import twofold.factors
import twofold.lab.methods
import twofold.linear
import twofold.signals  # noqa: F401

numba.core.registry.cpu_target.typing_context.refresh()  # what the first call of a kernel does, half a second each time
numba.core.registry.cpu_target.target_context.refresh()
