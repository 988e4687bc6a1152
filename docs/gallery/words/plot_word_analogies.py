"""
Analogies from PMI vectors
==========================

The English in the docstrings of nine packages, some hundred thousand words. Which words stand beside which is counted,
compared with chance, and cut to fifty directions. No dictionary, no grammar.
"""

import numpy as np

from twofold import KMeans, PMIEmbedding, datasets
from twofold.examples import OPPOSITES
from twofold.plots.models import words as plots
from twofold.plots.models.words import word_map_figure
from twofold.text.stop_words import english

text = datasets.docstrings(2000).documents
model = PMIEmbedding(50, random_state=0).fit(text)
vectors = model.vectors_
print(
    f"{model.vocabulary_.n_tokens_:,} words of text, {len(vectors):,} with a vector"
)

# %%
# Words close to a word, by angle.

for word in ("matrix", "color", "minimum", "file", "column"):
    near = ", ".join(other for other, _ in vectors.nearest(word, 6))
    print(f"{word:8} {near}")

# %%
# The most frequent words that are not grammar, on a map: close words keep the same company. Colors are groups that
# k-means finds among the fifty directions.

small = english()
frequent = [w for w in vectors if len(w) > 2 and w.isalpha() and w not in small][
    :220
]
X = vectors[frequent].astype(float)
X /= np.linalg.norm(X, axis=1, keepdims=True)
groups = KMeans(8, random_state=0).fit(X).labels_
counts = [float(vectors.counts_[vectors.place(w)]) for w in frequent]
the_map = word_map_figure(
    np.asarray(vectors.map_2d(frequent, method="tsne")),
    frequent,
    groups.tolist(),
    counts,
)

# %%
# A step taken from another word: *minimum* is to *maximum* as *min* is to what? The three words of the question are never
# the answer.

for a, b, c in [
    ("minimum", "maximum", "min"),
    ("rows", "columns", "row"),
    ("left", "right", "lower"),
    ("before", "after", "start"),
    ("row", "rows", "matrix"),
    ("array", "arrays", "column"),
]:
    answers = ", ".join(word for word, _ in vectors.analogy(a, b, c, 3))
    print(f"{a} is to {b} as {c} is to: {answers}")

# %%
# Is there a step, or would the nearest word to the third have done? Ask every pair of a word and its plural about every
# other, and opposites likewise.

seen = {w: vectors.counts_[vectors.place(w)] for w in vectors}
plurals = [(w, w + "s") for w in seen if w not in small and len(w) > 2]
panels = {}
for name, pairs in {"one and many": plurals, "opposites": OPPOSITES}.items():
    pairs = [(a, b) for a, b in pairs if seen.get(a) and seen.get(b, 0) >= 12][:40]
    U = np.array([vectors[[a, b]] for a, b in pairs])
    panels[name] = (pairs, U)
    asked = [
        vectors.analogy(a, b, c)[0][0] == d
        for a, b in pairs
        for c, d in pairs
        if a != c
    ]
    alone = [vectors.nearest(c, 1)[0][0] == d for c, d in pairs]
    print(
        f"{name:12} right {np.mean(asked):4.0%}, by the nearest word alone "
        f"{np.mean(alone):4.0%}, common step {plots.measure_common_step(U).mean():5.2f}"
    )

# %%
# Plurals have a step in common: upright is its mean, over pairs that are not shown. Opposites have none. They are simply
# beside each other, for they keep the same company; an analogy between them is solved by standing still.

arrows = plots.steps_figure(panels)
