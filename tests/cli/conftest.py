"""The command, run in this process in an empty folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.helpers import run_twofold
from tests.cli.worlds import write_people


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def twofold(folder):
    """Run the command in the empty folder; the result has exit_code, stdout, stderr."""
    return run_twofold


@pytest.fixture
def ask(folder):
    """Run the command with --json, which must succeed, and return what it prints."""

    def run(*argv: object) -> dict[str, Any]:
        result = run_twofold(*argv, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


@pytest.fixture
def people(folder):
    """people.csv: row names, a group, five columns of numbers; returns the numbers."""
    return write_people()
