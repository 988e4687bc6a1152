"""
Skip-gram converges to pointwise mutual information
===================================================

Skip-gram learns to tell true neighbors from made-up ones. With :math:`m` made-up ones for each true one, the best
product of two vectors is the pointwise mutual information of their words, less :math:`\\log m`. On a language of forty
words, this can be checked pair by pair.
"""

import numpy as np

from twofold import Cooccurrence, SkipGram
from twofold.examples import write_language
from twofold.plots.models import words as plots

text = write_language(np.random.default_rng(0), words=40, length=200_000)
print(" ".join(text[0][:20]))

# %%
# How often each pair stands side by side, and how much more often than by chance. Skip-gram draws its made-up words with
# probabilities proportional to counts to the power of ¾, so that is the chance to compare with.

table = Cooccurrence(window=1, weighting="flat", min_count=1).fit(text)
words = list(table.vocabulary_.words_)
N = table.counts_.toarray()
q = table.vocabulary_.counts_**0.75
with np.errstate(divide="ignore"):
    pmi = np.log(N / N.sum(axis=1, keepdims=True) / (q / q.sum()))
seen = N > 20
print(
    f"{int((N > 0).sum())} of {N.size} pairs occur, {int(seen.sum())} often enough to trust"
)

# %%
# The same text, learned with 1, 5 and 20 negatives. Each dot is a pair, as large as it is frequent.

panels = {}
for m in (1, 5, 20):
    model = SkipGram(
        20,
        window=1,
        negatives=m,
        subsample=0,
        min_count=1,
        max_iter=12,
        random_state=0,
    ).fit(text)
    products = model.vectors_[words] @ model.contexts_[words].T
    target = pmi - np.log(m)
    panels[f"m = {m}"] = (target[seen], products[seen], N[seen])
    error = np.average(np.abs(products - target)[seen], weights=N[seen])
    like = np.corrcoef(products[seen], target[seen])[0, 1]
    print(f"m = {m:2}: correlation {like:.3f}, mean distance {error:.3f}")
diagonal = plots.products_figure(panels, "PMI − log m, counted", "product, learned")

# %%
# With fewer directions than the table has, not all pairs can be right. One direction is spent on the level that is common
# to all; with more, pairs that are frequent come first.

narrow = {}
for k in (1, 2, 4):
    model = SkipGram(
        k,
        window=1,
        subsample=0,
        min_count=1,
        max_iter=12,
        random_state=0,
    ).fit(text)
    products = model.vectors_[words] @ model.contexts_[words].T
    narrow[f"{k} direction{'s' if k > 1 else ''}"] = (
        (pmi - np.log(5))[seen],
        products[seen],
        N[seen],
    )
few = plots.products_figure(narrow, "PMI − log 5, counted", "product, learned")
