"""reduce of tables with categories, flags, ordered levels and dates: factor analysis of mixed data, and its report."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from twofold import PCA, analyses
from twofold.core.checks import InputError

SPECIES, SIZES = ["finch", "gull", "crow"], ["small", "medium", "large"]


def birds(n=120, seed=0):
    """Three kinds of birds, which differ in weight, nest and diet; the wing follows the weight."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    weight = np.array([20.0, 900.0, 450.0])[kind] * np.exp(0.1 * rng.normal(size=n))
    return pl.DataFrame(
        {
            "species": [SPECIES[k] for k in kind],
            "weight_g": weight,
            "wing_cm": 4 * np.cbrt(weight) + rng.normal(size=n),
            "nest": [["tree", "cliff", "tree", "roof"][k] for k in np.where(rng.random(n) < 0.2, 3, kind)],
            "eats_fish": np.where((kind == 1) ^ (rng.random(n) < 0.1), "yes", "no"),
            "size": [SIZES[k] for k in np.digitize(weight, [100, 600])],
        }
    )


def holes(frame, share=0.15, seed=1):
    rng = np.random.default_rng(seed)
    return frame.with_columns(pl.Series(c.name, c).set(pl.Series(rng.random(len(c)) < share), None) for c in frame)


def standardize(x):
    return ((x - x.mean()) / x.std())[:, None]


def mixed_factor_analysis(numbers, categories):
    """Scores and singular values, straight from the definition: the SVD of z-scores and of indicators over √share."""
    parts = [standardize(x) for x in numbers]
    for column in categories:
        ones = (np.array(column)[:, None] == np.unique(column)).astype(float)
        parts.append((ones - ones.mean(axis=0)) / np.sqrt(ones.mean(axis=0)))
    left, sizes, _ = np.linalg.svd(np.hstack(parts), full_matrices=False)
    return left * sizes, sizes


def test_the_directions_are_those_of_factor_analysis_of_mixed_data():
    frame = birds()
    numbers = [frame["weight_g"].to_numpy(), frame["wing_cm"].to_numpy(), frame["size"].replace_strict(SIZES, range(3))]
    scores, sizes = mixed_factor_analysis(
        map(np.asarray, numbers), [frame[c] for c in ("species", "nest", "eats_fish")]
    )
    answer = analyses.reduce(frame, 4)
    np.testing.assert_allclose(np.abs(answer.scores), np.abs(scores[:, :4]), atol=1e-8)
    np.testing.assert_allclose(answer.ratios[:4], sizes[:4] ** 2 / (sizes**2).sum(), rtol=1e-8)


def test_the_first_eigenvalue_is_the_sum_of_squared_correlations_and_correlation_ratios():
    frame = birds()
    t = analyses.reduce(frame, 1).scores[:, 0]
    shares = [np.corrcoef(t, frame[c].to_numpy())[0, 1] ** 2 for c in ("weight_g", "wing_cm")]
    shares.append(np.corrcoef(t, frame["size"].replace_strict(SIZES, range(3)).to_numpy())[0, 1] ** 2)
    for name in ("species", "nest", "eats_fish"):
        own = frame[name].to_numpy()
        means = {level: t[own == level].mean() for level in np.unique(own)}
        shares.append(np.var([means[level] for level in own]) / np.var(t))
    assert np.var(t) == pytest.approx(sum(shares), rel=1e-8) and max(shares) <= 1


def test_units_names_of_levels_and_order_of_columns_do_not_matter():
    frame = birds()
    other = frame.select(
        pl.col("nest").replace({"tree": "zoo", "cliff": "alps"}), "size", "eats_fish", pl.col("weight_g") / 1000 + 5,
        "species", "wing_cm",
    )  # fmt: skip
    one, two = analyses.reduce(frame, 3), analyses.reduce(other, 3)
    np.testing.assert_allclose(np.abs(two.scores), np.abs(one.scores), atol=1e-8)


def test_columns_and_levels_that_make_a_direction_are_told_in_words():
    answer = analyses.reduce(birds(), 2)
    for c, line in enumerate(answer.lines()[:2]):
        grows, _, falls = line.removeprefix(f"PC{c + 1} ").partition("falls with")
        for name, weight in answer.heaviest(c):
            assert f'"{name}"' in (grows if weight > 0 else falls)
    weights = dict(zip(answer.names, answer.weights[0], strict=True))
    assert weights["species = finch"] * weights["weight_g"] < 0 < weights["species = gull"] * weights["weight_g"]
    assert dict(answer.heaviest(0)).keys() <= set(answer.names)
    assert "6 columns" in answer.heading and answer.facts()["columns"] == 6


