"""What the benchmark promises: turns are taken, slow peers sit out, quality decides which peers are compared."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench/ is not part of the installed package

from bench import report
from bench.__main__ import event_modules, select_events
from bench.harness import Bar, Contestant, Event, Missing, Timed, Work, optional, run
from bench.linear_ppca_holes import Fit, conditional_means
from bench.subspace import Exact, draw_spiked

CEILINGS = {"gemm_float64_gflops": 1.0, "gemm_float32_gflops": 2.0, "read_gbs": 10.0, "copy_gbs": 10.0}
MACHINE = {
    "cpu": "a cpu", "cores": 2, "threads": 2, "memory_gb": 1, "load": 0, "system": "", "python": "", "versions": {},
}  # fmt: skip


def fixed(name, seconds, error, log=None, **more):
    """A contestant that claims a time and an error."""

    def job():
        if log is not None:
            log.append(name)
        return Timed(seconds, error)

    return Contestant(name, job, **more)


def contest(*entries, ratio=None, budget=30.0, work=None):
    bar = Bar("a bar", ratio=ratio) if ratio else None
    return Event(
        "e", "t", list(entries), lambda error: {"error": error}, lambda a, b: a["error"] <= b["error"], bar, work,
        budget=budget,
    )  # fmt: skip


def test_contestants_take_turns_after_one_warm_up_each():
    log = []
    outcome = run(contest(fixed("a", 1, 0, log, ours=True), fixed("b", 2, 0, log)), repeats=3)
    assert log == ["a", "b"] + ["a", "b"] * 3
    assert [len(row.seconds) for row in outcome.rows] == [3, 3]


def test_a_contestant_over_budget_is_timed_once():
    outcome = run(contest(fixed("a", 1, 0, ours=True), fixed("b", 50, 0), budget=40), repeats=4)
    assert [len(row.seconds) for row in outcome.rows] == [4, 1]


def test_the_clock_runs_for_jobs_that_do_not_time_themselves():
    job = Contestant("a", lambda: time.sleep(0.02), ours=True)
    event = Event("e", "t", [job], lambda value: {"error": 0.0}, lambda a, b: True)
    assert run(event, repeats=1).rows[0].median >= 0.02  # a busy machine may take any longer


def test_a_worse_peer_is_not_compared():
    event = contest(fixed("ours", 2.0, 1, ours=True), fixed("hasty", 0.5, 5), fixed("fair", 6.0, 1), ratio=1.5)
    outcome = run(event, repeats=1)
    assert outcome.rival().contestant == "fair"
    assert outcome.met() and outcome.ratio(outcome.rival()) == 3.0


def test_each_peer_meets_our_fastest_entry_that_is_as_good():
    ours = fixed("rough", 1.0, 10, ours=True), fixed("fine", 4.0, 1, ours=True)
    outcome = run(contest(*ours, fixed("rough peer", 2.0, 10), fixed("fine peer", 4.4, 1), ratio=1.5), repeats=1)
    rough, fine = outcome.rows[2:]
    assert outcome.ratio(rough) == 2.0 and outcome.ratio(fine) == pytest.approx(1.1)
    assert outcome.rival() is fine and outcome.met() is False


def test_a_peer_better_than_all_of_ours_meets_our_slowest():
    event = contest(fixed("a", 1.0, 2, ours=True), fixed("b", 3.0, 2, ours=True), fixed("peer", 1.5, 0), ratio=1.3)
    outcome = run(event, repeats=1)
    assert outcome.ratio(outcome.rows[2]) == 0.5 and outcome.met() is False


def test_a_peer_that_fails_is_reported_and_ours_raises():
    def fail():
        raise OSError("no such thing")

    outcome = run(contest(fixed("a", 1, 0, ours=True), Contestant("b", fail)), repeats=2)
    assert "no such thing" in outcome.rows[1].missing and outcome.rival() is None
    with pytest.raises(OSError, match="no such thing"):
        run(contest(Contestant("a", fail, ours=True)), repeats=1)


def test_an_event_is_closed_even_when_it_fails():
    closed = []
    event = contest(Contestant("a", lambda: 1 / 0, ours=True))
    event.close = lambda: closed.append(True)
    with pytest.raises(ZeroDivisionError):
        run(event, repeats=1)
    assert closed


def test_the_limit_is_the_slower_of_arithmetic_and_memory():
    assert Work(flops=4e9, bytes=1e9).seconds(CEILINGS) == 4.0
    assert Work(flops=4e9, bytes=1e9, dtype="float32").seconds(CEILINGS) == 2.0
    assert Work(flops=0.0, bytes=50e9).seconds(CEILINGS) == 5.0


def test_a_package_that_is_not_there_is_named():
    def build():
        import a_package_nobody_has  # noqa: F401

    entry = optional("peer", "a-package", build)
    assert isinstance(entry, Missing) and "a-package" in entry.reason


def test_files_say_what_was_measured(tmp_path):
    event = contest(fixed("ours", 1, 1, ours=True), fixed("peer", 3, 1), Missing("gone", "not built here"), ratio=2)
    outcome = run(event, repeats=2)
    page, data = report.write(tmp_path, [outcome], MACHINE, CEILINGS, "2000-01-01 00:00:00")
    text, found = page.read_text(), json.loads(data.read_text())["events"][0]
    assert "| peer | 3 |" in text and "not built here" in text and "met" in text
    assert found["met"] is True and found["rows"][1]["ratio"] == 3 and "not_available" in found["rows"][2]


def test_events_are_found_by_family_and_by_name():
    assert {"linear_tall", "linear_wide", "linear_stream"} <= set(event_modules())
    assert select_events(["linear_tall"]) == ["linear_tall"]
    assert select_events(["linear"]) == [name for name in select_events([]) if name.startswith("linear_")]
    with pytest.raises(SystemExit, match="nowhere"):
        select_events(["nowhere"])


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
def test_the_exact_answer_is_exact(shape):
    X = draw_spiked(*shape, 3, np.float64)
    exact = Exact(X, 3)
    s = np.linalg.svd(X - X.mean(axis=0))
    np.testing.assert_allclose(exact.variance, s[1][:3] ** 2 / (shape[0] - 1))
    np.testing.assert_allclose(np.linalg.norm(s[2][:3] @ exact.axes, ord=-2), 1)


def test_the_evaluator_fills_holes_by_the_conditional_mean():
    rng = np.random.default_rng(0)
    W, mean = rng.standard_normal((5, 2)), rng.standard_normal(5)
    x = rng.standard_normal((1, 5))
    x[0, [1, 3]] = np.nan
    C = W @ W.T + 0.3 * np.eye(5)
    seen, gone = [0, 2, 4], [1, 3]
    want = mean[gone] + C[np.ix_(gone, seen)] @ np.linalg.solve(C[np.ix_(seen, seen)], x[0, seen] - mean[seen])
    np.testing.assert_allclose(conditional_means(x, Fit(mean, W, 0.3))[0, gone], want)
