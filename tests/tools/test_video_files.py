"""Videos in files: what is read and written, and the verb ``separate``."""

import csv
import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from robustpca.tools.video import VideoSeparator, methods, open_frames
from robustpca.tools.video.job import percent, separate_video
from robustpca.tools.video.page import timeline
from robustpca.tools.video.writing import writer

pytest.importorskip("PIL")


def frames_of(n_frames=30, shape=(32, 48), channels=3):
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: shape[0], : shape[1]]
    place = 100 + 40 * np.sin(x / 9) * np.cos(y / 7)
    X = np.repeat(place[None], n_frames, axis=0)
    for i in range(n_frames):
        X[i, 10:20, i : i + 9] = 230
    X = X[..., None] * [1.0, 0.8, 0.6] if channels else X
    return np.clip(X + rng.normal(size=X.shape), 0, 255).round().astype(np.uint8)


def film(path, X, rate=Fraction(30000, 1001), quality=5):
    pytest.importorskip("av")
    with writer(path, rate, quality) as out:
        for frame in X:
            out.write(frame)
    return path


def coarse_film(path, X):
    """A film as programs write it that ask the encoder of MPEG-4 for nothing."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.height, stream.width, stream.pix_fmt = *X.shape[1:3], "yuv420p"
        for frame in X:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        out.mux(stream.encode())
    return path


def test_a_coarse_film_has_its_squares_taken_for_noise(tmp_path):
    rng = np.random.default_rng(0)
    field = gaussian_filter(rng.normal(size=(240, 320)), 3)
    X = np.repeat((128 + 40 * field / field.std())[None], 100, axis=0)
    for i in range(len(X)):
        X[i, 100:132, 10 + 2 * i : 34 + 2 * i] = 30
    X = np.clip(X + 2 * rng.normal(size=X.shape), 0, 255).round().astype(np.uint8)
    path = coarse_film(tmp_path / "coarse.mp4", np.repeat(X[..., None], 3, axis=3))
    masks = VideoSeparator().fit(path).separate(path).masks
    assert 0.008 < masks.mean() < 0.02  # a hundredth moves; 14 % did before


def saved_folder(path, X):
    from PIL import Image

    path.mkdir()
    for i, frame in enumerate(X):
        Image.fromarray(frame).save(path / f"frame {i}.png")
    return path


def test_folders_stacks_arrays_and_iterators_hold_the_same_frames(tmp_path):
    X = frames_of(12)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", other=np.zeros(3), X=X)
    with writer(tmp_path / "x.tif", Fraction(25)) as stack:
        for frame in X:
            stack.write(frame)
    sources = [X, list(X), *(tmp_path / f"x.{kind}" for kind in ("npy", "npz", "tif"))]
    sources.append(saved_folder(tmp_path / "x", X))
    for source in sources:
        frames = open_frames(source)
        assert frames.repeatable
        for _ in range(2):
            np.testing.assert_array_equal(np.stack(list(frames)), X)
    once = open_frames(iter(X))
    assert not once.repeatable
    np.testing.assert_array_equal(np.stack(list(once)), X)


@pytest.mark.parametrize("kind", [".mp4", ".mkv", ".avi"])
def test_films_have_rate_and_size_of_the_input(tmp_path, kind):
    X = frames_of(10, (31, 48) if kind == ".mkv" else (32, 48))
    frames = open_frames(film(tmp_path / f"x{kind}", X))
    assert frames.rate == Fraction(30000, 1001)
    assert frames.shape == X.shape[1:]
    read = np.stack(list(frames)).astype(float)
    assert read.shape == X.shape
    assert np.abs(read - X).mean() < 4


def test_a_film_becomes_layers_of_the_same_rate_size_and_length(tmp_path):
    path = film(tmp_path / "x.mp4", frames_of())
    found = separate_video(path, tmp_path / "out", cutout=True)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "background.mp4", "background.png", "contact-sheet.png", "cutout.webm", "foreground.mp4",
        "frames.csv", "mask.mp4", "report.html", "run.json",
    ]  # fmt: skip
    for name in ("background", "foreground", "mask"):
        frames = open_frames(tmp_path / "out" / f"{name}.mp4")
        assert frames.rate == Fraction(30000, 1001)
        assert frames.shape == ((32, 48) if name == "mask" else (32, 48, 3))  # it has no colours
        assert len(list(frames)) == 30
    import av

    with av.open(str(tmp_path / "out" / "cutout.webm")) as cutout:
        stream = cutout.streams.video[0]
        assert stream.metadata.get("alpha_mode") == "1"
        assert sum(1 for _ in cutout.decode(stream)) == 30
    with (tmp_path / "out" / "frames.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == list(range(1, 31))
    np.testing.assert_allclose([float(row["moving"]) for row in rows], found.shares, atol=1e-6)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert found.verdict.split(";")[0] in page
    assert "http" not in page.split("</style>")[1]
    with pytest.raises(FileExistsError, match="is there already"):
        separate_video(path, tmp_path / "out")


def test_sound_is_left_out_and_that_is_said(tmp_path):
    av = pytest.importorskip("av")
    X = frames_of(10)
    with av.open(str(tmp_path / "x.mp4"), "w") as out:
        video, sound = out.add_stream("libx264", rate=25), out.add_stream("aac", rate=44100)
        video.height, video.width, video.pix_fmt = 32, 48, "yuv420p"
        for frame in X:
            out.mux(video.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        out.mux(video.encode())
        silence = av.AudioFrame.from_ndarray(
            np.zeros((1, 4096), np.float32), format="fltp", layout="mono"
        )
        silence.sample_rate = 44100
        out.mux(sound.encode(silence))
        out.mux(sound.encode())
    assert "The sound is left out." in open_frames(tmp_path / "x.mp4").summary()


def test_without_pyav_stacks_are_read_and_written_and_films_are_explained(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.setattr("robustpca.tools.video.writing.find_spec", lambda name: None)
    X = frames_of(channels=0)
    separate_video(saved_folder(tmp_path / "x", X), tmp_path / "out", cutout=True)
    masks = np.stack(list(open_frames(tmp_path / "out" / "mask.tif")))
    parts = VideoSeparator().fit(X).separate(X)
    np.testing.assert_array_equal(masks > 0, parts.masks)
    assert np.stack(list(open_frames(tmp_path / "out" / "background.tif"))).shape == X.shape
    (tmp_path / "x.mp4").write_bytes(b"film")
    with pytest.raises(ImportError, match=r"robustpca\[video\]"):
        open_frames(tmp_path / "x.mp4")


def test_an_array_and_an_archive_may_have_the_name_of_the_other(tmp_path):
    frames = np.arange(60.0).reshape(5, 4, 3)
    np.save(tmp_path / "one.npy", frames)
    np.savez(tmp_path / "many.npz", X=frames)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    (tmp_path / "many.npz").rename(tmp_path / "many.npy")
    for name in ("one.npz", "many.npy"):
        np.testing.assert_array_equal(list(open_frames(tmp_path / name)), frames)


def test_what_is_no_video_is_answered_with_a_sentence(tmp_path):
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "flat.npy", np.zeros((3, 4)))
    (tmp_path / "text.npy").write_text("this is no array")
    (tmp_path / "text.npz").write_text("this is no array")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "flat.npz", X=np.zeros((3, 4)))
    for name, words in {
        "nothing.mp4": "no file",
        "empty.mp4": "is empty",
        "folder": "no images",
        "flat.npy": r"frames have shape",
        "flat.npz": "holds no frames",
        "text.npy": "is damaged: it is cut off, or holds Python objects",
        "text.npz": "is damaged: it is cut off, or holds Python objects",
        "table.csv": "is a table: `robustpca check .*table.csv` looks at it",
    }.items():
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            open_frames(tmp_path / name)
    pytest.importorskip("av")
    (tmp_path / "text.mp4").write_text("this is no film")
    with pytest.raises(ValueError, match="cannot be read as a video"):
        open_frames(tmp_path / "text.mp4")
    with pytest.raises(ValueError, match="Frame 2 has shape"):
        list(open_frames([np.zeros((4, 4)), np.zeros((4, 5))]))
    with pytest.raises(ValueError, match="positive number"):
        open_frames(frames_of(), rate=-1)


def test_shares_are_never_rounded_to_nothing():
    assert [percent(x) for x in (0.0, 1e-5, 0.034, 0.34)] == [
        "0 %", "less than 0.1 %", "3.4 %", "34 %",
    ]  # fmt: skip


@pytest.fixture
def separate(capsys):
    """The verb in this process: what it printed, and how it ended."""
    pytest.importorskip("typer")
    from robustpca.cli.app import application

    def run(*arguments):
        code = 0
        try:
            application()(["separate", *map(str, arguments)], standalone_mode=False)
        except SystemExit as ended:
            code = ended.code
        return SimpleNamespace(returncode=code, **capsys.readouterr()._asdict())

    return run


def test_the_verb_says_what_moves_and_writes_the_layers(tmp_path, separate):
    np.save(tmp_path / "x.npy", frames_of())
    run = separate(tmp_path / "x.npy", "-o", tmp_path / "out", "--memory", "200MB")
    assert run.returncode == 0, run.err
    assert "30 frames of 48 x 32 pixels, in colour" in run.out
    assert "of the pixels move, at most" in run.out
    record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert record[0]["parameters"]["method"] == "masked"
    found = json.loads(separate(tmp_path / "x.npy", "--json").out)
    assert found["n_frames"] == 30
    assert 0.03 < found["moving"] < 0.09
    wrong = separate(tmp_path / "x.npy", "--memory", "much")
    assert wrong.returncode == 2
    assert wrong.err == "--memory much should be a number of bytes, as 2GB or 500MB.\n"


def test_interrupted_it_leaves_nothing(tmp_path):
    def stop(done, total):
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        separate_video(frames_of(), tmp_path / "out", callback=stop)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_killed_halfway_it_leaves_no_half_file_under_a_final_name(tmp_path):
    code = (
        "import sys, numpy as np; from robustpca.tools.video.job import separate_video; "
        "separate_video(np.load(sys.argv[1]), sys.argv[2], callback=lambda *_: print(flush=True))"
    )
    np.save(tmp_path / "x.npy", np.concatenate([frames_of(40, (64, 96))] * 60))
    command = [sys.executable, "-c", code, str(tmp_path / "x.npy"), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as job:
        for _ in range(20):
            assert job.stdout.readline() == b"\n"
        job.kill()
    left = [path.name for path in (tmp_path / "out").iterdir()]
    assert left
    assert [name for name in left if not name.startswith(".")] == []


@pytest.mark.parametrize("kind", ["mp4", "mkv"])
def test_frames_at_uneven_times_are_counted_and_told(tmp_path, kind):
    av = pytest.importorskip("av")
    path, clock = tmp_path / f"uneven.{kind}", Fraction(1, 1000)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.height, stream.width = 32, 48
        stream.codec_context.time_base = clock
        times = np.cumsum([0] + 19 * [40, 40, 120])
        for time, picture in zip(times, frames_of(len(times)), strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = int(time), clock
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    frames = open_frames(path)
    assert frames.n_frames == len(times) == len(list(frames))
    assert len(times) / frames.rate == pytest.approx(times[-1] / 1000, rel=0.05)
    assert "They come at uneven times, and are written at even ones." in frames.summary()


def test_one_frame_is_no_plural_and_a_broken_film_is_told_in_plain_words(tmp_path):
    path = film(tmp_path / "one.mp4", frames_of(1))
    assert "1 frame of 48 x 32 pixels" in open_frames(path).summary()
    path.write_bytes(bytes(1000))
    with pytest.raises(
        ValueError, match=r"one\.mp4 cannot be read as a video: Invalid data [\w ]*\.$"
    ):
        open_frames(path)


def test_words_beside_the_timeline_are_not_stretched_with_it():
    text = timeline([0.0, 0.0097, 0.0050], [(1, "scene cut")], 25.0)
    picture, words = re.search("<svg.*</svg>", text)[0], re.sub("<svg.*</svg>", "", text)
    assert "<text" not in picture
    assert re.sub("<[^>]*>", " ", words).split() == ["0.97", "%", "0", "s", "0.1", "s"]
    first, *line, last = re.search('<polygon points="([^"]*)"', picture)[1].split()
    assert [first, last] == ["16.67,100", "83.33,100"]
    assert line == ["16.67,100.00", "50.00,0.00", "83.33,48.45"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--method", "magic"], "--method magic is not known: choose from masked, median, pca, "),
        (["--components", "few"], "--components few should be a number such as 10, or auto."),
    ],
)
def test_wrong_options_are_told_in_the_words_of_the_command_line(
    tmp_path, separate, arguments, told
):
    np.save(tmp_path / "x.npy", frames_of())
    run = separate(tmp_path / "x.npy", *arguments)
    assert (run.returncode, run.err.startswith(told)) == (2, True), run.err


def test_the_verb_knows_all_methods():
    from robustpca.cli.separate import METHODS

    for method in METHODS:
        VideoSeparator(method)._validate_params()
    assert {"masked", "median", *methods.METHODS} == set(METHODS)
