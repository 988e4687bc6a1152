"""Every verb needs no options, writes nothing unasked, and writes the same bytes for the same seed."""

from pathlib import Path

import pytest

from tests.cli import worlds
from tests.cli.worlds import copy_files, read_folder
from twofold.io.images import read_image

PLAIN = {  # a command line -> its files, words of the answer, words of the notes; parted by |
    "reduce people.csv": (
        worlds.write_people,
        "PC1|PC2|columns that weigh most|held out|by PCA",
        '"name" names the rows|standardized|knee',
    ),
    "cluster groups.csv": (
        worlds.write_groups,
        "3 clusters by merged Gaussians|differs from all rows in|50%|(all: |silhouette|halves",
        '"name" names the rows|"kind"|standardized|3 groups: 3 Gaussians fit best by BIC',
    ),
    "complete people.csv": (
        worlds.write_blanks,
        "blanks|filled with|held out|column means give|sd",
        '"name" names the rows|the best of',
    ),
    "recommend ratings.csv": (
        worlds.write_ratings,
        "ratings by 120 users of 60 items|lists by |RMSE|NDCG@10|Biases|Popularity|recommended most|best for them",
        'users in "user", items in "item", ratings in "rating"; "timestamp" not used|lists by |ratings by ',
    ),
    "topics letters.csv": (
        worlds.write_letters,
        "90 documents|topics by LDA|share|Letter |held out: 9 documents|perplexity",
        'documents in "body"|dates in "sent_date"|the text is English|topics by LDA: of ',
    ),
    "embed lines.txt": (
        worlds.write_sentences,
        "7,200 words|51 different|by skip-gram|nearest|held out:",
        "numbers a word|epochs|each line is a text",
    ),
    "compress photo.png": (
        worlds.write_photo,
        "48|40|color|bytes|ratio|bits a pixel|PSNR|DCT blocks|wavelets|PCA",
        "36 dB|-o photo.tfi",
    ),
    "denoise noisy.png": (worlds.write_noisy, "noise|before|after|check:", "estimated|-o"),
    "inpaint clear.png": (
        worlds.write_holes,
        "missing pixels|held out|bilinear|dB",
        "transparent pixels are taken for missing|nothing is written",
    ),
    "sense grey.png --simulate": (
        worlds.write_measured,
        "measurements|30%|PSNR|cosines|theory",
        "--kind|nothing is written",
    ),
    "words court.twofold": (worlds.write_court, "7 words, 4 numbers each|analogy", ""),
}
REPORTS = {  # a command line that writes twice -> its files, endings, words of the page
    "reduce people.csv": (worlds.write_people, "png html csv", "PC2|names the rows"),
    "cluster groups.csv": (worlds.write_groups, "png html csv", "silhouette|names the rows"),
    "complete people.csv --method ppca": (worlds.write_blanks, "png html csv", "held out|PPCA"),
    "recommend ratings.csv --model als": (worlds.write_ratings, "png html csv", "held out"),
    "topics letters.csv -k 3": (worlds.write_letters, "png html csv", "held out"),
    "embed lines.txt --method pmi -k 6": (worlds.write_sentences, "png html csv txt", "held out"),
    "compress photo.png": (worlds.write_photo, "png html", "PCA of patches"),
}
WRITE_CSV = "reduce cluster complete recommend topics embed apply sense denoise compress words"


@pytest.mark.parametrize("command", PLAIN)
def test_no_options_are_needed_and_nothing_is_written(twofold, command):
    write, answer, notes = PLAIN[command]
    files = copy_files(write)
    result = twofold(*command.split())
    assert result.exit_code == 0, result.stderr
    assert all(word in result.stdout for word in answer.split("|")), result.stdout
    assert all(word in result.stderr for word in notes.split("|")), result.stderr
    assert read_folder() == files


@pytest.mark.parametrize("command", REPORTS)
def test_the_same_seed_writes_the_same_bytes_and_a_page_stands_alone(twofold, command):
    write, endings, words = REPORTS[command]
    copy_files(write)
    for name in ("a", "b"):
        outputs = [part for ending in endings.split() for part in ("-o", f"{name}.{ending}")]
        seed = [] if command.startswith("compress") else ["--seed", 3]
        result = twofold(*command.split(), *outputs, *seed)
        assert result.exit_code == 0, result.stderr
    for ending in endings.split():
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    picture = read_image("a.png").pixels
    assert min(picture.shape[:2]) > 600 and len({tuple(pixel) for pixel in picture[::9, ::9, :3].reshape(-1, 3)}) > 20
    page = Path("a.html").read_text()
    assert "data:image/png;base64," in page and "http" not in page.replace("http-equiv", "")
    assert all(word.lower() in page.lower() for word in words.split("|"))


@pytest.mark.parametrize(
    ("command", "write"),
    [
        ("denoise noisy.png --add-noise 5", worlds.write_noisy),
        ("inpaint known.png --mask mask.png", worlds.write_holes),
        ("sense two.csv --simulate", worlds.write_measured),
    ],
)
def test_a_comparison_is_drawn(twofold, command, write):
    copy_files(write)
    for name in ("both.png", "both.html"):
        result = twofold(*command.split(), "--compare", name)
        assert result.exit_code == 0, result.stderr
    assert read_image("both.png").pixels.shape[1] > 1000
    assert "data:image/png;base64," in Path("both.html").read_text()


@pytest.mark.parametrize("verb", WRITE_CSV.split())
def test_every_verb_that_writes_csv_can_do_so_safely(twofold, verb):
    assert "--safe-csv" in twofold(verb, "--help").stdout


@pytest.mark.parametrize(
    ("command", "name", "content", "answer", "note"),
    [
        ("topics", "few.txt", "the cat sat\nthe dog sat\na cat and a dog\nbirds fly\nbirds sing\n",
         "held out: nothing", "too few documents"),
        ("embed", "few.txt", "the cat sat\nthe dog sat\na cat and a dog\nthe bird and the cat\n",
         "held out: nothing", "too little text"),
        ("recommend", "few.csv", "user,item,rating\nann,x,5\nann,y,1\nbob,x,4\nbob,z,5\ncy,y,2\n",
         "for user cy", "too few to hold"),
        ("recommend", "equal.csv", "user,item,rating\nann,x,5\nann,y,5\nbob,y,5\nbob,z,5\ncy,x,5\n",
         "for user cy", "every rating is 5"),
    ],
)  # fmt: skip
def test_a_handful_of_data_is_enough(twofold, command, name, content, answer, note):
    Path(name).write_text(content)
    result = twofold(command, name, *(["--user", "cy"] if command == "recommend" else []))
    assert result.exit_code == 0, result.stderr
    assert answer in result.stdout and note in result.stderr
