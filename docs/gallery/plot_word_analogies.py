"""
Row is to rows as matrix is to ...
==================================

The English in the docstrings of nine packages, some hundred thousand words. Which words stand beside which is counted,
compared with chance, and cut to fifty directions. No dictionary, no grammar.
"""

import numpy as np

from twofold import KMeans, PMIEmbedding, datasets
from twofold.plots import words as plots
from twofold.topics.stopwords import english

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
# The most frequent words that are not grammar, on a map: close words keep the same company. Colours are groups that
# k-means finds among the fifty directions.

small = english()
frequent = [w for w in vectors if len(w) > 2 and w.isalpha() and w not in small][
    :220
]
X = vectors[frequent].astype(float)
X /= np.linalg.norm(X, axis=1, keepdims=True)
groups = KMeans(8, random_state=0).fit(X).labels_
counts = [float(vectors.counts_[vectors.place(w)]) for w in frequent]
the_map = plots.map_figure(
    np.asarray(vectors.map_2d(frequent, method="tsne")),
    frequent,
    groups.tolist(),
    counts,
)

# %%
# The step from *row* to *rows*, taken from another word. The three words of the question are never the answer.

for a, b, c in [
    ("row", "rows", "matrix"),
    ("row", "rows", "value"),
    ("minimum", "maximum", "min"),
    ("rows", "columns", "row"),
    ("left", "right", "lower"),
    ("x", "y", "horizontal"),
]:
    answers = ", ".join(word for word, _ in vectors.analogy(a, b, c, 3))
    print(f"{a} is to {b} as {c} is to: {answers}")

# %%
# How often is the first answer right? Every pair of a word and its plural is asked about by every other.

pairs = [(w, w + "s") for w in frequent if w + "s" in vectors][:30]
right = [
    {
        way: vectors.analogy(a, b, c, method=way)[0][0] == d
        for way in ("additive", "multiplicative")
    }
    for a, b in pairs
    for c, d in pairs
    if a != c
]
for way in ("additive", "multiplicative"):
    share = np.mean([answer[way] for answer in right])
    print(f"{way:14} {share:.0%} of {len(right)} questions")

# %%
# The steps of eight of the pairs, in the plane of the mean step, upright, and of what differs most otherwise.

U = vectors[[w for pair in pairs for w in pair]].astype(float)
U /= np.linalg.norm(U, axis=1, keepdims=True)
up = (U[1::2] - U[::2]).mean(axis=0)
up /= np.linalg.norm(up)
rest = U - np.outer(U @ up, up)
across = np.linalg.svd(rest - rest.mean(axis=0))[2][0]
spread = np.argsort(U[::2] @ across)[np.linspace(0, len(pairs) - 1, 8).astype(int)]
shown = [pairs[i] for i in spread]
at = {
    w: (U[2 * i + k] @ across, U[2 * i + k] @ up)
    for i in spread
    for k, w in enumerate(pairs[i])
}
arrows = plots.arrows_figure({"One and many": shown}, {"One and many": at})
