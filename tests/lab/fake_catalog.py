"""Methods that do as told, for tests of the server: the number and the length of sweeps, and ways to fail."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError


class Cancelled(Exception):
    pass


@dataclass
class Result:
    model: Any
    table: Any
    figure: Any
    script: str


class Counter:
    """Emits a frame a sweep, of which `points` is sent once."""

    id, title, family, view, objective = "counter", "Counter", "fake", "points", "cost"
    kinds = ("table", "pictures", "text", "ratings", "none")
    defaults: ClassVar = {"sweeps": 5, "wait": 0.0, "size": 4, "load": 0, "then": ""}

    def describe(self) -> dict[str, Any]:
        return {"id": self.id, "title": self.title, "kinds": list(self.kinds), "settings": []}

    def reason_against(self, entry: dict[str, Any]) -> str:
        return "" if entry["kind"] in self.kinds else "is of another kind"

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        if values.keys() - self.defaults.keys():
            raise InputError("Counter has no such setting.")
        return self.defaults | values

    def run(self, data: Any, settings: dict[str, Any], emit: Any, rows: list[int] | None = None) -> Result:
        points = np.arange(2.0 * settings["size"], dtype=np.float32).reshape(-1, 2)
        emit(0, None, {"points": points, "at": np.zeros(1, np.float32)}, {"static": ["points"], "title": "t"})
        for sweep in range(1, settings["sweeps"] + 1):
            time.sleep(settings["wait"])
            last = sweep == settings["sweeps"]
            arrays = {"at": np.full(1, sweep, np.float32)}
            if settings["load"]:
                arrays["load"] = np.ones(settings["load"], np.float32)
            if emit(sweep, 1.0 / sweep, arrays, {"twice": 2 * sweep}, final=last):
                break
        self.fail(settings["then"])
        import polars as pl

        return Result(Model(), pl.DataFrame({"a": [1, 2]}), None, "X = 1\n")

    def fail(self, way: str) -> None:
        if way == "die":
            os.kill(os.getpid(), 9)
        if way == "abort":  # as compiled code does where memory is refused
            os.abort()
        if way == "crash":
            os._exit(3)
        if way == "error":
            raise ValueError("two <b>words</b>")
        if way == "refuse":
            raise InputError("X[0, 0] is -1; it must not be. Clip it.")
        if way == "memory":
            hold = []
            while True:
                hold.append(np.ones(2**22))
        if way == "hang":
            time.sleep(1000)

    def ask(self, result: Result, question: dict[str, Any]) -> Any:
        if question["question"] == "frame":
            return {"picture": np.zeros((2, 2), np.uint8)}, {"said": "yes"}
        if question["question"] == "slow":
            time.sleep(1000)
        if question["question"] != "echo":
            raise InputError("There is no such question.")
        return {"echo": question["text"]}


class Model:
    def save(self, path: Any) -> None:
        path.write_bytes(b"model")


STARTS: dict[str, tuple[str, ...]] = {}


def preload() -> None:
    """Nothing is needed."""


def catalog() -> tuple[Counter, ...]:
    return (Counter(),)


def find(id: str) -> Counter:
    if id != "counter":
        raise InputError("There is no such method.")
    return Counter()
