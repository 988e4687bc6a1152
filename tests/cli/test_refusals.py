"""What cannot be done is refused: exit code 2, one line that names the fault and the remedy, and no file is changed."""

from pathlib import Path

import pytest

from tests.cli import worlds
from tests.cli.worlds import copy_files, read_folder

OUTPUTS = ("-o", "out.csv", "-o", "out.png", "--save", "m.twofold")
EXAMPLES = {  # a file for each verb that takes tables or text -> its writer
    "reduce": ("people.csv", worlds.write_people),
    "cluster": ("groups.csv", worlds.write_groups),
    "complete": ("people.csv", worlds.write_blanks),
    "recommend": ("ratings.csv", worlds.write_ratings),
    "topics": ("letters.csv", worlds.write_letters),
    "embed": ("lines.txt", worlds.write_sentences),
}
# Files to write and declared choices and limits are checked by the same lines for all verbs, and refused here by one.
OPTIONS = {  # a verb, run on its example with these options -> words of the refusal
    "reduce": {
        "-o {file} --force": "input",
        "-o out.xyz": ".parquet",
        "-o no/out.csv": "no folder",
        "-o a.csv -o a.csv": "twice",
        "--save m.pkl": ".twofold",
        "-k 9": "at most 6",
        "--drop heigth": '"height"',
        "--method magic": "pca, bayesian, fa, ae, fisher or glrm",
        "--method fisher": "--label",
        "--label group": "go together",
        "--method fisher --label grop": 'Did you mean "group"',
    },
    "cluster": {
        "-k 999": "at most 180",
        "--drop heigth": '"height"',
    },
    "complete": {
        "--drop heigth": '"height"',
    },
    "recommend": {
        "--rating-column stars": '"rating"',
        "--user-column x": '"user"',
        "--names missing.csv": "missing.csv",
        "--time 0": "--time",
        "--split items": "--items",
    },
    "topics": {
        "-k 5000": "at most",
        "--text bdy": '"body"',
        "--date title": 'line 2, column "title": "Letter 0" is not a date',
        "--stop-words none.txt": "none.txt",
    },
    "embed": {
        "-k 5000": "at most 51",
        "--min-count 100000": "too few",
        "--method pmi --epochs 3": "--epochs",
        "--text bdy": "bdy",
        "--analogies none.txt": "none.txt",
        "--similarity none.txt": "none.txt",
        "--analogies lines.txt": "lines.txt, line 1",
    },
}
COMMANDS = {  # whole command lines, run among the files of a writer -> words of the refusal, parted by |
    worlds.write_images: {
        "compress photo.png -o photo.png --force": "input",
        "compress photo.png -o old.tfi": "--force",
        "compress photo.png -o out.jpg": ".tfi",
        "compress photo.png -o out.tfi --psnr 40 --size 1k": "one of them",
        "compress photo.png -o out.tfi --size lots": "40k",
        "compress photo.png -o out.tfi --size 20": "bytes",
        "compress photo.png -o out.tfi --method magic": "wavelet",
        "compress photo.png --size 150 -o tiny.jp2": "JPEG 2000",
        "compress phoot.png -o out.tfi": "photo.png",
        "compress text.png -o out.tfi": "text.png",
        "compress none.tfi -o out.png": "none.tfi",
        "compress cut.tfi -o out.png": "cut.tfi",
        "compress good.tfi -o out.jpg": "transparency",
        "compress good.tfi -o out.tfi": ".png",
        "compress good.tfi -o out.png --psnr 30": "compressed already",
        "denoise noisy.png -o out.gif": ".png",
        "denoise noisy.png -o out.png --compare out.png": "twice",
        "denoise noisy.png -o out.png --compare both.jpg": ".html",
        "denoise noisy.png -o out.png --compare old.png": "--force",
        "denoise clear.png -o out.jpg": "transparency",
        "denoise deep.png -o out.jpg": "16 bits",
        "denoise cut.png -o out.png": "cut.png",
        "denoise gone.png -o out.png": "gone.png",
        "denoise noisy.png --sigma -1": "--sigma",
    },
    worlds.write_holes: {
        "inpaint known.png -o out.png": "--mask mask.png",
        "inpaint known.png --mask small.png -o out.png": "20 × 10",
        "inpaint known.png --mask black.png -o out.png": "white",
        "inpaint known.png --mask white.png -o out.png": "every pixel",
        "inpaint known.png --mask gone.png -o out.png": "gone.png",
        "inpaint known.png --mask mask.png --color red": "one of them",
        "inpaint known.png --mask mask.png -o mask.png --force": "input",
        "inpaint known.png --mask mask.png --compare mask.png --force": "input",
        "inpaint known.png --color #ff00fg -o out.png": "'#ff00ff'",
        "inpaint mask.png --color #ff00ff -o out.png": "gray",
    },
    worlds.write_signals: {
        "denoise walk.npy -o walk.wav": "numbers a second",
        "denoise hum.wav -o clean.png": ".wav",
        "denoise hum.wav --columns left": "no columns",
        "denoise sensors.csv --columns levl": 'Did you mean "level"',
        "denoise hum.wav --method ksvd": "hard or soft",
        "denoise photo.png --columns a": "is for tables",
        "denoise photo.png --method median": "ksvd, hard or soft",
        "denoise cut.wav": "cut.wav",
        "denoise text.wav": "uncompressed WAV",
        "denoise gone.wav": "gone.wav",
        "denoise short.csv": "3 rows",
        "compress sensors.csv": "--columns level",
        "compress hum.wav --method dct": "lapped",
        "compress hum.wav -o hum.tfi": ".tfs",
        "compress walk.npy --size 10": "--size 10",
        "compress cut.tfs": "cut.tfs",
        "compress gone.tfs": "gone.tfs",
    },
    worlds.write_measured: {
        "sense photo.png --simulate -o out.csv": ".png",
        "sense two.csv --simulate -o out.png": ".csv",
        "sense photo.png -o out.png --kind magic": "hadamard",
        "sense two.csv -o out.csv": "--simulate",
        "sense two.csv --simulate --length 99": "leave out",
        "sense two.csv --length 12x -o out.csv": "48x64",
        "sense two.csv --length 100 -o out.csv": "nothing is missing",
        "sense two.csv --length 300 -o out.png": ".csv",
        "sense two.csv --length 30x30 -o out.csv": ".png",
        "sense two.csv --matrix one.npy -o out.csv": "nothing is missing",
        "sense two.csv --matrix two.npy -o out.csv": "transposed",
        "sense photo.png -o out.png --fraction 0": "0.3",
        "sense photo.png -o out.png --fraction 2": "--fraction",
        "sense blank.csv --simulate -o out.csv": "row 2",
        "sense short.csv --simulate -o out.csv": "too short",
        "sense gone.csv --simulate -o out.csv": "gone.csv",
        "sense text.png --simulate -o out.png": "text.png",
    },
    worlds.write_digits: {
        "train bert digits.npz": "KIND bert: choose vae",
        "train vae missing.npy": "missing.npy",
        "train cnn bare.npy": "no classes",
        "train mlp table.csv": "--target",
        "train mlp table.csv --target z": "no column 'z'",
        "train flow holes.csv": "blank",
        "train flow table.csv --target b": "predicts nothing",
        "train vae table.csv --target b": "Train an mlp",
        "train cnn digits.npz --components 3": "has no code",
        "train vae few.npy": "20 are needed",
        "train vae digits.npz --save model.bin": ".twofold",
        "generate nowhere.twofold": "nowhere.twofold",
        "generate digits.npz": "digits.npz",
    },
    worlds.write_bad_vectors: {
        "words court.twofold nearest zzqq": "'zzqq'",
        "words court.twofold analogy man king womann": "'womann'|'woman'",
        "words court.twofold similarity king zzzz": "'zzzz'",
        "words court.twofold analogy man king": "MAN KING WOMAN",
        "words court.twofold nearest": "nearest takes WORD",
        "words court.twofold closest king": "closest|nearest",
        "words court.twofold analogy man king woman --method magic": "multiplicative",
        "words court.twofold export out.npy": ".parquet",
        "words court.twofold export court.txt": "court.txt exists|--force",
        "words court.twofold export court.twofold --force": "input",
        "words court.twofold evaluate none.txt": "none.txt",
        "words curt.twofold nearest king": "curt.twofold does not exist|court.twofold",
        "words pca.twofold nearest king": "holds a PCA|twofold embed",
        "words broken.twofold nearest king": "broken.twofold",
        "words broken.txt nearest king": "broken.txt|line 2",
        "words broken.bin nearest king": "broken.bin",
        "words court.npy nearest king": "court.npy|.bin",
        "words a.txt align": "align takes OTHER",
        "words a.txt align b.txt": "no word in common",
        "words a.txt align b.txt --pairs none.tsv": "none.tsv",
        "words a.txt align b.txt -o b.txt": "b.txt",
        "words a.txt nearest word1 --pairs pairs.tsv": "for align",
    },
    worlds.write_saved_ratings: {
        "recommend m.twofold --user 999 -o out.csv": "999|They are numbers",
        "recommend m.twofold --new Golden:5 -o out.csv": "Golden|Close to it",
        "recommend k.twofold": "KMeans",
        "recommend none.twofold": "none.twofold",
        "recommend ratings.csv --items twice.csv --quiet --time 1": "more than once|Keep one row of each",
        "recommend ratings.csv --items foreign.csv --quiet --time 1": "item|ratings",
        "recommend ratings.csv --items empty.csv --quiet --time 1": "empty.csv is empty",
    },
    worlds.write_streamed: {
        "--memory 2MB complete gaps --method als -o out.parquet": "needs all cells in memory|ppca|--memory",
        "--memory 2MB complete gaps --drop c0 -o out.parquet": "larger than the memory budget|--drop",
        "--memory 2MB complete gaps/0.parquet gaps/1.parquet gaps/2.parquet -o out.parquet": (
            "and 2 more|pattern in quotes|--memory"
        ),
    },
    worlds.write_rated: {
        "--memory 1.1MB recommend stars.parquet --save m.twofold": "raise the budget",
        "--memory 1.1MB recommend stars.parquet --split random": "raise the budget",
    },
}
TABLES = {  # bad files by name -> their content, words of the refusal
    "reduce": [
        ("ragged.csv", "a,b\n1,2\n3\n", "ragged.csv, line 3: 1 field where the header has 2"),
        ("text.csv", "a,b\n" + "1,2\n" * 9 + "3,oops\n", 'text.csv, line 11, column "b": "oops" is not a number'),
        ("empty.csv", "", "empty.csv is empty"),
        ("zero.parquet", "", "zero.parquet is empty"),
        ("one.csv", "a,b\n1,2\n", "one row"),
        ("flat.csv", "a,b\n1,2\n1,2\n1,2\n", "constant"),
        ("words.csv", "a,b\nx,y\nz,y\n", "no column of numbers"),
    ],
    "complete": [
        ("bad.csv", "a,b\n1,2\n3\n", "line 3|1 field|Add"),
        ("bad.csv", "a,b\n1,2\n3,x\n5,6\n", 'line 3|column "b"|"x"|--missing'),
        ("bad.csv", "a,b\n1,inf\n3,\n", 'line 2|column "b"|finite|--missing'),
        ("bad.csv", "", "empty"),
        ("bad.csv", "a,b\nx,y\nz,\n", "no column of numbers"),
        ("bad.csv", 'a,b\n1,2\n"3,4\n5,6\n', "line 3|quote|never closed"),
    ],
    "recommend": [
        ("bad.csv", "user,item,rating\na,x,5\nb,y,good\nc,z,3\nd,x,4\n", 'line 3|column "rating"|"good"|--missing'),
        ("bad.csv", "user,item,rating\na,x,5\n,y,4\n", 'line 3|column "user"|blank|remove'),
        ("bad.csv", "user,item,rating\na,x,5\nb,y\n", "line 3|2 fields"),
        ("bad.csv", "user,item,rating\na,x,inf\nb,y,2\n", 'line 2|column "rating"|finite'),
        ("bad.csv", "user\na\nb\n", "one column|user, an item"),
        ("bad.csv", "", "empty"),
        ("bad.csv", "user,item,rating\na,x,\nb,y,NA\n", "every one is blank"),
        ("bad.csv", "user,item,rating\na,x,5\na,y,4\n", "one user alone, 'a'|--user-column"),
        ("bad.csv", "user,item,rating\na,x,5\nb,x,4\n", "one item alone, 'x'|--item-column"),
        ("bad.csv", "length,mass,age\n1.5,80.2,3\n1.7,90.1,4\n", "fractions such as 1.5|--user-column"),
    ],
}
TEXTS = [
    ("bad.csv", b"id,text\n1,a b c\n2,d,e,f\n", "line 3|4 fields"),
    ("bad.jsonl", b'{"text": "a"}\n{"text": \n', "line 2|not JSON"),
    ("bad.txt", b"", "empty"),
    ("bad.csv", b"a,b\n1,2\n3,4\n", "no column of text"),
    ("bad.pdf", b"%PDF-1.4 some text\n" * 9, "plain text"),
    ("bad.txt", b"\x00\x01\x02\x03\x00\xff" * 50, "not text"),
]
TABLES["topics"] = [
    *TEXTS,
    ("bad.txt", b"only one line\n", "1 document|each line"),
    ("bad.txt", b"the of\nand to\nin is\nit that\nfor was\n", "no word"),
    ("bad.npy", b"", "bad.npy"),
]
TABLES["embed"] = [
    *TEXTS,
    ("bad.txt", b"one two\n", "too few"),
    ("bad.txt", b"... ,,, !!!\n" * 5, "no word"),
    ("bad.txt.gz", b"\x1f\x8b\x08\x00garbage", "gzip"),
]


