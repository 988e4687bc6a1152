import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from twofold.cli.app import app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def twofold(folder):
    """Run the command in the empty folder; the result has exit_code, stdout, stderr."""
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture
def columns():
    return ["height", "weight", "age", "income", "score"]


@pytest.fixture
def numbers():
    """Rows on a plane, with a little noise and columns of very different spread."""

    def make(n=60, blanks=0.0):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((n, 5))
        X *= [10, 5, 3, 1000, 0.1]
        return np.where(rng.random(X.shape) < blanks, np.nan, X)

    return make


@pytest.fixture
def people(folder, numbers, columns):
    """people.csv: row names, a group, five columns of numbers; returns the numbers."""
    X = numbers()
    frame = pl.DataFrame(X, schema=columns)
    names = pl.Series("name", [f"p{i}" for i in range(len(X))])
    frame.with_columns(names, pl.Series("group", list("ab") * (len(X) // 2))).write_csv("people.csv")
    return X
