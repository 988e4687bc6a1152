"""Requests a second of a served model, from a second process on loopback, beside a plain FastAPI handler.

    python -m bench.serve_load [SECONDS] [CONNECTIONS]

A recommender of 50,000 users, 100,000 items and 64 factors, asked for the 10 best items of a user at random, and a PCA
of 784 columns, asked for one row. Server and client share the machine, whose load is printed. The plain handler is what
one writes first: FastAPI, pydantic, one call of the model for each request.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import polars as pl

from twofold import PCA, ImplicitALS, Recommender

USERS, ITEMS, FACTORS, PER_USER = 50_000, 100_000, 64, 30
PORT = 8355
PLAIN = """
import sys, uvicorn, numpy as np
from fastapi import FastAPI
from pydantic import BaseModel
import twofold
model, app = twofold.load(sys.argv[1]), FastAPI()
class User(BaseModel):
    users: int
    n: int = 10
class Rows(BaseModel):
    rows: list[list[float]]
@app.post("/models/{name}/recommend")
def recommend(name: str, one: User):
    return model.recommend(one.users, one.n).to_dicts()
@app.post("/models/{name}/transform")
def transform(name: str, one: Rows):
    return model.transform(np.array(one.rows)).tolist()
@app.get("/readyz")
def ready():
    return {}
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False)
"""


def make_models(folder: Path) -> None:
    """Fit and save both models; how well they fit does not matter here."""
    rng = np.random.default_rng(0)
    items = (ITEMS * rng.random(USERS * PER_USER) ** 2).astype(int)
    items[:ITEMS] = np.arange(ITEMS)
    ratings = pl.DataFrame({"user": np.repeat(np.arange(USERS), PER_USER), "item": items})
    Recommender(ImplicitALS(FACTORS, max_iter=1, random_state=0)).fit(ratings).save(folder / "items.twofold")
    PCA(32).fit(rng.random((3000, 784))).save(folder / "digits.twofold")


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a server, and wait until it is ready."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(600):
        time.sleep(0.1)
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz")
            return server
        except OSError:
            continue
    raise SystemExit("the server did not start")


def measure_memory(pid: int) -> float:
    """MB that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_cpu(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(path: str, bodies: list[bytes], seconds: float, connections: int) -> tuple[list[float], int]:
    """Ask over some connections for some seconds; the time of each answer, and how many were not 200."""
    took: list[float] = []
    wrong, end = 0, time.perf_counter() + seconds

    async def ask(which: int) -> None:
        nonlocal wrong
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        number = which
        while time.perf_counter() < end:
            body = bodies[number % len(bodies)]
            number += connections
            start = time.perf_counter()
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nContent-Type: application/json\r\n"
            writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - start)
            wrong += b" 200 " not in answer[:15]
        writer.close()

    await asyncio.gather(*(ask(a) for a in range(connections)))
    return took, wrong


def main() -> None:
    seconds, connections = (float(one) for one in [*sys.argv[1:], *("15", "16")[len(sys.argv) - 1 :]])
    rng = np.random.default_rng(1)
    users = [json.dumps({"users": int(u), "n": 10}).encode() for u in rng.integers(0, USERS, 5_000)]
    rows = [json.dumps({"rows": [row]}).encode() for row in rng.random((200, 784)).round(3).tolist()]
    with tempfile.TemporaryDirectory() as place:
        make_models(Path(place))
        for name, path, bodies in (("items", "recommend", users), ("digits", "transform", rows)):
            file = f"{place}/{name}.twofold"
            twofold = [str(Path(sys.executable).parent / "twofold"), "serve", file, "--port", str(PORT)]
            plain = [sys.executable, "-c", PLAIN, file, str(PORT)]
            for kind, command in (("twofold serve", twofold), ("plain FastAPI", plain)):
                server = start(command)
                asyncio.run(load(f"/models/{name}/{path}", bodies, 1.0, int(connections)))
                memory, cpu = measure_memory(server.pid), measure_cpu(server.pid)
                took, wrong = asyncio.run(load(f"/models/{name}/{path}", bodies, seconds, int(connections)))
                spent, after = measure_cpu(server.pid) - cpu, measure_memory(server.pid)
                server.terminate()
                server.wait()
                p50, p99 = 1e3 * np.quantile(took, [0.5, 0.99])
                print(
                    f"{path:10} {kind:14} {len(took) / seconds:7.0f} requests/s   "
                    f"p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   "
                    f"{1e3 * spent / len(took):.2f} CPU-ms a request   errors {wrong}   "
                    f"memory {memory:.0f} → {after:.0f} MB   load {os.getloadavg()[0]:.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
