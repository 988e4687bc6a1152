"""Nothing that comes from elsewhere harms the lab or hangs it."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import re
import socket
import struct
import time
import zipfile
import zlib
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.lab.conftest import TOKEN, wait_for
from tests.lab.test_server import reach, start
from twofold.lab import app, guard

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def job(place) -> str:
    id = start(place, sweeps=1)
    reach(place, id, "done")
    return id


def alive(place: Any) -> bool:
    return place.client.get("/api/jobs").status_code == 200


def raw(place: Any, text: bytes) -> bytes:
    """Send a request that no library would send, and return the answer."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=60) as one:
        one.sendall(text)
        return one.recv(65536)


def get(place: Any, path: str, **headers: str) -> http.client.HTTPResponse:
    """A request whose path and headers go out as they are, with the cookie."""
    one = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    one.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in ({"Cookie": f"twofold_lab_{place.port}={TOKEN}"} | headers).items():
        one.putheader(name, value)
    one.endheaders()
    return one.getresponse()


def stream(place: Any, origin: str | None = None, cookie: str = TOKEN) -> Any:
    headers = {"cookie": f"twofold_lab_{place.port}={cookie}"}
    return connect(f"ws://127.0.0.1:{place.port}/api/stream", origin=origin or place.url, additional_headers=headers)


# --- who may come in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""])
def test_another_host_is_refused(place, host):
    """Which is what keeps out a foreign name that was made to point here."""
    answer = get(place, "/api/jobs", Host=host.format(port=place.port))
    assert answer.status == 421 and b"objective" not in answer.read()
    assert get(place, "/", Host=f"localhost:{place.port}").status == 200


def test_two_hosts_or_none_are_refused(place):
    own = f"Host: 127.0.0.1:{place.port}\r\n"
    cookie = f"Cookie: twofold_lab_{place.port}={TOKEN}\r\n"
    for hosts in ("", own + "Host: evil.example\r\n", "Host: evil.example\r\n" + own):
        answer = raw(place, f"GET /api/jobs HTTP/1.1\r\n{hosts}{cookie}Connection: close\r\n\r\n".encode())
        assert answer.split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", None]
)
def test_another_origin_is_refused(place, job, origin):
    """Every page in the same browser has a way to send here; our cookie does not go with it, and if it did ..."""
    given = {} if origin is None else {"origin": origin.format(port=place.port)}
    client = place.client
    for method, path in [("POST", "/api/jobs"), ("POST", f"/api/jobs/{job}/cancel"), ("DELETE", f"/api/jobs/{job}")]:
        request = client.build_request(method, path, content=b'{"data": "none", "method": "counter"}')
        del request.headers["origin"]
        request.headers.update(given)
        assert client.send(request).status_code == 403
    assert client.get(f"/api/jobs/{job}").status_code == 200
    if origin is not None:
        assert client.get("/api/jobs", headers=given).status_code == 403
        with pytest.raises(InvalidStatus) as refused, stream(place, given["origin"]):
            pass
        assert refused.value.response.status_code == 403


def test_without_the_token_nothing_is_told(place):
    paths = ["/", "/static/main.js", "/api/catalog", "/api/jobs", "/api/data/wine", "/favicon.ico", "/docs"]
    for path in paths:
        for cookie in ("", f"twofold_lab_{place.port}=wrong", f"twofold_lab_{place.port}=", 'a=;=;\x01="', TOKEN):
            answer = get(place, path, Cookie=cookie)
            assert answer.status == 403 and "error" in json.loads(answer.read())
    for wrong in ("wrong", "", TOKEN + "a", TOKEN[:-1], "%00"):
        assert get(place, f"/?token={wrong}", Cookie="").status == 403
    with pytest.raises(InvalidStatus), stream(place, cookie="wrong"):
        pass


def test_the_token_becomes_a_strict_cookie_and_leaves_the_address(place):
    answer = get(place, f"/?token={TOKEN}&a=1", Cookie="")
    assert answer.status == 303 and answer.getheader("location") == "/?a=1"
    cookie = answer.getheader("set-cookie").lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
    again = get(place, "/", Cookie="", **{"Sec-Fetch-Site": "cross-site"})
    assert again.status == 200 and TOKEN.encode() not in again.read()  # a page that asks once more, with the cookie


def test_every_answer_forbids_what_comes_from_elsewhere(place):
    for answer in (
        *(get(place, path) for path in ("/api/jobs", "/nothing", "/api/data/no")),
        get(place, "/", Cookie=""),
    ):
        rules = answer.getheader("content-security-policy")
        assert "default-src 'none'" in rules and "unsafe" not in rules and "*" not in rules
        assert answer.getheader("x-content-type-options") == "nosniff"
        assert answer.getheader("x-frame-options") == "DENY"
        assert answer.getheader("cache-control") == "no-store"
        assert answer.getheader("access-control-allow-origin") is None
        assert answer.getheader("server") is None
    digest = guard.find_inline("<script>a</script><script src='b.js'></script>")
    assert len(digest) == 1 and digest[0].startswith("'sha256-")


# --- what may be asked for ----------------------------------------------------------------------------------


