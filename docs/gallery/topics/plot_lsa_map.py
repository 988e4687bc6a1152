"""
A map of documents by LSA
=========================

The English in the docstrings of nine packages, as a table of word counts. Latent semantic analysis is the singular
value decomposition of that table, with words that are everywhere turned down. It knows nothing of packages.
"""

import numpy as np

from twofold import LSA, BagOfWords, datasets
from twofold.plots.models import topics as plots

text = datasets.docstrings(2000)
bag = BagOfWords(min_df=5, max_df=0.4)
X = bag.fit_transform(text.documents)
words = bag.get_feature_names_out()
full = X.nnz / np.prod(X.shape)
print(
    f"{X.shape[0]} documents, {X.shape[1]} words; {full:.1%} of the cells are not 0"
)

# %%
# The first direction is what all documents share. The second and third tell them apart; the words that pull farthest are
# written where they pull.

model = LSA(50, random_state=0)
U = model.fit_transform(X)
Z = model.components_[1:3].T
far = np.argsort(-np.abs(Z / np.abs(Z).max(axis=0)).max(axis=1), kind="stable")[:14]
scale = 0.9 * np.abs(U[:, 1:3]).max(axis=0) / np.abs(Z[far]).max(axis=0)
groups = [text.target_names[t] for t in text.target]
plane = plots.documents_figure(
    U[:, 1:3], groups, {str(words[j]): Z[j] * scale for j in far}
)

# %%
# Documents that are close in all fifty directions: of a document's nearest neighbor, by angle, how often is the package
# the same?

unit = U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-12)
like = unit @ unit.T
np.fill_diagonal(like, -1)
same = np.mean(text.target[like.argmax(axis=1)] == text.target)
chance = np.sum((np.bincount(text.target) / len(text.target)) ** 2)
print(f"neighbor from the same package: {same:.0%}; by chance {chance:.0%}")

# %%
# A search for words that need not occur in what is found.

query = bag.transform(["draw a curve with markers on a plot"])
q = model.transform(query)[0]
for i in np.argsort(-(unit @ q), kind="stable")[:5]:
    print(text.names[i])

# %%
# Words are points of the same space: those that keep the same company are close.

V = model.components_.T * np.sqrt(np.mean(U**2, axis=0))
V /= np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12)
place = {str(word): j for j, word in enumerate(words)}
for word in ("color", "sparse", "wavelet", "column"):
    near = np.argsort(-(V @ V[place[word]]), kind="stable")[1:6]
    print(f"{word:8} {', '.join(str(words[j]) for j in near)}")
