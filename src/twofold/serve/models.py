"""The models of a service: each with a name and a version, and taken from its file again when that changes."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import twofold
from twofold.core.checks import InputError, ModelFileError
from twofold.core.files.safetensors_file import read_table
from twofold.serve.operations import Operation, find_operations

WARMUPS = 3  # calls of each operation before a model is asked


@dataclass(frozen=True)
class Loaded:
    """A model in memory, and what it can be asked."""

    model: Any
    version: str
    operations: dict[str, Operation]
    stamp: tuple[int, int, int]  # of the file, by which a change is seen
    since: float


class ServedModel:
    """A model file under a name; `current` is what requests get."""

    def __init__(self, name: str, path: Path):
        self.name, self.path = name, path
        self.current = load_model(path)
        self.refused: tuple[int, int, int] | None = None  # the stamp of a file that could not be loaded
        self.failures = 0

    def take_up(self) -> bool:
        """Load the file again if it has changed; a damaged one is told once, and the model before it stays."""
        try:
            stamp = read_stamp(self.path)
        except OSError:
            return False  # it is gone, or just being replaced
        if stamp in (self.current.stamp, self.refused):
            return False
        try:
            found = load_model(self.path)
            find_missing = self.current.operations.keys() - found.operations.keys()
            if find_missing:
                raise InputError(f"it cannot answer {', '.join(sorted(find_missing))}, as the model before it could")
        except (InputError, ModelFileError, OSError) as error:
            self.refused, self.failures = stamp, self.failures + 1
            print(f"serve: {self.name} stays at version {self.current.version}: {error}", file=sys.stderr, flush=True)
            return False
        self.current, self.refused = found, None
        print(f"serve: {self.name} is now at version {found.version}", file=sys.stderr, flush=True)
        return True


def read_stamp(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is replaced."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino


def load_model(path: Path) -> Loaded:
    """Load a model file and call each of its operations, so that no request pays for compiling."""
    stamp = read_stamp(path) if path.is_file() else (0, 0, 0)
    model = twofold.load(path)
    version = read_table(path).digest[:12]
    operations = find_operations(model)
    for one in operations.values():
        for _ in range(WARMUPS):
            one.answer(model, [dict(one.fields.model_validate(one.example))])
        if one.merged is not None:
            one.answer(model, [dict(one.fields.model_validate(one.example))] * 2)
    return Loaded(model, version, operations, stamp, time.time())


def name_models(files: list[str]) -> dict[str, Path]:
    """The name of each file: the part before "=" where there is one, else its stem."""
    named: dict[str, Path] = {}
    for file in files:
        name, sign, path = file.partition("=")
        if not sign or os.path.exists(file):
            name, path = Path(file).stem, file
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or not name.isascii():
            raise InputError(f"{file}: {name!r} cannot be part of an address. Name the model: name={path}")
        if name in named:
            raise InputError(f"{name} is the name of two models, {named[name]} and {path}. Name one: other={path}")
        named[name] = Path(path)
    return named
