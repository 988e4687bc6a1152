"""Models as a service: answers are those of the model, everything is bounded, files are taken up when they change."""

import asyncio
import contextlib
import io
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
import httpx
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twofold import EASE, NMF, PCA, ImplicitALS, KMeans, Recommender, WordVectors, datasets, load
from twofold.serve import protocol
from twofold.serve.app import ARROW, NPY, Settings, create
from twofold.serve.batches import Batcher
from twofold.serve.models import ServedModel, name_models
from twofold.web.requests import Refused

DIGITS = datasets.digits().data
RATINGS = datasets.ratings(n_users=60, n_items=50).ratings


def fit_recommender(model=None):
    people = pl.DataFrame({"user": [*range(60), 1063], "group": [f"group {a % 3}" for a in range(61)]})
    return Recommender(model or EASE(), random_state=0).fit(RATINGS, users=people)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    fit_recommender().save(folder / "films.twofold")
    PCA(5).fit(DIGITS).save(folder / "digits.twofold")
    KMeans(3, random_state=0).fit(DIGITS[:300]).save(folder / "groups.twofold")
    NMF(3, random_state=0).fit(DIGITS[:300]).save(folder / "parts.twofold")
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    WordVectors.of(["a", "b", "c", "d", "e", "f"], vectors).save(folder / "words.twofold")
    return folder


@contextmanager
def serving(app):
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=protocol.BoundedProtocol, log_level="critical", ws="none", backlog=2048)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def asking(app):
    with serving(app) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
        yield client


def settle(folder, **options):
    return Settings({path.stem: str(path) for path in sorted(folder.glob("*.twofold"))}, **options)


@pytest.fixture(scope="module")
def client(folder):
    with asking(create(settle(folder))) as client:
        yield client


def ask(client, path, **content):
    return client.post(f"/models/{path}", json=content)


