"""
Films recommended from ratings
==============================

Five hundred people and three hundred films, from a seeded generator: the ratings are made up, but so that the truth behind
them is known. A recommender is fitted with its defaults, measured on ratings it has not seen, and asked for advice.
"""

import numpy as np

from twofold import Recommender, SVDPlusPlus, datasets
from twofold.plots.models import completion as plots

world = datasets.ratings()
print(world.ratings.head(4))

# %%
# No option is needed. Which film somebody picks next is another question than how many stars it would get, so there are
# two models. Each is chosen on ratings held out, from a few that include the trivial one, and then fitted to all of them.

rec = Recommender(random_state=0).fit(world.ratings)
for what, choice in {"lists": rec.choice_["ranking"], "stars": rec.choice_}.items():
    print(f"{what} by {choice['model']}: {choice['why']}")
    print(
        f"    {choice['measure']} {choice['score']:.3f}, by {choice['baseline']} {choice['baseline_score']:.3f}"
    )

# %%
# ``evaluate`` does all of it again without a fifth of the ratings, and compares with two recommenders that know nobody's
# taste. The second table is for newcomers: whole people are held out, and four fifths of their ratings shown.

print(rec.evaluate(random_state=1))
print(rec.evaluate(split="users", random_state=1))

# %%
# Lists put first what is picked next: more than the most popular, and less obscure than what would get most stars.

stars = Recommender(SVDPlusPlus(random_state=0), random_state=0)
print(
    stars.evaluate(world.ratings, random_state=1).table.select(
        "model", "ndcg", "coverage", "novelty"
    )
)

# %%
# Advice for somebody, with the score that orders it and the stars to expect, and the reasons: the ratings that carried the
# first recommendation.

user = 7
best = rec.recommend(user, 5)
print(best)
print(rec.explain(user, best["item"][0], 3))

# %%
# Somebody new needs no new fit. Ranked by the stars they would give, four space films say enough.

genres = dict(world.films.select("item", "genres").iter_rows())
space = [film for film, kinds in genres.items() if kinds == ["Space"]]
drama = [film for film, kinds in genres.items() if kinds == ["Drama"]]
likes = dict.fromkeys(space[:4], 5.0) | dict.fromkeys(drama[:4], 1.0)
for film, given in (
    stars.fit(world.ratings)
    .recommend_new(likes, 5)
    .select("item", "rating")
    .iter_rows()
):
    print(f"{given:.1f}  {film:32} {', '.join(genres[film])}")

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
