"""Settings and randomness."""

import subprocess
import sys

import numpy as np
import pytest

from twofold import InputError, config
from twofold.core.config import parse_bytes
from twofold.core.seeds import generator, seed_of


def test_settings_hold_within_the_block_only():
    before = config()
    with config(threads=3, memory="64MB") as now:
        assert (now.threads, now.memory) == (3, 64_000_000) == (config().threads, config().memory)
        with config(threads=1):
            assert (config().threads, config().memory) == (1, 64_000_000)
        assert config().threads == 3
    assert (config().threads, config().memory) == (before.threads, before.memory)


def test_settings_are_restored_after_an_error_and_stay_without_a_block():
    before = config()
    with pytest.raises(ZeroDivisionError), config(threads=before.threads + 1):
        1 / 0  # noqa: B018
    assert config().threads == before.threads
    try:
        config(threads=5)
        assert config().threads == 5
    finally:
        config(threads=before.threads)


SIZES = [("512MB", 512e6), ("1GB", 1e9), ("1.5 GiB", 1.5 * 2**30), ("2gb", 2e9), (5_000_000, 5e6), ("3000000", 3e6)]


@pytest.mark.parametrize("text, size", SIZES)
def test_sizes(text, size):
    assert parse_bytes(text) == size


BAD = [("memory", size) for size in ("many", "12 parsecs", "", "-1GB", "1kb", 0, -5, "nan")]


@pytest.mark.parametrize("name, value", [*BAD, *(("threads", n) for n in (0, -1, 1.5, "two"))])
def test_a_wrong_setting_is_refused_and_changes_nothing(name, value):
    before = config()
    with pytest.raises(InputError, match=f"{name}="):
        config(**{"threads": before.threads + 3, name: value})
    assert (config().threads, config().memory) == (before.threads, before.memory)


def test_a_place_has_its_own_randomness():
    draw = lambda *path: generator(7, *path).random(4)  # noqa: E731
    assert np.array_equal(draw(3, 5), draw(3, 5))
    places = [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]
    assert len({tuple(draw(*place)) for place in places}) == len(places)
    assert not np.array_equal(generator(8, 3).random(4), draw(3))


def test_seeds():
    assert seed_of(5) == 5 and seed_of(np.int64(5)) == 5
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1))
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    assert seed_of(None) != seed_of(None)


def test_the_package_loads_nothing_it_does_not_need():
    script = (
        "import sys, twofold; "
        "assert not {'dask', 'distributed', 'torch', 'fastapi', 'sklearn', 'numba'} & set(sys.modules); "
        "twofold.PCA; assert not {'dask', 'distributed', 'torch', 'fastapi'} & set(sys.modules); "
        "assert set(twofold.__all__) <= set(dir(twofold))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
