import inspect
import os
import pickle
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from robustpca.datasets import (
    Dataset,
    catalog,
    data_folders,
    describe,
    load,
    make_graph_clusters,
    make_low_rank_plus_sparse,
    make_shifted_classes,
    make_subspace_with_outliers,
    make_video,
    read,
    resize_images,
    save,
)
from robustpca.datasets.catalogue import ENTRIES
from robustpca.datasets.files import cache_folder, write
from robustpca.metrics import subspace_distance

WITH_FILES = [name for name, entry in ENTRIES.items() if entry.files]
MADE = [name for name, entry in ENTRIES.items() if entry.make is not None]
PAPERS = [
    "orl",
    "att",
    "umist",
    "fei",
    "feret",
    "jaffe",
    "yale",
    "coil20",
    "pie",
    "yaleb",
    "yaleb_5subjects",
    "mnist",
    "usps",
    "mfeat",
    "census1990",
    "fsd10",
    "kinematic",
    "i2r_bootstrap",
    "i2r_shoppingmall",
    "i2r_hall",
    "i2r_curtain",
    "i2r_watersurface",
    "caviar",
    "synthetic_classes",
]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """A world without data: folders for data_home, the variable and the cache, all empty."""
    names = {key: tmp_path / key for key in ("home", "variable", "cache")}
    for folder in names.values():
        folder.mkdir()
    monkeypatch.setenv("ROBUSTPCA_DATA", str(names["variable"]))
    monkeypatch.setattr("robustpca.datasets.files.cache_folder", lambda: names["cache"])
    return names


def pixels(n_samples, height, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, size=(n_samples, height * width), dtype=np.uint8)


def store(path, **arrays):
    """A file as people make them, without a checksum."""
    np.savez_compressed(path, **arrays)
    return path


def store_images(folder, name, height, width, n_samples=6, seed=0):
    X = pixels(n_samples, height, width, seed)
    y = np.arange(n_samples) % 3
    store(folder / f"{name}_{height}x{width}.npz", X=X, y=y, shape=np.array([height, width]))
    return X


# Finding and loading


def test_pixels_labels_and_shape_come_back_and_pixels_can_be_calculated_with(folders):
    X = store_images(folders["home"], "yale", 8, 6)
    data = load("yale", data_home=folders["home"])
    assert data.name == "yale"
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, [0, 1, 2, 0, 1, 2])
    assert data.image_shape == (8, 6)
    np.testing.assert_array_equal(data.images[2], X[2].reshape(8, 6))
    # As 8-bit numbers these would have wrapped around.
    assert (data.X[0] - data.X[1]).min() < 0


def test_folders_are_searched_in_order(folders):
    for place, seed in (("cache", 1), ("variable", 2), ("home", 3)):
        expected = store_images(folders[place], "yale", 4, 4, seed=seed)
        np.testing.assert_array_equal(load("yale", data_home=folders["home"]).X, expected)
    found = next(status for status in catalog(folders["home"]) if status.name == "yale")
    assert [path.parent.name for path in found.files] == ["home", "variable", "cache"]


