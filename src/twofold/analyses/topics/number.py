"""How many topics, by which method, and what they are worth, on documents held out.

A reader wants few topics, whose words belong together, and no topic twice. So numbers a reader can take in are tried,
by LDA and by NMF of tf-idf unless one is asked for. The answer comes from the method that reaches the highest NPMI, and
has of its numbers the one with the most

    clarity = mean NPMI of the words of a topic × share of topics that do not repeat another

in documents not fitted, with more topics where clarity is the same. A topic repeats another if half of its ten words
are among those of the other. What prediction alone would choose, the least perplexity, is said beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from twofold.analyses.topics.models import METHODS, fit, telling_words, topics_of, weigh_topics
from twofold.core.progress import report

TRIED = (8, 12, 18, 27, 40)
TRIED_OF_FEW = (3, 5, *TRIED)  # where there are few documents
SMALL_COLLECTION_DOCUMENTS = 200
CANDIDATES = ("nmf", "lda")  # unless a method is asked for; the first is the answer if both are equal
MAX_SEARCH_WORDS = 150_000  # by which models are fitted to choose a number
MAX_JUDGING_DOCUMENTS = 20_000  # in which words belong together
MAX_FITTED_WORDS = 2_000_000  # beyond which the figure comes from a part of the documents
MAX_TESTED_DOCUMENTS = 2_000
MIN_DOCUMENTS = 20  # of which some can be held out
HELD_OUT = 1 / 3  # of the documents, to choose by
MIN_DOCUMENTS_PER_TOPIC, MIN_WORDS_PER_TOPIC = 10, 5
JUDGED_WORDS = 10  # of a topic
PRIOR_COUNT = 0.01  # of words that the training part does not have
BACKGROUND = 0.1  # share of the frequencies of all words in a topic of NMF, most of whose words have no weight
SWEEPS = 5  # of pLSA, which make probabilities of the weights of NMF
NEGLIGIBLE_CLARITY = 0.01  # of topics as clear as the clearest, more say more
BLIND_GROUPS = 20  # of documents dealt at random, the trivial topics


class Trial(NamedTuple):
    """Figures of a number of topics by a method, on documents not fitted."""

    method: str
    k: int
    coherence: float  # mean NPMI
    distinct: float  # share of topics that repeat none
    perplexity: float

    @property
    def clarity(self) -> float:
        return self.coherence * self.distinct if self.coherence > 0 else self.coherence


def choose_answer(
    method: str | None, k: int | None, X: Any, seed: int, notes: list[str]
) -> tuple[str, int, dict | None]:
    """The method and the number of topics, where they are not given, and the figures of all that were tried."""
    rows = draw_documents(X, seed, 2)
    sizes = [k] if k is not None else list_sizes(len(rows), X.shape[1])
    methods = [method] if method is not None else list(CANDIDATES)
    if len(rows) < MIN_DOCUMENTS or not sizes:
        k = min(TRIED_OF_FEW[0], *X.shape) if k is None else k
        notes.append(
            f"{k} topics by {METHODS[methods[0]]}: too few documents to choose by; ⟨n_topics⟩ and ⟨method⟩ set others"
        )
        return methods[0], k, None
    if len(sizes) * len(methods) == 1:
        return methods[0], sizes[0], None
    held = rows[: int(HELD_OUT * len(rows))]
    fitted = X[limit_words(X, rows[len(held) :], MAX_SEARCH_WORDS)]
    judges = X[held[:MAX_JUDGING_DOCUMENTS]]
    trials, total = list[Trial](), len(sizes) * len(methods)
    for name in methods:
        for size in sizes:
            report(len(trials), total, f"{size} topics by {METHODS[name]}")
            trials.append(try_topics(name, size, fitted, judges, seed))
    best = choose_trial(trials)
    predictive = [trial for trial in trials if trial.method == methods[-1]]
    foretelling = min(predictive, key=lambda trial: trial.perplexity)
    notes.append(
        describe(best, trials, foretelling, k is None, method is None, fitted.shape[0] + len(held) < len(rows))
    )
    return best.method, best.k, summarize(best, trials, predictive) if k is None else None


def choose_trial(trials: Sequence[Trial]) -> Trial:
    """By the method that can be most coherent, the most topics of the greatest clarity."""
    method = max(trials, key=lambda trial: trial.coherence).method
    own = [trial for trial in trials if trial.method == method]
    clearest = max(trial.clarity for trial in own)
    return max((trial for trial in own if trial.clarity >= clearest - NEGLIGIBLE_CLARITY), key=lambda trial: trial.k)


def list_sizes(documents: int, words: int) -> list[int]:
    """The numbers of topics worth trying."""
    most = min(documents // MIN_DOCUMENTS_PER_TOPIC, words // MIN_WORDS_PER_TOPIC)
    return [k for k in (TRIED_OF_FEW if documents < SMALL_COLLECTION_DOCUMENTS else TRIED) if k <= most]


def draw_documents(X: Any, seed: int, purpose: int) -> np.ndarray:
    """The documents with words enough to split them, in random order."""
    from twofold.core.seeds import generator

    return generator(seed, purpose).permutation(np.flatnonzero(np.diff(X.indptr) > 1))


def limit_words(X: Any, rows: np.ndarray, words: int) -> np.ndarray:
    """The first of some rows, with about this number of words together."""
    lengths = np.asarray(X.sum(axis=1)).ravel()[rows]
    return rows[: max(MIN_DOCUMENTS, int(np.searchsorted(np.cumsum(lengths), words)) + 1)]


def try_topics(method: str, k: int, fitted: sp.csr_array, judges: sp.csr_array, seed: int) -> Trial:
    model = fit(method, fitted, min(k, *fitted.shape), seed)
    words = lead_words(model, fitted)
    few = judges[: MAX_TESTED_DOCUMENTS // 4]
    return Trial(method, k, *judge_words(words, judges), score(model, fitted, few, seed))


def lead_words(model: Any, X: Any) -> np.ndarray:
    """(k,w) the columns of the words that tell the topics of a model best, as they are shown."""
    topics = topics_of(model)
    return np.argsort(-telling_words(topics, weigh_topics(model, X)), axis=1, kind="stable")[:, :JUDGED_WORDS]


def judge_words(words: np.ndarray, X: sp.csr_array) -> tuple[float, float]:
    """Mean NPMI of the words (k,w) of topics in documents X (n,d), and the share of topics that repeat none."""
    from twofold.topics.evaluation import topic_coherence

    marks = np.zeros((len(words), X.shape[1]))
    np.put_along_axis(marks, words, 1.0, axis=1)
    npmi = topic_coherence(marks, X, top=words.shape[1])
    repeats = (np.tril(marks @ marks.T, -1) >= words.shape[1] / 2).any(axis=1)
    return float(np.nan_to_num(npmi).mean()), float(1 - repeats.mean())


def describe(best: Trial, trials: Sequence[Trial], foretelling: Trial, sized: bool, free: bool, part: bool) -> str:
    """Say what was tried, what is the answer, and what prediction alone would choose."""
    sizes, where = sorted({trial.k for trial in trials}), " on a part of the documents" if part else ""
    how = "whose words most often belong together in documents held out"
    said = f"{best.k} topics by {METHODS[best.method]}: of {', '.join(map(str, sizes))} tried{where}, those {how}"
    if free:
        rest = [trial for trial in trials if trial.method != best.method and trial.k == best.k]
        said += "".join(f" (NPMI {best.coherence:.2f}, by {METHODS[t.method]} {t.coherence:.2f})" for t in rest)
    if sized:
        more = " or more" if foretelling.k == sizes[-1] else ""
        said += f"; to predict words alone, {foretelling.k}{more} by {METHODS[foretelling.method]} would be best"
    return f"{said}; ⟨n_topics⟩ {'and ⟨method⟩ set others' if free else 'sets another number'}"


def summarize(best: Trial, trials: Sequence[Trial], predictive: Sequence[Trial]) -> dict[str, Any]:
    """The figures of the trials, for the picture and for programs."""
    curves: dict[str, list[float]] = {}
    for trial in trials:
        curves.setdefault(METHODS[trial.method], []).append(trial.coherence)
    return {
        "ks": [trial.k for trial in predictive],
        "perplexities": [trial.perplexity for trial in predictive],
        "coherences": curves,
        "best": best.k,
    }


# --- what the answer is worth -------------------------------------------------------------------------------


def measure(method: str, X: Any, k: int, seed: int, notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Coherence and perplexity on a tenth of the documents by topics fitted to the others, and by trivial topics."""
    rows = draw_documents(X, seed, 3)
    if len(rows) < MIN_DOCUMENTS:
        notes.append(f"too few documents ({len(rows)}) to hold any out")
        return {}, {}
    tenth = len(rows) // 10
    tested, judges = X[rows[: min(tenth, MAX_TESTED_DOCUMENTS)]], X[rows[: min(tenth, MAX_JUDGING_DOCUMENTS)]]
    train = X[limit_words(X, rows[tenth:], MAX_FITTED_WORDS)]
    model = fit(method, train, min(k, *train.shape), seed)
    figures = {
        "what": "NPMI of a topic's words in documents not fitted; perplexity of half their words, given the others",
        "documents": judges.shape[0],
        "perplexity": score(model, train, tested, seed),
        "coherence": judge_words(lead_words(model, train), judges)[0],
    }
    frequencies = np.asarray(train.sum(axis=0), dtype=np.float64).reshape(1, -1)
    plain = {
        "method": "words of documents dealt at random; word frequencies alone",
        "perplexity": complete(frequencies, float(train.sum()), tested, seed),
        "coherence": judge_words(deal_words(train, seed), judges)[0],
    }
    return figures, plain


