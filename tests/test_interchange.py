"""Models that go to other libraries and come from them give the same answers there and here."""

import numpy as np
import polars as pl
import pytest
import sklearn.base

import twofold
from twofold import (
    ALS,
    NMF,
    PCA,
    PPCA,
    FactorAnalysis,
    FisherLDA,
    GaussianMixture,
    ImplicitALS,
    InputError,
    KMeans,
    LatentDirichletAllocation,
    Recommender,
    SparseCoder,
    WordVectors,
    datasets,
)
from twofold.interchange import from_gensim_lda, from_implicit, from_surprise

X = datasets.digits().data[:400]
LABELS = datasets.digits().target[:400]


# ---- scikit-learn ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        (PCA(7), ("transform", "score_samples")),
        (PCA(7, whiten=True), ("transform",)),
        (FactorAnalysis(3), ("transform", "score_samples")),
        (KMeans(6, random_state=0), ("predict", "transform")),
        (GaussianMixture(3, random_state=0), ("predict_proba", "score_samples", "predict")),
        (GaussianMixture(3, covariance_type="diag", random_state=0), ("predict_proba", "score_samples")),
        (GaussianMixture(3, covariance_type="tied", random_state=0), ("predict_proba", "score_samples")),
        (GaussianMixture(3, covariance_type="spherical", random_state=0), ("predict_proba", "score_samples")),
    ],
    ids=str,
)
def test_twins_give_the_same_answers(model, methods):
    rows = X + np.random.default_rng(0).normal(size=X.shape)  # no column is constant
    rows = rows[:, 20:28] if isinstance(model, GaussianMixture) else rows
    model.fit(rows)
    twin = model.to_sklearn()
    assert type(twin).__module__.startswith("sklearn.") and sklearn.base.is_regressor(twin) is False
    for method in methods:
        np.testing.assert_allclose(getattr(twin, method)(rows), getattr(model, method)(rows), rtol=1e-6, atol=1e-6)


def test_twins_of_parts_and_topics_have_their_optimum():
    parts = NMF(5, random_state=0, tol=1e-7).fit(X)
    twin = parts.to_sklearn()
    np.testing.assert_allclose(twin.transform(X) @ twin.components_, parts.transform(X) @ parts.components_, atol=0.1)
    counts = np.round(X)
    topics = LatentDirichletAllocation(3, random_state=0).fit(counts)
    theirs = topics.to_sklearn()
    words = theirs.components_ / theirs.components_.sum(axis=1, keepdims=True)
    assert np.abs(words - topics.components_).sum(axis=1).max() < 0.05
    assert (theirs.transform(counts).argmax(axis=1) == topics.transform(counts).argmax(axis=1)).mean() > 0.9
    atoms = X[:20] / np.linalg.norm(X[:20], axis=1, keepdims=True)
    coder = SparseCoder(atoms, transform_n_nonzero_coefs=3)
    np.testing.assert_allclose(coder.to_sklearn().transform(X[30:60]), coder.transform(X[30:60]), atol=1e-6)


def test_networks_become_those_of_sklearn_and_torch():
    torch = pytest.importorskip("torch")
    from twofold import MLPClassifier, MLPRegressor

    few = LABELS < 3
    for labels in (LABELS, LABELS[few]), (LABELS == 1)[few]:
        rows = X[: len(labels)] if isinstance(labels, np.ndarray) else X[few]
        wanted = labels if isinstance(labels, np.ndarray) else labels[1]
        model = MLPClassifier((9,), max_iter=3, random_state=0).fit(rows, wanted)
        np.testing.assert_allclose(model.to_sklearn().predict_proba(rows), model.predict_proba(rows), atol=1e-5)
        assert (model.to_sklearn().predict(rows) == model.predict(rows)).all()
    numbers = MLPRegressor("squared_error", (9,), max_iter=3, random_state=0).fit(X, X[:, 20])
    np.testing.assert_allclose(numbers.to_sklearn().predict(X), numbers.predict(X), rtol=1e-4, atol=1e-3)
    with torch.no_grad():
        scores = model.to_torch()(torch.tensor(rows, dtype=torch.float32))
    np.testing.assert_allclose(scores[:, 0].numpy(), model.decision_function(rows), atol=1e-5)


