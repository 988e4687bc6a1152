"""What a notebook shows of a model."""

import re

import numpy as np
import pytest
from sklearn import config_context

from twofold import PPCA


def show(model):
    """The HTML, the same whichever way a notebook asks for it, but for numbers that scikit-learn gives its elements."""
    bundle, alone = model._repr_mimebundle_()["text/html"], model._repr_html_()
    assert alone.partition("twofold-history")[2] == bundle.partition("twofold-history")[2]
    return bundle


@pytest.mark.filterwarnings("ignore:PPCA did not converge")
def test_a_fitted_model_shows_how_its_fit_went():
    model = PPCA(2, max_iter=5, tol=0.0, random_state=0)
    assert "twofold-history" not in show(model) and "PPCA" in show(model)
    X = np.random.default_rng(0).normal(size=(40, 5))
    X[0, 0] = np.nan
    model.fit(X)
    table = show(model).partition('<table class="twofold-history">')[2]
    cells = dict(zip(re.findall("<th>(.*?)</th>", table), re.findall("<td>(.*?)</td>", table), strict=True))
    objective = model.history_["objective"]
    assert cells["sweeps"] == str(len(objective))
    assert float(cells["first objective"]) == float(f"{objective[0]:.6g}")
    assert float(cells["last objective"]) == float(f"{objective[-1]:.6g}")
    assert cells["converged"] == ("yes" if model.converged_ else "no") and float(cells["seconds"]) >= 0


def test_without_diagrams_there_is_text_alone():
    with config_context(display="text"):
        assert not hasattr(PPCA(2), "_repr_html_")
        assert set(PPCA(2)._repr_mimebundle_()) == {"text/plain"}
