"""Headers of .npy files on threads: what Python's parser spoils by chance is read again."""

import gc
import threading
import time

import numpy as np
import pytest

from twofold.core.files.headers import TRIES, reads_headers

MESSAGE = "AST constructor recursion depth mismatch (before=51, after=47)"


@pytest.mark.parametrize("message, tries", [(MESSAGE, TRIES), ("another one", 1)])
def test_only_the_parser_s_error_is_tried_again(message, tries):
    calls = []

    @reads_headers
    def read():
        calls.append(1)
        raise SystemError(message)

    with pytest.raises(SystemError, match=message[:10]):
        read()
    assert len(calls) == tries


class Sleeper:
    """In a cycle, so that the collector finds it in the middle of something and lets another thread go on there."""

    def __init__(self):
        self.me = self

    def __del__(self):
        time.sleep(0)


def test_threads_read_headers_at_the_same_time(tmp_path):
    path, failed = tmp_path / "x.npy", []
    np.save(path, np.arange(3))
    load = reads_headers(np.load)

    def read_often():
        try:
            for _ in range(500):
                Sleeper()
                assert load(path)[2] == 2
        except BaseException as why:
            failed.append(why)

    before = gc.get_threshold()
    gc.set_threshold(7)
    try:
        threads = [threading.Thread(target=read_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
    assert not failed
