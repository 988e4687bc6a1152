"""Estimators read tables as the commands do: text, packed, of other columns, lazy, elsewhere, larger than memory."""

import gzip
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import twofold
from twofold import PCA, PPCA, InputError, analyses

ROWS, NAMES = 60, ["a", "b", "c"]


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(ROWS, 3)).round(3)


@pytest.fixture
def model_of_frame(numbers):
    return PCA(2).fit(pl.DataFrame(numbers, schema=NAMES))


def write(path, X, sep=",", decimal=".", town=None):
    cells = pd.DataFrame(X, columns=NAMES)
    if town:
        cells.insert(1, "town", [town[i % len(town)] for i in range(len(X))])
    cells.insert(0, "id", [f"p{i}" for i in range(len(X))])
    cells.to_csv(path, sep=sep, decimal=decimal, index=False)
    return path


def same(model, other):
    return np.array_equal(model.components_, other.components_) and list(model.feature_names_in_) == NAMES


def test_a_path_is_read_as_the_commands_read_it(tmp_path, numbers, model_of_frame):
    german = write(tmp_path / "g.csv", numbers, ";", ",")
    packed = tmp_path / "p.csv.gz"
    packed.write_bytes(gzip.compress(write(tmp_path / "p.tsv", numbers, "\t").read_bytes()))
    pl.DataFrame(numbers, schema=NAMES).write_ndjson(tmp_path / "x.jsonl")
    for path in (german, packed, tmp_path / "x.jsonl", f"file://{german}"):
        model = PCA(2).fit(path)
        assert same(model, model_of_frame), path
        np.testing.assert_array_equal(model.transform(str(path)), model_of_frame.transform(numbers))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_columns_are_chosen_by_name_and_found_again_in_any_order(tmp_path, numbers, model_of_frame):
    path = write(tmp_path / "t.csv", numbers, town=["Bonn", "Kiel"])
    with pytest.warns(UserWarning, match='"town" set aside: not numbers'):
        assert same(PCA(2).fit(path), model_of_frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = PCA(2).fit(path, columns=["c", "a"])
    frame = pl.DataFrame(numbers, schema=NAMES)
    frame.write_parquet(tmp_path / "t.parquet")
    for X in (frame, frame.to_pandas(), frame.lazy(), tmp_path / "t.parquet"):
        other = PCA(2).fit(X, columns=["c", "a"])
        assert np.array_equal(other.components_, chosen.components_) and list(other.feature_names_in_) == ["c", "a"]
    frame.select("b", "a", "c").write_csv(tmp_path / "turned.csv")
    np.testing.assert_array_equal(chosen.transform(tmp_path / "turned.csv"), chosen.transform(path))
    for X in (path, frame, tmp_path / "t.parquet"):
        with pytest.raises(InputError, match=r"no column .z."):
            PCA(1).fit(X, columns=["z"])
    with pytest.raises(InputError, match='"town" holds no numbers'):
        PCA(1).fit(path, columns=["a", "town"])
    with pytest.raises(InputError, match="an array has no names of columns"):
        PCA(1).fit(numbers, columns=["a"])


def test_lazy_tables_are_computed_once_into_a_temporary_file(tmp_path, numbers, model_of_frame):
    dataset = pytest.importorskip("pyarrow.dataset")
    frame = pl.DataFrame(numbers, schema=NAMES)
    assert same(PCA(2).fit(frame.lazy().filter(pl.col("a") < 100)), model_of_frame)
    frame.write_parquet(tmp_path / "x.parquet")
    assert same(PCA(2).fit(dataset.dataset(tmp_path / "x.parquet")), model_of_frame)
    with pytest.raises(InputError, match="the LazyFrame cannot be computed"):
        PCA(2).fit(frame.lazy().select("nothing"))


def test_an_address_that_does_not_answer_is_one_sentence():
    with pytest.raises(InputError, match=r"^nowhere://x/y.csv cannot be (fetched|read)|those need fsspec"):
        PCA(1).fit("nowhere://x/y.csv")


def big_table(path, rows=120_000):
    X = np.random.default_rng(1).normal(size=(rows, 3)).round(4)
    with open(path, "w", encoding="utf-8") as out:
        out.write("id,a,b,c,said\n")
        out.writelines(f'{i},{a},{b},{c},"one, {i % 9}\ntwo"\n' for i, (a, b, c) in enumerate(X.tolist()))
    return X


def test_text_larger_than_the_budget_is_read_in_blocks_by_estimators_and_commands(tmp_path):
    path = tmp_path / "big.csv"
    X = big_table(path)
    with twofold.config(memory="3MB"):
        with pytest.warns(UserWarning, match='"id", "said" set aside: only numbers are read in blocks'):
            model = PCA(2).fit(path)
        answer = analyses.reduce(path, 2)
    assert list(model.feature_names_in_) == NAMES and model.n_features_in_ == 3
    whole = PCA(2).fit(X)
    np.testing.assert_array_equal(model.components_, whole.components_)
    assert len(answer.scores) == len(X) and any("read in blocks" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("line", "message"),
    [("1.5,x", 'line 400002, column "b": "x" is not a number'), ('1.5,"2', "Close the quotation mark")],
)
def test_a_bad_line_far_down_is_named(tmp_path, line, message):
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n" + "1.5,2\n" * 400_000 + line + "\n" + "1,2\n" * 400_000, encoding="utf-8")
    with twofold.config(memory="2MB"), pytest.raises(InputError, match=message):
        PCA(1).fit(path)


def test_impute_gives_what_set_output_wants(numbers):
    holes = np.where(np.random.default_rng(2).random(numbers.shape) < 0.1, np.nan, numbers)
    frame = pd.DataFrame(holes, columns=NAMES, index=range(5, 5 + ROWS))
    model = PPCA(1).fit(frame)
    plain = model.impute(frame)
    filled = model.set_output(transform="pandas").impute(frame)
    assert isinstance(plain, np.ndarray) and filled.index[0] == 5 and list(filled.columns) == NAMES
    np.testing.assert_array_equal(filled.to_numpy(), plain)
    assert isinstance(model.set_output(transform="polars").impute(frame), pl.DataFrame)


def test_a_file_is_loaded_as_the_class_that_was_asked_for(tmp_path, numbers):
    PPCA(1).fit(numbers).save(tmp_path / "m.twofold")
    assert isinstance(PPCA.load(tmp_path / "m.twofold"), PPCA)
    with pytest.raises(InputError, match=r"holds a PPCA, not a PCA\. Use twofold.load"):
        PCA.load(tmp_path / "m.twofold")


def test_early_stopping_of_a_closed_form_says_that_it_does_nothing(numbers):
    with pytest.warns(UserWarning, match="EarlyStopping does nothing: this PCA is fitted in one step"):
        PCA(1).set_callbacks(twofold.EarlyStopping(numbers)).fit(numbers)


def test_a_client_of_ones_own_is_used_within_its_block(numbers, model_of_frame, client_of):
    da = pytest.importorskip("dask.array")
    from twofold.core.engine.dask import active_client

    client = client_of(1)
    with twofold.config(client=client):
        assert active_client() is client
        model = PCA(2).fit(da.from_array(numbers, chunks=(20, 3)))
    assert active_client() is not client
    np.testing.assert_array_equal(model.components_, model_of_frame.components_)
    with pytest.raises(InputError, match="client=int is no client of dask"):
        twofold.config(client=3)


def test_a_pipeline_that_holds_our_models_is_saved_without_pickle(numbers):
    sio = pytest.importorskip("skops.io")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for model in (PCA(2), twofold.MLPClassifier((4,), max_iter=2, random_state=0)):
        pipeline = make_pipeline(StandardScaler(), model).fit(numbers, numbers[:, 0] > 0)
        data = sio.dumps(pipeline)
        unknown = sio.get_untrusted_types(data=data)
        assert unknown and all(name.startswith("twofold.") for name in unknown)
        again = sio.loads(data, trusted=unknown)
        method = "predict" if hasattr(model, "predict") else "transform"
        np.testing.assert_array_equal(getattr(again, method)(numbers), getattr(pipeline, method)(numbers))


@pytest.mark.usefixtures("small_blocks")
def test_codes_go_to_a_file_block_by_block(tmp_path, numbers):
    X = np.tile(numbers, (20, 1)) + np.arange(20 * ROWS)[:, None]
    np.save(tmp_path / "x.npy", X)
    model = PCA(2).fit(X)
    codes = model.transform(X)
    paths = [model.transform(tmp_path / "x.npy", to=tmp_path / f"c.{ending}") for ending in ("npy", "parquet", "csv")]
    np.testing.assert_array_equal(np.load(paths[0]), codes)
    np.testing.assert_array_equal(pl.read_parquet(paths[1]).to_numpy(), codes)
    assert pl.read_csv(paths[2]).columns == ["pca0", "pca1"] and len(pl.read_csv(paths[2])) == len(X)
    with pytest.raises(InputError, match=r"written to \.csv"):
        model.transform(X, to=tmp_path / "c.txt")
    with pytest.raises(InputError, match='Set it back to "default"'):
        model.set_output(transform="pandas").transform(X, to=tmp_path / "d.npy")
