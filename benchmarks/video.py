"""What moves in a video: our default beside what people use, in quality, speed and memory.

python benchmarks/video.py [masks] [methods] [constants] [background] [speed] [windows] [figure]
    [--quick] [--scenes street,night]

Needs ``opencv-python-headless`` and ``pyrpca`` for ``masks``, PyAV for ``speed``, and the data
folder for the filmed scenes; without it only the drawn ones are used. The rivals get the best of a
grid for each scene, chosen by the truth; ours has one set of constants for all of them.
"""

import argparse
import contextlib
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np

from robustpca import VideoSeparator
from robustpca.engine.linalg import Array
from robustpca.metrics import foreground_scores
from robustpca.tools.video import background, masks, separator
from robustpca.tools.video.methods import METHODS
from robustpca.tools.video.writing import writer
from video_scenes import DRAWN, FILMED, Scene, standing

LEVELS = (8, 10, 12, 15, 18, 21, 25, 30, 35, 40, 50, 60)
GRIDS: Mapping[str, tuple[float, ...]] = {
    "MOG2": (16, 9, 25, 50),
    "KNN": (400, 100, 200, 800, 1600),
}


def scenes() -> Iterator[tuple[str, Scene]]:
    """The scenes that are there and wanted."""
    filmed = FILMED if os.environ.get("ROBUSTPCA_DATA") else {}
    for name, make in {**filmed, **DRAWN}.items():
        if not OPTIONS.scenes or name in OPTIONS.scenes.split(","):
            yield name, make()


def f_measure(scene: Scene, found: Array, every: int = 1) -> float:
    """F-measure by the rules of CDnet: `foreground_scores`, but quick for hundreds of masks."""
    moving, known = scene.labels[::every] == 255, scene.labels[::every] != 170
    n_right = np.count_nonzero(moving & found)
    return 2 * n_right / (np.count_nonzero(moving) + np.count_nonzero(known & found))


def filtered(found: Array) -> Iterator[Array]:
    """Masks as they are, and with the usual median filter."""
    import cv2

    yield found
    yield np.stack([cv2.medianBlur(one.astype(np.uint8), 5) > 0 for one in found])


def subtracted(scene: Scene, name: str) -> tuple[float, float]:
    """F-measure of a subtractor of OpenCV as it comes, and the best of a grid."""
    import cv2

    cv2.setNumThreads(1)
    make = getattr(cv2, f"createBackgroundSubtractor{name}")
    grid = [(GRIDS[name][0], 500, True)]  # as it comes
    if OPTIONS.quick:
        grid += itertools.product(GRIDS[name][::2], (500,), (False,))
    else:
        grid += itertools.product(GRIDS[name], (500, 100, 2000), (True, False))
    scores = []
    for threshold, history, shadows in grid:
        model = make(history, threshold, shadows)
        for _ in range(2):  # the second time it knows the whole video
            found = np.stack([model.apply(frame) == 255 for frame in scene.frames])
            scores += [f_measure(scene, one) for one in filtered(found)]
    return scores[0], max(scores)


def best_level(scene: Scene, behind: Array, every: int = 1) -> float:
    """F-measure of a plain threshold, the best of several."""
    distance = np.abs(scene.frames[::every] - behind.astype(np.float32))
    distance = distance if distance.ndim == 3 else distance.max(axis=-1)
    return max(
        f_measure(scene, one, every) for level in LEVELS for one in filtered(distance > level)
    )


def pursued(scene: Scene) -> float:
    """F-measure of pyrpca with its best threshold, on some of the frames for the sake of time."""
    from pyrpca import rpca_pcp_ialm

    every = 6 if OPTIONS.quick else 3
    some = scene.frames[::every]
    X = some.reshape(len(some), -1).astype(np.float64)
    low_rank, _ = rpca_pcp_ialm(X, 1 / np.sqrt(max(X.shape)), tol=1e-4, verbose=False)
    return best_level(scene, np.reshape(low_rank, some.shape), every)


def ours(scene: Scene, **parameters: object) -> float:
    """F-measure of a separator."""
    model = VideoSeparator(**parameters).fit(scene.frames)  # type: ignore[arg-type]
    found = model.separate(scene.frames).masks
    score = f_measure(scene, found)
    shape = (len(found), -1)
    assert np.isclose(
        score, foreground_scores(scene.labels.reshape(shape), found.reshape(shape)).f_measure
    )
    return score


