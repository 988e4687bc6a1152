"""Selection: the planted number is found, seeds decide everything, and what fails says so."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import twofold
from twofold.core.checks import InputError
from twofold.model_selection import select
from twofold.model_selection.select import Candidate, choose, summarize


@pytest.fixture(autouse=True)
def one_thread():
    """The problems are tiny: starting threads would cost more than solving them."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def blobs():
    centers = [[0, 0], [10, 0], [0, 10], [10, 10]]
    return make_blobs(160, centers=centers, random_state=0)[0]


@pytest.fixture(scope="module")
def plant():
    """Three strong directions in twelve."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((300, 3)) @ rng.standard_normal((3, 12)) * 3 + rng.standard_normal((300, 12))


@pytest.mark.parametrize("criterion", ["auto", "bic", "heldout", "stability"])
def test_the_planted_number_of_clusters_is_found(criterion, blobs):
    mixture = GaussianMixture(covariance_type="spherical")
    found = select(mixture, blobs, criterion=criterion, folds=3, random_state=0, n_components=range(1, 7))
    assert found.best_params == {"n_components": 4}
    assert found.winner.n_components == 4 and found.winner.predict(blobs).shape == (160,)
    assert found.criterion == ("bic" if criterion == "auto" else criterion)


@pytest.mark.parametrize("criterion", ["heldout", "stability"])
def test_the_planted_dimension_is_found(criterion, plant):
    found = select(PCA, plant, criterion=criterion, random_state=0, n_components=range(1, 9))
    assert found.best_params == {"n_components": 3}


@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_the_table_says_what_each_setting_is_worth_on_its_own(criterion, blobs):
    found = select(GaussianMixture, blobs, criterion=criterion, random_state=3, n_components=[5, 2], tol=[1e-3])
    for row in found.table.iter_rows(named=True):
        alone = GaussianMixture(row["n_components"], tol=row["tol"], random_state=3).fit(blobs)
        assert row["bic"] == alone.bic(blobs) and row["aic"] == alone.aic(blobs)
        assert row["seconds"] > 0 and row["note"] is None
    assert found.best_params["n_components"] == found.table.sort(criterion)["n_components"][0]


def test_several_parameters_give_every_combination(blobs):
    kinds = ["full", "diag", "tied"]
    found = select(GaussianMixture, blobs, random_state=0, covariance_type=kinds, n_components=[1, 4])
    pairs = list(zip(found.table["covariance_type"], found.table["n_components"], strict=True))
    assert pairs == [(c, k) for c in kinds for k in (1, 4)]
    assert found.table["bic"].min() == pytest.approx(found.winner.bic(blobs))


@pytest.mark.parametrize("criterion", ["bic", "heldout", "stability"])
def test_the_seed_decides_everything_but_the_seconds(criterion, blobs):
    options = {"criterion": criterion, "folds": 2, "n_components": [3, 5]}
    runs = [select(GaussianMixture, blobs, random_state=s, **options).table.drop("seconds") for s in (7, 7, 8)]
    assert runs[0].equals(runs[1])
    assert criterion == "bic" or not runs[0].equals(runs[2])


def test_a_seed_of_the_estimator_is_kept(blobs):
    found = select(KMeans(random_state=5), blobs, random_state=0, n_clusters=[4])
    assert found.winner.random_state == 5


def test_containers_do_not_matter(plant):
    frame = pd.DataFrame(plant, columns=[f"c{i}" for i in range(12)])
    inputs = [plant, frame, pl.from_pandas(frame)]
    scores = [select(PCA, X, random_state=0, n_components=[2, 3, 4]).table["heldout"] for X in inputs]
    np.testing.assert_allclose(scores[1:], [scores[0]] * 2, rtol=1e-9)  # a frame's memory order is its own


@pytest.mark.parametrize("criterion", ["heldout", "stability"])
def test_sparse_equals_dense(criterion, plant):
    X = np.where(np.abs(plant) > 2, plant, 0)
    estimator = KMeans(n_init=2)
    options = {"criterion": criterion, "folds": 2, "random_state": 0, "n_clusters": [2, 3]}
    dense, thin = (select(estimator, data, **options).table[criterion] for data in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense, thin, rtol=1e-6)


def test_stability_compares_components_where_nothing_predicts(plant):
    X = sparse.csr_array(np.where(np.abs(plant) > 2, plant, 0))
    table = select(TruncatedSVD, X, criterion="stability", random_state=0, n_components=[2, 3]).table
    assert (table["stability"] <= 1).all() and (table["stability"] > 0.5).all()


def test_stability_of_pure_noise_is_near_chance():
    X = np.random.default_rng(0).standard_normal((400, 40))
    table = select(PCA, X, criterion="stability", random_state=0, n_components=[2, 5, 10]).table
    assert (table["stability"] < 0.2).all()


def test_targets_reach_the_estimator():
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    found = select(pipe, X, y, random_state=0, logisticregression__C=[1e-5, 1.0])
    assert found.best_params == {"logisticregression__C": 1.0} and found.table["heldout"].max() > 0.9
    assert select(Ridge, X, y, random_state=0, alpha=[1e-3, 1e6]).best_params == {"alpha": 1e-3}


class Fragile(BaseEstimator):
    """Fails for some settings, in different ways."""

    def __init__(self, k=1):
        self.k = k

    def fit(self, X, y=None):
        if self.k == 2:
            raise RuntimeError("two is too many")
        return self

    def score(self, X, y=None):
        return float("nan") if self.k == 3 else self.k


def test_a_setting_that_fails_is_noted_and_skipped():
    found = select(Fragile, np.zeros((20, 2)), random_state=0, k=[1, 2, 3, 4])
    assert found.best_params == {"k": 4}
    assert found.table["note"].to_list() == [None, "RuntimeError: two is too many", "its heldout is nan", None]
    assert found.table["heldout"].to_list() == [1, None, None, 4]


def test_when_all_fail_the_first_reason_is_told():
    with pytest.raises(InputError, match=r"None of the 2 settings .*k.: 2.* two is too many"):
        select(Fragile, np.zeros((20, 2)), k=[2, 3])


@pytest.mark.parametrize(
    ("estimator", "arguments", "message"),
    [
        (PCA, {}, "Nothing to choose between"),
        (PCA, {"n_clusters": [1]}, "PCA has no parameter 'n_clusters'"),
        (PCA, {"n_components": []}, "no values to try"),
        (PCA, {"n_components": 3}, r"n_components=\[3, \.\.\.\]"),
        (PCA, {"svd_solver": "full"}, "give those to try as a list"),
        (PCA, {"n_components": [1], "criterion": "bic"}, "PCA has no method bic.*'heldout' or 'stability'"),
        (PCA, {"n_components": [1], "criterion": "best"}, "criterion is 'best'"),
        (PCA, {"n_components": [1], "folds": 1}, "folds is 1"),
        (PCA, {"n_components": [1], "folds": 50}, "folds is 50"),
        (TruncatedSVD, {"n_components": [1]}, "TruncatedSVD has no method score.*'stability'"),
        (StandardScaler, {"with_mean": [True], "criterion": "stability"}, "neither predict nor components_"),
        (KMeans, {"n_clusters": [1], "criterion": "stability"}, "one group"),
        (PCA, {"n_components": [4], "criterion": "stability"}, "every direction"),
        (Ridge, {"alpha": [1], "criterion": "stability"}, "not groups"),
    ],
)
def test_what_cannot_be_done_is_explained(estimator, arguments, message):
    X = np.random.default_rng(0).standard_normal((20, 4))
    y = X[:, 0] if estimator is Ridge else None
    with pytest.raises(InputError, match=message):
        select(estimator, X, y, random_state=0, **arguments)


def test_a_path_cannot_be_split():
    with pytest.raises(InputError, match="Load it first"):
        select(PCA, "table.npy", n_components=[1, 2])


def test_values_of_mixed_kinds_are_shown_as_text_and_returned_as_they_are(plant):
    found = select(PCA, plant, random_state=0, n_components=[2, 0.9, "mle", None])
    assert found.table["n_components"].to_list() == ["2", "0.9", "mle", "None"]
    assert found.best_params["n_components"] in (2, 0.9, "mle", None)


@pytest.mark.parametrize(
    "grid", [{"n_components": [1, 2, 4]}, {"covariance_type": ["full", "diag"], "n_components": [1, 4]}]
)
def test_the_plot_shows_every_setting_and_the_best(grid, blobs):
    found = select(GaussianMixture, blobs, random_state=0, **grid)
    axes = found.plot().axes[0]
    *lines, star = axes.get_lines()
    assert sum(len(line.get_xdata()) for line in lines) == len(found.table)
    assert star.get_ydata()[0] == found.table["bic"].min() and axes.get_ylabel() == "bic"


# ---- sizes that are as good, and what is not worth trying ---------------------------------------------------------


CURVE = {1: 0.0, 2: 5.0, 3: 9.7, 4: 10.0, 5: 9.8}


class Known(BaseEstimator):
    """Its score on a fold is a given function of its size and of the fold's first row."""

    fits = 0

    def __init__(self, n_components=1, noise=0.0):
        self.n_components = n_components
        self.noise = noise

    def fit(self, X, y=None):
        Known.fits += 1
        return self

    def score(self, X, y=None):
        own = self.noise * np.sin(100 * self.n_components * X[0, 0])  # a size's luck; what all share is X[0, 0]
        return CURVE[self.n_components] + 3 * X[0, 0] + own


