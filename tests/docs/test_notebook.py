"""A journey in a notebook: open a file, look, choose otherwise, save, load, apply. Each cell shows its answer once."""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.datasets import load_wine

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = {  # source: kinds of what it shows, and a word of its text
    "from twofold import KMeans, EarlyStopping, analyses, load, select": (set(), ""),
    "answer = analyses.reduce('wine.csv')\nanswer": ({"text/plain", "text/html"}, "3 components by PCA"),
    "answer.plot()": ({"text/plain", "image/png"}, "Figure"),
    "answer.table.columns[-3:]": ({"text/plain"}, "PC1"),
    "answer = analyses.reduce('wine.csv', 2)\nanswer": ({"text/plain", "text/html"}, "2 components by PCA"),
    "answer.save('codes.csv', 'pca.twofold')": (set(), ""),
    "load('pca.twofold')": ({"text/plain", "text/html"}, "PCA(n_components=2"),
    "analyses.apply('pca.twofold', 'wine.csv')": ({"text/plain", "text/html"}, "codes by PCA"),
    "found = select(KMeans, answer.table.to_numpy()[:, -2:], n_clusters=[2, 3], random_state=0)\nfound": (
        {"text/plain", "text/html"},
        "KMeans(n_clusters=",
    ),
    "found.plot()": ({"text/plain", "image/png"}, "Figure"),
    "EarlyStopping(answer.table)": ({"text/plain"}, "EarlyStopping(patience=5"),
}


def test_every_cell_shows_its_answer_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_wine(as_frame=True).data.to_csv(tmp_path / "wine.csv", index=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    for cell, (kinds, word) in zip(notebook.cells, CELLS.values(), strict=True):
        streams = [output.text for output in cell.outputs if output.output_type == "stream"]
        shown = [output.data for output in cell.outputs if output.output_type != "stream"]
        assert not streams, cell.source
        assert [set(data) for data in shown] == ([kinds] if kinds else []), cell.source
        assert not word or word in shown[0]["text/plain"], cell.source
