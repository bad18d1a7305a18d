import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import makeshift
import numpy as np
import pytest
from makeshift import N_CELLS, Cloud, small_table
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from robustpca import EPCA, GLRAM
from robustpca.bench import read_rows, run
from robustpca.bench.progress import Bar, Clock, Lines
from robustpca.bench.runner import ROWS, Outcome, _prepare
from robustpca.bench.shown import curve
from robustpca.bench.trial import explain, measure, spoil
from robustpca.datasets import make_subspace_with_outliers, reset_entries
from robustpca.metrics import reconstruction_error


def start(*arguments, **environment):
    """A process that runs `makeshift.main`."""
    folder = str(Path(makeshift.__file__).parent)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import makeshift; "
    code += "makeshift.main(*sys.argv[2:])"
    command = [sys.executable, "-c", code, folder, *map(str, arguments)]
    return subprocess.Popen(command, env=os.environ | environment)


def wait_until_gone(pids):
    patience = time.monotonic() + 20
    while any(map(is_running, pids)):
        assert time.monotonic() < patience
        time.sleep(0.01)


def results(out):
    """What must not depend on when and how often a run was stopped."""
    return {row["key"]: (row["scores"], row["error"]) for row in read_rows(out / ROWS)}


def n_lines(out):
    path = out / ROWS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children(pid):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parts = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parts[1]) == pid:
            found.append(int(folder.name))
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def count_sum(model, X_clean, X_corrupt, y, mask, random_state):
    """A score that asks for everything."""
    return float(mask.sum() + 1000 * random_state + 10000 * len(np.unique(y)))


