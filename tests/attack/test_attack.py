"""A part of each attack in every run of the tests; `python -m tests.attack` does the whole."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import twofold
from tests.attack import extremes, forks, index_arrays, model_files, sparse_arrays
from twofold.core import checks
from twofold.core.data import blocks


def test_sparse_arrays_that_lead_outside_are_refused_by_everyone() -> None:
    wrong = [(what, said) for what, said in sparse_arrays.attack(2 * len(sparse_arrays.cases())) if said]
    assert not wrong


@pytest.mark.parametrize("name", ["PCA", "KMeans", "NMF", "LatentDirichletAllocation", "ALS", "ImplicitALS"])
def test_indices_are_looked_at_once_a_fit_and_not_once_a_sweep(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, real = [], checks.check_sparse
    for module in (checks, blocks):
        monkeypatch.setattr(module, "check_sparse", lambda X, *name: (seen.append(X.shape), real(X, *name)))
    X = sparse.random_array((60, 12), density=0.4, format="csr", rng=np.random.default_rng(0))
    getattr(twofold, name)(2).fit(X)
    assert seen == [X.shape]


def test_the_refusal_names_the_place_and_guesses_the_reason() -> None:
    X = sparse.random_array((6, 40), density=0.5, format="csr", rng=np.random.default_rng(0))
    X.indices[:] = X.indices + 1
    X.indices[X.indptr[3]] = 40
    with pytest.raises(twofold.InputError, match=r"column 40 of row \d.*40 columns, 0 to 39. Do your ids start at 1\?"):
        twofold.KMeans(2).fit(X)


def test_arrays_of_indices_weights_and_starts_that_do_not_fit_are_refused_by_everyone() -> None:
    assert not [(what, said) for what, said in index_arrays.attack(every=9) if said]


@pytest.mark.filterwarnings("ignore")
def test_children_of_a_process_with_threads_answer() -> None:
    assert not [(what, said) for what, said in forks.attack(len(forks.MODELS) + 3) if said]


@pytest.mark.parametrize("name", ["times 1e300", "single, times 1e37", "single, times 1e-38", "all alike"])
def test_numbers_at_the_edge_give_finite_results_or_a_reason(name: str) -> None:
    assert not [(what, said) for what, said in extremes.attack((name,)) if said]


@pytest.mark.parametrize("spoil", [model_files.spoil_bytes, model_files.spoil_meaning], ids=["bytes", "meaning"])
def test_changed_model_files_are_refused_or_harmless(spoil: object) -> None:
    assert not [(what, said) for what, said in model_files.attack(50, spoil) if said]


def test_commands_and_files_stand_kills_signals_full_disks_and_hostile_input() -> None:
    """In a process of its own: threads of other tests would be missing in the children."""
    attacks = ["cli", "kills", "resume", "signals", "disk"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.attack", "--quick", *attacks], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"\n{name}: " in f"\n{done.stdout}" for name in attacks)