def test_without_data_home_and_variable_only_the_cache_is_searched(folders, monkeypatch):
    monkeypatch.delenv("ROBUSTPCA_DATA")
    assert data_folders() == [folders["cache"]]
    monkeypatch.setenv("ROBUSTPCA_DATA", "")
    assert data_folders("~/data") == [Path.home() / "data", folders["cache"]]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/there"}, "/there/robustpca"),
        ("linux", {"XDG_CACHE_HOME": ""}, "~/.cache/robustpca"),
        ("darwin", {}, "~/Library/Caches/robustpca"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/robustpca"),
        ("win32", {"LOCALAPPDATA": ""}, "~/AppData/Local/robustpca"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_such_files(
    platform, variables, expected, monkeypatch
):
    monkeypatch.setattr(sys, "platform", platform)
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    assert cache_folder() == Path(expected).expanduser()


def test_a_video_becomes_rows_with_its_masks_and_background(folders):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(5, 4, 6), dtype=np.uint8)
    masks = rng.choice(np.array([0, 50, 170, 255], dtype=np.uint8), size=X.shape)
    store(
        folders["variable"] / "cdnet_canoe.npz",
        X=X,
        masks=masks,
        background=X[0],
        background_valid=X[1] > 100,
        frame=np.arange(5),
    )
    data = load("cdnet_canoe")
    assert data.y is None
    assert data.image_shape == (4, 6)
    np.testing.assert_array_equal(data.images, X)
    np.testing.assert_array_equal(data.extras["masks"], masks.reshape(5, 24))
    np.testing.assert_array_equal(data.extras["background"], X[0].ravel())
    np.testing.assert_array_equal(data.extras["background_valid"], X[1].ravel() > 100)
    np.testing.assert_array_equal(data.extras["frame"], np.arange(5))


def test_tables_keep_single_precision_and_their_columns(folders):
    X = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    store(folders["variable"] / "kddcup99_10pct.npz", X=X, columns=np.array(["a", "b", "c"]))
    data = load("kddcup99")
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert data.image_shape is None
    assert list(data.extras["columns"]) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="rows of kddcup99 are not images: leave out size"):
        load("kddcup99", size=(3, 1))
    with pytest.raises(ValueError, match="rows of kddcup99 are not images"):
        _ = data.images


def test_the_origin_is_that_of_the_catalogue_only_for_the_content_it_knows(folders, monkeypatch):
    X = store_images(folders["variable"], "yale", 4, 4)
    assert load("yale").origin == str(folders["variable"] / "yale_4x4.npz")
    stored = Dataset("yale", X, np.arange(6) % 3, (4, 4), "")
    known = replace(ENTRIES["yale"], origins={stored.checksum: "a photographer"})
    monkeypatch.setitem(ENTRIES, "yale", known)
    assert load("yale").origin == "a photographer"
    store_images(folders["home"], "yale", 4, 4, seed=1)
    assert "photographer" not in load("yale", data_home=folders["home"]).origin


def test_a_data_set_is_frozen_pickles_and_has_a_checksum_of_its_data():
    data = make_video(10, (4, 6), random_state=0)
    with pytest.raises(FrozenInstanceError):
        data.name = "other"
    again = pickle.loads(pickle.dumps(data))
    assert again.checksum == data.checksum == replace(data, name="other").checksum
    assert again.checksum == replace(data, X=np.asfortranarray(data.X)).checksum
    assert again.checksum != replace(data, X=data.X[::-1]).checksum
    assert again.checksum != replace(data, X=data.X.astype(np.float64)).checksum
    assert again.checksum != replace(data, y=np.zeros(10)).checksum


# Sizes


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_whole_factors_average_blocks(dtype):
    X = pixels(3, 6, 8).astype(dtype)
    before = X.copy()
    resized = resize_images(X, (6, 8), (3, 2))
    expected = X.astype(np.float64).reshape(3, 3, 2, 2, 4).mean(axis=(2, 4)).reshape(3, 6)
    np.testing.assert_allclose(resized, expected, rtol=1e-6)
    assert resized.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (4, 3), (9, 20), (12, 16)])