def know(noise, **options):
    X = np.random.default_rng(0).normal(size=(50, 1))
    return select(Known(noise=noise), X, n_components=[1, 2, 3, 4, 5], random_state=0, **options)


def test_the_smallest_size_within_one_standard_error_of_the_best_is_chosen():
    sure, unsure = know(0.0), know(3.0)
    assert sure.best_params == {"n_components": 4}  # what the folds have in common is no error
    good = unsure.table.filter(unsure.table["behind"] <= unsure.table["behind_error"].fill_nan(0))
    assert len(good) > 1 and unsure.best_params["n_components"] == good["n_components"].min()
    assert unsure.table["behind"][unsure.row] > 0
    assert "smallest" in unsure.why and "best figure" in sure.why


def test_a_gain_of_less_than_a_hundredth_is_none(monkeypatch):
    monkeypatch.setitem(CURVE, 3, 9.95)
    assert know(0.0).best_params == {"n_components": 3}


def test_hopeless_settings_are_dropped_and_their_figures_stay_comparable():
    Known.fits = 0
    found = know(0.0)
    assert Known.fits == 5 * 2 + 3 + 1  # two rounds of all, three more of the best, and one to all rows
    np.testing.assert_allclose(found.table["heldout"] - found.table["heldout"].max(), [-10, -5, -0.3, 0, -0.2])
    assert found.table["folds"].to_list() == [2, 2, 2, 5, 2]