def result(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


# ---- answers -----------------------------------------------------------------------------------------------------


def test_answers_are_those_of_the_model(client, folder):
    rec, pca = (load(folder / f"{name}.twofold") for name in ("films", "digits"))
    found = result(ask(client, "films/recommend", users=7, n=4))
    assert found == {"user": 7, "items": rec.recommend(7, 4).to_dicts()}
    some = rec.items_[:9].tolist()
    many = result(ask(client, "films/recommend", users=[7, "8", 1063], n=3, items=some, filter_seen=False))
    assert [one["user"] for one in many] == [7, "8", 1063]
    for one in many:
        assert one["items"] == rec.recommend(int(one["user"]), 3, items=some, filter_seen=False).to_dicts()
    new = {rec.items_[0]: 5.0, rec.items_[3]: 2.0}
    assert result(ask(client, "films/recommend_new", ratings=new)) == rec.recommend_new(new).to_dicts()
    assert result(ask(client, "films/similar_users", user=3, n=2)) == rec.similar_users(3, 2).to_dicts()
    codes = result(ask(client, "digits/transform", rows=DIGITS[:3].tolist()))
    np.testing.assert_allclose(codes, pca.transform(DIGITS[:3]))
    assert result(ask(client, "words/nearest", query="a", n=2))[0][0] in "bcdef"


def test_rows_come_and_go_as_arrays(client):
    X, pca = DIGITS[:7].astype(np.float32), PCA(5).fit(DIGITS)
    body = io.BytesIO()
    np.save(body, X)
    headers = {"content-type": NPY, "accept": NPY}
    answer = client.post("/models/digits/transform", content=body.getvalue(), headers=headers)
    np.testing.assert_allclose(np.load(io.BytesIO(answer.content)), pca.transform(X), rtol=1e-4, atol=1e-4)
    body = io.BytesIO()
    pl.DataFrame(X).write_ipc_stream(body)
    headers = {"content-type": ARROW, "accept": ARROW}
    answer = client.post("/models/digits/transform", content=body.getvalue(), headers=headers)
    np.testing.assert_allclose(pl.read_ipc_stream(answer.content).to_numpy(), pca.transform(X), rtol=1e-4, atol=1e-4)
    for kind in (NPY, ARROW):
        answer = client.post("/models/digits/transform", content=b"\x93NUMPY nonsense", headers={"content-type": kind})
        assert answer.status_code == 422 and "the body is no" in answer.json()["error"]


def test_every_example_is_answered(client):
    paths = client.get("/openapi.json").json()["paths"]
    asked = 0
    for path, methods in paths.items():
        if "post" in methods:
            example = methods["post"]["requestBody"]["content"]["application/json"]["example"]
            assert client.post(path, json=example).status_code == 200, path
            asked += 1
        else:
            assert client.get(path).status_code == 200
    assert asked == sum(len(one["operations"]) for one in client.get("/models").json()) > 12
    counts = client.get("/metrics").text
    assert 'twofold_requests_total{model="films",operation="recommend",status="200"}' in counts


# ---- refusals ----------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_told_in_the_words_of_the_model(client):
    for path, content, words in (
        ("films/recommend", {"users": "stranger"}, "user 'stranger' is not among the 60 users"),
        ("films/recommend", {"users": [3, 2000]}, "user 2000 is not among the 60 users"),
        ("films/recommend", {"user": 3}, "users: Field required."),
        ("films/recommend", {"users": 3, "n": 0}, "n: Input should be greater than or equal to 1."),
        ("films/explain", {"user": 3, "item": "nothing"}, "item 'nothing' is not among the"),
        ("digits/transform", {"rows": [[1, 2]]}, "X has 2 features, but PCA is expecting 64 features"),
        ("digits/transform", {"rows": [[1, 2], [3]]}, "rows: rows have 1 to 2 entries"),
        ("digits/transform", {"rows": [["a"] * 64]}, "rows: an entry is no number"),
        ("parts/transform", {"rows": [[-1.0] * 64]}, "X[0, 0] is -1"),
        ("words/nearest", {"query": "unheard"}, "unheard"),
    ):
        answer = ask(client, path, **content)
        assert answer.status_code == 422 and words in answer.json()["error"], answer.text
    assert client.post("/models/films/recommend", content=b"{").status_code == 422
    assert ask(client, "films/fit").status_code == ask(client, "nothing/recommend").status_code == 404


def test_only_who_may_ask_is_answered(folder, client):
    assert client.get("/models", headers={"host": "evil.example"}).status_code == 421
    with asking(create(settle(folder, token="secret", body=1000))) as guarded:
        assert guarded.get("/readyz").status_code == 200
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}):
            assert guarded.get("/models", headers=given).status_code == 401
        mine = {"authorization": "Bearer secret"}
        assert guarded.get("/models", headers=mine).status_code == 200
        large = guarded.post("/models/digits/transform", json={"rows": DIGITS[:9].tolist()}, headers=mine)
        assert large.status_code == 413


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_nothing_that_is_sent_is_a_fault(client, data):
    paths = [path for path, methods in client.get("/openapi.json").json()["paths"].items() if "post" in methods]
    path = data.draw(st.sampled_from(paths))
    example = client.get("/openapi.json").json()["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    value = st.recursive(leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
    content = {**example["example"], data.draw(st.sampled_from([*example["example"], "other"])): data.draw(value)}
    assert client.post(path, content=json.dumps(content)).status_code in (200, 422)


# ---- batches -----------------------------------------------------------------------------------------------------


def test_requests_that_come_together_are_answered_together():
    sizes = []

    def double(asked):
        sizes.append(len(asked))
        if len(asked) > 1 and any(one["x"] == 13 for one in asked):
            raise ValueError("one of them is 13")
        return [2 * one["x"] if one["x"] != 13 else 1 / 0 for one in asked]

    async def run():
        batcher = Batcher(window=0.02, queue=40, deadline=5, on_batch=lambda size, took: None)
        first = await asyncio.gather(*(batcher.ask("a", {"x": x}, double) for x in range(10)))
        mixed = await asyncio.gather(*(batcher.ask("a", {"x": x}, double) for x in (12, 13)), return_exceptions=True)
        many = [batcher.ask("a", {"x": x}, double) for x in range(60)]
        full = await asyncio.gather(*many, return_exceptions=True)
        slow = Batcher(window=0, queue=9, deadline=0.05, on_batch=lambda size, took: None)
        late = await asyncio.gather(slow.ask(None, {}, lambda asked: [time.sleep(0.3)]), return_exceptions=True)
        batcher.close()
        slow.close()
        return first, mixed, full, late

    first, mixed, full, late = asyncio.run(run())
    assert first == [2 * x for x in range(10)] and sizes[0] == 10
    assert mixed[0] == 24 and isinstance(mixed[1], ZeroDivisionError)  # each gets its own error
    refused = [one for one in full if isinstance(one, Refused)]
    assert len(refused) == 20 and {one.status for one in refused} == {503} and late[0].status == 504


# ---- files that change -------------------------------------------------------------------------------------------


def test_a_changed_file_is_taken_up_and_a_damaged_one_is_not(tmp_path, capsys):
    path = tmp_path / "films.twofold"
    fit_recommender().save(path)
    served = ServedModel("films", path)
    first = served.current.version
    assert not served.take_up()
    fit_recommender(ImplicitALS(4, random_state=0)).save(path)
    assert served.take_up() and served.current.version != first
    second, whole = served.current, path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:-9] + b"different"):
        path.write_bytes(damaged)
        assert not served.take_up() and served.current is second
    PCA(2).fit(DIGITS).save(path)  # whole, but it cannot answer what clients ask
    assert not served.take_up() and served.current is second and served.failures == 4
    path.unlink()
    assert not served.take_up() and "stays at version" in capsys.readouterr().err
    path.write_bytes(whole)
    assert served.take_up() and served.current.version == second.version