def test_every_size_keeps_means_and_constant_images(size):
    X = np.vstack([pixels(3, 6, 8), np.full((1, 48), 77)])
    resized = resize_images(X, (6, 8), size)
    assert resized.shape == (4, size[0] * size[1])
    np.testing.assert_allclose(resized.mean(axis=1), X.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(resized[3], 77, rtol=1e-12)


def test_a_pixel_is_the_average_over_the_area_it_covers():
    # Three pixels into two: each takes one and a half.
    np.testing.assert_allclose(resize_images([[0, 6, 12]], (1, 3), (1, 2)), [[2, 10]])
    np.testing.assert_allclose(resize_images([[3, 9]], (1, 2), (1, 4)), [[3, 3, 9, 9]])


def test_fine_stripes_become_grey_instead_of_coarse_stripes():
    stripes = np.tile([0.0, 255.0], (1, 32))
    resized = resize_images(np.repeat(stripes, 4, axis=0).reshape(1, -1), (4, 64), (2, 30))
    assert np.abs(resized - 127.5).max() < 0.3 * 127.5


@pytest.mark.parametrize(
    ("stored", "size", "expected"),
    [
        (["orl_32x32", "orl_64x64", "att_112x92"], None, "orl_32x32"),
        (["orl_32x32", "orl_64x64", "att_112x92"], (32, 32), "orl_32x32"),
        (["orl_32x32", "orl_64x64", "att_112x92"], (64, 64), "orl_64x64"),
        (["orl_32x32", "orl_64x64", "att_112x92"], (56, 46), "att_112x92"),
        (["orl_32x32", "orl_64x64", "att_112x92"], (16, 16), "orl_32x32"),
        (["orl_32x32", "orl_64x64", "att_112x92"], (48, 48), "orl_64x64"),
        (["orl_32x32", "orl_64x64"], (80, 80), "orl_64x64"),
        (["att_112x92"], (64, 64), "att_112x92"),
        (["att_112x92"], None, "att_112x92"),
        (["olivetti_64x64", "orl_64x64"], (64, 64), "orl_64x64"),
    ],
)
def test_the_most_suitable_stored_size_is_taken(stored, size, expected, folders):
    images = {}
    for seed, file in enumerate(stored):
        name, shape = file.split("_")
        height, width = map(int, shape.split("x"))
        images[file] = (store_images(folders["cache"], name, height, width, 2, seed), height, width)
    data = load("orl", size=size)
    X, height, width = images[expected]
    assert data.image_shape == (size or (height, width))
    np.testing.assert_allclose(data.X, resize_images(X, (height, width), data.image_shape))
    assert ("resized from" in data.origin) == (data.image_shape != (height, width))


def test_files_of_other_sets_are_not_taken(folders):
    for name in ("jaffe_uncropped", "yaleb"):
        store_images(folders["cache"], name, 8, 8)
    (folders["cache"] / "jaffe_8x8.npz").mkdir()
    store(folders["cache"] / "yaleb_8x8_5subjects.npz.npz", X=pixels(2, 8, 8))
    for missing in ("jaffe", "yale", "yaleb_5subjects"):
        with pytest.raises(FileNotFoundError):
            load(missing)
    assert load("yaleb").image_shape == (8, 8)


def test_masks_keep_labels_only_where_all_covered_pixels_agree():
    masks = np.array([[[0, 0, 255, 255, 50, 50], [0, 0, 255, 0, 50, 50]]], dtype=np.uint8)
    valid = np.array([[True] * 5 + [False], [True] * 6])
    data = Dataset(
        "a",
        np.arange(12.0).reshape(1, 12),
        None,
        (2, 6),
        "",
        {
            "masks": masks.reshape(1, 12),
            "background": np.arange(12.0),
            "background_valid": valid.ravel(),
            "frame": [7],
        },
    )
    extras = data.resized((1, 3)).extras
    np.testing.assert_array_equal(extras["masks"], [[0, 170, 50]])
    np.testing.assert_allclose(extras["background"], [3.5, 5.5, 7.5])
    np.testing.assert_array_equal(extras["background_valid"], [True, True, False])
    assert extras["frame"] == [7]
    # Thirds do not add up to one exactly; whole areas must still be recognised.
    even = replace(data, extras={"masks": np.full((1, 12), 255, dtype=np.uint8)})
    assert (even.resized((3, 7)).extras["masks"] == 255).all()
    assert data.resized((2, 6)) is data


def test_some_of_the_samples_keep_what_is_known_about_them():
    X = np.arange(12.0).reshape(4, 3)
    extras = {"masks": X.astype(np.uint8), "background": np.arange(3.0), "frame": np.arange(4)}
    data = Dataset("mine", X, np.array([0, 1, 2, 3]), (1, 3), "", extras).taken([3, 1])
    np.testing.assert_array_equal(data.X, X[[3, 1]])
    np.testing.assert_array_equal(data.y, [3, 1])
    np.testing.assert_array_equal(data.extras["masks"], X[[3, 1]])
    np.testing.assert_array_equal(data.extras["frame"], [3, 1])
    np.testing.assert_array_equal(data.extras["background"], np.arange(3))


@pytest.mark.parametrize("size", [(0, 4), (-1, 4)])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match="is not the height and width"):
        load("digits", size=size)


