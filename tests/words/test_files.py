"""Files of word2vec and GloVe: out and in again to the bit, gensim on the other side, and no damage unseen."""

import gzip
import os

import numpy as np
import pytest

from twofold import InputError, WordVectors

ENDINGS = ["txt", "bin", "txt.gz", "bin.gz"]


def any_floats(n, k, seed=0):
    """Finite float32 of every size: random bits, with zeros of both signs and the smallest and largest."""
    bits = np.random.default_rng(seed).integers(2**32, size=n * k, dtype=np.uint32)
    W = bits.view(np.float32).copy()
    W[~np.isfinite(W)] = 1.5
    extremes = [0.0, -0.0, np.finfo(np.float32).max, np.finfo(np.float32).tiny, 1e-45, 0.1, 1e10, -123456.79]
    W[: len(extremes)] = extremes
    return W.reshape(n, k)


def some(n=40, k=6):
    words = [f"wört{i}" for i in range(n - 4)] + ["3.5", "#", '"quoted"', "a,b"]
    return WordVectors.of(words, any_floats(n, k))


def same(a, b):
    return list(a.words) == list(b.words) and a.vectors_.tobytes() == b.vectors_.tobytes()


# ---- out and in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_comes_back_to_the_bit(tmp_path, ending):
    v, path = some(), tmp_path / f"v.{ending}"
    v.save_word2vec(path)
    assert same(WordVectors.load_word2vec(path), v) and same(WordVectors.load_word2vec(path, limit=1000), v)
    assert same(WordVectors.load_word2vec(path, limit=7), WordVectors.of(v.words[:7], v.vectors_[:7]))
    with pytest.raises(InputError, match="limit=0"):
        WordVectors.load_word2vec(path, limit=0)


@pytest.mark.parametrize("ending", ENDINGS)
def test_gensim_reads_and_writes_the_same(tmp_path, ending):
    gensim = pytest.importorskip("gensim.models")
    v, path = some(), tmp_path / f"v.{ending}"
    v.save_word2vec(path)
    theirs = gensim.KeyedVectors.load_word2vec_format(str(path), binary="bin" in ending)
    assert theirs.index_to_key == v.words.tolist() and theirs.vectors.tobytes() == v.vectors_.tobytes()
    theirs.save_word2vec_format(str(path), binary="bin" in ending)
    assert same(WordVectors.load_word2vec(path), v)


@pytest.mark.parametrize("binary", [False, True])
def test_the_kind_can_be_chosen_and_is_seen(tmp_path, binary):
    v = some()
    v.save_word2vec(tmp_path / "v.any", binary=binary)
    v.save_word2vec(tmp_path / ("v.bin" if binary else "v.txt"))
    assert (tmp_path / "v.any").read_bytes() == (tmp_path / ("v.bin" if binary else "v.txt")).read_bytes()
    assert same(WordVectors.load_word2vec(tmp_path / "v.any"), v)
    assert same(WordVectors.load_word2vec(tmp_path / "v.any", binary=binary), v)