def test_who_has_no_twin_says_so():
    model = PPCA(2).fit(X)
    with pytest.raises(InputError, match="PPCA has no twin in scikit-learn"):
        model.to_sklearn()
    with pytest.raises(InputError, match="NMF has no ONNX graph here"):
        pytest.importorskip("onnx")
        NMF(2, random_state=0).fit(X).to_onnx("x.onnx")


# ---- ONNX --------------------------------------------------------------------------------------------------------


def run_onnx(model, path, rows):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model.to_onnx(path)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows.astype(np.float32)}), strict=True))


def assert_close(output, wanted):
    np.testing.assert_allclose(output, wanted, atol=1e-5 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("model", [PCA(5), PCA(5, whiten=True), PPCA(4), FactorAnalysis(3), FisherLDA()], ids=str)
def test_linear_maps_agree_with_onnx(model, tmp_path):
    rows = X + np.random.default_rng(0).normal(size=X.shape)
    model.fit(rows, LABELS) if isinstance(model, FisherLDA) else model.fit(rows)
    assert_close(run_onnx(model, tmp_path / "m.onnx", rows)["codes"], model.transform(rows.astype(np.float32)))


def test_clusters_agree_with_onnx(tmp_path):
    means = KMeans(6, random_state=0).fit(X)
    found = run_onnx(means, tmp_path / "m.onnx", X)
    assert (found["labels"] == means.predict(X)).all()
    assert_close(found["distances"], means.transform(X))
    for kind in ("full", "diag", "tied", "spherical"):
        rows = X[:, 20:28] + np.random.default_rng(0).normal(size=(len(X), 8))
        mixture = GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows)
        found = run_onnx(mixture, tmp_path / "m.onnx", rows)
        assert_close(found["probabilities"], mixture.predict_proba(rows))
        assert_close(found["log_likelihood"], mixture.score_samples(rows))
        assert (found["labels"] == mixture.predict(rows)).all()


def test_networks_agree_with_onnx(tmp_path):
    pytest.importorskip("torch")
    from twofold import VAE, Autoencoder, MLPClassifier, MLPRegressor

    coder = Autoencoder(4, hidden_layer_sizes=(16,), max_iter=2, random_state=0).fit(X)
    found = run_onnx(coder, tmp_path / "m.onnx", X)
    assert_close(found["codes"], coder.transform(X))
    assert_close(found["decoded"], coder.inverse_transform(coder.transform(X)))
    labels = MLPClassifier((9,), max_iter=3, random_state=0).fit(X, LABELS)
    assert_close(run_onnx(labels, tmp_path / "m.onnx", X)["probabilities"], labels.predict_proba(X))
    numbers = MLPRegressor("squared_error", (9,), max_iter=3, random_state=0).fit(X, X[:, 20])
    assert_close(run_onnx(numbers, tmp_path / "m.onnx", X)["scores"].ravel(), numbers.predict(X))
    draws = VAE(3, hidden_layer_sizes=(16,), max_iter=2, random_state=0).fit(X)
    found = run_onnx(draws, tmp_path / "m.onnx", X)
    assert_close(found["codes"], draws.transform(X))
    assert_close(found["decoded"], draws.reconstruct(X))


# ---- gensim, faiss, implicit, Surprise -----------------------------------------------------------------------------


def make_vectors():
    words = [f"word{a}" for a in range(30)]
    return WordVectors.of(words, np.random.default_rng(0).normal(size=(30, 5)), np.arange(40, 10, -1))


def test_word_vectors_are_those_of_gensim():
    pytest.importorskip("gensim", reason="gensim is not installed")
    vectors = make_vectors()
    theirs = vectors.to_gensim()
    assert [word for word, _ in theirs.most_similar("word3", topn=5)] == [w for w, _ in vectors.nearest("word3", 5)]
    assert theirs.get_vecattr("word0", "count") == 40
    back = WordVectors.of(theirs.index_to_key, theirs.vectors)
    assert back.similarity("word1", "word2") == pytest.approx(vectors.similarity("word1", "word2"), abs=1e-6)


