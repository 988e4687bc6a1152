"""Word vectors: what they answer, against the plain formulas and gensim; what they refuse."""

import itertools

import numpy as np
import pytest

import twofold
from twofold import InputError, WordVectors
from twofold.words import _nearest


def some(V=300, k=8, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    W = (rng.normal(size=(V, k)) * rng.uniform(0.1, 10, size=(V, 1)) + 0.3).astype(dtype)
    return WordVectors.of([f"w{i}" for i in range(V)], W)


def units(v):
    W = v.vectors_.astype(np.float64)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def rank(v, scores, out, n):
    """The n best words by plain sorting."""
    order = [i for i in np.argsort(-scores, kind="stable") if v.words[i] not in out][:n]
    return [v.words[i] for i in order], scores[order]


def agree(answer, expected):
    assert [word for word, _ in answer] == list(expected[0])
    np.testing.assert_allclose([score for _, score in answer], expected[1], rtol=1e-4)


# ---- words and rows ------------------------------------------------------------------------------------------------


def test_words_lead_to_their_vectors():
    v = some()
    assert len(v) == 300 and list(v) == v.words.tolist()
    assert "w7" in v and "x" not in v and 7 not in v
    np.testing.assert_array_equal(v["w7"], v.vectors_[7])
    np.testing.assert_array_equal(v[["w9", "w2"]], v.vectors_[[9, 2]])
    v["w7"][:] = 0  # a copy
    assert v.vectors_[7].any()


@pytest.mark.parametrize("dtype, kept", [(np.float32, np.float32), (np.float64, np.float64), (int, np.float32)])
def test_dtypes(dtype, kept):
    assert WordVectors.of(["a", "b"], np.array([[1, 2], [3, 4]], dtype)).vectors_.dtype == kept


def test_an_unknown_word_is_an_input_error_with_its_neighbours_in_spelling():
    v = WordVectors.of(["house", "horse", "queen"], np.eye(3))
    for ask in (lambda: v["hause"], lambda: v.nearest("hause"), lambda: v.similarity("queen", "hause")):
        with pytest.raises(InputError, match=r"^'hause' is not among the 3 words\. Close to it: 'house'") as caught:
            ask()
        assert isinstance(caught.value, KeyError)
    with pytest.raises(InputError, match=r"'Queen'.*Close to it: 'queen'"):
        v["Queen"]


@pytest.mark.parametrize(
    "words, vectors, counts, message",
    [
        (["a", "b", "a"], np.eye(3), None, r"words\[2\] is 'a', and so is words\[0\]"),
        (["a", ""], np.eye(2), None, r"words\[1\] is ''"),
        (["a", 3], np.eye(2), None, r"words\[1\] is 3"),
        ([], np.empty((0, 2)), None, "words is empty"),
        (["a", "b"], np.eye(3), None, r"shape \(3, 3\); 2 words need"),
        (["a", "b"], np.ones(2), None, r"shape \(2,\)"),
        (["a", "b"], [[0, 1], [np.nan, 1]], None, r"vectors\[1, 0\], of 'b', is nan"),
        (["a", "b"], np.eye(2), [1], "counts has shape"),
        (["a", "b"], np.eye(2), [1, -1], "counts has shape"),
        (["a", "b"], np.eye(2), [0, 0], "not all zero"),
    ],
)
def test_bad_tables_are_refused_with_their_place(words, vectors, counts, message):
    with pytest.raises(InputError, match=message):
        WordVectors.of(words, vectors, counts)


def test_empty_ones_say_how_to_fill_them():
    for ask in (len, lambda v: "a" in v, lambda v: v["a"], lambda v: v.nearest("a"), lambda v: v.save("a.twofold")):
        with pytest.raises(ValueError, match=r"WordVectors\.of"):
            ask(WordVectors())


@pytest.mark.parametrize("counts", [None, np.arange(300)])
def test_a_file_gives_them_back(tmp_path, counts):
    v = WordVectors.of([f"wört {i}" for i in range(300)], some().vectors_, counts)
    v.nearest("wört 3")  # what is remembered for speed must not end up in the file
    v.save(tmp_path / "v.twofold")
    u = twofold.load(tmp_path / "v.twofold")
    assert u.words.tolist() == v.words.tolist() and u.vectors_.tobytes() == v.vectors_.tobytes()
    assert (u.counts_ is None) if counts is None else np.array_equal(u.counts_, counts)
    assert u.nearest("wört 3") == v.nearest("wört 3")


# ---- nearest and analogies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearest_is_a_full_sort_by_cosine(dtype):
    v = some(dtype=dtype)
    U = units(v)
    agree(v.nearest("w5", 20), rank(v, U @ U[5], {"w5"}, 20))
    mean = U[[5, 6, 7]].sum(axis=0)
    agree(v.nearest(["w5", "w6", "w7"], 9), rank(v, U @ mean / np.linalg.norm(mean), {"w5", "w6", "w7"}, 9))
    vector = np.arange(8.0) - 3
    agree(v.nearest(vector, 4), rank(v, U @ vector / np.linalg.norm(vector), (), 4))
    assert v.nearest(v["w5"], 1)[0][0] == "w5"
    assert v.similarity("w5", "w9") == pytest.approx(U[5] @ U[9], abs=1e-6)


def test_analogies_are_the_formulas():
    v = some()
    U = units(v)
    for a, b, c in [(1, 2, 3), (10, 4, 77), (5, 5, 6), (8, 9, 8)]:
        names, query = [f"w{i}" for i in (a, b, c)], U[b] - U[a] + U[c]
        agree(v.analogy(*names, 7), rank(v, U @ query / np.linalg.norm(query), names, 7))
        A, B, C = ((1 + U @ U[i]) / 2 for i in (a, b, c))
        agree(v.analogy(*names, 7, method="multiplicative"), rank(v, B * C / (A + 1e-6), names, 7))


def test_the_queen_is_found():
    rng = np.random.default_rng(1)
    king, man, woman, other = rng.normal(size=(4, 50))
    W = np.vstack([king, man, woman, king - man + woman, rng.normal(size=(200, 50)), other])
    v = WordVectors.of(["king", "man", "woman", "queen", *(f"x{i}" for i in range(201))], W)
    assert v.analogy("man", "king", "woman")[0][0] == "queen"
    assert v.analogy("man", "king", "woman", method="multiplicative")[0][0] == "queen"


def test_more_than_there_are_is_all_there_are():
    v = some(V=5)
    assert len(v.nearest("w0", 100)) == 4
    assert len(v.nearest(np.ones(8), 100)) == 5
    assert len(v.analogy("w0", "w1", "w2", 100)) == 2
    assert WordVectors.of(["a"], [[1.0]]).nearest("a") == []


def test_zero_vectors_are_near_nothing():
    W = some().vectors_.copy()
    W[3], W[4] = 0, 1e-45  # the latter as good as zero in single precision
    v = WordVectors.of(some().words, W)
    assert not {"w3", "w4"} & {word for word, _ in v.nearest("w5", 300)}
    assert len(v.analogy("w0", "w1", "w2", 300)) == 295
    assert v.similarity("w3", "w5") == 0
    for query in ("w3", ["w3", "w3"], np.zeros(8), np.full(8, np.nan)):
        with pytest.raises(InputError, match="has no direction"):
            v.nearest(query)


@pytest.mark.parametrize("query", [np.ones(7), np.ones((2, 8)), [], 5, None, [1, "a"], {"a": 1}])
def test_queries_that_are_none_are_refused(query):
    with pytest.raises(InputError):
        some().nearest(query)


@pytest.mark.parametrize(
    "ask, message",
    [
        *((lambda v, n=n: v.nearest("w0", n), "n=") for n in (0, -1, 2.5, "3", True)),
        (lambda v: v.analogy("w0", "w1", "w2", 0), "n="),
        (lambda v: v.analogy("w0", "w1", "w2", method="magic"), "additive"),
        (lambda v: v.map_2d(method="magic"), "pca"),
    ],
)
def test_bad_numbers_and_methods_are_refused(ask, message):
    with pytest.raises(InputError, match=message):
        ask(some())


# ---- documents and maps --------------------------------------------------------------------------------------------


def test_a_document_is_the_mean_of_its_words_weighted_by_how_rare_they_are():
    words, counts = ["the", "cat", "Oslo", "x86"], np.array([900, 60, 30, 10])
    W = np.random.default_rng(0).normal(size=(4, 5))
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    plain, weighted = WordVectors.of(words, W), WordVectors.of(words, W, counts)
    text, at = "The cat; the 'cat' -- in Oslo, x86!", [0, 1, 0, 1, 2, 3]
    np.testing.assert_allclose(plain.document(text), U[at].mean(axis=0))
    w = 1e-3 / (1e-3 + counts[at] / 1000)
    np.testing.assert_allclose(weighted.document(text), w @ U[at] / w.sum())
    np.testing.assert_array_equal(plain.document(["the", "cat", "unheard"]), plain.document("the cat"))
    for nothing in ("", "unheard of", []):
        with pytest.raises(InputError, match="no word of"):
            plain.document(nothing)


def test_a_map_of_what_is_flat_keeps_all_distances():
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 40)
    axes = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    W = (np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(1, 5, size=(40, 1))) @ axes
    v = WordVectors.of([f"w{i}" for i in range(40)], W)

    def distances(P):
        return np.linalg.norm(P[:, None] - P, axis=2)

    np.testing.assert_allclose(distances(v.map_2d()), distances(units(v)), atol=1e-9)
    few = ["w3", "w1", "w30"]
    np.testing.assert_allclose(distances(v.map_2d(few)), distances(units(v)[[3, 1, 30]]), atol=1e-9)