def first_center(model, X_clean, X_corrupt):
    return float(model.cluster_centers_[0, 0])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A run of methods of which most go wrong, on data of which one set lacks."""
    # Those that cost a worker come last, so that fewer need to be replaced.
    methods = {
        "PCA": PCA(),
        "failing": makeshift.Failing(),
        "unsendable": makeshift.Unsendable(),
        "empty": makeshift.Empty(),
        "greedy": makeshift.Greedy(),
        "leaving": makeshift.Leaving(),
        "killed": makeshift.Killed(),
        "hanging": makeshift.Hanging(),
    }
    table = small_table(
        methods,
        datasets={"cloud": Cloud(), "lacking": makeshift.absent},
        vary={"n_components": [2]},
        seeds=1,
        time_limit=5.0,
    )
    out = tmp_path_factory.mktemp("mixed")
    return table, out, run([table], out, jobs=1)


def test_failures_are_rows_and_the_others_are_run(mixed):
    _, out, outcome = mixed
    errors = {row["method"]: row["error"] for row in outcome.rows}
    assert errors["PCA"] is None
    assert errors["greedy"] is None
    assert errors["failing"] == "ValueError: no luck today"
    assert errors["unsendable"] == "RuntimeError: stays at home"
    assert "SIGKILL" in errors["killed"]
    assert "exit code 3" in errors["leaving"]
    assert errors["hanging"] == "TimeoutError: more than 5 s"
    assert "not a finite number" in errors["empty"]
    assert len(read_rows(out / ROWS)) == len(errors) == 8
    assert len(outcome.failures) == 6


def test_missing_data_are_listed(mixed):
    _, _, outcome = mixed
    assert outcome.missing_data == {"small": {"lacking": "No file of this set. Fetch it."}}


def test_a_row_says_what_was_run_where_and_what_came_out(mixed):
    table, _, outcome = mixed
    row = next(row for row in outcome.rows if row["method"] == "PCA")
    X = Cloud()().X
    X_corrupt, _ = reset_entries(X, 0.2, 0.5, random_state=0)
    expected = reconstruction_error(PCA(2).fit(X_corrupt), X, X_corrupt)
    assert row["scores"] == {"reconstruction_error": pytest.approx(expected, rel=1e-9)}
    assert row["estimator"]["n_components"] == 2
    assert row["settings"] == {"n_components": 2}
    assert row["data"]["n_samples"] == 40
    assert set(row["versions"]) == {"python", "numpy", "scipy", "scikit-learn", "robustpca"}
    assert 0 < row["seconds"] < 5
    assert row["converged"] is None
    assert row["iterations"] is None
    assert row["table"] == table.name


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can forget an earlier peak")
def test_the_peak_memory_is_that_of_the_fit(mixed):
    rows = {row["method"]: row for row in mixed[2].rows}
    extra = {
        name: rows[name]["memory_peak"] - rows[name]["memory_start"] for name in ("PCA", "greedy")
    }
    assert extra["PCA"] < 2**23
    assert extra["greedy"] == pytest.approx(2**26, abs=2**22)
    assert rows["greedy"]["memory_exact"]


def test_what_is_done_is_not_done_again_and_failures_only_on_request(mixed):
    table, out, outcome = mixed
    again = run([table], out, jobs=2)
    assert again.n_new == 0
    assert again.rows == outcome.rows
    only = small_table(
        {"failing": makeshift.Failing(), "PCA": PCA()}, vary={"n_components": [2]}, seeds=1
    )
    retried = run([only], out, jobs=1, retry=True)
    assert retried.n_new == 1
    assert len(retried.rows) == 2
    assert len(read_rows(out / ROWS)) == 9


def test_other_settings_get_rows_of_their_own(tmp_path):
    tables = [
        small_table(seeds=1, vary={"n_components": [1]}),
        small_table(seeds=1, vary={"n_components": [1]}, corruption=None),
        small_table(seeds=1, vary={"n_components": [1]}, datasets={"cloud": Cloud(seed=1)}),
        small_table({"PCA": PCA(whiten=True)}, seeds=1, vary={"n_components": [1]}),
    ]
    outcome = run(tables, tmp_path, jobs=1)
    keys = [row["key"] for row in outcome.rows]
    assert len(set(keys)) == len(read_rows(tmp_path / ROWS)) == 4


def test_all_methods_of_a_seed_see_the_same_corruption(tmp_path):
    cells = small_table({"PCA": PCA(), "EPCA": EPCA()}, seeds=2).cells()
    first, second = (
        [spoil(cell).X_corrupt for cell in cells if cell.seed == seed] for seed in (0, 1)
    )
    for X in first:
        np.testing.assert_array_equal(X, first[0])
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(spoil(cells[0]).X, Cloud()().X)


def test_scores_get_labels_mask_and_seed():
    cell = small_table(score={"all": count_sum}, seeds=3).cells()[-1]
    scores = measure(cell, spoil(cell))["scores"]
    assert scores == {"all": 8 * 3 + 1000 * 2 + 10000 * 3}


def seed_of_data(model, X_clean, X_corrupt, extras):
    return float(extras["seed"])


def fit_seconds(model, X_clean, X_corrupt, seconds):
    return seconds


def shapes(model, X_clean, X_corrupt, image_shape):
    return curve(model.explained_variance_, model.explained_variance_)


def test_data_may_be_drawn_anew_for_each_seed():
    cells = small_table(datasets={"drawn": makeshift.drawn}, score=seed_of_data, seeds=3).cells()
    found = [measure(cell, spoil(cell))["scores"]["seed_of_data"] for cell in cells]
    assert found == [0, 0, 1, 1, 2, 2]


def test_keys_do_not_hang_on_chance_even_if_data_do():
    def key():
        source = partial(make_subspace_with_outliers, n_samples=20)  # drawn at random by default
        jobs = list(_prepare([small_table(datasets={"drawn": source})], "quick", Outcome()))
        return jobs[0].row["key"]

    assert key() == key()


def test_the_first_seed_shows_its_curves():
    cells = small_table(shows={"variance": shapes, "nothing": nothing}, seeds=2).cells()
    first, last = (measure(cells[at], spoil(cells[at]))["shown"] for at in (0, -1))
    assert list(first) == ["variance"]
    assert first["variance"]["kind"] == "curve"
    assert last == {}


def test_of_several_fits_the_shortest_counts():
    makeshift.Counting.times.clear()
    table = small_table({"counting": makeshift.Counting()}, score=fit_seconds, repeats=3)
    result = measure(table.cells()[0], spoil(table.cells()[0]))
    assert len(makeshift.Counting.times) == 3
    assert result["scores"]["fit_seconds"] == result["seconds"] < 0.05


def nothing(model, X_clean, X_corrupt):
    return None


def test_open_seeds_and_image_shapes_are_filled_in():
    images = small_table({"GLRAM": GLRAM((1, 2))}, vary={}, seeds=1).cells()[0]
    spoiled = spoil(images)
    with pytest.raises(ValueError, match="images of shape"):
        measure(images, spoiled)
    shaped = type(spoiled)(spoiled.X, spoiled.X_corrupt, spoiled.mask, spoiled.y, (2, 3))
    assert measure(images, shaped)["scores"]["reconstruction_error"] > 0
    clusters = small_table(
        {"k-means": KMeans(3, n_init=1)}, vary={}, score=first_center, corruption=None, seeds=4
    ).cells()
    found = [measure(cell, spoil(cell))["scores"]["first_center"] for cell in clusters]
    again = [measure(cell, spoil(cell))["scores"]["first_center"] for cell in clusters]
    assert found == again
    assert len(set(found)) > 1


def test_whole_numbers_become_floats_and_data_are_prepared():
    def pixels():
        return makeshift.Made(np.arange(24, dtype=np.uint8).reshape(6, 4))

    cell = small_table(datasets={"a": pixels}, prepare=np.sqrt, corruption=None).cells()[0]
    np.testing.assert_allclose(spoil(cell).X.ravel(), np.sqrt(np.arange(24)))


def test_a_loop_reports_passes_and_whether_it_settled():
    done, cut = (
        small_table({"EPCA": EPCA(max_iter=n, tol=1e-12)}, seeds=1).cells()[0] for n in (500, 1)
    )
    assert measure(done, spoil(done))["converged"] is True
    short = measure(cut, spoil(cut))
    assert short["converged"] is False
    assert short["iterations"] == 1
    assert any("max_iter=1" in text for text in short["warnings"])


def test_errors_do_not_tell_where_the_user_lives():
    error = OSError(f"cannot read {Path.home() / 'secret'}\nat all")
    assert explain(error) == f"OSError: cannot read ~{os.sep}secret at all"


def test_a_number_of_jobs_below_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match="jobs=0"):
        run([small_table()], tmp_path, jobs=0)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_killed_at_any_moment_and_started_again_it_gives_the_same_rows(tmp_path):
    whole, pieces, gate = tmp_path / "whole", tmp_path / "pieces", tmp_path / "gate"
    outcome = run([makeshift.killable()], whole, jobs=2)
    assert len(outcome.rows) == n_lines(whole) == N_CELLS
    assert not outcome.failures
    # Before the first row, by Ctrl-C, in the middle, and just before the end.
    moments = [(0, signal.SIGKILL), (3, signal.SIGINT), (7, signal.SIGKILL)]
    for n_rows, how in [*moments, (N_CELLS - 1, signal.SIGKILL)]:
        gate.write_text(str(n_rows + 1))  # the next cell waits there
        process = start(pieces, GATE=str(gate))
        while n_lines(pieces) < n_rows or not children(process.pid):
            assert process.poll() is None
            time.sleep(0.005)
        workers = children(process.pid)
        process.send_signal(how)
        # After Ctrl-C `run` returns what is done, and the script ends as always.
        assert process.wait(timeout=20) in (0, -how)
        wait_until_gone(workers)
        assert n_lines(pieces) == n_rows
    gate.write_text("")
    assert start(pieces, GATE=str(gate)).wait() == 0
    assert n_lines(pieces) == N_CELLS
    assert results(pieces) == results(whole)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_killed_without_any_order_and_started_again_it_gives_the_same_rows(tmp_path, rng):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    run([makeshift.killable()], whole, jobs=1)
    for delay in rng.uniform(0, 0.1, size=3):
        process = start(pieces)
        while process.poll() is None and not children(process.pid):
            time.sleep(0.002)
        time.sleep(delay)
        process.kill()
        process.wait()
    assert start(pieces).wait() == 0
    assert n_lines(pieces) == N_CELLS
    assert results(pieces) == results(whole)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_do_not_go_on_without_a_parent(tmp_path):
    sign = tmp_path / "begun"
    process = start(tmp_path, sign)
    while not sign.exists():
        assert process.poll() is None
        time.sleep(0.01)
    workers = children(process.pid)
    process.kill()
    process.wait()
    assert workers
    wait_until_gone(workers)


def test_the_clock_knows_that_some_kinds_take_longer():
    clock = Clock(["short"] * 10 + ["long"] * 10, jobs=1)
    assert clock.remaining() is None
    clock.done("short", 1.0)
    assert clock.remaining() == pytest.approx(19.0)
    clock.done("long", 11.0)
    assert clock.remaining() == pytest.approx(9 * 1 + 9 * 11)
    clock.jobs = 2
    assert clock.remaining() == pytest.approx((9 * 1 + 9 * 11) / 2)


def test_progress_lines_are_few_but_the_last_one_is_always_there(capsys):
    with Lines(every=1000) as lines:
        for done in range(11):
            lines.show(done, 10, done // 5, 70.0 if done else None)
    assert capsys.readouterr().err.splitlines() == ["0 of 10 cells", "10 of 10 cells, 2 failed"]
    with Lines(every=0) as lines:
        lines.show(3, 10, 0, 70.0)
    assert capsys.readouterr().err == "3 of 10 cells, about 1 min 10 s left\n"


def test_the_bar_shows_the_same_words(capsys):
    pytest.importorskip("rich")
    with Bar() as bar:
        bar.show(3, 10, 1, 70.0)
    assert "3 of 10 cells, 1 failed" in capsys.readouterr().err