@pytest.mark.parametrize("ending", ["txt", "bin"])
def test_chunks_do_not_matter(tmp_path, monkeypatch, ending):
    from twofold.words.word_vectors import files

    v = some(200)
    v.save_word2vec(tmp_path / f"whole.{ending}")
    monkeypatch.setattr(files, "CHUNK_BYTES", 300)
    v.save_word2vec(tmp_path / f"v.{ending}")
    assert (tmp_path / f"v.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    assert same(WordVectors.load_word2vec(tmp_path / f"v.{ending}"), v)


def test_glove_files_have_no_first_line_and_may_have_spaces_in_words(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 0.5 -1e-3 2\n. . . 1 2 3\nat name@domain.com 4 5 6\n1 7 8 9\n")
    v = WordVectors.load_word2vec(path)
    assert list(v) == ["the", ". . .", "at name@domain.com", "1"]
    np.testing.assert_array_equal(v.vectors_, np.array([[0.5, -1e-3, 2], [1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32))


def test_the_c_programs_habits(tmp_path):
    """A space after every number, a line end after every word, and words cut within a letter."""
    W = np.array([[1, 2], [3, 4]], "<f4")
    text, binary = tmp_path / "v.txt", tmp_path / "v.bin"
    text.write_bytes(b"2 2\n</s> 1 2 \nna\xc3\xafve 3 4 \n\n")
    binary.write_bytes(b"2 2\n</s> " + W[0].tobytes() + b"\nna\xc3 " + W[1].tobytes() + b"\n")
    assert list(WordVectors.load_word2vec(text)) == ["</s>", "naïve"]
    assert list(WordVectors.load_word2vec(binary)) == ["</s>", "na\\xc3"]
    for path in (text, binary):
        np.testing.assert_array_equal(WordVectors.load_word2vec(path).vectors_, W)


def test_old_encodings_are_still_text(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes("2 2\ncafé 1 2\nthé 3 4\n".encode("latin1"))
    assert list(WordVectors.load_word2vec(path)) == ["caf\\xe9", "th\\xe9"]


def test_doubles_are_written_as_floats(tmp_path):
    W = np.random.default_rng(0).normal(size=(3, 4))
    for ending in ("txt", "bin"):
        WordVectors.of("abc", W).save_word2vec(tmp_path / f"v.{ending}")
        np.testing.assert_array_equal(
            WordVectors.load_word2vec(tmp_path / f"v.{ending}").vectors_, W.astype(np.float32)
        )


# ---- writing with care ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["new york", "tab\there", "line\nend"])
def test_words_with_spaces_are_refused_and_nothing_is_written(tmp_path, word):
    path = tmp_path / "v.txt"
    path.write_text("precious")
    with pytest.raises(InputError, match=r"words\[1\] is .*cannot hold spaces"):
        WordVectors.of(["a", word], np.eye(2)).save_word2vec(path)
    assert path.read_text() == "precious" and os.listdir(tmp_path) == ["v.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    from twofold.words.word_vectors import files

    some().save_word2vec(tmp_path / "v.txt")
    before = (tmp_path / "v.txt").read_bytes()

    def fail(words, W):
        raise OSError("disk full")

    monkeypatch.setattr(files, "_as_text", fail)
    with pytest.raises(OSError, match="disk full"):
        some(10).save_word2vec(tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_bytes() == before and os.listdir(tmp_path) == ["v.txt"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        some().save_word2vec(tmp_path / "no" / "v.txt")


# ---- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["bin", "txt", "txt.gz"])
def test_a_file_cut_anywhere_is_refused(tmp_path, ending):
    v, path = some(9, 3), tmp_path / f"v.{ending}"
    v.save_word2vec(path)
    whole = path.read_bytes()
    # The end of the very last number of a text cannot be missed; a line end after the last word need not be there.
    last = len(whole) - len(whole.rstrip(b"\n").rpartition(b" ")[2]) - 1 if ending == "txt" else len(whole) - 1
    for stop in range(last):
        path.write_bytes(whole[:stop])
        with pytest.raises(InputError, match=path.name):
            WordVectors.load_word2vec(path)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "line 1 is ''"),
        (b"\n", "line 1 is ''"),
        (b"just some text\n", "line 1 is 'just some text'"),
        (b"0 5\n", "line 1 announces '0 5'"),
        (b"5 0\n", "line 1 announces '5 0'"),
        (b"99999999999999999 5\na 1 2 3 4 5\n", "line 1 announces"),
        (b"2 2\na 1 2\n", "ends after line 2, short of the 2 words"),
        (b"1 2\na 1 2\nb 3 4\n", "line 3 goes on after the 1 words"),
        (b"2 2\na 1 2\nb 3\n", "line 3 is not a word and 2 numbers: 'b 3'"),
        (b"2 2\na 1 2\nb 3 4 5\n", "line 3 is not a word and 2 numbers"),
        (b"2 2\na 1 x\nb 3 4\n", "line 2 is not a word and 2 numbers"),
        (b"2 2\na 1 2\n\nb 3 4\n", "line 3 is empty"),
        (b"3 2\na 1 2\n\nb 3 4\n", "line 3 is not a word and 2 numbers"),
        (b"2 3\na 1 2\nb 3 4\n", "line 2 is not a word and 3 numbers"),
        (b"a 1 2\nb 3\n", "line 2 is not a word and 2 numbers"),
        (b"2 2\na 1 2\na 3 4\n", "word 2 is 'a', and so is word 1"),
        (b"2 2\na 1 2\nb nan 4\n", "number 1 of word 2 is nan"),
        (b"1 1\na " + np.float32(np.inf).tobytes(), "number 1 of word 1 is inf"),
        (b"1 1\n " + np.float32(1).tobytes(), "word 1 is incomplete"),
        (b"1 1\na " + np.float32(1).tobytes() + b"\nb " + np.float32(1).tobytes(), "goes on after the 1 words"),
        (b"3 9999999999\na " + bytes(20), "word 1 is incomplete"),
        (b"9999999999 3\na " + bytes(12), "word 2 is incomplete"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, message):
    for path in (tmp_path / "v", tmp_path / "v.gz"):
        path.write_bytes(gzip.compress(content) if path.suffix else content)
        with pytest.raises(InputError, match=message):
            WordVectors.load_word2vec(path)


def test_what_cannot_be_opened_is_named(tmp_path):
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            WordVectors.load_word2vec(path)
    binary = tmp_path / "v.txt"
    binary.write_text("a 1 2\n")
    with pytest.raises(InputError, match="line 1"):
        WordVectors.load_word2vec(binary, binary=True)