# What is missing


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_missing_file_is_an_error_that_says_what_where_and_what_to_do(name, folders):
    with pytest.raises(FileNotFoundError) as caught:
        load(name, data_home=folders["home"])
    message, entry = str(caught.value), ENTRIES[name]
    assert entry.files[0].format(size="HEIGHTxWIDTH") + ".npz" in message
    for folder in folders.values():
        assert str(folder) in message
    fetches, saves = f"robustpca data fetch {name}" in message, f"save('{name}'" in message
    assert (fetches, saves) == (entry.download is not None, entry.download is None)
    assert "data_home=" in message
    assert message.count(". ") <= 3


def test_all_sets_of_the_papers_have_a_name():
    assert set(PAPERS) <= set(ENTRIES)
    assert [status.name for status in catalog()] == list(ENTRIES)


def test_the_catalogue_tells_what_is_there(folders):
    statuses = {status.name: status for status in catalog()}
    assert {name for name, status in statuses.items() if status.is_there} == set(MADE)
    assert statuses["mnist"].can_fetch
    assert not statuses["feret"].can_fetch
    assert "FERET data" in statuses["feret"].to_do
    store_images(folders["variable"], "feret", 4, 4)
    status = next(status for status in catalog() if status.name == "feret")
    assert status.is_there
    assert status.files == (folders["variable"] / "feret_4x4.npz",)
    assert status.to_do == ""
    assert status.needed == "feret_HEIGHTxWIDTH.npz"


def test_descriptions_say_where_a_file_is_or_how_to_get_it(folders):
    assert "file: missing\n    to do: Run `robustpca data fetch umist`" in describe("umist")
    store_images(folders["cache"], "umist", 4, 4)
    assert f"file: {folders['cache'] / 'umist_4x4.npz'}" in describe("umist")
    assert "to do" not in describe("umist")
    assert "file: none needed" in describe("synthetic_video")


def test_unknown_names_are_refused_with_those_that_look_alike():
    for call in (load, describe):
        with pytest.raises(ValueError, match=r"'minst'.*minst\.npz.*Did you mean .*'mnist'\?"):
            call("minst")
    with pytest.raises(ValueError, match="`robustpca data list` lists all names"):
        load("qqqqqqqq")


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".", "C:\\x", "a b"])
def test_names_cannot_lead_out_of_the_folder(name):
    with pytest.raises(ValueError, match="cannot be the name of a data set"):
        load(name)


def test_names_may_be_in_capitals(folders):
    store_images(folders["cache"], "orl", 4, 4)
    assert load("ORL").name == "orl"


# Damaged and foreign files


