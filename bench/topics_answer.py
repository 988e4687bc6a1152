"""Topics without options beside the best number of topics of others: how well the ten words of a topic belong together.

One evaluator judges all: the mean NPMI of the pairs of a topic's ten words, in the documents that no contestant was
fitted to (a third of each collection). The peers get the stop words of the language, and their best number of topics
between 8 and 40 by this very figure; ours gets the texts alone. The words of documents dealt out at random are the
trivial baseline.
"""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from twofold import InputError, analyses, datasets
from twofold.text.languages import find_languages

SIZES = (8, 10, 13, 17, 22, 30, 40)
WORDS = 10  # of a topic
SLACK = 0.02  # of NPMI
TOKEN = r"(?u)\b[^\W\d_]{2,}\b"
MANUALS = Path("/usr/share/man")
MIN_WORDS = 60  # of a stretch of a manual that is a document
ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", ":": "\u0308", ",": "\u0327", "~": "\u0303"}

Topics = list[list[str]]  # the leading words of each


class Corpus(NamedTuple):
    """Texts to fit and to judge by, and the stop words that peers get."""

    name: str
    fitted: list[str]
    held: list[str]
    stop_words: list[str]


# --- collections --------------------------------------------------------------------------------------------


def plain_text(source: str) -> list[str]:
    """Stretches of the text of a manual page, without its markup."""
    source = re.sub(r"\\\*\(..|\\\*\[.*?\]", "'", source).replace("\\(ss", "ß")
    source = re.sub(r"\\\(([-'`^:,~])(\w)", lambda found: found[2] + ACCENTS.get(found[1], ""), source)
    source = normalize("NFC", re.sub(r"\\\(..", " ", source))
    source = re.sub(r"\\f(\(..|\[.*?\]|.)|\\s[-+]?\d|\\[&%|^c/,:]", "", source).replace("\\-", "-")
    stretches, held = [], list[str]()
    for line in source.splitlines():
        if (
            re.match(r"[.'](SH|SS|Sh|Ss|TP|IP|PP|P|LP|Pp|Sp|sp)\b", line)
            and sum(map(len, map(str.split, held))) > MIN_WORDS
        ):
            stretches.append(" ".join(held))
            held = []
        if not line.startswith((".", "'")):
            held.append(line)
        elif re.match(r"\.(B|I|BR|RB|IR|RI|BI|IB|SM)\s", line):
            held.append(line.split(None, 1)[1])
    return [*stretches, " ".join(held)] if len(" ".join(held).split()) > MIN_WORDS // 2 else stretches


