"""A process in which fits are killed."""

import pickle
import subprocess
import sys

import pytest

# It loads the library once and becomes two for every job; the copy fits, and kills itself after three sweeps.
DOOMED = """
import os, pickle, signal, sys
import twofold

class Kill:
    def setup(self, estimator, context): pass
    def teardown(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context): pass
    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if fitted_estimator is not None and fitted_estimator.n_iter_ == 3:
            os.kill(os.getpid(), signal.SIGKILL)

while True:
    try:
        model, X, checkpoint = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    else:
        model.set_callbacks(twofold.Checkpoint(checkpoint), Kill()).fit(X)
        os._exit(0)
"""


@pytest.fixture(scope="session")
def killed():
    """killed(model, X, checkpoint): the exit code of a process that died in the fit."""
    with subprocess.Popen([sys.executable, "-c", DOOMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def run(model, X, checkpoint):
            pickle.dump((model, X, checkpoint), process.stdin)
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
