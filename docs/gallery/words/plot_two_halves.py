"""
Two sets of word vectors aligned by a rotation
==============================================

Learn vectors from every other docstring, then from the rest. Both describe the same language, each with axes of its own.
One rotation brings them together, as it does with two languages.
"""

from twofold import PMIEmbedding, datasets
from twofold.plots.models import words as plots
from twofold.text.stop_words import english
from twofold.words import align

text = datasets.docstrings(2000).documents
one, other = (
    PMIEmbedding(50, random_state=0).fit(text[i::2]).vectors_ for i in (0, 1)
)
small = english()
shared = [
    w for w in one if w in other and len(w) > 2 and w.isalpha() and w not in small
]
print(f"{len(one)} and {len(other)} words, {len(shared)} in both")

# %%
# Before: the nearest word on the other side means nothing.

for word in ("matrix", "color", "file", "column"):
    print(f"{word:8} {', '.join(w for w, _ in other.nearest(one[word], 4))}")

# %%
# Give fifty pairs, here the most frequent words with themselves, and find the rotation. The words shown are looked up by
# CSLS, which takes off what a word has in common with everybody.

pairs = [(w, w) for w in shared[:50]]
joined = align(one, other, pairs)
for word in ("matrix", "color", "file", "column", "wavelet"):
    if word in one:
        print(f"{word:8} {', '.join(w for w, _ in joined.translate(word, 4))}")

# %%
# How many of four hundred words that were not given find themselves, over the number of pairs given?

asked = shared[200:600]
counts = (5, 10, 20, 50, 100, 200)
ways = {
    "nearest": (0, "nearest"),
    "CSLS": (0, "csls"),
    "CSLS, refined": (5, "csls"),
}
curves = {}
for name, (refine, method) in ways.items():
    shares = []
    for n in counts:
        joined = align(one, other, [(w, w) for w in shared[:n]], refine=refine)
        shares.append(joined.score([(w, w) for w in asked], method=method))
    curves[name] = (counts, shares)
    print(f"{name:14} {'  '.join(f'{share:4.0%}' for share in shares)}")
found = plots.curves_figure(
    curves, "pairs given", "found themselves", share=True, log=True
)
