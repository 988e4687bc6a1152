"""Networks this small train on one thread: two test processes with two spinning threads each would only wait."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import twofold


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with twofold.config(threads=1):
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def digits():
    """Rows of gray digits from 0 to 16, in their own order: the last ones are by other writers."""
    return load_digits().data


@pytest.fixture(scope="session")
def labels():
    return load_digits().target


@pytest.fixture(scope="session")
def parts(digits):
    """Training and test rows of the shuffled digits."""
    X = digits[np.random.default_rng(0).permutation(len(digits))]
    return X[:1400], X[1400:]


@pytest.fixture(scope="session")
def binary(parts):
    """The same, binarized once for all."""
    return tuple((X >= 8).astype(float) for X in parts)
