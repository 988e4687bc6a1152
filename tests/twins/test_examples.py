"""Programs of scikit-learn's documentation run with our classes and show what they show there.

That parameters, attributes and numbers are the same is tested beside this file; here are ways to call them.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from twofold import NMF, PCA, GaussianMixture, KMeans, LatentDirichletAllocation, MLPClassifier, SparseCoder

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
THEMES = [
    ["engine", "wheel", "car", "road", "brake", "driver"],
    ["goal", "team", "player", "ball", "match", "season"],
    ["orbit", "planet", "moon", "rocket", "launch", "space"],
]


def make_texts(n):
    """Short documents about three things, in turn."""
    rng = np.random.default_rng(0)
    own = [rng.choice(THEMES[i % 3], 12).tolist() for i in range(n)]
    return [" ".join([*words, *rng.choice(np.ravel(THEMES), 3)]) for words in own]


def test_pca_beside_chosen_columns():
    X, y = load_iris(return_X_y=True)
    combined = FeatureUnion([("pca", PCA(n_components=2)), ("univ_select", SelectKBest(k=1))])
    assert combined.fit(X, y).transform(X).shape == (150, 3)
    pipeline = Pipeline([("features", combined), ("svm", SVC(kernel="linear"))])
    assert GridSearchCV(pipeline, {"features__pca__n_components": [1, 3]}).fit(X, y).best_score_ > 0.95


@pytest.mark.parametrize("loss, solver, ratio", [("frobenius", "cd", 1), ("kullback-leibler", "mu", 0.5)])
def test_topics_of_documents_by_nmf(loss, solver, ratio):
    vectorizer = TfidfVectorizer(max_df=0.95, min_df=2, max_features=1000, stop_words="english")
    penalty = {"alpha_W": 0.00005, "alpha_H": 0.00005, "l1_ratio": ratio}
    nmf = NMF(n_components=3, random_state=1, init="nndsvda", beta_loss=loss, solver=solver, max_iter=1000, **penalty)
    nmf.fit(vectorizer.fit_transform(make_texts(300)))
    names = vectorizer.get_feature_names_out()
    tops = [{names[i] for i in topic.argsort()[-6:]} for topic in nmf.components_]
    assert sorted(map(sorted, tops)) == sorted(map(sorted, THEMES))


def test_topics_as_columns_for_a_classifier():
    lda = LatentDirichletAllocation(n_components=3, learning_method="batch", random_state=0)
    model = make_pipeline(CountVectorizer(), lda, LogisticRegression())
    assert cross_val_score(model, make_texts(300), np.arange(300) % 3, cv=3).mean() > 0.95


@pytest.mark.parametrize("kind", ["spherical", "diag", "tied", "full"])
def test_classes_of_iris_from_their_means(kind):
    """Components begin at the means of the classes, so that labels are those of the classes."""
    X, y = load_iris(return_X_y=True)
    train, test = next(iter(StratifiedKFold(n_splits=4).split(X, y)))
    model = GaussianMixture(n_components=3, covariance_type=kind, max_iter=20, random_state=0)
    model.means_init = np.array([X[train][y[train] == i].mean(axis=0) for i in range(3)])
    assert (model.fit(X[train]).predict(X[test]) == y[test]).mean() > 0.8


def test_clusterings_are_compared_in_one_loop():
    """Labels are taken from labels_ where a model has it, and from predict where not."""
    X, y = make_blobs(n_samples=300, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    X = StandardScaler().fit_transform(X)
    for model in (KMeans(n_clusters=3, random_state=0), GaussianMixture(3, random_state=0)):
        fitted = clone(model).fit(X)
        labels = fitted.labels_.astype(int) if hasattr(fitted, "labels_") else fitted.predict(X)
        assert adjusted_rand_score(y, labels) > 0.7


def test_codes_of_atoms_as_features_in_a_pipeline():
    X, y = load_digits(return_X_y=True)
    atoms = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 40)))[0].T
    coder = SparseCoder(atoms, transform_n_nonzero_coefs=5, split_sign=True)
    model = make_pipeline(coder, LogisticRegression(C=10)).fit(X[:400] / 16, y[:400])
    assert model.score(X[400:600] / 16, y[400:600]) > 0.4  # one in ten by chance


def test_networks_on_lists_of_two_points():
    X = [[0.0, 0.0], [1.0, 1.0]]
    clf = MLPClassifier(solver="lbfgs", alpha=1e-5, hidden_layer_sizes=(5, 2), random_state=1).fit(X, [0, 1])
    assert clf.predict([[2.0, 2.0], [-1.0, -2.0]]).tolist() == [1, 0]
    assert [coef.shape for coef in clf.coefs_] == [(2, 5), (5, 2), (2, 1)]
    several = MLPClassifier(solver="lbfgs", alpha=1e-5, hidden_layer_sizes=(15,), random_state=1)
    several.fit(X, [[0, 1], [1, 1]])
    assert several.predict([[1.0, 2.0], [0.0, 0.0]]).tolist() == [[1, 1], [0, 1]]