def require_refusal(twofold, argv, words):
    before = read_folder()
    result = twofold(*argv)
    assert result.exit_code == 2, result.stderr
    assert all(word in result.stderr for word in words.split("|")), result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    assert read_folder() == before


@pytest.mark.parametrize(("verb", "options"), [(verb, options) for verb in OPTIONS for options in OPTIONS[verb]])
def test_options_that_cannot_be(twofold, verb, options):
    file, write = EXAMPLES[verb]
    copy_files(write)
    require_refusal(twofold, [verb, file, *options.format(file=file).split()], OPTIONS[verb][options])


@pytest.mark.parametrize(
    ("write", "command"),
    [pytest.param(write, command, id=command) for write in COMMANDS for command in COMMANDS[write]],
)
def test_commands_that_cannot_be(twofold, write, command):
    if command.startswith(("train", "generate")):
        pytest.importorskip("torch")
    copy_files(write)
    require_refusal(twofold, command.split(), COMMANDS[write][command])


@pytest.mark.parametrize(
    ("verb", "name", "content", "words"),
    [pytest.param(verb, *case, id=f"{verb}: {case[2]}") for verb in TABLES for case in TABLES[verb]],
)
def test_files_that_cannot_be_used_are_named(twofold, verb, name, content, words):
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    require_refusal(twofold, [verb, name, *OUTPUTS], f"{name}|{words}")


def test_streamed_files_that_cannot_be_used_are_named(twofold):
    import polars as pl

    files = copy_files(worlds.write_streamed)
    argv = ["--memory", "2MB", "complete", "gaps", "-o", "out.parquet"]
    Path("gaps/1.parquet").write_bytes(files["gaps/1.parquet"][:-500])
    require_refusal(twofold, argv, "1.parquet")
    Path("gaps/1.parquet").write_bytes(files["gaps/1.parquet"])
    pl.read_parquet("gaps/1.parquet").with_columns(name=pl.lit("x")).write_parquet("gaps/1.parquet")
    require_refusal(twofold, argv, 'column "name" is String')
