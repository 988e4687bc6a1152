"""Skip-gram: vectors that separate pairs of neighbors from pairs with random words.

    minimize  Σ log(1 + exp(−⟨x_c, y_w⟩ − b_w)) + Σ_k log(1 + exp(⟨x_c, y_k⟩ + b_k))   over pairs (c near w) of the text

    X (V,D) words   Y (V,D) contexts   b (V,) biases, if any   k negatives a pair, drawn with chance ∝ count^¾

With architecture="cbow", the mean of the words of a window stands in for x_c, and a window is one pair.

One sweep:  each word is the center of a window; the words around it share its negatives, so that some pairs are two
            small matrix products   x_c, y_w, y_k ← a gradient step

Threads work on tiles of pairs that have no vector in common: see _steps. `loss="softmax"` compares with every word of
the vocabulary instead of a few.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.estimator import Model, fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Documents, Seed
from twofold.kernels.skip_gram import make_alias_table
from twofold.text.text_tasks import TextTasks, find_text_tasks
from twofold.text.vocabulary import Vocabulary
from twofold.words.corpus import Corpus, Run, encode_corpus, fit_and_encode, runs
from twofold.words.skip_gram import _steps as steps
from twofold.words.word_vectors.word_vectors import WordVectors

MAX_LINE_WORDS = 1000  # in a line that is one window


class SkipGram(Model):
    """Word vectors by skip-gram: words with similar contexts get similar vectors.

    Every word w of the text is the center of a window. A word c near it makes a positive pair with it, and a negative
    pair with a random word. The vectors are trained to separate them by ``⟨x_c, y_w⟩``, whose optimum is the pointwise
    mutual information of the two words minus log k::

        log p(c, w) / (p(c) q(w)) − log k          q(w) ∝ count(w)^¾, k negatives

    Parameters
    ----------
    n_components : int, default=100
        Numbers a vector.
    architecture : {"skip-gram", "cbow"}, default="skip-gram"
        "cbow" predicts a word from the mean of the words around it. It takes fewer steps and is less good for rare
        words. Its steps are made in turn, unless `deterministic` is False.
    window : int or None, default=5
        Maximum distance of a context word, in words. Windows never cross a line; None takes whole lines, of up to
        1,000 words each.
    shrink_windows : bool, default=True
        Each center draws the width of its window from 1 to `window`, so that near words count more.
    negatives : int, default=5
        Random words for each center, compared with all the words around it.
    noise_power : float, default=0.75
        Negatives are drawn by this power of their counts. With 1 and one negative the optimum of ⟨x_c, y_w⟩ is PMI.
    subsample : float or None, default=1e-3
        Words more frequent than this share of the text are left out at random before windows are placed, more often the
        more frequent they are; None or 0 keeps all.
    learning_rate : float, default=0.05
        The first step; it falls linearly to almost zero over all epochs.
    max_iter : int, default=5
        Epochs.
    min_count, max_size, lowercase
        Of the vocabulary, see :class:`Vocabulary`.
    loss : {"negative", "softmax"}, default="negative"
        "softmax" compares with all words, exactly: p(w | c) ∝ exp(⟨x_c, y_w⟩), by AdaGrad on batches of pairs; for
        vocabularies of up to 20,000 words. It is the same for any number of threads.
    biases : bool, default=False
        Add to ⟨x_c, y_w⟩ a bias b_w of the center, which fits its frequency.
    deterministic : bool, default=True
        A seed gives the same bits on any number of threads. Up to eight threads work on pairs that have no vector in
        common, in an order that depends on the text alone; one thread reads a text of fewer than about 130,000 words in
        order. If False, threads write the same vectors without locks, a little faster, and fits differ.
    random_state : int, RandomState, Generator or None, default=None
        The start, the widths of windows, the words left out, and the negatives.

    Attributes
    ----------
    vectors_, contexts_ : WordVectors
        x and y of every word.
    biases_ : ndarray of shape (V,) or None
    vocabulary_ : Vocabulary
    history_, n_iter_, converged_
        An epoch a row: ``objective``, the mean loss of its pairs, each before its step, summed in double precision;
        ``seconds``; ``words_per_second``, with the words left out at random; ``learning_rate``, at the epoch's start.

    Notes
    -----
    The text is read once, and encoded in a temporary file if it exceeds the memory budget; no line is cut. Vectors take
    8 bytes a number and word, twice that during an epoch; pairs of a tiling take about 100 MB.

    With an active dask client, a text in several blocks of files (about 16 MB each) is learned in up to 32 shards on
    its workers, and their vectors are averaged after each epoch, with the word counts of the shards as weights. The
    result differs from that of one machine, and is less good after the same number of epochs; its bits are the same for
    any number of workers. An epoch sends the vectors, 8 bytes a number and word, to every worker and from every shard.
    (One machine computes ``loss="softmax"`` and ``window=None``.)

    ``EarlyStopping(text)`` scores the vectors of each epoch on a held-out text.

    References
    ----------
    Mikolov, Sutskever, Chen, Corrado & Dean (2013), *NIPS*, 3111-3119. Levy & Goldberg (2014), *NIPS*, 2177-2185.
    McDonald, Hall & Mann (2010), *NAACL*, 456-464 (shards).
    İrsoy, Benton & Stratos (2021), *Insights from Negative Results in NLP*, 1-8 (the gradient of the mean).
    Ji, Satish, Li & Dubey (2016), arXiv:1604.04661 (shared negatives). Gemulla, Haas, Nijkamp & Sismanis (2011), *KDD*,
    69-77 (pairs without a vector in common). Zhu, Xu, Qu & Tang (2019), *WWW*, 2494-2504 (their negatives).

    Examples
    --------
    >>> from twofold import SkipGram
    >>> lines = ["the cat purrs", "the kitten purrs", "the cat sleeps", "the kitten sleeps"]
    >>> lines += ["one boat sails", "one ship sails", "one boat sinks", "one ship sinks"]
    >>> model = SkipGram(8, subsample=None, max_iter=20, random_state=0).fit(50 * lines)
    >>> model.vectors_.nearest("cat", n=1)[0][0], model.vectors_.nearest("ship", n=1)[0][0]
    ('kitten', 'boat')
    """

    vectors_: Annotated[WordVectors, "vectors_: v k"]
    contexts_: Annotated[WordVectors, "vectors_: v k"]
    biases_: Annotated[np.ndarray | None, "v, or None"]
    vocabulary_: Annotated[Vocabulary, "words_: v, text"]
    _takes_text: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "architecture": [StrOptions({"skip-gram", "cbow"})],
        "window": [Interval(Integral, 1, None, closed="left"), None],
        "shrink_windows": ["boolean"],
        "negatives": [Interval(Integral, 1, None, closed="left")],
        "noise_power": [Interval(Real, 0, None, closed="left")],
        "subsample": [Interval(Real, 0, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        **Vocabulary._parameter_constraints,
        "loss": [StrOptions({"negative", "softmax"})],
        "biases": ["boolean"],
        "deterministic": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        architecture: str = "skip-gram",
        window: int | None = 5,
        shrink_windows: bool = True,
        negatives: int = 5,
        noise_power: float = 0.75,
        subsample: float | None = 1e-3,
        learning_rate: float = 0.05,
        max_iter: int = 5,
        min_count: int = 5,
        max_size: int | None = None,
        lowercase: bool = True,
        loss: str = "negative",
        biases: bool = False,
        deterministic: bool = True,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.architecture = architecture
        self.window = window
        self.shrink_windows = shrink_windows
        self.negatives = negatives
        self.noise_power = noise_power
        self.subsample = subsample
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.min_count = min_count
        self.max_size = max_size
        self.lowercase = lowercase
        self.loss = loss
        self.biases = biases
        self.deterministic = deterministic
        self.random_state = random_state

    @fitting
    def fit(self, corpus: Documents, y: Any = None) -> SkipGram:
        """Learn the vectors of the words of a corpus, which may be what :meth:`Vocabulary.fit` takes."""
        seed = seed_of(self.random_state)
        vocabulary = Vocabulary(min_count=self.min_count, max_size=self.max_size, lowercase=self.lowercase)
        texts = find_text_tasks(corpus, split=True) if self.loss == "negative" and self.window is not None else None
        if texts is not None and len(texts.blocks) > 1:
            return self._fit_shards(texts, vocabulary._fit_on_cluster(texts), corpus, seed)
        with fit_and_encode(corpus, vocabulary) as text:
            plan = self._plan(text, vocabulary, self.learning_rate, seed)

            def sweep(state: steps.State, t: int) -> loop.Sweep:
                began = time.perf_counter()
                state, sums = steps.epoch(state, plan, t)
                speed = plan.tokens / (time.perf_counter() - began)
                extra = {"words_per_second": speed, "learning_rate": plan.rate_at(t * plan.tokens)}
                return loop.Sweep(state, self._mean(sums, vocabulary), extra, done=t == self.max_iter - 1)

            return self._run(sweep, vocabulary, corpus, seed, lambda: sign(vocabulary, plan.runs))

    def _fit_shards(self, texts: TextTasks, vocabulary: Vocabulary, corpus: Documents, seed: int) -> SkipGram:
        """Fit on the workers of a cluster; the shards' vectors are averaged after each epoch."""
        shards = texts._replace(blocks=steps.cut_shards(texts.blocks))
        light, shared = clone(self).set_params(random_state=None).set_callbacks(), texts.tasks.hold(vocabulary)

        def sweep(state: steps.State, t: int) -> loop.Sweep:
            began = time.perf_counter()
            state, sums = steps.epoch_of_shards(shards, light, shared, state, t, seed)
            if not sums.pairs and not t:
                raise no_pairs(vocabulary)
            rate = self.learning_rate * max(1 - t / self.max_iter, steps.MIN_RATE)
            extra = {"words_per_second": sums.tokens / (time.perf_counter() - began), "learning_rate": rate}
            mean = self._mean(steps.Sums(sums.loss, sums.pairs), vocabulary)
            return loop.Sweep(state, mean, extra, done=t == self.max_iter - 1)

        signature = f"{len(shards.blocks)} shards, {sign(vocabulary, [])}"
        return self._run(sweep, vocabulary, corpus, seed, lambda: signature)

    def _run(self, sweep: Callable, vocabulary: Vocabulary, corpus: Documents, seed: int, signature: Any) -> SkipGram:
        fitted = lambda state: self._attributes(state, vocabulary)  # noqa: E731
        start = self._start(vocabulary, seed)
        loop.run(self, sweep, start, tol=-1.0, fitted=fitted, X=corpus, fingerprint=signature, seed=seed)
        return self

    def score(self, corpus: Documents, y: Any = None) -> float:
        """The mean log-likelihood of the pairs in another corpus, each with random negatives: higher is better.

        It is minus the objective, for constant vectors; words that are not in the vocabulary are left out. The same
        text gives the same score every time.
        """
        check_is_fitted(self)
        with encode_corpus(corpus, self.vocabulary_) as text:
            return -self._mean(
                steps.epoch(self._state(), self._plan(text, self.vocabulary_, 0.0, 0), 0)[1], self.vocabulary_
            )

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _plan(self, text: Corpus, vocabulary: Vocabulary, rate: float, seed: int) -> steps.Plan:
        window = self._window(text)
        parts, exact = runs(text, steps.TOKENS_PER_RUN, margin=8 * window), self.loss == "softmax"
        mean = self.architecture == "cbow"
        if exact and mean:
            raise InputError('loss="softmax" is for architecture="skip-gram". Use loss="negative" with "cbow".')
        if exact and len(vocabulary) > steps.MAX_SOFTMAX_WORDS:
            raise InputError(
                f'loss="softmax" sums over the whole vocabulary for every word, and this one has {len(vocabulary):,} '
                f"words; at most {steps.MAX_SOFTMAX_WORDS:,} are feasible. Set max_size={steps.MAX_SOFTMAX_WORDS} or "
                'raise min_count, or use loss="negative".'
            )
        if not any((np.diff(run.read().ends, prepend=0) > 1).any() for run in parts):  # no line has two words
            raise no_pairs(vocabulary)
        counts, bias_column = vocabulary.counts_, self.n_components if self.biases else -1
        keep, noise = steps.keep_chances(counts, self.subsample), counts.astype(np.float64) ** self.noise_power
        repeatable = self.deterministic and rate > 0  # rate 0 writes nothing, so every way is repeatable
        cut, other = make_alias_table(noise)
        in_turn = exact or (mean and self.deterministic)
        way, batch = steps.choose_way(len(parts), self.max_iter, len(counts), in_turn, repeatable)
        return steps.Plan(
            parts, len(text), keep, cut, other, window, self.negatives, bias_column, rate, self.max_iter, seed,
            exact, noise, way, batch, not self.shrink_windows or self.window is None, mean,
        )  # fmt: skip

    def _window(self, text: Corpus) -> int:
        """The width of windows: `window`, or that of the longest line."""
        if self.window is not None:
            return int(self.window)
        lengths = np.diff(text.ends, prepend=0)
        longest = int(lengths.max(initial=1))
        if longest > MAX_LINE_WORDS:
            raise InputError(
                f"window=None takes whole lines as windows, of at most {MAX_LINE_WORDS:,} words, and line "
                f"{int(lengths.argmax()) + 1} has {longest:,}. Break lines, or give a window such as 10."
            )
        return max(longest - 1, 1)

    def _start(self, vocabulary: Vocabulary, seed: int) -> steps.State:
        """Random words within ±1/2D, contexts and biases at zero."""
        X = generator(seed).random((len(vocabulary), self.n_components), np.float32) - np.float32(0.5)
        return self._pad(X / np.float32(self.n_components), np.zeros_like(X))

    def _pad(self, X: np.ndarray, Y: np.ndarray, b: Any = 0) -> steps.State:
        """Rows of whole cache lines; with biases, X has a column of ones and Y has b there."""
        k, D = self.n_components, self.n_components + self.biases
        X, Y = steps.pad(X, D), steps.pad(Y, D)
        if self.biases:
            X[:, k], Y[:, k] = 1, b
        squares = np.zeros(X.shape if self.loss == "softmax" else (0, 0), np.float32)
        return steps.State(X, Y, squares, squares.copy())

    def _state(self) -> steps.State:
        """The fitted vectors as a state."""
        return self._pad(self.vectors_.vectors_, self.contexts_.vectors_, self.biases_)

    def _mean(self, sums: steps.Sums, vocabulary: Vocabulary) -> float:
        """The loss a pair; that of zero vectors if subsampling left no pair."""
        if sums.pairs:
            return sums.loss / sums.pairs
        return float(np.log(len(vocabulary)) if self.loss == "softmax" else (1 + self.negatives) * np.log(2))

    def _attributes(self, state: steps.State, vocabulary: Vocabulary) -> dict:
        words, counts, k = vocabulary.words_, vocabulary.counts_, self.n_components
        return {
            "vectors_": WordVectors.of(words, state.X[:, :k], counts),
            "contexts_": WordVectors.of(words, state.Y[:, :k], counts),
            "biases_": state.Y[:, k].copy() if self.biases else None,
            "vocabulary_": vocabulary,
        }


def no_pairs(vocabulary: Vocabulary) -> InputError:
    return InputError(
        f"no line of the corpus has two of the {len(vocabulary):,} words of the vocabulary, so there are no pairs. "
        "Give longer lines, or lower min_count."
    )


def sign(vocabulary: Vocabulary, parts: list[Run]) -> str:
    """A checksum of the words and their order."""
    crc = zlib.crc32("\n".join(vocabulary.words_).encode())
    for run in parts:
        lines = run.read()
        crc = zlib.crc32(lines.ends.tobytes(), zlib.crc32(lines.tokens.tobytes(), crc))
    return f"{len(vocabulary)} words:{crc:08x}"
