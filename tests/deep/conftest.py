"""Networks this small train on one thread: two test processes with two spinning threads each would only wait."""

import pytest
import torch

import twofold


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with twofold.config(threads=1):
        yield
    torch.set_num_threads(before)
