"""Progress: parts of parts, whoever reports them, are progress of the whole."""

import pytest

from twofold import PPCA, datasets
from twofold.core.progress import Counter, doing, is_watched, part, report, report_share_to, report_to


class Recorder:
    def __init__(self):
        self.reports = []

    def report(self, done, total, label=""):
        self.reports.append((done, total, label))


def test_nothing_in_force_costs_nothing():
    report(1, 2, "unheard")
    with part(0, 1, 2, "unheard"), doing("unheard"):
        Counter(3).add()
        assert not is_watched()


def test_parts_are_composed():
    face = Recorder()
    with report_to(face), doing("fitting"), part(2, 4, 10, "sweep 2"), part(0.5, 1):
        report(1, 4, "a quarter")
    assert face.reports == [
        (0.0, None, "fitting"),
        (2, 10, "fitting: sweep 2"),
        (3.25, 10, "fitting: sweep 2: a quarter"),
        (4, 10, "fitting: sweep 2"),
    ]
    assert not is_watched()


def test_a_part_never_falls_and_an_error_does_not_end_it():
    face = Recorder()
    with pytest.raises(KeyError), report_to(face), part(0, 1, 2):
        report(3, 4)
        report(1, 4)
        raise KeyError
    assert [done for done, *_ in face.reports] == [0.75, 0.75]


def test_a_function_takes_the_share():
    shares = []
    with report_share_to(shares.append), part(1, 2, 4):
        report(1, 2)
    assert shares == [0.375, 0.5]


def test_blocks_are_counted():
    face = Recorder()
    with report_to(face):
        counter = Counter(2, "writing")
    counter.add()
    counter.add()
    assert face.reports == [(1, 2, "writing: 1 of 2 blocks"), (2, 2, "writing: 2 of 2 blocks")]


def test_a_fit_reports_its_sweeps():
    face = Recorder()
    with report_to(face):
        model = PPCA(5, solver="em", random_state=0).fit(datasets.digits().data)
    done = [done for done, total, label in face.reports if total == model.max_iter]
    assert done == sorted(done) and done[-1] == model.n_iter_
    assert f"PPCA: sweep 1 of at most {model.max_iter}" in {label for *_, label in face.reports}