def test_time_that_is_over_leaves_out_the_rest_but_not_everything():
    found = know(0.0, time=0.0)
    assert found.table["folds"].to_list() == [1, None, None, None, None]
    assert found.best_params == {"n_components": 1}
    assert all("in time" in note for note in found.table["note"][1:])


def test_progress_counts_to_the_end(blobs):
    seen = []
    select(GaussianMixture, blobs, n_components=[1, 2, 3], random_state=0, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_function_may_judge(plant):
    def components(model, X):
        assert X.shape == (60, 12)
        return -abs(model.n_components_ - 5)

    found = select(PCA, plant, criterion=components, n_components=range(1, 9), random_state=0)
    assert found.best_params == {"n_components": 5} and "components" in found.why


def test_within_two_of_the_least_bic_the_smallest_is_chosen(plant):
    found = select(twofold.BayesianPCA, plant, n_components=range(1, 9), random_state=0)
    near = found.table.filter(found.table["bic"] <= found.table["bic"].min() + 2)
    assert len(near) > 1 and found.best_params["n_components"] == near["n_components"].min() == 3


# ---- which of these ------------------------------------------------------------------------------------------------


def test_a_list_of_models_is_compared_by_what_all_have(plant):
    uneven = plant * np.linspace(0.2, 3, 12)  # noise that differs from column to column
    found = select([twofold.PPCA(), twofold.FactorAnalysis(tol=1e-6)], uneven, n_components=[2, 3, 4])
    assert isinstance(found.winner, twofold.FactorAnalysis) and found.best_params == {"n_components": 3}
    assert found.criterion == "bic" and found.table["model"].to_list() == ["PPCA"] * 3 + ["FactorAnalysis"] * 3
    assert len(found.plot().axes[0].get_lines()) == 3


def test_a_list_needs_no_grid(blobs):
    found = select([twofold.GaussianMixture(2), twofold.GaussianMixture(4)], blobs, random_state=0)
    assert found.winner.n_components == 4 and found.best_params == {}
    assert found.table["model"][0] != found.table["model"][1]
    assert found.plot().axes[0].get_xlabel() == "model"


def test_figures_of_different_things_are_not_compared(plant):
    with pytest.raises(InputError, match=r"PPCA and KMeans cannot be compared: .*log-density.*squared error"):
        select([twofold.PPCA(2), twofold.KMeans(2)], plant)


# ---- what theory has -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "criterion"), [((300, 12), "evidence"), ((40, 200), "gavish-donoho")])
@pytest.mark.parametrize("model", [twofold.PCA, twofold.PPCA])
def test_a_whole_spectrum_tells_the_rank(model, shape, criterion):
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(shape[0], 4)) @ rng.normal(size=(4, shape[1])) + rng.normal(size=shape)
    found = select(model, X, n_components=range(1, 9))
    assert found.criterion == criterion and found.best_params == {"n_components": 4}
    assert twofold.PCA("mle" if criterion == "evidence" else criterion).fit(X).n_components_ == 4