def content(**changes):
    arrays = {"X": pixels(4, 3, 2), "y": np.array([0, 1, 0, 1]), "shape": np.array([3, 2])}
    return {key: value for key, value in {**arrays, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": None}, "it has no array X, but y, shape"),
        ({"X": np.arange(5)}, r"X has shape \(5,\)"),
        ({"X": np.zeros((0, 6))}, r"X has shape \(0, 6\)"),
        ({"X": np.full((4, 6), "a")}, "type <U1, not samples in rows"),
        ({"X": np.full((4, 6), np.nan)}, "not finite"),
        ({"X": pixels(4, 1, 5)}, "X has 5 features, but its images are 3x2"),
        ({"shape": np.array([6, 1])}, "images are 6x1 and not 3x2"),
        ({"shape": np.array(6)}, "images are 6 and not 3x2"),
        ({"y": np.arange(3)}, r"y has shape \(3,\).* each of the 4 samples"),
        ({"y": np.array([0.0, 1, 0, 1])}, "type float64"),
        ({"y": np.array([-1, 1, 0, 1])}, "whole number from 0"),
        ({"is_outlier": np.zeros(3, dtype=bool)}, r"is_outlier has shape \(3,\)"),
        ({"frame": np.array(3)}, r"frame has shape \(\)"),
        ({"masks": np.zeros((4, 5))}, r"masks has shape \(4, 5\), but there are 6 pixels"),
        ({"background": np.zeros((2, 2))}, r"background has shape \(2, 2\)"),
        ({"X": np.array([[object()]])}, "allow_pickle=False"),
        ({"checksum": np.array("0" * 64)}, "do not have the checksum recorded"),
    ],
)
def test_files_with_wrong_content_are_refused_with_the_reason(changes, message, folders):
    path = store(folders["cache"] / "yale_3x2.npz", **content(**changes))
    with pytest.raises(ValueError, match=message) as caught:
        load("yale")
    assert str(caught.value).startswith(f"{path} is damaged or is no data set: ")
    assert "fetch or save the set again" in str(caught.value)


def test_files_that_are_something_else_are_refused(folders):
    path = folders["cache"] / "mfeat.npz"
    for other in (b"", b"not a zip file", b"PK\x03\x04 not a zip file either", bytes(1000)):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="is damaged or is no data set"):
            load("mfeat")
    with path.open("wb") as file:
        np.save(file, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="holds a single array"):
        load("mfeat")


def test_damage_anywhere_in_a_file_is_found(folders):
    path = save("yale", pixels(30, 6, 5), np.arange(30) % 3, image_shape=(6, 5))
    original, whole = load("yale"), path.read_bytes()
    rng = np.random.default_rng(0)
    n_found = 0
    for trial in range(400):
        damaged = bytearray(whole)
        if trial % 4 == 0:
            damaged = damaged[: rng.integers(len(whole))]
        else:
            damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            data = load("yale")
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
            n_found += 1
        else:
            # Some bytes do not matter, such as the time of day in the archive.
            assert data.checksum == original.checksum
            assert data.image_shape == original.image_shape
    assert n_found > 300


def test_a_damaged_file_is_not_passed_over_for_another(folders):
    store_images(folders["cache"], "yale", 4, 4)
    (folders["variable"] / "yale_4x4.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="variable"):
        load("yale")


def test_a_file_can_be_read_by_its_path(folders):
    X = pixels(4, 3, 2)
    data = read(store(folders["home"] / "mine.npz", X=X.reshape(4, 3, 2)))
    assert (data.name, data.image_shape) == ("mine", (3, 2))
    with pytest.raises(FileNotFoundError):
        read(folders["home"] / "yours.npz")


# Storing


def test_a_stored_set_comes_back(folders):
    X, y = pixels(6, 8, 4), np.arange(6)
    extras = {"is_outlier": X[:, 0] > 128, "columns": ["a", "b"]}
    path = save("feret", X, y, image_shape=(8, 4), origin="me", **extras)
    assert path == folders["variable"] / "feret_8x4.npz"
    data = load("feret")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.extras["is_outlier"], X[:, 0] > 128)
    assert data.image_shape == (8, 4)
    assert data.origin == "me"
    assert set(data.extras) == {"is_outlier", "columns"}
    # The format needs no pickle and holds the type that was given.
    with np.load(path, allow_pickle=False) as stored:
        assert stored["X"].dtype == np.uint8


