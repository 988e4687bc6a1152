"""Model files that the first version wrote load, and their models work."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from twofold import load

FOLDER = Path(__file__).parent / "written_by_0.1"
FILES = sorted(FOLDER.glob("*.twofold"))


def rows(model):
    """New data of the kind that the model was fitted to."""
    rng = np.random.default_rng(1)
    X = np.abs(rng.normal(size=(5, 6)))
    counts = ("PLSA", "LatentDirichletAllocation", "LSA", "Mixture")
    kind = type(model).__name__
    if kind == "BagOfWords":
        return ["the cat sat on the mat"]
    return sparse.csr_array(rng.poisson(3 * X)) if kind in counts and kind != "Mixture" else np.round(X) + 1.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_the_first_version_loads_and_works(path):
    model = load(path)
    assert type(model).__name__ == path.stem
    if path.stem == "Recommender":
        assert len(model.recommend(model.users_[0], 3)) == 3
    elif path.stem in ("SkipGram", "GloVe"):
        assert "cat" in model.vectors_ and np.isfinite(model.vectors_["cat"]).all()
    else:
        X = rows(model)
        found = model.transform(X) if hasattr(model, "transform") else model.predict(X)
        found = found.toarray() if sparse.issparse(found) else np.asarray(found)
        assert len(found) == len(X if isinstance(X, list) else np.empty(X.shape))
        assert found.dtype.kind in "OU" or np.isfinite(found).all()
    assert repr(model).startswith(path.stem)


def test_there_are_files_to_load():
    assert len(FILES) >= 15