OUTSIDE = {
    "/static/": ["../app.py", "../../../../../../etc/passwd", "%2e%2e/app.py", "..%2fapp.py", "%2fetc%2fpasswd",
                 "/etc/passwd", "..\\app.py", "index.html%00.js"],
    "/api/jobs/": ["..%2f..%2fetc/take/model", "x/take/..%2f..%2fpasswd"],
    "/api/data/": ["..%2f..%2fetc%2fpasswd", "..", "%2e%2e/rows?at=1", "file/rows?at=1"],
    "/api/data/wine/rows?at=": ["1;2", "-1", "99999999999999999999", "1," * 300],
}  # fmt: skip


@pytest.mark.parametrize("start", OUTSIDE)
def test_no_path_leads_out(place, start):
    for rest in OUTSIDE[start]:
        answer = get(place, start + rest)
        body = answer.read()
        assert answer.status in (400, 404) and b"import" not in body and b"root:" not in body, rest


def test_data_by_a_path_is_no_data(place):
    for data in ("/etc/passwd", "../wine", "file:///etc/passwd", "wine/../wine", ""):
        answer = place.client.post("/api/jobs", json={"data": data, "method": "counter"})
        assert answer.status_code == 404


# --- what is brought ----------------------------------------------------------------------------------------


def bring(place: Any, name: str, content: Any, **more: str) -> Any:
    return place.client.post("/api/data", params={"name": name} | more, content=content)


def list_uploads(place: Any) -> list[str]:
    return [path.name for path in place.lab.folder.iterdir() if path.name.startswith("upload-")]


def test_huge_files_are_refused_before_they_are_taken(place):
    claimed = raw(
        place,
        f"POST /api/data?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nOrigin: {place.url}\r\n"
        f"Cookie: twofold_lab_{place.port}={TOKEN}\r\nContent-Length: 999999999999\r\n\r\n".encode(),
    )
    assert claimed.split()[1] == b"413"
    sent = 0

    def parts() -> Any:
        nonlocal sent
        for _ in range(100_000):
            sent += 2**16
            yield bytes(2**16)

    with suppress(httpx.TransportError):  # the answer came, and the way was closed, before all was sent
        assert bring(place, "a.csv", parts()).status_code == 413
    assert sent < 100 * place.limits.upload_bytes
    assert bring(place, "a.csv", b"a\n" + b"1\n" * place.limits.upload_bytes).status_code == 413
    assert place.client.post("/api/jobs", content=b" " * (place.limits.body + 1)).status_code == 413
    wait_for(lambda: not list_uploads(place))


