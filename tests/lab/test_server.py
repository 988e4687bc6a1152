"""The life of a job, from its start to what is taken away."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.lab.conftest import running, wait_for
from twofold.cli.verbs.lab import lab
from twofold.core.checks import InputError
from twofold.lab import app, frames
from twofold.lab.jobs import Limits


def start(place: Any, **request: Any) -> str:
    settings = {name: request.pop(name) for name in ("sweeps", "wait", "size", "load", "then") if name in request}
    answer = place.client.post("/api/jobs", json={"data": "none", "method": "counter", "settings": settings} | request)
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def state(place: Any, id: str) -> dict[str, Any]:
    return place.client.get(f"/api/jobs/{id}").json()


def reach(place: Any, id: str, *wanted: str) -> dict[str, Any]:
    wait_for(lambda: state(place, id)["status"] in wanted)
    return state(place, id)


def send(place: Any, id: str, command: str) -> Any:
    return place.client.post(f"/api/jobs/{id}/{command}")


def header_of(data: bytes) -> dict[str, Any]:
    (length,) = struct.unpack_from("<I", data)
    assert length % 4 == 0
    return json.loads(data[4 : 4 + length])


def test_a_job_runs_and_every_sweep_is_seen(place):
    id = start(place, sweeps=5)
    done = reach(place, id, "done")
    assert done["sweeps"] == [1, 2, 3, 4, 5]
    assert done["objective"] == [1 / sweep for sweep in done["sweeps"]]
    assert done["kept"] == list(range(6)) and done["frames"] == 6 and done["objective_name"] == "cost"
    assert id in [one["id"] for one in place.client.get("/api/jobs").json()]  # what a page that is loaded again finds


def test_any_kept_frame_can_be_had_again_with_what_was_sent_once(place):
    id = start(place, sweeps=3)
    reach(place, id, "done")
    for i in range(4):
        found = place.client.get(f"/api/jobs/{id}/frames/{i}")
        header, arrays = frames.decode(found.content)
        assert header["index"] == header["sweep"] == i and header["job"] == id
        assert {one["name"] for one in header["arrays"]} == {"points", "at"}
        assert struct.unpack("<f", arrays["at"]) == (i,) and len(arrays["points"]) == 32
        assert header["meta"]["title"] == "t" and header["final"] == (i == 3)
    assert place.client.get(f"/api/jobs/{id}/frames/99").status_code == 404


def test_paused_a_job_goes_on_by_single_steps_and_then_by_itself(place):
    id = start(place, sweeps=6, paused=True)
    wait_for(lambda: state(place, id)["frames"] == 1)
    assert state(place, id)["status"] == "paused"
    for step in (2, 3):
        assert send(place, id, "step").status_code == 200
        wait_for(lambda step=step: state(place, id)["frames"] == step)
    assert state(place, id)["status"] == "paused"
    send(place, id, "resume")
    assert reach(place, id, "done")["sweep"] == 6
    late = send(place, id, "pause")  # a page cannot know that it came too late
    assert late.status_code == 200 and late.json()["status"] == "done"


def test_a_running_job_can_be_paused_between_sweeps(place):
    id = start(place, sweeps=10_000, wait=0.01)
    wait_for(lambda: state(place, id)["frames"] > 2)
    assert send(place, id, "pause").json()["status"] == "paused"
    send(place, id, "step")  # once it has been taken, nothing else moves
    wait_for(lambda: not moves(place, id))
    send(place, id, "cancel")


def moves(place: Any, id: str) -> bool:
    before = state(place, id)["frames"]
    place.client.get("/api/jobs")
    return any(state(place, id)["frames"] != before for _ in range(10))


def test_cancelled_a_job_ends_and_keeps_its_frames(place):
    id = start(place, sweeps=10_000, wait=0.01)
    wait_for(lambda: state(place, id)["frames"] > 2)
    assert send(place, id, "cancel").json()["status"] == "cancelled"
    wait_for(lambda: not state(place, id)["open"])
    assert place.client.get(f"/api/jobs/{id}/frames/0").status_code == 200
    assert place.client.post(f"/api/jobs/{id}/ask", json={"question": "echo", "text": 1}).status_code == 410


def test_stopped_a_job_keeps_what_it_has(place):
    id = start(place, sweeps=10_000, wait=0.01)
    wait_for(lambda: state(place, id)["frames"] > 2)
    send(place, id, "pause")
    send(place, id, "stop")
    stopped = reach(place, id, "stopped")
    assert stopped["ready"] and not stopped["live"] and stopped["sweep"] < 10_000
    assert place.client.get(f"/api/jobs/{id}/take/model").content == b"model"
    assert place.client.post(f"/api/jobs/{id}/ask", json={"question": "echo", "text": 1}).json() == {"echo": 1}


@contextmanager
def watch(place: Any, *ids: str) -> Iterator[Any]:
    """A page that shows jobs."""
    cookie = {"cookie": f"twofold_lab_{place.port}=t0ken"}
    with connect(f"ws://127.0.0.1:{place.port}/api/stream", origin=place.url, additional_headers=cookie) as page:
        page.send(json.dumps({"watch": ids}))
        yield page


def test_a_job_ends_when_no_page_shows_it_any_more():
    with running(Limits(unseen=0.5, spares=1)) as place:
        id, other = (start(place, sweeps=10_000, wait=0.01) for _ in range(2))
        wait_for(lambda: state(place, id)["kept"])  # its process may start for longer than it may be unseen
        with watch(place, id, other) as one:
            with watch(place, id):
                wait_for(lambda: len(place.lab.jobs[id].seen_by) == 2)
                one.send(json.dumps({"watch": []}))  # this page shows another run now
                reach(place, other, "cancelled")
            assert state(place, id)["status"] == "running"
        reach(place, id, "cancelled")  # the pages were closed
        assert state(place, id)["kept"]
        never = start(place, sweeps=10_000, wait=0.01, shown=True)  # its page was closed before it showed it
        reach(place, never, "cancelled")


def test_a_job_that_does_not_listen_is_ended(place):
    id = start(place, sweeps=1, then="hang")
    wait_for(lambda: state(place, id)["frames"] == 2)
    send(place, id, "cancel")
    wait_for(lambda: not state(place, id)["open"])


@pytest.mark.parametrize(
    ("then", "says"),
    [("die", "SIGKILL"), ("crash", "exit code 3"), ("error", "ValueError: two <b>"), ("refuse", "Clip it."),
     ("memory", "memory"), ("abort", "more than 0.5 GB of memory" if sys.platform == "linux" else "Start it again")],
)  # fmt: skip
def test_a_job_that_fails_says_why(place, then, says):
    id = start(place, sweeps=2, then=then)
    failed = reach(place, id, "failed", "done")
    assert failed["status"] == "failed" and says in failed["message"]
    assert failed["kept"] == [0, 1, 2]


@pytest.mark.parametrize("paused", [False, True])
def test_killed_from_outside_a_job_fails_and_others_go_on(place, paused):
    other, id = start(place, sweeps=10_000, wait=0.01), start(place, sweeps=10_000, wait=0.01, paused=paused)
    wait_for(lambda: state(place, id)["frames"] >= 1)
    os.kill(place.lab.jobs[id].process.process.pid, signal.SIGKILL)
    assert "SIGKILL" in reach(place, id, "failed")["message"]
    assert state(place, other)["status"] == "running"
    send(place, other, "cancel")


def test_two_jobs_run_at_once_others_wait_and_too_many_are_refused(place):
    ids = [start(place, sweeps=10_000, wait=0.02) for _ in range(4)]
    assert [state(place, id)["status"] for id in ids] == ["running", "running", "waiting", "waiting"]
    refused = place.client.post("/api/jobs", json={"data": "none", "method": "counter"})
    assert refused.status_code == 429 and "Cancel one" in refused.json()["error"]
    send(place, ids[0], "cancel")
    reach(place, ids[2], "running")
    for id in ids[1:]:
        send(place, id, "cancel")
    assert place.client.delete(f"/api/jobs/{ids[3]}").status_code == 200
    assert place.client.get(f"/api/jobs/{ids[3]}").status_code == 404


def test_finished_jobs_make_room_and_what_they_made_stays(place):
    ids = []
    for _ in range(6):
        ids.append(start(place, sweeps=1))
        reach(place, ids[-1], "done")
    wait_for(lambda: not state(place, ids[0])["open"])
    kept = wait_for(lambda: (found := place.client.get(f"/api/jobs/{ids[0]}/take/python")).status_code == 200 and found)
    assert kept.text == "X = 1\n"
    assert sum(state(place, id)["open"] for id in ids) <= place.limits.jobs


def test_questions_and_what_is_taken_away(place):
    id = start(place, sweeps=1)
    reach(place, id, "done")

    def ask(**question: Any) -> Any:
        return place.client.post(f"/api/jobs/{id}/ask", json=question)

    assert ask(question="echo", text="<b>").json() == {"echo": "<b>"}
    header, arrays = frames.decode(ask(question="frame").content)
    assert header["meta"] == {"said": "yes"} and arrays["picture"] == bytes(4)
    assert ask(question="other").status_code == 400
    model = place.client.get(f"/api/jobs/{id}/take/model")
    assert model.content == b"model" and 'filename="counter-none.twofold"' in model.headers["content-disposition"]
    assert place.client.get(f"/api/jobs/{id}/take/table.csv").text == "a\n1\n2\n"
    assert place.client.get(f"/api/jobs/{id}/take/figure.svg").status_code == 400  # it has none, and says so
    assert place.client.get(f"/api/jobs/{id}/take/passwd").status_code == 404
    assert place.client.delete(f"/api/jobs/{id}").status_code == 200


def test_an_answer_that_takes_too_long_is_not_waited_for():
    with running(Limits(answer=0.5, spares=1)) as place:
        id = start(place, sweeps=1)
        reach(place, id, "done")
        late = place.client.post(f"/api/jobs/{id}/ask", json={"question": "slow"})
        assert late.status_code == 504 and "no answer within" in late.json()["error"]


def test_wrong_requests_are_refused_in_one_sentence(place):
    wrong: list[dict[str, Any]] = [
        {"data": "none", "method": "nothing"},
        {"data": "nothing", "method": "counter"},
        {"data": "camera", "method": "counter"},
        {"data": "none", "method": "counter", "settings": {"nothing": 1}},
        {"data": "none", "method": "counter", "settings": []},
        {"data": "none", "method": "counter", "rows": ["1"]},
        {"data": "none", "method": "counter", "rows": [3]},
        {"data": "none", "method": ["counter"]},
    ]
    for one in wrong:
        answer = place.client.post("/api/jobs", json=one)
        assert answer.status_code in (400, 404) and answer.json()["error"], one
    for body in (b"[1]", b"{", b'"a"', b"\xff", b"[" * 10_000):
        assert place.client.post("/api/jobs", content=body).status_code == 400


def test_chosen_rows_are_told_with_the_first_frame(place):
    id = start(place, sweeps=1, rows=[3, 5, 9])
    reach(place, id, "done")
    _, arrays = frames.decode(place.client.get(f"/api/jobs/{id}/frames/1").content)
    assert struct.unpack("<3i", arrays["rows"]) == (3, 5, 9)


def test_frames_are_thinned_but_the_first_and_the_last_stay(place):
    id = start(place, sweeps=150)
    kept = reach(place, id, "done")["kept"]
    assert kept[0] == 0 and kept[-1] == 150 and len(kept) <= place.limits.kept
    assert kept == sorted(kept)


def test_the_stream_tells_states_and_frames_of_what_is_watched(place):
    id = start(place, sweeps=5, paused=True)
    cookie = {"cookie": f"twofold_lab_{place.port}=t0ken"}
    with connect(f"ws://127.0.0.1:{place.port}/api/stream", origin=place.url, additional_headers=cookie) as socket:
        socket.send(json.dumps({"watch": [id, "nothing"]}))
        wait_for(lambda: state(place, id)["frames"] == 1)
        send(place, id, "resume")
        seen, last = [], None
        while last is None or last["status"] != "done" or not seen or not seen[-1]["final"]:
            message = socket.recv(timeout=150)
            if isinstance(message, bytes):
                seen.append(header_of(message))
            else:
                last = json.loads(message)["state"]
        assert "points" in [one["name"] for one in seen[0]["arrays"]]  # whichever came first has what is sent once
        assert all([one["name"] for one in header["arrays"]] == ["at"] for header in seen[1:])
        assert [header["index"] for header in seen] == sorted({header["index"] for header in seen})
    with connect(f"ws://127.0.0.1:{place.port}/api/stream", origin=place.url, additional_headers=cookie) as socket:
        socket.send(json.dumps({"watch": [id]}))  # the page was loaded again
        assert json.loads(socket.recv(timeout=150))["state"]["status"] == "done"
        header = header_of(socket.recv(timeout=150))
        assert header["final"] and header["meta"]["title"] == "t"


def test_pace_holds_a_run_back(place):
    id = start(place, sweeps=6, pace=20)
    assert reach(place, id, "done")["frames"] == 7
    job = place.lab.jobs[id]
    assert job.spent >= 6 / 20


def test_time_is_limited():
    with running(Limits(seconds=0.5, spares=1)) as place:
        id = start(place, sweeps=10_000, wait=0.01)
        assert "the longest a job may" in reach(place, id, "failed")["message"]


def test_idle_jobs_are_put_away():
    with running(Limits(idle=0.0, spares=1)) as place:
        id = start(place, sweeps=1)
        reach(place, id, "done")
        wait_for(lambda: not state(place, id)["open"])
        wait_for(lambda: place.client.get(f"/api/jobs/{id}/take/model").status_code == 200)


# --- data ---------------------------------------------------------------------------------------------------


def test_own_files_are_read_as_what_they_hold(place, tmp_path):
    def bring(name: str, content: bytes, **more: str) -> dict[str, Any]:
        answer = place.client.post("/api/data", params={"name": name} | more, content=content)
        assert answer.status_code == 200, answer.text
        return answer.json()

    table = bring("wine <b>.csv", b"name,a,b,kind\nx,1,2,red\ny,3,4,white\nz,5,,red\nw,7,8,white\n")
    assert table["kind"] == "table" and table["shape"] == [4, 2] and table["name"] == "wine <b>.csv"
    assert place.client.get("/api/catalog").json()["data"][0]["id"] == table["id"]
    rows = place.client.get(f"/api/data/{table['id']}/rows", params={"at": "2,0"}).json()
    assert rows["columns"] == ["name", "a", "b", "kind"] and rows["rows"] == [
        ["z", "5", "", "red"],
        ["x", "1", "2", "red"],
    ]
    assert bring("stars.csv", b"user,item,rating\n1,a,5\n2,b,3\n1,b,4\n", kind="text")["kind"] == "text"

    id = start(place, data=table["id"], sweeps=1)
    reach(place, id, "done")
    labels = {"names": {"1": "late"}, "rows": {"1": [2, 3], "other": [0]}, "format": "csv"}
    answer = place.client.post(f"/api/jobs/{id}/labels", json=labels)
    assert answer.text.splitlines()[0] == "name,a,b,kind,label"
    assert [line.rsplit(",", 1)[1] for line in answer.text.splitlines()[1:]] == ["other", "", "late", "late"]


def test_files_brought_at_once_wait_for_each_other(place):
    bring = lambda i: place.client.post("/api/data", params={"name": f"{i}.csv"}, content=b"a,b\n1,2\n3,4\n5,7\n")  # noqa: E731
    with ThreadPoolExecutor(12) as threads:
        assert [answer.status_code for answer in threads.map(bring, range(12))] == [200] * 12


# --- the command --------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the lab as its users do; whatever happens, it ends with the test."""
    begun: list[subprocess.Popen[str]] = []

    def start_lab(*args: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "twofold", "lab", "--no-browser", *args]
        env = os.environ | {"TMPDIR": str(tmp_path)}
        begun.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env))
        return begun[-1]

    yield start_lab
    for one in begun:
        one.kill()
        one.wait()


