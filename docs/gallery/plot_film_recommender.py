"""
What to see next
================

Five hundred people and three hundred films, from a seeded generator: the ratings are made up, but so that the truth behind
them is known. A recommender is fitted with its defaults, measured on ratings it has not seen, and asked for advice.
"""

import numpy as np

from twofold import Recommender, datasets
from twofold.plots.models import completion as plots

world = datasets.ratings()
print(world.ratings.head(4))

# %%
# No option is needed. It holds some ratings out to decide which model makes the lists and which predicts ratings, says
# what it chose, and then uses all of them.

rec = Recommender(random_state=0).fit(world.ratings)
for choice in (rec.choice_["ranking"], rec.choice_):
    print(
        f"{choice['model']}: {choice['why']} ({choice['measure']} {choice['score']:.3f})"
    )

# %%
# ``evaluate`` does all of it again without a fifth of the ratings, and compares with two recommenders that know nobody's
# taste.

print(rec.evaluate(random_state=1))

# %%
# Advice for somebody, and the reasons: the ratings that carried the first recommendation.

user = 7
best = rec.recommend(user, 5)
print(best)
print(rec.explain(user, best["item"][0], 3))

# %%
# Somebody new needs no new fit.

genres = dict(world.films.select("item", "genres").iter_rows())
space = [film for film, kinds in genres.items() if kinds == ["Space"]]
drama = [film for film, kinds in genres.items() if kinds == ["Drama"]]
likes = dict.fromkeys(space[:4], 5.0) | dict.fromkeys(drama[:4], 1.0)
for film, _, stars in rec.recommend_new(likes, 5).iter_rows():
    print(f"{stars:.1f}  {film:32} {', '.join(genres[film])}")

# %%
# The films along the two directions in which their factors differ most. The model was never told a genre.

index = {film: j for j, film in enumerate(world.films["item"])}
main = world.truth.genres.argmax(axis=1)
names = sorted({name for kinds in genres.values() for name in kinds})
kind = [names[main[index[film]]] for film in rec.items_]

Z = rec.model_.components_.T
count = np.bincount(rec.ratings_.indices, minlength=len(Z))
Z = Z - count @ Z / count.sum()
_, _, axes = np.linalg.svd(Z * np.sqrt(count)[:, None], full_matrices=False)
often = np.flatnonzero(count > np.median(count))
films = plots.items_figure(
    (Z @ axes[:2].T)[often],
    [rec.items_[j] for j in often],
    [kind[j] for j in often],
    count[often].astype(float),
)
