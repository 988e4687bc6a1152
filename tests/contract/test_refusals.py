"""What cannot be used is refused, and the message names the place and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import twofold

from .helpers import row_methods
from .registry import every, table, those, with_holes
from .test_everyone import OTHERS, make

X, y = table()
NAMES = [f"c{j}" for j in range(8)]
METHODS = ("transform", "predict", "predict_proba", "score_samples", "score", "impute", "inverse_transform", "sample")


def change_cell(value, at=(3, 7)):
    bad = X.copy()
    bad[at] = value
    return bad


def refuse(case, match, bad=X, groups=y, **options):
    """The message of the refusal, which must be ours or scikit-learn's ValueError, and not a library's accident."""
    with pytest.raises(ValueError, match=match) as why:
        case.fit(bad, groups, **options)
    assert not isinstance(why.value, np.linalg.LinAlgError)
    return str(why.value)


def hold(kind, bad, folder):
    """The array as it is, with all cells stored, in a file, or as a dask array."""
    if kind == "stored":
        return sparse.csr_array(bad)
    if kind == "dask array":
        return pytest.importorskip("dask.array").from_array(bad, chunks=(50, 8))
    if kind == "file":
        np.save(folder / "x.npy", bad)
    return folder / "x.npy" if kind == "file" else bad


def skip_unless_taken(case, kind):
    if (kind == "stored" and not case.sparse) or (kind in ("file", "dask array") and not case.streams):
        pytest.skip(f"takes no {kind}")


@every
@pytest.mark.parametrize("kind", ["array", "stored"])
def test_nan(case, kind, tmp_path):
    skip_unless_taken(case, kind)
    if case.nan and (kind == "array" or case.completes):
        pytest.skip("takes it for a hole")
    message = refuse(case, r"X\[3, 7\] is nan", hold(kind, change_cell(np.nan), tmp_path))
    assert "impute" in message or "PPCA" in message


@every
@pytest.mark.parametrize("kind", ["array", "stored", "file", "dask array"])
def test_infinity(case, kind, tmp_path):
    skip_unless_taken(case, kind)
    assert case.model in refuse(case, r"X\[3, 7\] is inf", hold(kind, change_cell(np.inf), tmp_path))
    if kind == "array":
        refuse(case, r"X\[3, 7\] is -inf", change_cell(-np.inf))


@every
def test_infinity_in_a_late_block(case, small_blocks):
    many, groups = table(700)
    many[641, 2] = np.inf
    refuse(case, r"X\[641, 2\] is inf", many, groups)


@every
def test_infinity_and_nan_in_new_rows(case):
    model = case.get_fitted()
    for value in (np.inf,) if case.nan else (np.inf, np.nan):
        for method in row_methods(model):
            with pytest.raises(ValueError, match=rf"X\[3, 7\] is {value}"):
                getattr(model, method)(change_cell(value))


@those(nan=True, alone=False)
def test_a_column_of_nan(case):
    refuse(case, "column 5", change_cell(np.nan, (slice(None), 5)))


@every
def test_a_table_of_nan_alone(case, tmp_path):
    """Nothing is known: refused by the first cell where NaN is, by the whole where NaN is a hole."""
    nothing = np.full_like(X, np.nan)
    words = r"\(240, 8\) has no known cell.*Give at least one" if case.nan else r"X\[0, 0\] is nan"
    refuse(case, words, nothing)
    refuse(case, words, nothing.astype(np.float32))
    refuse(case, words, pl.DataFrame(nothing))
    if case.nan and case.streams:
        refuse(case, "has no known cell", hold("file", nothing, tmp_path))


@every
def test_none(case):
    message = refuse(case, "X is None", None)
    assert case.model in message and "Pass an array" in message
    with pytest.raises(twofold.InputError, match="X is None"):
        getattr(case.get_fitted(), row_methods(case.get_fitted())[0])(None)


TABLES = {
    "pandas": lambda text: pd.DataFrame(X, columns=NAMES).assign(c3=text),
    "pandas category": lambda text: pd.DataFrame(X, columns=NAMES).assign(c3=pd.Categorical(text)),
    "polars": lambda text: pl.DataFrame(X, schema=NAMES).with_columns(c3=pl.Series(text)),
}


@every
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_text_in_a_named_column(case, make):
    frame = make(["red", "green"] * (len(X) // 2))
    message = refuse(case, "column \"c3\" of X: row 0 is 'red'", frame)
    assert case.model in message and "Drop the column" in message and "OneHotEncoder" in message


def test_text_is_named_where_it_begins():
    """Numbers written as text are numbers; the first cell that is none is named, also without columns and in dates."""
    model, text = twofold.PCA(2), X.astype(object)
    text[:, 3] = [str(value) for value in X[:, 3]]
    np.testing.assert_allclose(model.fit(text).components_, twofold.PCA(2).fit(X).components_)
    text[17, 3] = "n/a"
    with pytest.raises(twofold.InputError, match=r"X\[17, 3\] is 'n/a', which PCA cannot convert"):
        model.fit(text)
    with pytest.raises(twofold.InputError, match="column \"c3\" of X: row 17 is 'n/a'"):
        model.fit(pd.DataFrame(text, columns=NAMES))
    dates = pd.DataFrame(X, columns=NAMES).assign(c5=pd.date_range("2026-01-01", periods=len(X)))
    with pytest.raises(twofold.InputError, match='column "c5" of X: row 0 is \'2026-01-01'):
        model.fit(dates)


OTHER_WORDS = {  # what is None to models whose data is no table
    "CompressiveSensing": "X is None",
    "Recommender": "ratings is a NoneType",
    "Alignment": "source is a NoneType",
    **dict.fromkeys(
        ("BagOfWords", "Vocabulary", "Cooccurrence", "SkipGram", "GloVe", "PMIEmbedding"), "X is a NoneType"
    ),
}
PICTURES = {
    "CNNClassifier",
    "Autoencoder",
    "VAE",
    "DLGM",
    "GAN",
    "VAEGAN",
    "PixelCNN",
    "NormalizingFlow",
}  # (n, h, w) is their data


@pytest.mark.parametrize("name", OTHERS)
def test_none_and_text_for_models_that_are_not_in_the_registry(name):
    model, (_, *more) = make(name), OTHERS[name][1]()
    if name == "SparseCoder":  # a fit needs no signals, codes do
        with pytest.raises(twofold.InputError, match="X is None"):
            model.transform(None)
    else:
        with pytest.raises(twofold.InputError, match=OTHER_WORDS.get(name, "X is None")):
            model.fit(None, *more)
    if name not in OTHER_WORDS:
        n = len(more[0]) if more else 60
        with pytest.raises(twofold.InputError, match="column \"c3\" of X: row 0 is 'red'"):
            model.fit(TABLES["pandas"]("red")[:n], *more)
        nothing = "no known cell" if name in ("ForestImpute", "ColumnImpute") else r"X\[0, 0\] is nan"
        with pytest.raises(twofold.InputError, match=nothing):
            model.fit(np.full((n, 8), np.nan), *more)
        with pytest.raises(twofold.InputError, match="dim 5" if name in PICTURES else "dim 3"):
            model.fit(np.ones((n, 2, 2, 2, 2) if name in PICTURES else (n, 2, 2)), *more)


@those(weights=True)
def test_weights(case):
    w = np.ones(len(X))
    for bad in (-1, np.nan):
        refuse(case, rf"sample_weight\[4\] is {bad}", sample_weight=np.where(np.arange(len(X)) == 4, bad, w))
    refuse(case, r"\(239,\)", sample_weight=w[:-1])
    refuse(case, "zero everywhere", sample_weight=0 * w)


@every
def test_too_many_components(case):
    if not case.too_many:
        pytest.skip("has no number of components")
    message = refuse(case, next(iter(case.too_many)), **case.too_many)
    assert any(str(v) in message for v in case.too_many.values())


@every
def test_wrong_parameters_are_found_at_fit_not_before(case):
    if case.none:
        refuse(case, next(iter(case.none)), **case.none)
    for name in ("tol", "max_iter"):
        if name in case().get_params():
            refuse(case, name, **{name: -1})
            refuse(case, name, **{name: "many"})


@those(alone=False)
def test_one_row(case):
    refuse(case, "sample|class|row", X[:1], y[:1])


@every
def test_what_is_no_table_of_numbers(case):
    """Pictures (n, h, w) are for networks, see above."""
    message = refuse(case, r"shape \(2, 240, 8\), dim 3", np.stack([X, X]), y[:2])
    assert case.model in message and "reshape(len(X), -1)" in message
    refuse(case, "dim 3", np.stack([X, X]).tolist(), y[:2])
    refuse(case, "1D|dimension|Reshape", X[0])
    refuse(case, "0 sample", X[:0], y[:0])
    refuse(case, "0 feature", X[:, :0])
    for kind in (str, object):
        refuse(case, "string|numeric|convert", np.full(X.shape, "word", dtype=kind))
    refuse(case, "[Cc]omplex", X + 1j)


@those(streams=True)
def test_a_dask_array_of_unknown_length(case):
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(50, 8))
    refuse(case, "compute_chunk_sizes", lazy[lazy[:, 0] > 0])


@those(streams=True)
def test_files_that_are_no_tables(case, tmp_path):
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    pl.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}).write_parquet(tmp_path / "names.parquet")
    expected = {"cube.npy": r"\(2, 2, 2\)", "words.npy": "number", "short.npy": "readable", "bad.parquet": "readable"}
    expected |= {"names.parquet": "name", "missing.npy": "no such file", "table.csv": "does not exist"}
    for name, match in expected.items():
        assert name in refuse(case, match, tmp_path / name)


@every
@pytest.mark.parametrize("kind", ["array", "file"])
def test_other_columns_than_at_fit(case, kind, tmp_path):
    skip_unless_taken(case, kind)
    model = case.get_fitted()
    for method in row_methods(model):
        with pytest.raises(ValueError, match=r"7 features.*expecting 8"):
            getattr(model, method)(hold(kind, X[:, :7], tmp_path))


@those(streams=True)
def test_other_names_in_a_file(case, tmp_path):
    pl.DataFrame(X, schema=NAMES).write_parquet(tmp_path / "fit.parquet")
    pl.DataFrame(X, schema=NAMES[::-1]).write_parquet(tmp_path / "new.parquet")
    model = case.fit(tmp_path / "fit.parquet", y)
    for method in row_methods(model):
        with pytest.raises(ValueError, match="feature names"):
            getattr(model, method)(tmp_path / "new.parquet")


@every
def test_codes_of_another_width(case):
    model = case.get_fitted()
    if not hasattr(model, "inverse_transform"):
        pytest.skip("has no way back")
    with pytest.raises(ValueError, match=r"codes have shape \(3, 7\)"):
        model.inverse_transform(np.ones((3, 7)))


@every
def test_use_before_fit(case, tmp_path):
    model = case()
    for method in METHODS:
        if hasattr(model, method):
            given = (3,) if method == "sample" else (X, y) if case.needs_y and method == "score" else (X,)
            with pytest.raises(NotFittedError):
                getattr(model, method)(*given)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "m.twofold")
    assert not (tmp_path / "m.twofold").exists()


@every
def test_a_refused_fit_leaves_no_model_behind(case):
    model = case()
    with pytest.raises(ValueError):
        model.fit(change_cell(np.inf), y)
    with pytest.raises(NotFittedError):
        getattr(model, row_methods(model)[0])(X)


@those(needs_y=True)
def test_targets(case):
    refuse(case, "class", X, np.zeros(len(X), int))
    refuse(case, "[Cc]ontinuous|target|label", X, np.linspace(0, 1, len(X)))
    refuse(case, "inconsistent|length", X, y[:-1])
    with pytest.raises(ValueError, match="y"):
        case().fit(X, None)


@those(needs_y=True, streams=True)
def test_targets_of_another_length_than_the_file(case, tmp_path):
    np.save(tmp_path / "x.npy", X)
    refuse(case, "inconsistent|length|rows", tmp_path / "x.npy", y[:-1])


def test_closed_form_and_rules_say_that_holes_are_in_the_way():
    for model, match in ((twofold.PCA("mle"), "missing.*impute"), (twofold.PPCA(2, solver="closed"), "missing.*em")):
        with pytest.raises(twofold.InputError, match=match):
            model.fit(with_holes(X))


@pytest.mark.parametrize("column", ["constant", "repeated"])
def test_whitening_without_variance(column):
    flat = X.copy()
    flat[:, 2] = 1.0 if column == "constant" else X[:, 3]
    with pytest.raises(ValueError, match=r"whiten=True.*Drop"):
        twofold.PCA(whiten=True).fit(flat)