def test_holes_leave_bic(plant):
    X = np.where(np.random.default_rng(0).random(plant.shape) < 0.1, np.nan, plant)
    assert select(twofold.PPCA, X, n_components=[2, 3, 4], random_state=0).criterion == "bic"


def test_icl_is_the_classification_likelihood_of_round_gaussians(blobs):
    model = twofold.KMeans(4, random_state=0).fit(blobs)
    (n, d), k = blobs.shape, 4
    variance = model.inertia_ / (n * d)
    shares = np.bincount(model.labels_) / n
    gaps = ((blobs - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    logp = np.log(shares[model.labels_]) - d / 2 * np.log(2 * np.pi * variance) - gaps / (2 * variance)
    assert model.icl(blobs) == pytest.approx(-2 * logp.sum() + (k * d + k) * np.log(n))


# ---- where the data is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["heldout", "stability", "icl"])
def test_a_file_and_an_array_give_the_same(criterion, blobs, tmp_path):
    np.save(tmp_path / "x.npy", blobs)
    options = {"criterion": criterion, "n_clusters": [3, 4, 5], "random_state": 0, "folds": 2}
    here, there = (select(twofold.KMeans, X, **options) for X in (blobs, tmp_path / "x.npy"))
    assert here.best_params == there.best_params
    np.testing.assert_allclose(here.table[criterion], there.table[criterion], rtol=1e-6)


def test_rows_of_a_dask_array_are_picked(blobs):
    array = pytest.importorskip("dask.array")
    X = array.from_array(blobs, chunks=(50, -1))
    found = select(twofold.KMeans, X, criterion="heldout", n_clusters=[2, 4], random_state=0, folds=2)
    assert found.best_params == {"n_clusters": 4}


def test_who_missed_folds_is_compared_over_those_it_had():
    """The second fold is hard for everybody; the larger size, for which there was no time, was better in the first."""
    small, large = Candidate(None, {"n_components": 1}), Candidate(None, {"n_components": 9})
    small.scores, large.scores = [1.0, -5.0], [3.0, np.nan]
    summarize([small, large], "heldout")
    assert choose([small, large], "heldout", False)[0] is large
    assert (small.figures["heldout"], large.figures["heldout"], small.figures["behind"]) == (-2.0, 0.0, 2.0)