def manuals(language: str) -> list[str]:
    """The manual pages of the installed programs in a language, in stretches of some hundred words."""
    out = []
    for path in sorted((MANUALS / language).rglob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            text = file.read()
        if not text.startswith(".so"):
            out += plain_text(text)
    code = "en" if language.startswith("man") else language
    texts = list(dict.fromkeys(out))  # some pages are translated in part only
    return [text for text, found in zip(texts, find_languages(texts), strict=True) if found == code]


def mix(*folders: str) -> list[str]:
    """Stretches of manual pages in several languages, equally many of each."""
    several = [manuals(folder) for folder in folders]
    n = min(map(len, several))
    return [text for texts in zip(*(texts[:n] for texts in several), strict=True) for text in texts]


def fetched(name: str, half: str) -> list[str]:
    return list(getattr(datasets.fetch(name), half).documents)


REPORTED = {  # looked at after everything was decided
    "manuals-nl": (lambda: manuals("nl"), ("nl",)),
    "manuals-sv": (lambda: manuals("sv"), ("sv",)),
    "manuals-pt-ro-ru": (lambda: mix("pt", "ro", "ru"), ("pt", "ro", "ru")),
    "reuters-test": (lambda: fetched("reuters", "test"), ("en",)),
    "newsgroups20-test": (lambda: fetched("newsgroups20", "test")[::2], ("en",)),
}
DECIDED_BY = {
    "newsgroups20": (lambda: fetched("newsgroups20", "train")[::2], ("en",)),
    "reuters": (lambda: fetched("reuters", "train"), ("en",)),
    "docstrings": (lambda: datasets.docstrings(4000).documents, ("en",)),
    "manuals-fr": (lambda: manuals("fr"), ("fr",)),
    "manuals-de": (lambda: manuals("de"), ("de",)),
    "manuals-de-fr-en": (lambda: mix("de", "fr", "man8"), ("de", "fr", "en")),
}
COLLECTIONS: dict[str, tuple[Callable[[], Sequence[str]], tuple[str, ...]]] = REPORTED | DECIDED_BY


def load(name: str, quick: bool = False) -> Corpus | Missing:
    make, languages = COLLECTIONS[name]
    if name.startswith("manuals") and not all((MANUALS / code).is_dir() for code in languages if code != "en"):
        return Missing(f"topics_answer {name}", f"{MANUALS} has no pages in {' and '.join(languages)}")
    try:
        texts = list(make())
    except InputError as why:
        return Missing(f"topics_answer {name}", str(why))
    order = np.random.default_rng(0).permutation(len(texts))[: 600 if quick else None]
    held = order[: len(order) // 3]
    return Corpus(name, [texts[i] for i in order[len(held) :]], [texts[i] for i in held], find_stop_words(languages))


def find_stop_words(languages: Sequence[str]) -> list[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
    from stop_words import get_stop_words

    return sorted({w for code in languages for w in (ENGLISH_STOP_WORDS if code == "en" else get_stop_words(code))})


# --- the evaluator ------------------------------------------------------------------------------------------


def coherence(topics: Topics, texts: Sequence[str]) -> float:
    """The mean NPMI of all pairs of a topic's words; a pair with a word that no document has counts 0."""
    words = sorted({word for topic in topics for word in topic})
    place = {word: j for j, word in enumerate(words)}
    bag = CountVectorizer(vocabulary=words, token_pattern=TOKEN, binary=True)
    X = bag.transform(texts).astype(np.float64)
    p = np.asarray((X.T @ X).todense()) / len(texts)
    own = []
    for topic in topics:
        pairs = [(place[a], place[b]) for a, b in combinations(topic, 2)]
        own.append(np.mean([npmi(p[i, j], p[i, i], p[j, j]) for i, j in pairs]) if pairs else 0.0)
    return float(np.mean(own))


def npmi(both: float, one: float, other: float) -> float:
    if not one or not other:
        return 0.0
    if both in (0.0, 1.0):
        return -1.0 if both == 0.0 else 1.0
    return float(np.log(both / (one * other)) / -np.log(both))


def distinctness(topics: Topics) -> float:
    """The share of different words among the words of all topics."""
    every = [word for topic in topics for word in topic]
    return len(set(every)) / max(len(every), 1)


# --- contestants --------------------------------------------------------------------------------------------


def leading(Z: np.ndarray, words: np.ndarray) -> Topics:
    return [[str(words[j]) for j in np.argsort(-row, kind="stable")[:WORDS]] for row in Z]


def best_of(corpus: Corpus, fit: Callable[[int], Topics]) -> Topics:
    """The topics of the number that has the highest coherence on the documents held out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return max((fit(k) for k in SIZES), key=lambda topics: coherence(topics, corpus.held))


def count(corpus: Corpus) -> tuple[Any, np.ndarray]:
    bag = CountVectorizer(stop_words=corpus.stop_words, token_pattern=TOKEN, min_df=5, max_df=0.5)
    return bag.fit_transform(corpus.fitted), bag.get_feature_names_out()


def ours(corpus: Corpus) -> Topics:
    answer = analyses.topics(corpus.fitted)
    return [answer.top(c, WORDS) for c in range(answer.k)]


def sklearn_nmf(corpus: Corpus, k: int) -> Topics:
    X, words = count(corpus)
    return leading(SklearnNMF(k, random_state=0).fit(TfidfTransformer().fit_transform(X)).components_, words)


def sklearn_lda(corpus: Corpus, k: int) -> Topics:
    X, words = count(corpus)
    model = SklearnLDA(k, learning_method="batch", random_state=0)
    return leading(model.fit(X).components_, words)


def tomotopy_lda(corpus: Corpus, k: int) -> Topics:
    import tomotopy

    X, words = count(corpus)
    model = tomotopy.LDAModel(k=k, seed=0)
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        if b > a:
            model.add_doc(np.repeat(words[X.indices[a:b]], X.data[a:b]).tolist())
    model.train(500, workers=1)
    return [[word for word, _ in model.get_topic_words(c, top_n=WORDS)] for c in range(k)]


def dealt(corpus: Corpus) -> Topics:
    """The words of most tf-idf in groups of documents that are dealt at random."""
    X, words = count(corpus)
    group = np.random.default_rng(0).integers(20, size=X.shape[0])
    X = TfidfTransformer().fit_transform(X)
    return leading(np.stack([np.asarray(X[group == c].sum(axis=0)).ravel() for c in range(20)]), words)


# --- the event ----------------------------------------------------------------------------------------------


def near_enough(rows: list[Row]) -> bool:
    own = next((row.quality["NPMI"] for row in rows if row.ours and row.quality), None)
    peers = [row.quality["NPMI"] for row in rows if not row.ours and row.counts and row.quality]
    return own is not None and bool(peers) and own >= max(peers) - SLACK


def judge(name: str) -> Callable[[bool], Event | Missing]:
    def event(quick: bool) -> Event | Missing:
        corpus = load(name, quick)
        if isinstance(corpus, Missing):
            return corpus
        peer = lambda fit: lambda: best_of(corpus, lambda k: fit(corpus, k))  # noqa: E731
        nothing = lambda: None  # noqa: E731
        return Event(
            f"topics_answer {name}",
            f"topics of {len(corpus.fitted):,} texts, NPMI in {len(corpus.held):,} others",
            [
                Contestant("twofold, no options", lambda: ours(corpus), ours=True, warm=nothing),
                Contestant("scikit-learn NMF, tf-idf, best of 8 to 40", peer(sklearn_nmf), warm=nothing),
                Contestant("scikit-learn LDA, best of 8 to 40", peer(sklearn_lda), warm=nothing),
                optional(
                    "tomotopy LDA, best of 8 to 40",
                    "tomotopy",
                    lambda: Contestant("tomotopy LDA, best of 8 to 40", peer(tomotopy_lda), warm=nothing),
                ),
                Contestant("documents dealt at random", lambda: dealt(corpus), counts=False, warm=nothing),
            ],
            quality=lambda topics: {
                "NPMI": coherence(topics, corpus.held),
                "distinct": distinctness(topics),
                "topics": len(topics),
            },
            as_good=lambda a, b: a["NPMI"] >= b["NPMI"] - SLACK,
            bar=Bar(f"NPMI at least that of the best peer at its best number, less {SLACK}", test=near_enough),
            repeats=1,
        )

    return event


EVENTS = tuple(judge(name) for name in COLLECTIONS)