@pytest.mark.parametrize("options", [{}, {"method": "glrm"}, {"method": "fa"}, {"method": "bayesian"}])
@pytest.mark.parametrize("blank", [False, True])
def test_a_saved_model_gives_new_rows_what_the_fit_gave_them(tmp_path, options, blank):
    frame = holes(birds()) if blank else birds()
    answer = analyses.reduce(frame, 2, **options)
    answer.save(tmp_path / "m.twofold")
    shuffled = frame.select(frame.columns[::-1]).with_columns(extra=pl.lit("new"))
    for rows in (slice(None), slice(0, 7)):
        found = analyses.apply(tmp_path / "m.twofold", shuffled[rows])
        got = found.table.select("PC1", "PC2").to_numpy()
        np.testing.assert_allclose(got, answer.scores[rows], rtol=1e-5, atol=1e-5)


def test_a_level_that_the_fit_has_not_seen_is_said_and_counts_as_blank_or_average():
    frame = birds()
    model = analyses.reduce(frame, 2).model
    found = analyses.apply(model, frame.with_columns(nest=pl.lit("boat")))
    assert any('"nest": "boat" not seen in the fit, counted as blank' in note for note in found.notes)
    blank = analyses.apply(model, frame.with_columns(nest=pl.lit(None, pl.String)))
    np.testing.assert_array_equal(found.table["PC1"].to_numpy(), blank.table["PC1"].to_numpy())
    model = analyses.reduce(frame, method="fisher", label="species").model  # which takes no holes
    found = analyses.apply(model, frame.with_columns(nest=pl.lit("boat")))
    assert any("counted as average" in note for note in found.notes)
    nests = ("tree", "cliff", "roof")
    scores = [analyses.apply(model, frame.with_columns(nest=pl.lit(nest))).table["PC1"].to_numpy() for nest in nests]
    expected = sum(frame["nest"].eq(nest).mean() * own for nest, own in zip(nests, scores, strict=True))
    np.testing.assert_allclose(found.table["PC1"].to_numpy(), expected, atol=1e-8)


def test_columns_that_are_missing_or_of_another_kind_are_refused():
    frame = birds()
    model = analyses.reduce(frame, 2).model
    with pytest.raises(InputError, match='no column "nest"'):
        analyses.apply(model, frame.drop("nest"))
    with pytest.raises(InputError, match=r'column "weight_g".*number'):
        analyses.apply(model, frame.with_columns(weight_g=pl.lit("heavy")))


@pytest.mark.parametrize("method", [None, "glrm"])
def test_held_out_cells_of_all_kinds_are_filled_better_than_by_means_and_frequent_levels(method):
    answer = analyses.reduce(holes(birds(400)), 2, method=method)
    assert answer.figures["rmse"] < 0.8 * answer.baseline["rmse"]
    assert answer.figures["right"] > answer.baseline["right"] + 0.1
    assert "categories are right" in answer.lines()[-1]


def test_a_running_number_and_constant_columns_are_not_fitted():
    frame = birds()
    order = np.random.default_rng(0).permutation(len(frame)) + 1000
    more = frame.with_columns(customer_id=pl.Series(order), country=pl.lit("NO"))
    np.testing.assert_allclose(analyses.reduce(more, 2).scores, analyses.reduce(frame, 2).scores, atol=1e-10)


def test_tables_of_numbers_are_plain_principal_components():
    frame = birds().select("weight_g", "wing_cm")
    answer = analyses.reduce(frame, 1, scale=True)
    assert not hasattr(answer.model, "encoding_")
    np.testing.assert_array_equal(answer.scores, PCA(1, scale=True, random_state=0).fit(frame).transform(frame))


def test_without_scale_numbers_keep_their_units():
    frame = birds()
    answer = analyses.reduce(frame, 1, scale=False)
    assert answer.heaviest(0)[0][0] == "weight_g" and not answer.standardized
    assert answer.scores.std() == pytest.approx(frame["weight_g"].to_numpy().std(), rel=1e-2)