def test_sets_of_ones_own_are_stored_and_found_by_name(folders):
    save("Mine-1", np.eye(3), ["b", "a", "b"], data_home=folders["home"])
    data = load("mine-1", data_home=folders["home"])
    np.testing.assert_array_equal(data.y, [1, 0, 1])
    assert list(data.extras["label_names"]) == ["a", "b"]
    assert "mine-1.npz" in describe("mine-1", data_home=folders["home"])
    video = np.random.default_rng(0).uniform(0, 255, size=(4, 3, 5))
    assert save("clip", video).name == "clip_3x5.npz"
    assert save("caviar", video).name == "caviar.npz"
    np.testing.assert_array_equal(load("caviar").images, video)
    np.testing.assert_array_equal(load("clip").images, video)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "digits", "X": np.eye(3)}, "digits is made without a file"),
        ({"name": "orl", "X": np.eye(4)}, "orl holds images: pass image_shape="),
        ({"name": "orl", "X": np.eye(5), "image_shape": (2, 2)}, "5 features, .* 2x2"),
        ({"name": "mfeat", "X": np.eye(3), "y": [0, 1]}, r"y has shape \(2,\)"),
        ({"name": "mfeat", "X": [[np.inf]]}, "not finite"),
        ({"name": "mfeat", "X": np.eye(2), "note": np.array([None])}, "note would need pickle"),
    ],
)
def test_what_could_not_be_loaded_is_not_stored(arguments, message, folders):
    with pytest.raises(ValueError, match=message):
        save(**arguments)
    assert list(folders["variable"].iterdir()) == []


def test_files_are_overwritten_only_on_demand(folders):
    path = save("mfeat", np.eye(3))
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        save("mfeat", np.zeros((3, 3)))
    assert path.read_bytes() == before
    save("mfeat", np.zeros((3, 3)), overwrite=True)
    assert not load("mfeat").X.any()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError("No space left on device")])