def show(rows: Mapping[str, list[float]], heads: list[str]) -> None:
    """Print a table for the guide."""
    print(f"| | {' | '.join(heads)} | mean |")
    print(f"|---|{'---|' * (len(heads) + 1)}")
    for name, values in rows.items():
        cells = " | ".join(f"{value:.3f}" for value in [*values, float(np.mean(values))])
        print(f"| {name} | {cells} |")
    print(flush=True)


def compare_masks() -> None:
    """Our default beside MOG2, KNN, the median and pyrpca."""
    rows: dict[str, list[float]] = {}
    heads = []
    for name, scene in scenes():
        heads.append(name)
        found = {"`VideoSeparator()`": ours(scene)}
        found["without shadows"] = ours(scene, shadows=False)
        found["median, best threshold"] = best_level(scene, np.median(scene.frames, axis=0))
        for rival in GRIDS:
            plain, best = subtracted(scene, rival)
            found |= {f"{rival}, as it comes": plain, f"{rival}, best of grid": best}
        found["pyrpca, best threshold"] = pursued(scene)
        print(name, {one: round(float(value), 3) for one, value in found.items()}, flush=True)
        for one, value in found.items():
            rows.setdefault(one, []).append(value)
    show(rows, heads)
    default, _, *others = (float(np.mean(values)) for values in rows.values())
    print(f"Mean F-measure: {default:.3f}, best rival {max(others):.3f} (bar: 0.02 above)\n")


def compare_methods() -> None:
    """All methods behind the parameter ``method``."""
    rows: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    heads = []
    for name, scene in scenes():
        heads.append(name)
        for method in ("masked", "median", *METHODS):
            started = time.process_time()
            rows.setdefault(method, []).append(ours(scene, method=method))
            spent[method] = spent.get(method, 0.0) + time.process_time() - started
    show(rows, heads)
    print("CPU seconds:", {method: round(value, 1) for method, value in spent.items()}, "\n")


@contextlib.contextmanager
def constants(pull: float, reach: float, doubt: float) -> Iterator[None]:
    """Other constants of the mask and of learning."""
    make = masks.MaskRule

    def changed(min_size: int = 12) -> masks.MaskRule:
        return make(min_size=min_size, pull=pull, reach=reach)

    with (
        mock.patch.object(separator, "MaskRule", changed),
        mock.patch.object(background, "DOUBT", doubt),
    ):
        yield


def leave_one_out() -> None:
    """Constants chosen on all other scenes, judged on the one that was left out."""
    grid = list(itertools.product((3.0, 6.0, 9.0), (1.5, 2.0), (-2.0, -1.0, 0.0)))
    heads, columns = [], []
    for name, scene in scenes():
        heads.append(name)
        column = []
        for values in grid:
            with constants(*values):
                column.append(ours(scene))
        columns.append(column)
    scores = np.array(columns)
    rows: dict[str, list[float]] = {"our constants": list(scores[:, grid.index((6.0, 1.5, -1.0))])}
    chosen = [int(np.argmax(np.delete(scores, i, axis=0).mean(axis=0))) for i in range(len(heads))]
    rows["chosen on the others"] = [scores[i, chosen[i]] for i in range(len(heads))]
    rows["best for each"] = list(scores.max(axis=1))
    rows["worst for each"] = list(scores.min(axis=1))
    show(rows, heads)


def psnr(truth: Array, found: Array) -> float:
    """Peak signal to noise ratio in decibels."""
    return float(10 * np.log10(255**2 / np.mean((truth - found.astype(np.float64)) ** 2)))


def compare_backgrounds() -> None:
    """Backgrounds beside the median's: everywhere, and where somebody stands 40 % of the time."""
    print("| | ours, dB | median, dB | ours where covered | median where covered |")
    print("|---|---|---|---|---|")
    for name, make in DRAWN.items():
        scene = make()
        assert scene.backgrounds is not None
        found = VideoSeparator().fit(scene.frames).separate(scene.frames).backgrounds
        median = np.broadcast_to(np.median(scene.frames, axis=0), found.shape)
        numbers = [psnr(scene.backgrounds, one) for one in (found, median)]
        covered = (scene.labels == 255).mean(axis=0) >= 0.39
        if covered.any():
            truth = scene.backgrounds[:, covered]
            numbers += [psnr(truth, one[:, covered]) for one in (found, median)]
        print(f"| {name} | {' | '.join(f'{number:.1f}' for number in numbers)} |", flush=True)
    print()