def test_levels_that_are_rare_count_together():
    frame = birds(400)
    rare = pl.Series("nest", [f"odd {i}" if i < 3 else level for i, level in enumerate(frame["nest"])])
    names = analyses.reduce(frame.with_columns(rare), 2).names
    assert not any("odd" in name for name in names)
    rare = pl.Series("nest", [f"odd {i}" if i < 6 else level for i, level in enumerate(frame["nest"])])
    names = analyses.reduce(frame.with_columns(rare), 2).names
    assert "nest = others" in names and not any("odd" in name for name in names)


@pytest.mark.parametrize("method", ["fa", "bayesian", "fisher"])
def test_models_with_a_noise_get_columns_that_do_not_follow_from_each_other(method):
    frame = birds(300)
    answer = analyses.reduce(frame, method=method, label="eats_fish" if method == "fisher" else None)
    X = answer.model.inverse_transform(answer.scores) if method == "fa" else None
    assert len([name for name in answer.names if name.startswith("species = ")]) == 2
    assert answer.k < len(answer.names) and (X is None or np.isfinite(X).all())


# ---- dates -------------------------------------------------------------------------------------------------------


def visits(days, seed=0, **columns):
    """Sales that follow the date, and their notes."""
    start = date(2020, 1, 6)
    dates = [start + timedelta(days=int(day)) for day in days]
    return pl.DataFrame({"day": dates, **{name: function(np.array(days), dates) for name, function in columns.items()}})


def warm(days, dates):
    return np.cos(2 * np.pi * (np.array([d.timetuple().tm_yday for d in dates]) - 196) / 365.25)


def is_weekend(days, dates):
    return np.array([d.weekday() >= 5 for d in dates])


def test_a_date_is_a_trend_a_season_and_a_weekday():
    rng = np.random.default_rng(0)
    frame = visits(
        range(0, 1500, 1),
        price=lambda days, _: days + 20 * rng.normal(size=len(days)),
        ice=lambda days, dates: warm(days, dates) + 0.1 * rng.normal(size=len(days)),
        swims=lambda days, dates: 3 * warm(days, dates) + 0.1 * rng.normal(size=len(days)),
        crowd=lambda days, dates: is_weekend(days, dates) + 0.1 * rng.normal(size=len(days)),
        tickets=lambda days, dates: 9 * is_weekend(days, dates) + 0.1 * rng.normal(size=len(days)),
    )
    answer = analyses.reduce(frame, 3)
    told = [dict(answer.heaviest(c)) for c in range(3)]
    season, trend, week = (next(t for t in told if name in t) for name in ("ice", "price", "crowd"))
    assert np.sign(season["day around January"]) == -np.sign(season["ice"])
    assert np.sign(trend["day (later)"]) == np.sign(trend["price"])
    assert "day on Saturday" in week and "day on Sunday" in week


@pytest.mark.parametrize(
    ("days", "has", "has_not"),
    [
        (range(40), ["on Monday", "(later)"], ["January", "midnight"]),
        (range(10), ["(later)"], ["on Monday", "January"]),
        (range(0, 700, 7), ["(later)", "January"], ["on Tuesday"]),
    ],
)
def test_only_those_parts_of_a_date_are_taken_that_it_has(days, has, has_not):
    names = analyses.reduce(visits(days, x=lambda days, _: np.sin(days * 1.7)), 1).names
    assert all(any(part in name for name in names) for part in has)
    assert not any(part in name for name in names for part in has_not)


def test_months_have_no_weekday_and_times_have_an_hour():
    months = [date(2015 + m // 12, m % 12 + 1, 1) for m in range(60)]
    x = np.arange(60.0) ** 0.5
    names = analyses.reduce(pl.DataFrame({"month": months, "x": x}), 1).names
    assert names == ["month (later)", "month around January", "month around April", "x"]
    times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 11), "4h", eager=True)
    names = analyses.reduce(pl.DataFrame({"at": times[:60], "x": x}), 1).names
    assert names == ["at (later)", "at around midnight", "at around 6:00", "x"]


def test_saved_dates_are_read_again():
    frame = visits(range(500), ice=lambda days, dates: warm(days, dates)).with_columns(kind=pl.Series(["a", "b"] * 250))
    answer = analyses.reduce(frame, 2)
    found = analyses.apply(answer.model, frame[100:130])
    np.testing.assert_allclose(found.table["PC1"].to_numpy(), answer.scores[100:130, 0], atol=1e-9)