def test_models_have_names():
    assert list(name_models(["a/films.twofold", "g=b.twofold"])) == ["films", "g"]
    with pytest.raises(ValueError, match="is the name of two models"):
        name_models(["a/x.twofold", "b/x.twofold"])
    with pytest.raises(ValueError, match="cannot be part of an address"):
        name_models(["my films.twofold"])


# ---- connections -------------------------------------------------------------------------------------------------


def ask_raw(port, name="groups"):
    with socket.create_connection(("127.0.0.1", port), 20) as one:
        one.sendall(f"GET /models/{name} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return one.recv(100)


def hold_connections(port, count):
    held = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(count)]
    for one in held[: count // 2]:
        one.sendall(b"GET /models HTTP/1.1\r\nHost: 12")  # and no more
    return held


def test_connections_that_do_not_ask_are_bounded(folder, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 1.0)
    with serving(create(settle(folder))) as port:
        held = hold_connections(port, 60)
        assert b" 200 " in ask_raw(port)
        assert len(protocol._waiting) <= 20
        end = time.monotonic() + 20
        while protocol._waiting and time.monotonic() < end:
            time.sleep(0.05)
        assert not protocol._waiting  # those that never asked are gone
        for one in held:
            one.close()


def test_a_body_that_stops_coming_is_refused(folder):
    with (
        serving(create(settle(folder, body_seconds=0.3))) as port,
        socket.create_connection(("127.0.0.1", port)) as slow,
    ):
        head = f"POST /models/films/recommend HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 900\r\n\r\n"
        slow.sendall(head.encode() + b"{")
        assert b" 200 " in ask_raw(port)  # meanwhile others are answered
        assert b" 408 " in slow.recv(100)


@pytest.mark.soak
def test_ten_thousand_half_open_connections(folder):
    with serving(create(settle(folder))) as port:
        held = []
        for _ in range(20):
            held += hold_connections(port, 500)
            assert b" 200 " in ask_raw(port)
            for one in held[:-500]:
                one.close()
            held = held[-500:]


@pytest.mark.soak
def test_five_minutes_of_what_the_schema_allows(folder):
    runner = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    with serving(create(settle(folder))) as port:
        address = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", f"{runner.__name__}.cli", "run", f"{address}/openapi.json"]
        command += ["--checks", "not_a_server_error", "--max-examples", "100000", "--phases", "fuzzing"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, timeout=300, stdout=subprocess.DEVNULL)
        counts = httpx.get(f"{address}/metrics", trust_env=False).text
    assert 'status="200"' in counts and 'status="500"' not in counts
