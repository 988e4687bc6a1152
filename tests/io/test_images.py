"""Pictures on disk: what is in the file arrives, what cannot be kept is said or refused, and errors are one line."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from twofold.core.checks import InputError
from twofold.io.images import DEEP, ENDINGS, WITH_ALPHA, encode_image, read_image, write_image

LOSSY = (".jpg", ".jpeg")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def make():
    """Pixels of any kind: smooth, so that JPEG keeps them nearly."""

    def pixels(*channels, dtype=np.uint8, shape=(20, 31)):
        rows, columns = np.indices(shape)
        top = np.iinfo(dtype).max
        parts = [(rows * (c + 1) + columns * (3 - c)) / 150 % 1 * top for c in range(*channels or (1,))]
        return (np.dstack(parts) if channels else parts[0]).astype(dtype)

    return pixels


def refusal(call, *args):
    with pytest.raises(InputError) as caught:
        call(*args)
    message = str(caught.value)
    assert "\n" not in message and message.endswith((".", "?"))
    return message


def png(bits, kind, rows):
    """A PNG file made by hand: rows of bytes, each with the filter 'none'."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    h, w = rows.shape[:2]
    head = struct.pack(">IIBBBBB", w, h, bits, kind, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read(make, ending):
    for pixels in [make()] + ([make(3)] if ending != ".pgm" else []):
        write_image(f"a{ending}", pixels)
        if ending == ".webp" and pixels.ndim == 2:  # which has no grey
            pixels = np.dstack([pixels] * 3)
        got = read_image(f"a{ending}")
        assert got.pixels.shape == pixels.shape and got.pixels.dtype == np.uint8 and got.alpha is None
        assert got.notes == [] and got.peak == 255
        off = np.abs(got.pixels.astype(int) - pixels)
        assert off.mean() < 6 if ending in LOSSY else off.max() == 0


@pytest.mark.parametrize("ending", ENDINGS)
def test_sixteen_bits_and_transparency_are_kept_or_refused(make, ending):
    deep = make(dtype=np.uint16)
    alpha = make()[::-1]
    if ending in DEEP:
        write_image(f"deep{ending}", deep)
        np.testing.assert_array_equal(read_image(f"deep{ending}").pixels, deep)
    else:
        assert "16 bits" in refusal(write_image, f"deep{ending}", deep)
    flat = make() if ending == ".pgm" else make(3)
    if ending in WITH_ALPHA:
        for pixels in (make(), make(3)):
            write_image(f"clear{ending}", pixels, alpha)
            got = read_image(f"clear{ending}")
            np.testing.assert_array_equal(got.alpha, alpha)
            seen = alpha > 0
            want = pixels if got.pixels.ndim == pixels.ndim else np.dstack([pixels] * 3)
            np.testing.assert_array_equal(got.pixels[seen], want[seen])
    else:
        assert "transparency" in refusal(write_image, f"clear{ending}", flat, alpha)
        write_image(f"clear{ending}", flat, np.full_like(alpha, 255))  # nothing is transparent, nothing is lost
        assert read_image(f"clear{ending}").alpha is None
    assert "16 bits" in refusal(encode_image, ending, make(3, dtype=np.uint16))


def test_modes_that_become_grey_or_colour(make):
    grey, color = Image.fromarray(make()), Image.fromarray(make(3))
    grey.convert("1").save("bits.png")
    got = read_image("bits.png")
    assert got.pixels.ndim == 2 and set(np.unique(got.pixels)) == {0, 255}
    palette = color.quantize(16)
    palette.save("palette.png")
    np.testing.assert_array_equal(read_image("palette.png").pixels, np.asarray(palette.convert("RGB")))
    palette.save("key.png", transparency=3)
    np.testing.assert_array_equal(read_image("key.png").alpha == 0, np.asarray(palette) == 3)
    color.save("rgbkey.png", transparency=tuple(int(v) for v in make(3)[4, 5]))
    assert read_image("rgbkey.png").alpha[4, 5] == 0
    color.convert("CMYK").save("print.jpg")
    got = read_image("print.jpg")
    assert got.pixels.shape == (20, 31, 3) and "CMYK" in got.notes[0]


def test_deep_colours_are_said_to_be_cut(make):
    deep = make(3, dtype=np.uint16)
    with open("deep.png", "wb") as file:
        file.write(png(16, 2, deep.astype(">u2")))
    got = read_image("deep.png")
    np.testing.assert_array_equal(got.pixels, deep >> 8)
    assert "upper 8" in got.notes[0]
    with open("la.png", "wb") as file:
        file.write(png(16, 4, make(2, dtype=np.uint16).astype(">u2")))
    assert read_image("la.png").pixels.ndim == 2


def test_numbers_that_are_no_picture_are_refused(make):
    Image.fromarray(make().astype(np.float32)).save("float.tif")
    assert "float.tif" in refusal(read_image, "float.tif")
    Image.fromarray(make().astype(np.int32) * 1000).save("wide.tif")
    assert "65535" in refusal(read_image, "wide.tif")


@pytest.mark.parametrize("ending", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_pictures_are_upright_once(make, ending, turn):
    pixels = make(3)
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.fromarray(pixels).save(f"turned{ending}", exif=exif)
    turns = {1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1]}
    turns |= {5: lambda a: a.swapaxes(0, 1), 6: lambda a: np.rot90(a, -1)}
    turns |= {7: lambda a: a[::-1, ::-1].swapaxes(0, 1), 8: np.rot90}
    got = read_image(f"turned{ending}").pixels
    want = turns[turn](pixels)
    assert got.shape == want.shape
    assert np.mean(np.abs(got.astype(int) - want)) < 30  # JPEG and WebP lose some; a wrong turn loses far more
    write_image(f"again{ending}", got)
    again = read_image(f"again{ending}").pixels
    assert again.shape == got.shape and np.mean(np.abs(again.astype(int) - got)) < 8


def test_the_first_of_many(make):
    frames = [Image.fromarray(make(3)), Image.fromarray(make(3)[::-1].copy())]
    frames[0].save("two.tif", save_all=True, append_images=frames[1:])
    got = read_image("two.tif")
    np.testing.assert_array_equal(got.pixels, make(3))
    assert "2 pictures" in got.notes[0]


def test_colour_profiles_travel(make):
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for ending in (".png", ".jpg", ".tif", ".webp", ".bmp"):
        write_image(f"p{ending}", make(3), icc_profile=profile)
        assert read_image(f"p{ending}").info.get("icc_profile") == (None if ending == ".bmp" else profile)


def test_files_that_cannot_be_read(make, folder, monkeypatch):
    write_image("good.png", make(3, shape=(60, 60)))
    whole = (folder / "good.png").read_bytes()
    bad = {"cut.png": whole[: len(whole) // 2], "text.png": b"hello", "empty.png": b"", "head.png": whole[:20]}
    bad |= {"cut.jpg": encode_image(".jpg", make(3, shape=(60, 60)))[:700], "page.pdf": b"%PDF-1.4\n"}
    bad |= {"program.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "poor.pgm": b"P5\n9 x\n255\n"}
    for name, data in bad.items():
        (folder / name).write_bytes(data)
        assert name in refusal(read_image, name)
    assert "good.png" in refusal(read_image, "god.png")
    assert "folder" in refusal(read_image, ".")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert "million pixels" in refusal(read_image, "good.png")


def test_damage_anywhere_is_an_input_error(make, folder):
    rng = np.random.default_rng(0)
    for ending in (".png", ".jpg", ".tif", ".webp", ".bmp", ".pgm"):
        data = bytearray(encode_image(ending, make()))
        for _ in range(40):
            at, value = rng.integers(len(data)), rng.integers(256)
            (folder / "hurt").write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            try:
                assert read_image("hurt").pixels.size
            except InputError as error:
                assert "hurt" in str(error)


def test_standard_input(make, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(encode_image(".png", make()))

    monkeypatch.setattr("sys.stdin", Stdin)
    np.testing.assert_array_equal(read_image("-").pixels, make())


def test_a_refused_picture_leaves_the_old_file(make, folder):
    (folder / "old.jpg").write_bytes(b"old")
    for pixels, alpha in [(make().astype(float), None), (make(dtype=np.uint16), None), (make(3), make())]:
        refusal(write_image, "old.jpg", pixels, alpha)
    refusal(write_image, "old.jpg", make(shape=(1, 70_000)))
    refusal(write_image, "old.xyz", make())
    refusal(write_image, "old", make())
    assert (folder / "old.jpg").read_bytes() == b"old"
    assert [p.name for p in folder.iterdir()] == ["old.jpg"]
