"""The files that benchmarks are run with, looked for in the folder that ROBUSTPCA_DATA names."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from robustpca.datasets import fetch, load
from robustpca.datasets.catalogue import ENTRIES, MFEAT_VIEWS

# File: name, shape of X, image shape, least and largest class (0 without classes), number of
# classes, SHA-256 of the file.
FILES = {
    "att_112x92": (
        "att",
        (400, 10304),
        (112, 92),
        10,
        10,
        40,
        "963a7098b3dc30620c85443a6747fb91c9f997d49aede15f7dc2949bd004602c",
    ),
    "orl_32x32": (
        "orl",
        (400, 1024),
        (32, 32),
        10,
        10,
        40,
        "fc3615a86b3b680129cfc6518961a41de6a5e14ec66ec651d72cb1db62f3f9ed",
    ),
    "orl_64x64": (
        "orl",
        (400, 4096),
        (64, 64),
        10,
        10,
        40,
        "69e13e796376a240cda297a55bdc7c6820df909e572f67e96d20ae476e8c1fa8",
    ),
    "yale_32x32": (
        "yale",
        (165, 1024),
        (32, 32),
        11,
        11,
        15,
        "5a0f818ff2cea5f91e6f6307dd4f235008fd83c25625961ccb9f4f85c5d04044",
    ),
    "coil20_32x32": (
        "coil20",
        (1440, 1024),
        (32, 32),
        72,
        72,
        20,
        "b5abced0c08381ffbf93eddffbeca4967f5ca36f4f992b049aa147b9be41bff4",
    ),
    "jaffe_32x32": (
        "jaffe",
        (213, 1024),
        (32, 32),
        20,
        23,
        10,
        "681d89eb8a019cb2e8f244be3a3fb12cbd968389f3a4bafc0a7e49ca30b0d97e",
    ),
    "jaffe_uncropped_32x32": (
        "jaffe_uncropped",
        (213, 1024),
        (32, 32),
        20,
        23,
        10,
        "7e9134b643e246f2a76bb3d824ffb17903ddc991a8ffe5d9fb5a31af8b9c0432",
    ),
    "pie_pose27_32x32": (
        "pie",
        (2856, 1024),
        (32, 32),
        42,
        42,
        68,
        "43e270c7284bf47882b83445a7b9d81fdc1c2a4b80ad9f6234f499c00ad4e099",
    ),
    "yaleb_32x32": (
        "yaleb",
        (2414, 1024),
        (32, 32),
        59,
        64,
        38,
        "5b7bd5127b441edae3d22e1eb8a514df2fe18e15f2a69522e0e37060b77a9bdf",
    ),
    "yaleb_192x168_5subjects": (
        "yaleb_5subjects",
        (316, 32256),
        (192, 168),
        60,
        64,
        5,
        "7df3f10076c6bf29a948f84c98ee8fda4c99c5cc6bc8b95bbd2b338e3c5db657",
    ),
    "fei_48x64": (
        "fei",
        (500, 3072),
        (48, 64),
        5,
        5,
        100,
        "dffa5ab77fd1d877437578751caeedbac1f0b567eb8e974f7a55712da29c1484",
    ),
    "feret_40x40": (
        "feret",
        (1400, 1600),
        (40, 40),
        7,
        7,
        200,
        "353609974da3c9f901b09b90da26c8b0bd3d19ae1a5c268a67be2e0934c583f8",
    ),
    "mnist_28x28": (
        "mnist",
        (70000, 784),
        (28, 28),
        6313,
        7877,
        10,
        "89590271b10514482dc272cd11c2d1915b343f7140c7d36ffc669ca4216dfa74",
    ),
    "usps_16x16": (
        "usps",
        (9298, 256),
        (16, 16),
        708,
        1553,
        10,
        "477b86195e1a41ccd9966e128972d13915780414224851337efbce51dcfd6457",
    ),
    "mfeat": (
        "mfeat",
        (2000, 649),
        None,
        200,
        200,
        10,
        "1a9855eeb1c46284e8083f5ef6b26e8b6de9984d4d35d366575775543c4acd91",
    ),
    "kddcup99_10pct": (
        "kddcup99",
        (494021, 38),
        None,
        2,
        280790,
        23,
        "0c8dd463c0b4cce00f2a3396d8858e409a3acf68e9193261a2d89e073338850e",
    ),
    "flights_3m": (
        "flights",
        (3000000, 7),
        None,
        0,
        0,
        0,
        "0fe5dea25e6809813bda0997306d46e583aa13237c1844684ad239f8ea18835f",
    ),
    "i2r_bootstrap": (
        "i2r_bootstrap",
        (600, 19200),
        (120, 160),
        0,
        0,
        0,
        "bd8789447f192078d3051148411a902805ff6bdb0b342a5455ae09c043ad596f",
    ),
    "i2r_curtain": (
        "i2r_curtain",
        (593, 20480),
        (128, 160),
        0,
        0,
        0,
        "35b32c40d1e0fb1247b78800c7758144b1ac3c57c496f0715cad3a3d6937f43c",
    ),
    "i2r_escalator": (
        "i2r_escalator",
        (200, 20800),
        (130, 160),
        0,
        0,
        0,
        "0e3a7f453f1ea4317e89e56c2769b82390cdedb4631767685f1faa345f735046",
    ),
    "i2r_hall": (
        "i2r_hall",
        (24, 25344),
        (144, 176),
        0,
        0,
        0,
        "4b9b8615a9166eba57533e3e2c750027d4c087b2310ac80beba96cb47c81e1b4",
    ),
    "i2r_watersurface": (
        "i2r_watersurface",
        (48, 20480),
        (128, 160),
        0,
        0,
        0,
        "97439e1841b342c277823d804ea408121d58242b5916e686045fcbc16c490a10",
    ),
    "cdnet_highway": (
        "cdnet_highway",
        (411, 19200),
        (120, 160),
        0,
        0,
        0,
        "db60600d336f12ef32cdeead7e63db26bd2fe4cf0eaef358313d46ab106f69bf",
    ),
    "cdnet_canoe": (
        "cdnet_canoe",
        (390, 19200),
        (120, 160),
        0,
        0,
        0,
        "f64eef8a22c9101aaf335904601edef7d1d361494b04011d67705cb72f91700e",
    ),
}
EXTRAS = {
    "fei": {"is_outlier": (500,)},
    "mfeat": {"view_names": (6,), "view_sizes": (6,)},
    "kddcup99": {"label_names": (23,), "columns": (38,)},
    "flights": {"columns": (7,), "airports": (229,)},
    "i2r_bootstrap": {"frame": (600,)},
    "i2r_curtain": {"frame": (593,)},
    "cdnet_highway": {"masks": (411, 19200), "background": (19200,), "background_valid": (19200,)},
    "cdnet_canoe": {"masks": (390, 19200), "background": (19200,), "background_valid": (19200,)},
}


def path_of(file):
    folder = os.environ.get("ROBUSTPCA_DATA")
    path = Path(folder or ".") / f"{file}.npz"
    if folder is None or not path.exists():
        pytest.skip(f"needs {file}.npz in the folder that ROBUSTPCA_DATA names")
    return path


@pytest.mark.parametrize("file", FILES)
def test_the_file_is_the_one_that_was_described(file):
    name, shape, image_shape, least, largest, n_classes, sha256 = FILES[file]
    path = path_of(file)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    data = load(name, size=image_shape)
    assert data.X.shape == shape
    assert data.image_shape == image_shape
    # Content known to the catalogue has the origin it gives, not a path.
    assert data.origin in ENTRIES[name].origins.values()
    if n_classes:
        counts = np.bincount(data.y)
        assert (len(counts), counts.min(), counts.max()) == (n_classes, least, largest)
    else:
        assert data.y is None
    for key, expected in EXTRAS.get(name, {}).items():
        assert data.extras[key].shape == expected
    if name == "mfeat":
        views = [view[:3] for view in MFEAT_VIEWS]
        assert list(data.extras["view_names"]) == views
        assert list(data.extras["view_sizes"]) == list(MFEAT_VIEWS.values())
    if image_shape is not None:
        assert 0 <= data.X.min() < 30
        assert 200 < data.X.max() <= 255


def test_every_origin_in_the_catalogue_is_that_of_a_file_here():
    n_origins = len({key for entry in ENTRIES.values() for key in entry.origins})
    assert n_origins == len(FILES)


def test_half_the_size_of_the_att_faces_is_their_average_over_blocks_of_four():
    path_of("att_112x92")
    whole, half = load("att"), load("orl", size=(56, 46))
    expected = whole.X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4))
    np.testing.assert_allclose(half.images, expected, rtol=1e-12)
    np.testing.assert_array_equal(half.y, whole.y)


@pytest.mark.slow
def test_what_openml_sends_for_mnist_is_recognised(tmp_path, monkeypatch):
    path_of("mnist_28x28")
    data = load("mnist")
    sent = Bunch(data=data.X.astype(np.int64), target=data.y.astype(str).astype(object))
    monkeypatch.setenv("ROBUSTPCA_DATA", "")
    monkeypatch.setattr("robustpca.datasets.files.cache_folder", lambda: tmp_path)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **options: sent)
    monkeypatch.setattr(np, "savez_compressed", np.savez)
    fetch("mnist")
    assert load("mnist").checksum == data.checksum


def test_masks_of_videos_hold_the_labels_that_are_scored():
    for name in ("cdnet_highway", "cdnet_canoe"):
        path_of(name)
        data = load(name)
        assert set(np.unique(data.extras["masks"])) <= {0, 50, 85, 170, 255}
        valid = data.extras["background_valid"]
        still = (data.extras["masks"] == 0) & valid
        # The background is what the frames show where nothing moves.
        errors = np.abs(data.X - data.extras["background"])
        assert np.median(errors[still]) < 6
        assert np.median(errors[data.extras["masks"] == 255]) > 15
        small = load(name, size=(60, 80))
        assert (small.extras["masks"] == 255).mean() < (data.extras["masks"] == 255).mean()
