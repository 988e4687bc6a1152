"""Arrays of indices, labels, weights and starts that do not fit, for everything public that takes them beside X."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy import sparse

import twofold
from tests.attack.child import is_refused, run
from tests.attack.sparse_arrays import KINDS, spoil
from tests.contract.registry import MODELS, table
from twofold import analyses, clusters, completion, linalg, metrics, signals, topics
from twofold.core.data.csr_folder import write_csr
from twofold.core.estimator import Reorderable

LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog met on a mat"] * 20
# of NumPy, before anything is followed
PLAIN = ("ValueError", "IndexError", "TypeError", "OverflowError", "KeyError", "UFuncTypeError", "UnknownWord")
Call = Callable[[Any], object]


def bad_places(size: int) -> dict[str, Any]:
    """Arrays of three that name places of which one at least is none of 0 to size − 1."""
    return {
        "one too far": np.array([0, 1, size]),
        "far": np.array([0, 2**40, 1]),
        "farthest": np.array([2**63 - 1, 0, 1]),
        "unsigned": np.array([2**64 - 1, 0, 1], dtype=np.uint64),
        "negative": np.array([0, -1, 1]),
        "lowest": np.array([-(2**63), 0, 1]),
        "fractions": np.array([0.5, 1.0, 0.0]),
        "nan": np.array([np.nan, 1.0, 0.0]),
        "infinite": np.array([np.inf, 1.0, 0.0]),
        "text": np.array(["0", "1", "x"]),
        "objects": np.array([0, None, 1], dtype=object),
        "too many": np.array([0, 1, 0, 1]),
        "too deep": np.array([[0, 1, 0]]),
    }


def bad_weights(n: int) -> dict[str, Any]:
    """Return arrays that are no weights of n rows."""
    good = np.ones(n)
    return {
        "one short": good[1:],
        "one more": np.ones(n + 1),
        "none": np.ones(0),
        "nan": np.where(np.arange(n) == 3, np.nan, 1.0),
        "infinite": np.where(np.arange(n) == 3, np.inf, 1.0),
        "negative": np.where(np.arange(n) == 3, -1.0, 1.0),
        "all zero": np.zeros(n),
        "text": np.array(["x"] * n),
        "three axes": np.ones((n, 2, 2)),
    }


def bad_starts(shape: tuple[int, ...]) -> dict[str, Any]:
    """Arrays that are no start of this shape."""
    good = np.ones(shape)
    return {
        "a row short": good[1:],
        "a column more": np.ones((*shape[:-1], shape[-1] + 1)),
        "an axis more": good[None],
        "an axis less": good[0] if len(shape) > 1 else np.ones(()),
        "none": np.ones((0, *shape[1:])),
        "nan": np.where(np.arange(good.size).reshape(shape) == 1, np.nan, 1.0),
        "infinite": np.where(np.arange(good.size).reshape(shape) == 1, np.inf, 1.0),
        "text": np.full(shape, "x"),
    }


def bad_labels(n: int) -> dict[str, Any]:
    """Return arrays that are no labels of n rows."""
    y = np.arange(n) % 3
    return {
        "one short": y[1:],
        "one more": np.append(y, 0),
        "nan": np.where(y == 2, np.nan, y),
        "fractions": np.linspace(0.1, 0.9, n),
        "two columns": np.column_stack([y, y + 0.5]),
        "one class": np.zeros(n, int),
        "nothing": None,
    }


def bad_counts() -> dict[str, Any]:
    """Return values that are no number of things."""
    return {"zero": 0, "negative": -3, "fraction": 1.5, "nan": np.nan, "text": "x", "nothing": [], "far": -(2**70)}


def bad_sparse() -> dict[str, Any]:
    """Sparse counts (240,8) that lead outside themselves."""
    rng = np.random.default_rng(0)
    good = sparse.csr_array(rng.integers(0, 3, (240, 8)).astype(float))
    return {kind: spoil(good, kind, rng) for kind in KINDS}


Target = tuple[str, Call, dict[str, Any]]  # what, a call that takes the array, arrays of which none is right


def targets() -> Iterator[Target]:
    return chain(of_places(), of_rows(), of_starts(), of_numbers(), of_sparse())


def of_places() -> Iterator[Target]:
    """Indices and ids."""
    some, cells = np.array([0, 1, 2]), np.array([3.0, 4.0, 5.0])
    for case in MODELS:
        model = case.get_fitted()
        if case.completes:
            n, d = model.n_rows_, model.n_features_in_
            yield f"{case}.predict(rows)", lambda a, model=model: model.predict(a, some), bad_places(n)
            yield f"{case}.predict(cols)", lambda a, model=model: model.predict(some, a), bad_places(d)
        if hasattr(model, "contributions"):
            places, ask = bad_places(model.n_features_in_), model.contributions
            yield f"{case}.contributions(cols)", lambda a, ask=ask: ask(a, cells, 4), places
            targets = {"d": 8, "far": 2**40, "negative": -1, "fraction": 0.5, "nan": np.nan, "text": "x", "list": [1]}
            yield f"{case}.contributions(target)", lambda a, ask=ask: ask(some, cells, a), targets
        if isinstance(model, Reorderable):
            yield f"{case}.reordered", model.reordered, bad_places(3)
        if case.labels:
            k = model.get_params()["n_codes"]
            codes = {kind: a for kind, a in bad_places(k).items() if kind != "too many"}
            yield f"{case}.inverse_transform", model.inverse_transform, codes
    shown = {f"lists, {kind}": a.reshape(1, -1) for kind, a in bad_places(8).items() if kind != "negative"}
    shown |= {"one list more": np.zeros((2, 3), int), "flat": np.array([0, 1, 2])}
    shown = {kind: a for kind, a in shown.items() if "lowest" not in kind and "deep" not in kind}  # below 0: no item
    relevant = sparse.csr_array(np.ones((1, 8)))
    for name in ("precision_at_k", "recall_at_k", "ndcg_at_k", "map_at_k", "mrr_at_k"):
        yield f"metrics.{name}", lambda a, name=name: getattr(metrics, name)(a, relevant), shown
    outside = {kind: a for kind, a in shown.items() if kind.startswith("lists") and "many" not in kind}
    yield "metrics.novelty", lambda a: metrics.novelty(a, np.ones(8), 5), outside


def of_rows() -> Iterator[Target]:
    """Weights and labels, one a row."""
    X, y = table()
    for case in MODELS:
        if case.weights:
            yield f"{case}.fit(sample_weight)", lambda a, case=case: case.fit(X, y, a), bad_weights(len(X))
        if case.completes and case.weights:
            cells = {"a row short": np.ones((239, 8)), "a column more": np.ones((240, 9))}
            cells |= {kind: bad for kind, bad in bad_sparse().items() if kind != "ids from 1"}
            cells["negative"] = -np.ones((240, 8))
            yield f"{case}.fit(weights of cells)", lambda a, case=case: case.fit(X, y, a), cells
        if case.needs_y:
            yield f"{case}.fit(y)", lambda a, case=case: case().fit(X, a), bad_labels(len(X))
    network = twofold.MLPClassifier((4,), max_iter=1, random_state=0)
    labels = {kind: a for kind, a in bad_labels(len(X)).items() if kind != "one class"}
    yield "MLPClassifier.fit(y)", lambda a: network.fit(X, a), labels
    yield "MLPClassifier.partial_fit(y)", lambda a: network.partial_fit(X, a, classes=[0, 1]), {"unknown": y}
    yield "MLPClassifier.fit(sample_weight)", lambda a: network.fit(X, y, a), bad_weights(len(X))
    regressor = twofold.MLPRegressor(hidden_layer_sizes=(4,), max_iter=1, random_state=0)
    values = {kind: a for kind, a in bad_labels(len(X)).items() if kind in ("one short", "one more", "nan", "nothing")}
    yield "MLPRegressor.fit(y)", lambda a: regressor.fit(X, a), values
    yield "clusters.coreset(sample_weight)", lambda a: clusters.coreset(X, 20, sample_weight=a), bad_weights(len(X))
    yield "clusters.CoresetStream.add(sample_weight)", partial(clusters.CoresetStream(20).add, X), bad_weights(len(X))
    yield "linalg.norm(weight)", lambda a: linalg.norm(X, p=2, weight=a), {"short": np.ones(3), "text": ["x"] * 240}


def of_starts() -> Iterator[Target]:
    """Yield calls that take starts and other arrays whose shape X decides."""
    X, _ = table()
    centers = bad_starts((3, 8))
    yield "KMeans(init)", lambda a: twofold.KMeans(3, init=a).fit(X), centers
    yield "PLSA(init)", lambda a: twofold.PLSA(3, init=a).fit(X), centers | {"negative": -np.ones((3, 8))}
    yield "KSVD(init)", lambda a: twofold.KSVD(3, n_nonzero=1, init=a).fit(X), centers
    yield "OnlineDictionary(init)", lambda a: twofold.OnlineDictionary(3, n_nonzero=1, init=a).fit(X), centers
    yield "Factorization(init)", lambda a: twofold.Factorization(3, init=a).fit(X), centers
    one, other = np.ones((240, 3)), np.ones((3, 8))
    nmf = twofold.NMF(3, init="custom")
    yield "NMF.fit(W)", lambda a: nmf.fit(X, W=a, H=other), bad_starts((240, 3)) | {"negative": -one}
    yield "NMF.fit(H)", lambda a: nmf.fit(X, W=one, H=a), centers | {"negative": -other}
    mixture = lambda **starts: twofold.GaussianMixture(3, **starts).fit(X)  # noqa: E731
    yield "GaussianMixture(weights_init)", lambda a: mixture(weights_init=a), bad_starts((3,)) | {"sum": np.ones(3)}
    yield "GaussianMixture(means_init)", lambda a: mixture(means_init=a), centers
    yield "GaussianMixture(precisions_init)", lambda a: mixture(precisions_init=a), bad_starts((3, 8, 8))
    fixed = lambda a: mixture(covariance_type="fixed", covariance=a)  # noqa: E731
    square = {kind: a for kind, a in bad_starts((8, 8)).items() if kind != "an axis less"}
    yield "GaussianMixture(covariance)", fixed, square | {"negative": -np.eye(8)}
    noise = lambda a: twofold.FactorAnalysis(2, noise_variance_init=a).fit(X)  # noqa: E731
    yield "FactorAnalysis(noise_variance_init)", noise, bad_starts((8,)) | {"negative": -np.ones(8)}
    priors = {kind: a for kind, a in bad_starts((3,)).items() if kind != "an axis less"} | {"zero": np.zeros(3)}
    for method in ("scvb0", "batch", "online"):
        make = partial(twofold.LatentDirichletAllocation, 3, learning_method=method, max_iter=2)
        call = lambda a, make=make: make(doc_topic_prior=a).fit(X)  # noqa: E731
        yield f"LatentDirichletAllocation(doc_topic_prior), {method}", call, priors
    for case in MODELS:
        model = case.get_fitted()
        if hasattr(model, "rescaled"):
            yield f"{case}.rescaled", model.rescaled, bad_starts((8,)) | {"zero": np.zeros(8)}
        if hasattr(model, "inverse_transform") and not case.labels:
            k = len(model.get_feature_names_out())
            starts = bad_starts((5, k))
            codes = {kind: starts[kind] for kind in ("a column more", "an axis more", "text")}
            yield f"{case}.inverse_transform", model.inverse_transform, codes
        if hasattr(model, "add_rows"):
            yield f"{case}.add_rows", model.add_rows, {"a column more": np.ones((2, 9)), "text": np.full((2, 8), "x")}
            columns = {"a row more": np.ones((241, 1)), "text": np.full((240, 1), "x")}
            yield f"{case}.add_columns", model.add_columns, columns
    mask = {"short": np.ones((5, 8), bool), "flat": np.ones(8, bool)}
    omp = lambda a: signals.orthogonal_matching_pursuit(np.eye(8)[:5], X, n_nonzero=2, mask=a)  # noqa: E731
    yield "orthogonal_matching_pursuit(mask)", omp, mask
    images = {"short": np.ones((5, 8), bool), "flat": np.ones(8, bool), "everything": np.ones((16, 16), bool)}
    yield "inpaint_image(mask)", lambda a: signals.inpaint_image(np.ones((16, 16)), a, max_iter=1), images


def of_numbers() -> Iterator[Target]:
    """Yield calls that take numbers of items, neighbors, rows."""
    X, _ = table()
    counts = np.random.default_rng(0).integers(0, 4, (30, 8)).astype(float)
    rows = [(int(i), int(j), float(counts[i, j])) for i, j in zip(*np.nonzero(counts), strict=True)]
    for model in (twofold.ALS(2, max_iter=3), twofold.EASE(), twofold.Neighborhood(), twofold.Popularity()):
        rec, name = twofold.Recommender(model).fit(rows), f"Recommender of {type(model).__name__}"
        yield f"{name}.recommend(n)", lambda a, rec=rec: rec.recommend(1, a), bad_counts()
        yield f"{name}.recommend_all(n)", lambda a, rec=rec: list(rec.recommend_all(a)), bad_counts()
        yield f"{name}.similar_items(n)", lambda a, rec=rec: rec.similar_items(1, a), bad_counts()
        ids = {"unknown": 99, "text": "x", "nothing": None, "list": [1, 2], "nan": np.nan, "far": 2**70}
        yield f"{name}.recommend(user)", rec.recommend, ids
        yield f"{name}.similar_items(item)", rec.similar_items, ids
        yield f"{name}.explain(user)", lambda a, rec=rec: rec.explain(a, 1), ids
        yield f"{name}.explain(item)", lambda a, rec=rec: rec.explain(1, a), ids
        new = {"nan": {1: np.nan}, "infinite": {1: np.inf}, "text": {1: "x"}, "number": 7}
        yield f"{name}.recommend_new", rec.recommend_new, new
    vectors = twofold.SkipGram(2, min_count=1, random_state=0).fit(LINES).vectors_
    yield "WordVectors.nearest(n)", lambda a: vectors.nearest("cat", n=a), bad_counts()
    yield "WordVectors.nearest", vectors.nearest, {"short": np.ones(1), "nan": np.full(2, np.nan), "far": 1e400}
    yield "WordVectors.place", vectors.place, {"unknown": "zebra", "number": 1, "nothing": None}
    yield "linalg.truncated_svd(k)", lambda a: linalg.truncated_svd(X, a), bad_counts() | {"too many": 9}
    yield "linalg.low_rank(k)", lambda a: linalg.low_rank(X, a), bad_counts() | {"too many": 9}
    yield "clusters.coreset(m)", lambda a: clusters.coreset(X, a), bad_counts()
    yield "metrics.precision_at_k(k)", lambda a: metrics.precision_at_k([[1]], [{1}], a), bad_counts()
    documents = twofold.LatentDirichletAllocation(3, random_state=0).fit(X).sample_documents
    lengths = {k: v for k, v in bad_starts((3,)).items() if k != "an axis less"} | {"negative": [-1, 2, 3]}
    yield "sample_documents(length)", lambda a: documents(3, a), lengths


def of_sparse() -> Iterator[Target]:
    """Sparse arrays that reach compiled code by other ways than the estimators' methods."""
    bad, dense = bad_sparse(), np.ones((3, 8))
    wide = twofold.KMeans(2, random_state=0)
    calls: dict[str, Call] = {
        "clusters.coreset": lambda X: clusters.coreset(X, 20),
        "clusters.CoresetStream.add": lambda X: clusters.CoresetStream(20).add(X),
        "linalg.truncated_svd": lambda X: linalg.truncated_svd(X, 2),
        "linalg.low_rank": lambda X: linalg.low_rank(X, 2),
        "linalg.norm": linalg.norm,
        "linalg.project": lambda X: linalg.project(X, np.eye(8)[:2]),
        "linalg.shrink": lambda X: linalg.shrink(X, 0.1),
        "topics.perplexity": lambda X: topics.perplexity(dense, X),
        "topics.topic_coherence": lambda X: topics.topic_coherence(dense, X),
        "completion.recovery_report": completion.recovery_report,
        "select": lambda X: twofold.select(twofold.NMF(), X, n_components=[1, 2]),
        **{f"analyses.{name}": getattr(analyses, name) for name in ("reduce", "cluster", "complete", "recommend")},
        "analyses.topics": analyses.topics,
        "Recommender.fit": lambda X: twofold.Recommender(twofold.ALS(2)).fit(X),
        "EarlyStopping": lambda X: wide.set_callbacks(twofold.EarlyStopping(X)).fit(table()[0]),
        "MLPClassifier.fit": lambda X: twofold.MLPClassifier((4,), max_iter=1).fit(X, table()[1]),
        "SparseCoder.transform": lambda X: twofold.SparseCoder(np.eye(8)).fit(None).transform(X),
        "orthogonal_matching_pursuit": lambda X: signals.orthogonal_matching_pursuit(np.eye(8), X, n_nonzero=2),
        "CompressiveSensing": lambda X: twofold.CompressiveSensing(4, random_state=0).fit(X).measure(X),
        "DCT.analyze": lambda X: signals.DCT().analyze(X),
        "PLSA.symmetric": lambda X: twofold.PLSA(2, max_iter=2).fit(table()[0]).symmetric(X),
        "GaussianMixture.fit": lambda X: twofold.GaussianMixture(2).fit(X),
        "metrics.precision_at_k": lambda X: metrics.precision_at_k(np.zeros((240, 1), int), X),
        "GloVe.fit": lambda X: twofold.GloVe(2).fit(X),
        "PMIEmbedding.fit": lambda X: twofold.PMIEmbedding(2).fit(X),
        "write_csr": _write_csr,
    }
    for name, call in calls.items():
        yield name, call, bad
    cooccurrence = twofold.Cooccurrence(min_count=1).fit(LINES)
    rng = np.random.default_rng(0)
    pairs = {kind: spoil(cooccurrence.counts_, kind, rng) for kind in KINDS}

    def fit(model: Any, counts: Any) -> object:
        cooccurrence.counts_ = counts
        return model.fit(cooccurrence)

    for model in (twofold.GloVe(2), twofold.PMIEmbedding(2)):
        yield f"{type(model).__name__}.fit(Cooccurrence)", partial(fit, model), pairs


def _write_csr(X: Any) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return twofold.KMeans(2).fit(write_csr(f"{folder}/x.csr", [X]))


def attack(every: int = 1) -> Iterator[tuple[str, str]]:
    """(what was tried, what became of it if that is bad, else ""), for every this many of the targets."""
    for what, call, arrays in islice(targets(), 0, None, every):
        answer_text = run(lambda call=call, arrays=arrays: all_refused(call, arrays))
        for kind, bad in arrays.items():
            wrong = "" if answer_text == "done" else outcome(run(lambda call=call, bad=bad: call(bad)))
            yield f"{what}, {kind}", wrong


def outcome(answer_text: str) -> str:
    return "" if is_refused(answer_text) or answer_text.startswith(PLAIN) else answer_text


def all_refused(call: Call, arrays: dict[str, Any]) -> None:
    """One child for all kinds; if any is not refused, each is tried again on its own."""
    for kind, bad in arrays.items():
        try:
            call(bad)
        except Exception as error:
            if not outcome(f"{type(error).__name__}: {error}"):
                continue
        raise AssertionError(f"{kind} is not refused")