def deal_words(X: sp.csr_array, seed: int) -> np.ndarray:
    """(g,w) the words that tell groups of documents apart which were dealt at random."""
    from twofold.core.seeds import generator

    g = min(BLIND_GROUPS, X.shape[0])
    of = generator(seed, 4).permutation(np.arange(X.shape[0]) % g)
    groups = sp.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(g, len(of)))
    sums = (groups @ X.astype(np.float64)).toarray()  # (g,d)
    total = sums.sum(axis=1)
    topics = sums / np.maximum(total[:, None], 1.0)
    return np.argsort(-telling_words(topics, total / total.sum()), axis=1, kind="stable")[:, :JUDGED_WORDS]


def score(model: Any, X: sp.csr_array, test: sp.csr_array, seed: int) -> float:
    """Perplexity of documents by a model fitted to X."""
    import twofold

    topics, tokens = topics_of(model), float(X.sum())
    if hasattr(model, "idf_"):
        frequencies = np.asarray(X.sum(axis=0), dtype=np.float64).ravel() / tokens
        start = (1 - BACKGROUND) * topics + BACKGROUND * frequencies
        topics = twofold.PLSA(len(topics), init=start, max_iter=SWEEPS).fit(X.astype(np.float64)).components_
    return complete(topics, tokens, test, seed, model)


def complete(topics: np.ndarray, tokens: float, test: sp.csr_array, seed: int, model: Any = None) -> float:
    """Perplexity by document completion; topics of `tokens` words are smoothed, so that no word is impossible."""
    from twofold.topics.evaluation import perplexity

    size = np.maximum(topics.sum(axis=1, keepdims=True), 1e-300)
    smooth = topics / size * (tokens / len(topics)) + PRIOR_COUNT
    return float(perplexity(smooth, test, alpha=getattr(model, "doc_topic_prior_", None), random_state=seed))