def test_an_interrupted_write_leaves_what_was_there(failure, folders, monkeypatch):
    path = save("mfeat", np.eye(3))

    def half(file, **arrays):
        file.write(b"PK half of it")
        raise failure

    monkeypatch.setattr(np, "savez_compressed", half)
    with pytest.raises((KeyboardInterrupt, OSError)):
        save("mfeat", np.zeros((3, 3)), overwrite=True)
    with pytest.raises((KeyboardInterrupt, OSError)):
        save("kddcup99", np.zeros((3, 3)))
    np.testing.assert_array_equal(load("mfeat").X, np.eye(3))
    assert list(folders["variable"].iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_stored_files_can_be_read_by_those_the_umask_allows(tmp_path):
    path = tmp_path / "new" / "a.npz"
    write(path, {"X": np.eye(2)})
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


# Sets that need no file


@pytest.mark.parametrize("name", MADE)
def test_sets_without_a_file_always_load_and_are_always_the_same(name):
    first, again = load(name), load(name)
    assert first.name == name
    assert first.checksum == again.checksum
    assert np.isfinite(first.X).all()
    first.X[:] = 0
    assert load(name).checksum == again.checksum


@pytest.mark.parametrize(
    "make",
    [
        make_graph_clusters,
        make_low_rank_plus_sparse,
        make_shifted_classes,
        make_subspace_with_outliers,
        make_video,
    ],
)
def test_seeds_decide_what_is_drawn(make):
    first, again, other = (make(random_state=seed) for seed in (3, 3, 4))
    assert first.checksum == again.checksum != other.checksum
    # A shared source of randomness goes on from where it is.
    rng = np.random.RandomState(0)
    assert make(random_state=rng).checksum != make(random_state=rng).checksum


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_low_rank_plus_sparse_has_the_rank_and_the_number_of_errors(noise):
    data = make_low_rank_plus_sparse(50, 40, 3, share=0.1, noise=noise, random_state=0)
    low_rank, mask = data.extras["low_rank"], data.extras["mask"]
    assert np.linalg.matrix_rank(low_rank) == 3
    assert np.mean(low_rank**2) == pytest.approx(1)
    assert mask.sum() == 200
    errors = np.abs(data.X - low_rank)
    assert errors[~mask].max() <= 5 * noise
    assert np.median(errors[mask]) == pytest.approx(5, rel=0.2)


def test_outliers_are_far_from_the_planted_subspace():
    data = make_subspace_with_outliers(100, outliers=0.13, random_state=0)
    components, is_outlier = data.extras["components"], data.extras["is_outlier"]
    assert is_outlier.sum() == 13
    assert subspace_distance(PCA(4).fit(data.X[~is_outlier]).components_, components) < 0.01
    centred = data.X - data.X[~is_outlier].mean(axis=0)
    distances = np.linalg.norm(centred - centred @ components.T @ components, axis=1)
    assert distances[is_outlier].min() > 10 * distances[~is_outlier].max()


def test_clusters_of_samples_and_features_make_the_low_rank():
    data = make_graph_clusters(60, 20, n_clusters=4, n_feature_clusters=3, random_state=0)
    low_rank, columns = data.extras["low_rank"], data.extras["feature_clusters"]
    assert np.linalg.matrix_rank(low_rank) == 3
    assert list(np.bincount(data.y)) == [15] * 4
    for cluster in range(4):
        for group in range(3):
            block = low_rank[data.y == cluster][:, columns == group]
            assert np.ptp(block) == 0
    assert data.extras["mask"].sum() == 60


def test_the_video_is_its_background_where_nothing_moves():
    data = make_video(40, (24, 32), noise=0.0, random_state=0)
    masks, background = data.extras["masks"], data.extras["background"]
    assert data.X.dtype == np.float32
    assert set(np.unique(masks)) == {0, 255}
    assert 0.02 < (masks == 255).mean() < 0.12
    assert data.X.min() >= 0
    assert data.X.max() <= 255
    # Light changes by 8 %, the same for all pixels of a frame.
    ratios = np.where(masks == 0, data.X / background, np.nan)
    assert np.nanmax(np.nanmax(ratios, axis=1) - np.nanmin(ratios, axis=1)) < 1e-5
    assert 0.91 < np.nanmin(ratios) < 0.95
    still = np.where(masks == 0, data.X, np.nan)
    assert np.nanstd(still, axis=0).max() < 15


def test_the_shifted_classes_come_out_as_in_the_table_of_the_paper():
    # Table 1 of the paper: 49 % in one principal component, 96 % in one angular one, and over
    # 99 % in two of either.
    accuracies = {"principal": [], "angular": []}
    for seed in range(5):
        data = make_shifted_classes(random_state=seed)
        assert data.X.shape == (4200, 3)
        assert data.extras["is_outlier"].sum() == 420
        assert list(np.bincount(data.y)) == [1050] * 4
        centred = data.X - data.X.mean(axis=0)
        units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        for name, rows in (("principal", centred), ("angular", units)):
            directions = np.linalg.svd(rows, full_matrices=False)[2]
            scores = [
                KNeighborsClassifier(25)
                .fit(codes[:2940], data.y[:2940])
                .score(codes[2940:], data.y[2940:])
                for codes in (centred @ directions[:d].T for d in (1, 2))
            ]
            accuracies[name].append(scores)
    principal, angular = (np.mean(values, axis=0) for values in accuracies.values())
    assert principal[0] == pytest.approx(0.4873, abs=0.05)
    assert angular[0] == pytest.approx(0.9603, abs=0.02)
    assert min(principal[1], angular[1]) > 0.99


def test_digits_can_be_resized():
    data = load("digits", size=(4, 4))
    X = sklearn.datasets.load_digits().data.reshape(-1, 4, 2, 4, 2)
    np.testing.assert_allclose(data.X, X.mean(axis=(2, 4)).reshape(-1, 16))


def test_every_download_is_one_that_scikit_learn_offers():
    downloads = [entry.download for entry in ENTRIES.values() if entry.download is not None]
    assert {"mnist_28x28", "usps_16x16", "mfeat", "olivetti_64x64"} <= {d.file for d in downloads}
    for download in downloads:
        signature = inspect.signature(getattr(sklearn.datasets, download.fetcher))
        for options in download.options:
            signature.bind(**options)
    for entry in ENTRIES.values():
        if entry.download is not None:
            file = f"{entry.download.file}.npz"
            assert any(entry.pattern(one).fullmatch(file) for one in entry.files), file