@pytest.mark.parametrize("words", [["w1"], "w1", ["w1", "w2"], []])
def test_few_words_have_a_map(words):
    n = 1 if words == "w1" else len(words)
    assert some().map_2d(words).shape == (n, 2) and np.isfinite(some().map_2d(words)).all()


def test_tsne_puts_groups_apart():
    rng = np.random.default_rng(0)
    W = np.repeat(np.eye(3), 5, axis=0) + 0.01 * rng.normal(size=(15, 3))
    P = WordVectors.of([f"w{i}" for i in range(15)], W).map_2d(method="tsne")
    D, same = np.linalg.norm(P[:, None] - P, axis=2), np.repeat(np.arange(3), 5)
    np.fill_diagonal(D, np.inf)
    assert (same[D.argmin(axis=1)] == same).all()


# ---- evaluation ----------------------------------------------------------------------------------------------------


@pytest.fixture
def questions(tmp_path):
    """Analogies between the pairs (W0, W1), (W2, W3), ... in three sections; some words have no vector."""
    rng = np.random.default_rng(5)
    lines = []
    for section in (": family", ": gram1-plural", ": Gram2"):
        pairs = [rng.choice(170, 2, replace=False) for _ in range(60)]
        lines += [section, *(f"W{2 * r} W{2 * r + 1} W{2 * s} W{2 * s + 1}" for r, s in pairs)]
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def plant(V=300, k=8):
    """Pairs that differ by one step, nearly; spelled in both cases."""
    rng = np.random.default_rng(6)
    base, step = rng.normal(size=(V // 2, k)), rng.normal(size=k)
    W = np.repeat(base, 2, axis=0) + np.tile([0, 1], V // 2)[:, None] * step + 0.15 * rng.normal(size=(V, k))
    return WordVectors.of([f"w{i}" if i % 3 else f"W{i}" for i in range(V)], W.astype(np.float32))


def in_gensim(v):
    theirs = pytest.importorskip("gensim.models").KeyedVectors(v.vectors_.shape[1])
    theirs.add_vectors(v.words.tolist(), v.vectors_)
    return theirs


def by_hand(v, path, N):
    """(correct, asked, skipped) a section, one question after the other."""
    low = [word.lower() for word in v.words[:N]]
    U = units(v)[:N]
    for name, lines in itertools.groupby(path.read_text().splitlines(), key=lambda line: line.startswith(":")):
        if name:
            continue
        correct = asked = skipped = 0
        for line in lines:
            quad = line.lower().split()
            if not all(word in low for word in quad):
                skipped += 1
                continue
            a, b, c, d = map(low.index, quad)
            scores = U @ (U[b] - U[a] + U[c])
            scores[[a, b, c]] = -np.inf
            correct, asked = correct + (scores.argmax() == d), asked + 1
        yield correct, asked, skipped


@pytest.mark.parametrize("N", [120, None])
def test_analogy_accuracy_is_counted_right(questions, N):
    v = plant()
    hits, asked, skipped = np.array(list(by_hand(v, questions, N))).T
    assert 0 < hits.sum() < asked.sum() and skipped.min() > 0
    score = v.evaluate_analogies(questions, N)
    assert score.sections["section"].to_list() == ["family", "gram1-plural", "Gram2"]
    assert score.sections["kind"].to_list() == ["semantic", "syntactic", "syntactic"]
    for column, expected in (("correct", hits), ("asked", asked), ("skipped", skipped)):
        assert score.sections[column].to_list() == expected.tolist()
    assert (score.correct, score.asked, score.skipped) == (hits.sum(), asked.sum(), skipped.sum())
    assert score.accuracy == hits.sum() / asked.sum()
    assert score.accuracy_of_all == hits.sum() / (asked.sum() + skipped.sum())
    assert score.semantic == hits[0] / asked[0] and score.syntactic == hits[1:].sum() / asked[1:].sum()


def test_tiles_and_threads_change_nothing(questions, monkeypatch):
    v = plant()
    whole = {m: v.evaluate_analogies(questions, method=m).sections for m in ("additive", "multiplicative")}
    best = v.analogy("w1", "w2", "W3", 20)
    monkeypatch.setattr(_nearest, "TILE_BYTES", 1)
    for threads in (1, 2):
        with twofold.config(threads=threads):
            for method, sections in whole.items():
                assert v.evaluate_analogies(questions, method=method).sections.equals(sections)
            assert [word for word, _ in v.analogy("w1", "w2", "W3", 20)] == [word for word, _ in best]


def test_threads_change_no_bit_of_many_queries(small_blocks):
    from twofold.words._nearest import find_nearest, normalize_rows, row_norms

    W = some(V=500).vectors_
    found = []
    for threads in (1, 2):
        with twofold.config(threads=threads):
            found.append(find_nearest(normalize_rows(W), W, row_norms(W), 5))
    assert found[0].scores.tobytes() == found[1].scores.tobytes()
    np.testing.assert_array_equal(found[0].words, found[1].words)


def test_spellings_that_differ_by_case_are_one_word(tmp_path):
    W = np.array([[1, 0, 0], [1, 0.05, 0], [0, 1, 0], [0, 0, 1], [-0.9, 1, 1.05], [1.0, 0.02, 0.01]])
    v = WordVectors.of(["paris", "Paris", "france", "rome", "Italy", "PARIS"], W)
    path = tmp_path / "q.txt"
    path.write_text("PARIS France Rome ITALY\nparis france rome paris\n")
    score = v.evaluate_analogies(path)
    assert (score.correct, score.asked) == (1, 2)  # the spellings of a word of the question never count as answers


def test_nothing_to_ask_is_nan_and_nothing_in_the_file_an_error(tmp_path):
    path = tmp_path / "q.txt"
    path.write_text(": a\nx y z u\n")
    score = some().evaluate_analogies(path)
    assert np.isnan(score.accuracy) and score.accuracy_of_all == 0 and (score.asked, score.skipped) == (0, 1)
    path.write_text("x y 3.5\n")
    score = some().evaluate_similarity(path)
    assert np.isnan(score.spearman) and (score.asked, score.skipped) == (0, 1)
    path.write_text("\n: only a section\n")
    with pytest.raises(InputError, match="no questions"):
        some().evaluate_analogies(path)
    path.write_text("\n")
    with pytest.raises(InputError, match="no pairs"):
        some().evaluate_similarity(path)


@pytest.mark.parametrize("separator", ["\t", ",", " "])
@pytest.mark.parametrize("header", [False, True])
def test_gensim_finds_the_same_correlations(tmp_path, separator, header):
    v, theirs, rng = plant(), in_gensim(plant()), np.random.default_rng(3)
    lines = ["word1 word2 mean"] * header
    lines += [f"W{a} W{b} {rng.uniform(0, 10):.2f}" for a, b in rng.integers(340, size=(80, 2))]
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(["# judged by chance", *lines]).replace(" ", separator).replace(f"#{separator}", "# "))
    pearson, spearman, unknown = theirs.evaluate_word_pairs(str(path), delimiter=separator)
    score = v.evaluate_similarity(path)
    assert score.pearson == pytest.approx(pearson[0], abs=1e-5)
    assert score.spearman == pytest.approx(spearman[0], abs=1e-5)
    assert score.skipped / (score.asked + score.skipped) == pytest.approx(unknown / 100)


@pytest.mark.parametrize(
    "text, ask, message",
    [
        (": a\nw1 w2 w3 w4\nw1 w2 w3\n", "evaluate_analogies", "line 3 has 3 words"),
        ("w1 w2 3.5\nw1 w2 much\n", "evaluate_similarity", "line 2 is 'w1 w2 much'"),
        ("w1 w2\n", "evaluate_similarity", "line 1"),
        ("w1 w2 3.5\nw1 w2 nan\n", "evaluate_similarity", "line 2"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, ask, message):
    path = tmp_path / "file.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=f"file.txt, {message}"):
        getattr(some(), ask)(path)
    with pytest.raises(InputError, match="does not exist"):
        getattr(some(), ask)(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="not the path of a file"):
        getattr(some(), ask)(tmp_path)


def test_bad_vocabulary_is_refused(questions):
    with pytest.raises(InputError, match="vocabulary=0"):
        some().evaluate_analogies(questions, 0)
