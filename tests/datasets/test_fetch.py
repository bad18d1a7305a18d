"""Downloads, with fetchers of scikit-learn replaced: none of these tests uses the network."""

import http.client
import urllib.error
from dataclasses import replace

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from robustpca.datasets import fetch, load, save
from robustpca.datasets.catalogue import ENTRIES, MFEAT_VIEWS

DOWNLOADS = [name for name, entry in ENTRIES.items() if entry.download is not None]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder to write to, and a cache that is empty."""
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("robustpca.datasets.files.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "data"


@pytest.fixture
def server(monkeypatch):
    """Stands in for scikit-learn: gives what it is told to, and counts what it is asked for."""
    return Server(monkeypatch)


class Server:
    def __init__(self, monkeypatch):
        self.monkeypatch, self.asked, self.answers = monkeypatch, [], {}
        for fetcher in ("fetch_openml", "fetch_olivetti_faces", "fetch_kddcup99"):
            monkeypatch.setattr(sklearn.datasets, fetcher, self.answer)

    def answer(self, **options):
        self.asked.append(options)
        answer = self.answers.get(options.get("name"), self.answers.get(None))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def serve(self, data, target, name=None):
        self.answers[name] = Bunch(data=data, target=np.asarray(target))

    def shrink(self, name, n_samples):
        """Let a set have few samples, and no content that is known."""
        entry = ENTRIES[name]
        shape = (n_samples, entry.download.shape[1])
        download = replace(entry.download, shape=shape, checksum=None)
        self.monkeypatch.setitem(ENTRIES, name, replace(entry, download=download))


def left_over(folder):
    return list(folder.iterdir()) if folder.exists() else []


def test_pixels_and_digits_arrive_as_they_are(server, folder):
    server.shrink("mnist", 20)
    X = np.random.default_rng(0).integers(0, 256, size=(20, 784))
    server.serve(X, [str(i % 10) for i in range(20)])
    path = fetch("mnist")
    assert path == folder / "mnist_28x28.npz"
    assert server.asked[0]["name"] == "mnist_784"
    assert server.asked[0]["version"] == 1
    assert server.asked[0]["as_frame"] is False
    data = load("mnist")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, np.arange(20) % 10)
    assert data.image_shape == (28, 28)
    assert data.origin == "scikit-learn, fetch_openml(name='mnist_784', version=1)"
    with np.load(path, allow_pickle=False) as stored:
        assert stored["X"].dtype == np.uint8
        assert len(str(stored["checksum"])) == 64


def test_what_is_there_is_not_downloaded_again(server, folder):
    server.shrink("usps", 10)
    server.serve(np.linspace(-1, 1, 2560).reshape(10, 256), np.arange(10))
    path = fetch("usps")
    before = path.stat()
    assert fetch("usps") == path
    assert len(server.asked) == 1
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    # A file of another size will do as well.
    own = save("umist", np.zeros((2, 4)), image_shape=(2, 2))
    assert fetch("umist") == own
    assert len(server.asked) == 1


def test_two_processes_may_fetch_at_the_same_time(server, folder, monkeypatch):
    server.shrink("usps", 10)
    server.serve(np.linspace(-1, 1, 2560).reshape(10, 256), np.arange(10))
    answer = server.answer

    def slow(**options):
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", answer)
        fetch("usps")
        return answer(**options)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", slow)
    path = fetch("usps")
    assert len(server.asked) == 2
    assert left_over(folder) == [path]
    assert load("usps").X.shape == (10, 256)


def test_data_home_is_written_to(server, tmp_path, folder):
    server.shrink("usps", 10)
    server.serve(np.linspace(-1, 1, 2560).reshape(10, 256), np.arange(10))
    path = fetch("usps", data_home=tmp_path / "mine" / "deep")
    assert path == tmp_path / "mine" / "deep" / "usps_16x16.npz"
    assert left_over(folder) == []


def test_grey_levels_of_the_source_become_0_to_255_and_class_10_stays_last(server):
    server.shrink("usps", 30)
    X = np.random.default_rng(0).uniform(-1, 1, size=(30, 256))
    X[0, :2] = -1, 1
    server.serve(X, [str(1 + i % 10) for i in range(30)])
    fetch("usps")
    data = load("usps")
    np.testing.assert_array_equal(data.X, np.rint((X + 1) * 127.5))
    assert (data.X[0, 0], data.X[0, 1]) == (0, 255)
    np.testing.assert_array_equal(data.y, np.arange(30) % 10)


def test_the_faces_of_scikit_learn_serve_orl_and_olivetti(server):
    pixels = np.random.default_rng(0).integers(0, 256, size=(400, 4096))
    server.serve((pixels / 255).astype(np.float32), np.repeat(np.arange(40), 10))
    fetch("orl")
    np.testing.assert_array_equal(load("orl", size=(64, 64)).X, pixels)
    np.testing.assert_array_equal(load("olivetti").X, pixels)
    assert load("orl", size=(32, 32)).X.shape == (400, 1024)
    with pytest.raises(FileNotFoundError):
        load("att")


@pytest.mark.parametrize("by_columns", [False, True])
def test_images_stored_by_columns_are_turned_upright(by_columns, server):
    server.shrink("umist", 12)
    rng = np.random.default_rng(0)
    down, across = np.linspace(0, 9, 112)[:, None], np.linspace(0, 5, 92)
    phases = rng.uniform(0, 6, size=(12, 2))
    images = np.array([120 + 100 * np.sin(down + a) * np.cos(across + b) for a, b in phases])
    images = np.rint(images)
    sent = images.transpose(0, 2, 1) if by_columns else images
    server.serve(sent.reshape(12, -1), np.arange(12) % 3)
    fetch("umist")
    np.testing.assert_array_equal(load("umist").images, images)


def test_six_views_are_put_side_by_side(server):
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(1, 11), 200).astype(str)
    views = [rng.normal(size=(2000, size)) for size in MFEAT_VIEWS.values()]
    for name, view in zip(MFEAT_VIEWS, views, strict=True):
        server.serve(view, target, f"mfeat-{name}")
    fetch("mfeat")
    data = load("mfeat")
    np.testing.assert_array_equal(data.X, np.hstack(views))
    np.testing.assert_array_equal(data.y, np.repeat(np.arange(10), 200))
    assert list(data.extras["view_names"]) == [name[:3] for name in MFEAT_VIEWS]
    assert list(data.extras["view_sizes"]) == list(MFEAT_VIEWS.values())


def test_symbols_are_dropped_and_names_of_classes_kept(server):
    server.shrink("kddcup99", 3)
    rows = np.array([[i, b"tcp", b"http", b"SF", *range(37)] for i in range(3)], dtype=object)
    server.serve(rows, np.array([b"normal.", b"back.", b"normal."], dtype=object))
    fetch("kddcup99")
    data = load("kddcup99")
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X[2], [2, *range(37)])
    assert list(data.extras["label_names"]) == ["back", "normal"]
    np.testing.assert_array_equal(data.y, [1, 0, 1])
    assert list(data.extras["columns"]) == [0, *range(4, 41)]


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.URLError("Name or service not known"),
        urllib.error.HTTPError("https://x", 503, "Service unavailable", {}, None),
        TimeoutError("timed out"),
        ConnectionResetError("reset by peer"),
        http.client.IncompleteRead(b"half"),
        OSError("has an SHA256 checksum differing from expected"),
    ],
    ids=lambda failure: type(failure).__name__,
)
@pytest.mark.parametrize("name", DOWNLOADS)
def test_offline_is_one_clear_sentence_and_nothing_is_written(name, failure, server, folder):
    server.answers[None] = failure
    with pytest.raises(ConnectionError, match="Try again when online") as caught:
        fetch(name)
    download = ENTRIES[name].download
    message = str(caught.value)
    assert message.startswith(f"{name} could not be downloaded from {download.host}: ")
    assert f"{download.file}.npz into {folder}" in message
    assert left_over(folder) == []
    with pytest.raises(FileNotFoundError):
        load(name)


def test_a_failure_in_the_middle_leaves_nothing(server, folder):
    for name, size in list(MFEAT_VIEWS.items())[:3]:
        server.serve(np.zeros((2000, size)), np.repeat(np.arange(10), 200), f"mfeat-{name}")
    server.answers[None] = urllib.error.URLError("the cable was pulled")
    with pytest.raises(ConnectionError, match="the cable was pulled"):
        fetch("mfeat")
    assert len(server.asked) == 4
    assert left_over(folder) == []


def test_what_scikit_learn_cannot_read_is_said_to_be_so(server, folder):
    server.answers[None] = ValueError("md5 checksum of local file does not match")
    with pytest.raises(ValueError, match=r"What openml.org sent for mnist cannot be read: md5"):
        fetch("mnist")
    assert left_over(folder) == []


def test_interrupts_pass_and_leave_nothing(server, folder):
    server.answers[None] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        fetch("mnist")
    assert left_over(folder) == []


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_disk_that_is_full_leaves_no_half_file(failure, server, folder, monkeypatch):
    server.shrink("usps", 10)
    server.serve(np.linspace(-1, 1, 2560).reshape(10, 256), np.arange(10))

    def half(file, **arrays):
        file.write(b"PK half of it")
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", half)
        with pytest.raises(type(failure)):
            fetch("usps")
    assert left_over(folder) == []
    assert fetch("usps").is_file()


def test_a_folder_that_cannot_be_written_to_is_named(server, folder, monkeypatch):
    server.shrink("usps", 10)
    server.serve(np.linspace(-1, 1, 2560).reshape(10, 256), np.arange(10))

    def denied(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("robustpca.datasets.fetching.write", denied)
    with pytest.raises(PermissionError, match="Pass data_home=") as caught:
        fetch("usps")
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (np.zeros((9, 256)), np.arange(9), r"shape \(9, 256\) and not \(10, 256\)"),
        (np.zeros((10, 255)), np.arange(10), r"shape \(10, 255\)"),
        (np.zeros((10, 256)), np.arange(9), "and not"),
        (np.zeros((10, 256)), np.arange(10), "pixels run from 0.0 to 0.0, not -1.0 to 1.0"),
        (np.full((10, 256), 2.0), np.arange(10), "pixels run from 2.0 to 2.0"),
        (np.linspace(0, 255, 2560).reshape(10, 256), np.arange(10), "run from 0.0 to 255.0"),
        (np.full((10, 256), np.nan), np.arange(10), "not finite"),
        (np.full((10, 256), "a"), np.arange(10), "could not convert"),
    ],
)
def test_something_else_than_expected_is_not_written(data, target, message, server, folder):
    server.shrink("usps", 10)
    server.serve(data, target)
    with pytest.raises(ValueError, match=message) as caught:
        fetch("usps")
    assert "sent for usps is not what was expected" in str(caught.value)
    assert left_over(folder) == []


def test_views_of_other_samples_are_not_put_side_by_side(server, folder):
    target = np.repeat(np.arange(10), 200)
    for name, size in MFEAT_VIEWS.items():
        shuffled = target[::-1] if name == "zernike" else target
        server.serve(np.zeros((2000, size)), shuffled, f"mfeat-{name}")
    with pytest.raises(ValueError, match="parts have different labels"):
        fetch("mfeat")
    assert left_over(folder) == []


def test_known_content_is_verified_on_arrival(server, folder, monkeypatch):
    entry = ENTRIES["mnist"]
    download = replace(entry.download, shape=(10, 784))
    monkeypatch.setitem(ENTRIES, "mnist", replace(entry, download=download))
    server.serve(np.random.default_rng(0).integers(0, 256, size=(10, 784)), np.arange(10))
    with pytest.raises(ValueError, match=f"has the SHA-256 .* and not {download.checksum}"):
        fetch("mnist")
    assert left_over(folder) == []


def test_content_recorded_at_the_first_fetch_is_verified_on_load(server):
    server.shrink("usps", 10)
    server.serve(np.linspace(-1, 1, 2560).reshape(10, 256), np.arange(10))
    path = fetch("usps")
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    arrays["y"] = arrays["y"][::-1]
    np.savez_compressed(path, **arrays)
    with pytest.raises(ValueError, match="do not have the checksum recorded"):
        load("usps")


@pytest.mark.parametrize(("installed", "parser"), [(True, "pandas"), (False, "liac-arff")])
def test_the_parser_is_one_that_is_installed(installed, parser, server, monkeypatch):
    spec = object() if installed else None
    monkeypatch.setattr("robustpca.datasets.fetching.find_spec", lambda name: spec)
    server.answers[None] = TimeoutError()
    with pytest.raises(ConnectionError):
        fetch("mnist")
    assert server.asked[0]["parser"] == parser


def test_sets_without_a_download_say_where_to_get_them(server):
    with pytest.raises(FileNotFoundError, match=r"FERET data.*save\('feret'"):
        fetch("feret")
    with pytest.raises(ValueError, match=r"digits needs no file: load\('digits'\) makes it"):
        fetch("digits")
    with pytest.raises(ValueError, match="Did you mean"):
        fetch("minst")
    assert server.asked == []
