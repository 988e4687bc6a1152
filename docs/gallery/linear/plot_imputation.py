"""
Missing pixels filled by PPCA, with error bars
==============================================

A quarter of all pixels is hidden. Probabilistic PCA learns from the rest, fills the holes, and says how sure it is.
The truth is known here, so both can be checked.
"""

import numpy as np

from twofold import PPCA, FactorAnalysis, datasets
from twofold.plots.models import linear as plots

X = datasets.digits().data
hidden = np.random.default_rng(0).random(X.shape) < 0.25
seen = np.where(hidden, np.nan, X)

model = PPCA(12, random_state=0).fit(seen)
filled, std = model.impute(seen, return_std=True)
means = np.where(hidden, np.nanmean(seen, axis=0), X)

tables = {
    "truth": X,
    "seen": seen,
    "means": means,
    "PPCA": filled,
    "its doubt": std,
}
pictures = {name: table[10:22].reshape(-1, 8, 8) for name, table in tables.items()}
digits = plots.rows_figure(pictures, (0.0, 16.0), spread="its doubt")

# %%
# Are the error bars true? A Gaussian promises the truth within one standard deviation for 68% of the cells and within
# two for 95%. Pixels are not Gaussian, so the promise is kept roughly: many pixels are always blank, and their errors
# are smaller than the one noise level that PPCA has for all pixels.

error = (filled - X)[hidden]
others = {"column means": (means - X)[hidden]}
calibration = plots.calibration_figure(error, std[hidden], others)

# %%
# Factor analysis has a noise level for each pixel. It fills about as well, and keeps the outer promise better.

analysis = FactorAnalysis(12, random_state=0).fit(seen)
filled_fa, std_fa = analysis.impute(seen, return_std=True)
print("                   rms   within 1 sd   within 2 sd")
for name, table, sd in (
    ("PPCA", filled, std),
    ("factor analysis", filled_fa, std_fa),
):
    off = np.abs(table - X)[hidden]
    one, two = ((off <= times * sd[hidden]).mean() for times in (1, 2))
    print(f"{name:16} {np.sqrt((off**2).mean()):5.2f} {one:13.0%} {two:13.0%}")
