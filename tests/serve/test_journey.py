"""From ratings and features to a service that is asked, changed and ended, as its operator does it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import polars as pl
import pytest

from twofold import EASE, ImplicitALS, InputError, ModelFileError, Recommender
from twofold.cli.verbs.serve import serve

pytest.importorskip("prometheus_client")
if os.name != "posix":
    pytest.skip("signals as on Linux and macOS", allow_module_level=True)


def fit(model):
    rng = np.random.default_rng(0)
    ratings = pl.DataFrame({"user": rng.integers(0, 1000, 20_000), "item": rng.zipf(1.4, 20_000) % 300})
    items = pl.DataFrame({"item": np.arange(310), "kind": [f"kind {a % 7}" for a in range(310)]})
    return Recommender(model, random_state=0).fit(ratings, items=items)


def start(*arguments):
    command = [sys.executable, "-m", "twofold", "serve", *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("serve: http://127.0.0.1:"), server.communicate()[1]
    return server, line.split()[1].removesuffix("/docs")


def send(address, path, content=None):
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(address + path, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read()), answer.headers["x-model-version"]


def wait_until_ready(address):
    for _ in range(600):
        try:
            return send(address, "/readyz")
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server is not ready")


def test_a_model_is_served_changed_and_ended(tmp_path):
    path = tmp_path / "films.twofold"
    rec = fit(EASE())
    small = rec.for_serving()
    small.save(path)
    server, address = start(str(path), "--port", "0")
    try:
        wait_until_ready(address)
        users = rec.users_.tolist()
        answers, first = send(address, "/models/films/recommend", {"users": users, "n": 5})
        wanted = small.recommend(users, 5).partition_by("user", as_dict=True, maintain_order=True)
        assert [one["user"] for one in answers["result"]] == users and len(users) > 990
        for one in answers["result"]:
            assert [row["item"] for row in one["items"]] == wanted[(one["user"],)]["item"].to_list()
        with pytest.raises(urllib.error.HTTPError) as caught:
            send(address, "/models/films/recommend", {"users": 5000})
        assert caught.value.code == 422 and "They are numbers" in json.loads(caught.value.read())["error"]
        fit(ImplicitALS(8, random_state=0)).save(path)
        for _ in range(600):
            one, version = send(address, "/models/films/recommend", {"users": users[0]})
            if version != first:
                break
            time.sleep(0.1)
        assert version != first and len(one["result"]["items"]) == 10
    finally:
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert server.returncode == 143 and "films is now at version" in said and "Traceback" not in said


def test_what_cannot_be_served_is_told_at_once(tmp_path):
    damaged = tmp_path / "x.twofold"
    fit(EASE()).save(damaged)
    damaged.write_bytes(damaged.read_bytes()[:-100])
    for files, options, words in (
        ([], {}, "which model?"),
        (["nothing.twofold"], {}, "nothing.twofold"),
        ([str(tmp_path)], {}, "is a folder"),
        ([str(damaged)], {}, "cut short"),
        ([str(damaged)], {"host": "0.0.0.0"}, "give a --token"),
        ([str(damaged)], {"batch_window": 9.0}, "from 0 to 5"),
    ):
        with pytest.raises((InputError, ModelFileError), match=words):
            serve(*files, **{"port": 0, **options})


def test_a_dockerfile_names_the_models(tmp_path, capsys):
    path = tmp_path / "films.twofold"
    fit(EASE()).save(path)
    serve(f"f={path}", port=9000, dockerfile=True)
    shown = capsys.readouterr().out
    assert '"serve", "f=/models/films.twofold", "--host", "0.0.0.0", "--port", "9000"' in shown and "TOKEN" in shown


@pytest.mark.soak
def test_killed_while_loading_it_starts_again(tmp_path):
    path = tmp_path / "films.twofold"
    fit(EASE()).save(path)
    for delay in np.linspace(0.1, 3.0, 8):
        server = subprocess.Popen([sys.executable, "-m", "twofold", "serve", str(path), "--port", "0"])
        time.sleep(delay)
        server.kill()
        server.wait()
    server, address = start(str(path), "--port", "0")
    wait_until_ready(address)
    server.terminate()
    server.wait(60)