def children(pid: int) -> list[int]:
    """Every thread of a process has its own."""
    return [int(one) for file in Path(f"/proc/{pid}/task").glob("*/children") for one in file.read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="children are counted in /proc")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_command_prints_its_address_and_ends_with_all_its_children(command, tmp_path, end):
    own = tmp_path / "own.csv"
    own.write_text("a,b\n1,2\n3,4\n5,7\n")
    lab = command(str(own)) if end == signal.SIGINT else command()
    line = lab.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{32}", line)
    assert address is not None, line + lab.stderr.read()
    with httpx.Client(follow_redirects=True, timeout=150) as client:
        assert client.get(address[0]).status_code == 200
        if end == signal.SIGINT:
            listed = client.get(f"http://127.0.0.1:{address[1]}/api/catalog").json()["data"]
            assert listed[0]["id"] == "file" and listed[0]["shape"] == [3, 2]
    born = wait_for(lambda: children(lab.pid))
    lab.send_signal(end)
    out, error = lab.communicate(timeout=150)
    if end == signal.SIGINT:
        assert lab.returncode == 0 and error == "lab: closed\n" and out == ""
    wait_for(lambda: not any(is_running(pid) for pid in born))
    assert not list(tmp_path.glob("twofold-lab-*"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_the_command_cannot_do_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "Lab", partial(app.Lab, Limits(spares=1), "tests.lab.fake_catalog"))
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port={port}: it cannot be used"):
            lab(port=port, no_browser=True)
    with pytest.raises(InputError, match=r"missing\.csv does not exist"):
        lab(str(tmp_path / "missing.csv"), no_browser=True)
    with pytest.raises(InputError, match=r"^bad\.png is not a picture"):
        lab(str(bad), no_browser=True)
    monkeypatch.setattr("twofold.cli.verbs.lab.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'twofold\[lab\]'"):
        lab(no_browser=True)
