"""Callbacks that write down what a fit does, or end it."""


class Crash(Exception):
    """The end of a fit that a callback breaks off."""


class Quiet:
    """The hooks a callback must have, doing nothing."""

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context): ...


class Recorder:
    """Writes down every hook and objective; asks to stop after some sweeps, or crashes."""

    def __init__(self, stop_after=None, crash_after=None):
        self.stop_after, self.crash_after = stop_after, crash_after
        self.events, self.objectives = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append("begin sweep" if context.parent else "begin fit")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append("end sweep" if context.parent else "end fit")
        if context.parent is None:
            return False
        if fitted_estimator is not None:
            self.objectives.append(fitted_estimator.history_["objective"][-1])
        sweeps = self.events.count("end sweep")
        if getattr(fitted_estimator, "n_iter_", sweeps) == self.crash_after:  # of the start that is under way
            raise Crash
        return sweeps == self.stop_after
