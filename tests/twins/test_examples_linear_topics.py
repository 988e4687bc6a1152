"""What scikit-learn's documentation does with PCA, FactorAnalysis, NMF and LatentDirichletAllocation, done with ours.

Each example is the calls of one page of the user guide, docstring or script of the gallery, on data that needs no
download, and asserts what that page shows.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_multilabel_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from twofold import NMF, PCA, FactorAnalysis, LatentDirichletAllocation

EXAMPLES = []


def example(function):
    EXAMPLES.append(pytest.param(function, id=function.__name__))
    return function


@pytest.mark.parametrize("run", EXAMPLES)
def test_example(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the pages stop early, too
        run()


def texts(n):
    """Short documents about three things."""
    rng = np.random.default_rng(0)
    themes = [
        ["engine", "wheel", "car", "road", "brake", "driver"],
        ["goal", "team", "player", "ball", "match", "season"],
        ["orbit", "planet", "moon", "rocket", "launch", "space"],
    ]
    own = [rng.choice(themes[i % 3], 12).tolist() for i in range(n)]
    return [" ".join([*words, *rng.choice(np.ravel(themes), 3)]) for words in own]


# --- PCA --------------------------------------------------------------------------------------------------------

SIX = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])


@example
def pca_docstring():
    pca = PCA(n_components=2)
    pca.fit(SIX)
    np.testing.assert_allclose(pca.explained_variance_ratio_, [0.9924, 0.0075], atol=1e-4)
    np.testing.assert_allclose(pca.singular_values_, [6.30061, 0.54980], atol=1e-5)


@example
def pca_of_iris():
    X, y = load_iris(return_X_y=True)
    X_reduced = PCA(n_components=3).fit_transform(X)
    assert X_reduced.shape == (150, 3)
    centers = [X_reduced[y == label, 0].mean() for label in range(3)]
    assert sorted(centers) in (centers, centers[::-1])  # the first axis has the kinds in order


@example
def pca_beside_chosen_columns():
    X, y = load_iris(return_X_y=True)
    combined = FeatureUnion([("pca", PCA(n_components=2)), ("univ_select", SelectKBest(k=1))])
    assert combined.fit(X, y).transform(X).shape == (150, 3)
    pipeline = Pipeline([("features", combined), ("svm", SVC(kernel="linear"))])
    grid = {"features__pca__n_components": [1, 2, 3], "features__univ_select__k": [1, 2], "svm__C": [0.1, 1, 10]}
    assert GridSearchCV(pipeline, grid).fit(X, y).best_score_ > 0.95


@example
def principal_component_regression():
    rng = np.random.RandomState(0)
    X = rng.multivariate_normal(mean=[0, 0], cov=[[3, 3], [3, 4]], size=500)
    pca = PCA(n_components=2).fit(X)
    y = X.dot(pca.components_[1]) + rng.normal(size=500) / 2
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=rng)
    one, two = (make_pipeline(StandardScaler(), PCA(n_components=k), LinearRegression()) for k in (1, 2))
    assert one.fit(X_train, y_train).score(X_test, y_test) < 0.1 < 0.2 < two.fit(X_train, y_train).score(X_test, y_test)
    assert one.named_steps["pca"].transform(X_test).shape == (125, 1)


@example
def scaling_matters_to_pca():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.30, random_state=42)
    scaled = StandardScaler().set_output(transform="pandas").fit(X_train).transform(X_train)
    raw, even = PCA(n_components=2).fit(X_train), PCA(n_components=2).fit(scaled)
    assert np.abs(raw.components_[0]).argmax() == list(X.columns).index("proline") and raw.components_[0].max() > 0.99
    assert np.abs(even.components_[0]).max() < 0.5
    plain = make_pipeline(PCA(n_components=2), LogisticRegression(max_iter=1000)).fit(X_train, y_train)
    better = make_pipeline(StandardScaler(), PCA(n_components=2), LogisticRegression()).fit(X_train, y_train)
    assert plain.score(X_test, y_test) < 0.75 < 0.9 < better.score(X_test, y_test)
    naive = make_pipeline(StandardScaler(), PCA(n_components=2), GaussianNB()).fit(X_train, y_train)
    assert naive.score(X_test, y_test) > 0.9


@example
def pca_of_digits_and_back():
    X = MinMaxScaler().fit_transform(load_digits().data)
    noisy = X + np.random.RandomState(0).normal(scale=0.25, size=X.shape)
    pca = PCA(n_components=32, random_state=42).fit(noisy)
    cleaned = pca.inverse_transform(pca.transform(noisy))
    assert np.mean((X - cleaned) ** 2) < 0.75 * np.mean((X - noisy) ** 2)


@example
def pca_with_names_of_columns():
    X, _ = load_breast_cancer(return_X_y=True, as_frame=True)
    pca = PCA(n_components=0.95).set_output(transform="pandas")
    out = make_pipeline(StandardScaler(), pca).fit_transform(X)
    assert list(out.columns) == [f"pca{i}" for i in range(pca.n_components_)] and pca.n_components_ == 10


# --- factor analysis ----------------------------------------------------------------------------------------------


@example
def factors_of_iris_rotated():
    X = StandardScaler().fit_transform(load_iris().data)
    found = {}
    for name, fa in (
        ("PCA", PCA()),
        ("unrotated", FactorAnalysis()),
        ("varimax", FactorAnalysis(rotation="varimax")),
    ):
        fa.set_params(n_components=2)
        found[name] = fa.fit(X).components_.T
        assert found[name].shape == (4, 2)
    # sepal width has a factor of its own, and the other three load on the first
    loadings = np.abs(found["varimax"])
    other = loadings[1].argmax()
    assert loadings[1, other] > 0.9 and (loadings[[0, 2, 3], 1 - other] > 0.8).all()
    assert (found["varimax"] ** 4).sum() > (found["unrotated"] ** 4).sum()


@example
def factors_of_faces():
    digits = load_digits().data
    centered = digits - digits.mean(axis=0)
    centered -= centered.mean(axis=1).reshape(len(centered), -1)
    fa_estimator = FactorAnalysis(n_components=6, max_iter=20)
    fa_estimator.fit(centered)
    assert fa_estimator.components_.reshape((6, 8, 8)).shape == (6, 8, 8)
    noise = fa_estimator.noise_variance_.reshape((8, 8))
    assert noise[3, 3] > 10 * noise[3, 0]  # the middle varies, the margin does not
    assert np.all(np.diff(fa_estimator.loglike_) > -1e-6)


# --- NMF ------------------------------------------------------------------------------------------------------------

ROWS = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])


@example
def nmf_docstring():
    model = NMF(n_components=2, init="random", random_state=0)
    W = model.fit_transform(ROWS)
    H = model.components_
    assert W.shape == (6, 2) and H.shape == (2, 2) and W.min() >= 0 and H.min() >= 0
    np.testing.assert_allclose(W @ H, ROWS, atol=0.05)


@example
def nmf_of_new_rows():
    model = NMF(n_components=2, init="random", random_state=0)
    model.fit_transform(ROWS)
    X_new = np.array([[1, 0], [1, 6.1], [1, 0], [1, 4], [3.2, 1], [0, 4]])
    W_new = model.transform(X_new)
    assert W_new.shape == (6, 2) and W_new.min() >= 0
    np.testing.assert_allclose(W_new[4] @ model.components_, [3.2, 1], atol=0.05)


@example
def nmf_from_given_factors():
    X = np.abs(np.random.RandomState(0).randn(20, 6))
    W0, H0 = np.abs(np.random.RandomState(1).randn(20, 3)), np.abs(np.random.RandomState(2).randn(3, 6))
    model = NMF(n_components=3, init="custom", max_iter=500)
    W = model.fit_transform(X, W=W0, H=H0)
    assert W.shape == (20, 3) and model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - W @ model.components_))
    assert model.reconstruction_err_ < np.linalg.norm(X - W0 @ H0)
    assert clone(model).get_params() == model.get_params()


def has_three_themes(model, names):
    """Each of the three topics has the six words of one theme at its top."""
    tops = [{names[i] for i in topic.argsort()[-6:]} for topic in model.components_]
    found = {theme for theme in ("car", "ball", "moon") for top in tops if theme in top}
    return len(found) == 3 and len(set.union(*tops)) >= 17


@example
def topics_of_documents_by_nmf():
    vectorizer = TfidfVectorizer(max_df=0.95, min_df=2, max_features=1000, stop_words="english")
    tfidf = vectorizer.fit_transform(texts(300))
    nmf = NMF(
        n_components=3,
        random_state=1,
        init="nndsvda",
        beta_loss="frobenius",
        alpha_W=0.00005,
        alpha_H=0.00005,
        l1_ratio=1,
    ).fit(tfidf)
    assert has_three_themes(nmf, vectorizer.get_feature_names_out())


@example
def topics_of_documents_by_nmf_with_kullback_leibler():
    vectorizer = TfidfVectorizer(max_df=0.95, min_df=2, stop_words="english")
    tfidf = vectorizer.fit_transform(texts(300))
    nmf = NMF(
        n_components=3,
        random_state=1,
        init="nndsvda",
        beta_loss="kullback-leibler",
        solver="mu",
        max_iter=1000,
        alpha_W=0.00005,
        alpha_H=0.00005,
        l1_ratio=0.5,
    ).fit(tfidf)
    assert has_three_themes(nmf, vectorizer.get_feature_names_out())


# --- latent Dirichlet allocation --------------------------------------------------------------------------------


@example
def lda_docstring():
    X, _ = make_multilabel_classification(random_state=0)
    lda = LatentDirichletAllocation(n_components=5, random_state=0)
    lda.fit(X)
    shares = lda.transform(X[-2:])
    assert shares.shape == (2, 5)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@example
def topics_of_documents_by_lda():
    vectorizer = CountVectorizer(max_df=0.95, min_df=2, stop_words="english")
    tf = vectorizer.fit_transform(texts(400))
    lda = LatentDirichletAllocation(
        n_components=3, max_iter=20, learning_method="online", learning_offset=50.0, random_state=0
    )
    lda.fit(tf)
    assert has_three_themes(lda, vectorizer.get_feature_names_out())
    assert lda.perplexity(tf) < tf.shape[1]


@example
def topics_as_columns_for_a_classifier():
    documents = texts(300)
    y = np.arange(300) % 3
    lda = LatentDirichletAllocation(n_components=3, learning_method="batch", random_state=0)
    model = make_pipeline(CountVectorizer(), lda, LogisticRegression())
    assert cross_val_score(model, documents, y, cv=3).mean() > 0.95


@example
def columns_are_named_after_the_model():
    X, _ = make_multilabel_classification(random_state=0)
    for model, prefix in ((LatentDirichletAllocation(3, random_state=0), "latentdirichletallocation"), (NMF(3), "nmf")):
        assert list(model.fit(X).get_feature_names_out()) == [f"{prefix}{i}" for i in range(3)]