def test_faiss_finds_what_we_find():
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    vectors = make_vectors()
    query = np.asarray(vectors["word3"], np.float32)[None] / np.linalg.norm(vectors["word3"])
    _, found = vectors.to_faiss().search(query, 6)
    assert [vectors.words[a] for a in found[0]][1:] == [word for word, _ in vectors.nearest("word3", 5)]
    ratings = datasets.ratings(n_users=60, n_items=50).ratings
    for model in (ImplicitALS(6, random_state=0), ALS(4, random_state=0)):
        rec = Recommender(model).fit(ratings)
        factors = rec.ranking_.row_factors_[3]
        index = rec.to_faiss()
        query = np.append(factors, np.ones(index.d - len(factors))).astype(np.float32)
        _, found = index.search(query[None], 10)
        wanted = rec.recommend(rec.users_[3].item(), 10, filter_seen=False)["item"]
        assert rec.items_[found[0]].tolist() == wanted.to_list()


def test_factors_of_implicit_fold_in_the_same(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    als = pytest.importorskip("implicit.cpu.als", reason="implicit is not installed")
    seen = (np.random.default_rng(0).random((40, 25)) < 0.3).astype(np.float32)
    from scipy import sparse

    theirs = als.AlternatingLeastSquares(
        factors=5, regularization=2.0, alpha=3.0, iterations=8, random_state=0, num_threads=1
    )
    theirs.fit(sparse.csr_matrix(seen), show_progress=False)
    ours = from_implicit(theirs)
    np.testing.assert_allclose(
        ours.predict([1, 2], [3, 4]), (theirs.user_factors @ theirs.item_factors.T)[[1, 2], [3, 4]], rtol=1e-5
    )
    np.testing.assert_allclose(
        ours.fold_in(seen[:5]), theirs.recalculate_user(np.arange(5), sparse.csr_matrix(seen[:5])), atol=2e-2
    )


def test_predictions_of_surprise_are_the_same():
    surprise = pytest.importorskip("surprise", reason="scikit-surprise is not installed")
    frame = datasets.ratings(n_users=60, n_items=50).ratings.to_pandas()[["user", "item", "rating"]]
    data = surprise.Dataset.load_from_df(frame, surprise.Reader(rating_scale=(1, 5))).build_full_trainset()
    theirs = surprise.SVD(n_factors=4, n_epochs=5, random_state=0).fit(data)
    ours = from_surprise(theirs)
    wanted = [theirs.estimate(u, i) for u, i in ((0, 1), (5, 7), (20, 3))]
    np.testing.assert_allclose(ours.predict([0, 5, 20], [1, 7, 3]), wanted, rtol=1e-9)


def test_topics_of_gensim_are_the_same():
    pytest.importorskip("gensim", reason="gensim is not installed")
    from gensim.matutils import Dense2Corpus
    from gensim.models import LdaModel

    counts = np.round(X)
    corpus = list(Dense2Corpus(counts, documents_columns=False))
    theirs = LdaModel(corpus, num_topics=3, id2word={a: str(a) for a in range(64)}, random_state=0, passes=4)
    ours = from_gensim_lda(theirs)
    np.testing.assert_allclose(ours.components_, theirs.get_topics(), atol=1e-6)
    shares = np.array(
        [[share for _, share in theirs.get_document_topics(one, minimum_probability=0)] for one in corpus]
    )
    assert np.abs(ours.transform(counts) - shares).max() < 0.1


# ---- frames and names --------------------------------------------------------------------------------------------


def test_codes_come_out_as_the_frames_that_are_asked_for():
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    model = PCA(2).fit(X)
    for kind, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        assert isinstance(PCA(2).set_output(transform=kind).fit(X).transform(X), frame)
    table = pl.DataFrame(model.transform(X)).to_arrow()
    assert isinstance(table, pa.Table) and table.num_rows == len(X)


def test_names_from_elsewhere_lead_to_ours():
    for name, ours in (("Word2Vec", "SkipGram"), ("TruncatedSVD", "LSA")):
        with pytest.raises(ImportError, match=f"{name} is called {ours}"):
            exec(f"from twofold import {name}")
    for said in twofold._CALLED_HERE.values():
        first = said.split()[0].rstrip(",")
        assert hasattr(twofold, first.split(".")[0])
