import numpy as np
import polars as pl
import pytest

NAMES = ["height", "weight", "age", "income"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def groups(folder):
    """groups.csv: two groups of rows with names; holes.csv: the same with blanks."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 4)) + 0.1 * rng.standard_normal((80, 4))
    X = (X + 6 * (np.arange(80) % 2)[:, None]) * [10, 5, 3, 1000]
    names = pl.Series("name", [f"p{i}" for i in range(80)])
    pl.DataFrame(X, schema=NAMES).with_columns(names).write_csv("groups.csv")
    holes = np.where(rng.random(X.shape) < 0.1, None, X)
    pl.DataFrame(holes.tolist(), schema=NAMES, orient="row").with_columns(names).write_csv("holes.csv")
    return X
