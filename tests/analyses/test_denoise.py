"""analyses.denoise: the answer is the same for files and arrays."""

import numpy as np
import pytest

from twofold import analyses
from twofold.analyses.denoise.answer import measure_removed
from twofold.core.checks import InputError
from twofold.io.images import read_image, write_image


@pytest.fixture
def noisy():
    """Two plains with noise, in three colors."""
    rows, columns = np.mgrid[:40, :32]
    light = 60.0 + 100 * (rows > columns) + rows
    clean = np.dstack([light, light, 200 - light / 2])
    return np.clip(np.rint(clean + np.random.default_rng(0).normal(scale=20, size=clean.shape)), 0, 255).astype(
        np.uint8
    )


def test_file_array_and_code_give_the_same(tmp_path, monkeypatch, noisy):
    monkeypatch.chdir(tmp_path)
    write_image("noisy.png", noisy)
    answer, other = analyses.denoise("noisy.png", add_noise=5, seed=3), analyses.denoise(noisy, add_noise=5, seed=3)
    assert answer.figures == other.figures and answer.baseline == other.baseline
    np.testing.assert_array_equal(answer.image, other.image)
    for one, given in ((answer, {}), (other, {"data": noisy})):
        exec(one.code, given)
        assert given["answer"].figures == one.figures
    assert answer.baseline.keys() - {"method"} <= answer.figures.keys()


def test_image_and_figure_go_to_files_of_their_own(tmp_path, noisy):
    answer = analyses.denoise(noisy)
    answer.save(tmp_path / "clean.png", tmp_path / "report.html", compare=tmp_path / "both.png")
    np.testing.assert_array_equal(read_image(tmp_path / "clean.png").pixels, answer.image)
    assert read_image(tmp_path / "both.png").pixels.shape[1] > 1000
    with pytest.raises(InputError, match="exists"):
        answer.save(compare=tmp_path / "both.png")


def test_transparency_stays(noisy):
    alpha = np.arange(noisy[..., 0].size, dtype=np.uint8).reshape(noisy.shape[:2])
    got = analyses.denoise(np.dstack([noisy, alpha])).image
    np.testing.assert_array_equal(got[..., 3], alpha)


@pytest.mark.parametrize("bad", [np.zeros((4, 4)), np.zeros((4, 4, 5), np.uint8)])
def test_what_is_no_image_is_refused(bad):
    with pytest.raises(InputError, match="uint8 or uint16"):
        analyses.denoise(bad)


def test_what_is_removed_is_judged():
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=7, size=(300, 300))
    taken, alike = measure_removed(noise, np.zeros_like(noise))
    assert taken == pytest.approx(7, rel=0.05) and abs(alike) < 0.02
    stripes = np.repeat(rng.normal(size=(300, 30)), 10, axis=1)
    assert measure_removed(stripes, np.zeros_like(stripes))[1] > 0.3
    assert measure_removed(noise, noise) == (0.0, 0.0)