def long_film(path: Path, n_frames: int) -> None:
    """Ten minutes of 320 x 240 grey pixels: light that drifts, and three things that move."""
    rng = np.random.default_rng(0)
    place = np.kron(standing().frames[0], np.ones((2, 2)))
    noise = 2 * rng.normal(size=(37, *place.shape))
    with writer(path, Fraction(25), 23) as film:
        for i in range(n_frames):
            frame = place * (1 + 0.2 * np.sin(2 * np.pi * i / 9000)) + noise[i % 37]
            for k, level in enumerate((40, 220, 180)):
                left = int((i * (1.5 + k) + 100 * k) % 380) - 30
                frame[40 + 60 * k : 80 + 60 * k, max(left, 0) : max(left + 20, 0)] = level
            film.write(np.clip(frame, 0, 255).astype(np.uint8))


def measure_speed() -> None:
    """Frames per second and memory of `robustpca separate` on a film of ten minutes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.mkv"
        n_all = 3000 if OPTIONS.quick else 15_000
        long_film(path, n_all)
        model = VideoSeparator().fit(path)
        started, cpu, n_frames = time.perf_counter(), time.process_time(), 0
        for _ in model.stream(path):
            n_frames += 1
            if n_frames == 1500:
                break
        took, cpu = time.perf_counter() - started, time.process_time() - cpu
        print(
            f"VideoSeparator.stream: {n_frames / took:.0f} frames a second by the clock, "
            f"{n_frames / cpu:.0f} by CPU seconds of one core (bar: 25)"
        )
        command = [sys.executable, "-m", "robustpca", "separate", str(path), "-q"]
        started = time.perf_counter()
        subprocess.run([*command, "-o", str(Path(folder) / "out")], check=True)
        took = time.perf_counter() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"robustpca separate, {n_all} frames, three films written: {n_all / took:.0f} frames a "
            f"second by the clock, {n_all / (used.ru_utime + used.ru_stime):.0f} by CPU seconds, "
            f"at most {used.ru_maxrss / 1e6:.2f} GB (bar: 1)\n"
        )


def check_windows() -> None:
    """Masks for windows of several lengths, which must be the same to the last bit."""
    frames = standing().frames
    first = None
    for window in (1, 13, 100):
        model = VideoSeparator(n_samples=60, horizon=120).fit(frames[:120])
        whole = np.stack(
            [
                layers.mask
                for start in range(0, len(frames), window)
                for layers in model.stream(frames[start : start + window])
            ]
        )
        first = whole if first is None else first
        print(f"windows of {window}: {np.count_nonzero(whole != first)} pixels differ")
    print()


def draw_figure() -> None:
    """The picture of the guide: a typical frame of some drawn scenes, and the worst of another."""
    from PIL import Image

    rows = []
    for name in ("light", "standing", "trees"):
        scene = DRAWN[name]()
        parts = VideoSeparator().fit(scene.frames).separate(scene.frames)
        moving = scene.labels == 255
        wrong = (moving != parts.masks).sum(axis=(1, 2))
        busy = np.flatnonzero(moving.sum(axis=(1, 2)) > np.median(moving.sum(axis=(1, 2))))
        at = int(np.argmax(wrong)) if name == "trees" else int(busy[len(busy) // 2])
        judged = np.repeat(scene.frames[at][..., None] // 2, 3, axis=2)
        judged[moving[at] & parts.masks[at]] = (0, 170, 80)
        judged[moving[at] & ~parts.masks[at]] = (220, 40, 40)
        judged[~moving[at] & parts.masks[at]] = (240, 200, 40)
        grey = [scene.frames[at], parts.foregrounds[at], parts.backgrounds[at]]
        shown = [np.repeat(one[..., None], 3, axis=2) for one in grey]
        rows.append(np.hstack([np.pad(one, ((0, 4), (0, 4), (0, 0)), constant_values=255)
                               for one in (shown[0], judged, *shown[1:])]))  # fmt: skip
    picture = Image.fromarray(np.vstack(rows)).quantize(128)
    picture.save(Path(__file__).parents[1] / "docs" / "images" / "video.png", optimize=True)


PARTS: dict[str, Callable[[], None]] = {
    "masks": compare_masks,
    "methods": compare_methods,
    "constants": leave_one_out,
    "background": compare_backgrounds,
    "speed": measure_speed,
    "windows": check_windows,
}
OTHERS = {"figure": draw_figure}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--quick", action="store_true", help="smaller grids, a shorter film")
parser.add_argument("--scenes", default="", help="names, as street,night; by default all")
OPTIONS = parser.parse_args([])

if __name__ == "__main__":
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; by default all; figure")
    OPTIONS = parser.parse_args()
    for part in OPTIONS.parts or PARTS:
        print(f"## {part}\n")
        (PARTS | OTHERS)[part]()