def pack_zip(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return out.getvalue()


def header_bomb() -> bytes:
    """An array that says to be larger than any machine, in a few bytes."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**6)})
    return out.getvalue()


def png_bomb() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b"")


def test_malformed_files_and_archive_bombs_are_refused_in_a_sentence(place):
    noise = np.random.default_rng(0).bytes(3000)
    zeros = bytes(150_000_000)
    bombs = {
        "bomb.csv.gz": gzip.compress(b"a,b\n" + zeros, 6),
        "bomb.zip": pack_zip(bomb_csv=b"a,b\n" + zeros),
        "bomb.npy": header_bomb(),
        "bomb.npz": pack_zip(a_npy=header_bomb()),
        "bomb.png": png_bomb(),
        "bomb.mtx": b"%%MatrixMarket matrix coordinate real general\n900000000 900000000 1\n1 1 1\n",
    }
    del zeros
    assert all(len(one) < place.limits.upload_bytes for one in bombs.values())
    bad = dict.fromkeys(["b.csv", "c.png", "d.npy", "e.parquet", "h.wav", "i.xlsx", "j.db", "l.pkl"], noise)
    bad |= {"a.csv": b"", "f.zip": b"PK\x03\x04" + noise, "g.gz": b"\x1f\x8b" + noise, "k.jsonl": b"[" * 100_000}
    bad |= {"m.csv": b'a,b\n"' + b"x" * 1000, "n.json": b"{}", "o.npz": pack_zip(a_npy=noise)}
    for name, content in (bombs | bad).items():
        begin = time.monotonic()
        answer = bring(place, name, content)
        assert answer.status_code == 400, (name, answer.text[:300])
        said = answer.json()["error"]
        assert said and "\n" not in said and str(place.lab.folder) not in said and "upload-" not in said, (name, said)
        assert time.monotonic() - begin < place.limits.reading + 60  # not for as long as the bomb lasts
    assert alive(place) and not list_uploads(place)


def test_names_and_cells_are_only_ever_text(place):
    name = f'../../{EVIL}"\r\nX-Evil: 1\r\n.csv'
    content = f'name,"{EVIL}",b\n"=cmd()",1,2\n"{EVIL}",3,4\n"</script>",5,6\n'.encode()
    answer = bring(place, name, content)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    said = answer.json()
    assert "/" not in said["name"].replace("</", "") and "\r" not in said["name"] and "x-evil" not in answer.headers
    assert EVIL in said["columns"]
    id = start(place, data=said["id"], sweeps=1)
    reach(place, id, "done")
    taken = place.client.get(f"/api/jobs/{id}/take/table.csv")
    assert re.fullmatch(r'attachment; filename="[\w.-]+"', taken.headers["content-disposition"])
    named = {"names": {"0": EVIL}, "rows": {"0": [0], EVIL: [1]}}
    labels = place.client.post(f"/api/jobs/{id}/labels", json=named)
    assert labels.headers["content-type"] == "application/octet-stream" and EVIL in labels.text
    for wrong in (*({"rows": {"a": rows}} for rows in ([99], [-1], "b")), {"format": "../a"}, {"names": [1]}):
        assert place.client.post(f"/api/jobs/{id}/labels", json=wrong).status_code == 400


@pytest.mark.parametrize(
    ("name", "ending"),
    [("a.csv", ".csv"), ("a.b.CSV.GZ", ".csv.gz"), ("a", ""), ("a./../b", ""), ("a.c\x00sv", ".csv"), ("." * 50, ""),
     ("a.é", "")],
)  # fmt: skip
def test_of_a_name_only_a_plain_ending_is_used(name, ending):
    assert app.safe_endings(app.display_name(name)) == ending


# --- what is left open --------------------------------------------------------------------------------------


def test_requests_left_open_do_no_harm(place):
    head = f"POST /api/data?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nOrigin: {place.url}\r\n"
    head += f"Cookie: twofold_lab_{place.port}={TOKEN}\r\n"
    half = [b"", b"GET / HTT", head.encode(), f"{head}Content-Length: 1000\r\n\r\na,b".encode()]
    opened = [socket.create_connection(("127.0.0.1", place.port), timeout=60) for _ in range(40)]
    try:
        for i, one in enumerate(opened):
            one.sendall(half[i % 4])
        assert alive(place)
        id = start(place, sweeps=2)
        reach(place, id, "done")
    finally:
        for one in opened:
            one.close()
    wait_for(lambda: not list_uploads(place))


def test_a_connection_that_asks_for_nothing_is_closed(place, monkeypatch):
    monkeypatch.setattr(app, "MAX_FIRST_PAUSE", 0.3)
    for begin in (b"", b"GET / HTTP/1.1\r\nHo"):
        with socket.create_connection(("127.0.0.1", place.port), timeout=60) as one:
            one.sendall(begin)
            assert one.recv(100) == b""


def test_numbers_and_addresses_without_sense_are_a_sentence_each(place, job):
    huge = "9" * 400
    for body in (
        f'{{"pace": {huge}, "method": "counter"}}',
        f'{{"method": "counter", "settings": {{"sweeps": {huge}}}}}',
    ):
        answer = place.client.post("/api/jobs", content=body)
        assert answer.status_code == 400 and "400 digits" in answer.json()["error"]
    for path, status in ((f"/api/jobs/{job}/frames/{huge}", 404), ("/api/nothing", 404), ("/nothing", 404)):
        answer = place.client.get(path)
        assert answer.status_code == status and answer.json()["error"].endswith("."), path
    assert "such a request" in place.client.put("/api/jobs").json()["error"]


def test_a_table_with_very_many_columns_is_refused_in_a_sentence(place):
    wide = ",".join(f"c{j}" for j in range(100_000)) + "\n" + "\n".join(",".join("1" * 100_000) for _ in range(3))
    answer = place.client.post("/api/data", params={"name": "wide.csv"}, content=wide.encode())
    assert answer.status_code == 400 and re.search(r"100,000 columns|GB of memory", answer.json()["error"])


def test_fifty_pages_at_once_and_one_too_many(place):
    id = start(place, sweeps=300, wait=0.005, size=2000)
    with ExitStack() as opened:
        pages = [opened.enter_context(stream(place)) for _ in range(place.limits.sockets)]
        for page in pages[:50]:
            page.send(json.dumps({"watch": [id]}))
        with pytest.raises((InvalidStatus, ConnectionClosed)), stream(place) as over:
            over.recv(timeout=60)
        assert alive(place)
        reach(place, id, "done")
        for page in pages[:50]:
            final = False
            while not final:
                message = page.recv(timeout=150)
                final = isinstance(message, bytes) and b'"final":true' in message[:4000]
    with stream(place):
        assert alive(place)


def test_a_page_that_never_reads_holds_nobody_up(place):
    with stream(place) as lazy:
        id = start(place, sweeps=200, load=50_000)  # 40 MB, were it all sent
        lazy.send(json.dumps({"watch": [id]}))
        assert reach(place, id, "done")["sweep"] == 200
        assert alive(place)
        lazy.socket.shutdown(socket.SHUT_RDWR)


def test_what_a_page_says_wrong_is_its_own_loss(place):
    short = ("{", "[]", '{"watch": 3}', '{"watch": [1, null, {}]}', "\x00", b"\xff\xfe")
    for wrong in (*short, "a" * 2**20, "[" * 60_000):
        with stream(place) as page:
            page.send(wrong)
            assert alive(place)
    with stream(place) as page:
        id = start(place, sweeps=1)
        page.send(json.dumps({"watch": [id] * 1000}))
        assert json.loads(page.recv(timeout=150))["state"]["id"] == id
