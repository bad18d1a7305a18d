import os
import signal
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import makeshift
import numpy as np
import processes
import pytest
from makeshift import N_CELLS, Cloud, Timed, small_table
from processes import PATIENCE, is_running, members, start_processes, wait_until  # noqa: F401
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from robustpca import EPCA, GLRAM
from robustpca.bench import read_rows, run, runner, trial
from robustpca.bench.progress import new_progress
from robustpca.bench.runner import ROWS, Outcome, _prepare
from robustpca.bench.shown import curve
from robustpca.bench.trial import explain, measure, spoil
from robustpca.datasets import make_subspace_with_outliers, reset_entries
from robustpca.metrics import reconstruction_error


def n_lines(out):
    path = out / ROWS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def results(out):
    """What must not depend on when and how often a run was stopped."""
    return {row["key"]: (row["scores"], row["error"]) for row in read_rows(out / ROWS)}


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
    }
    parts = {"vary": {"n_components": [2]}, "seeds": 1}
    datasets = {"cloud": Cloud(), "lacking": makeshift.absent}
    tables = [
        small_table(methods, datasets=datasets, **parts),
        small_table({"hanging": makeshift.Hanging()}, name="late", time_limit=0.2, **parts),
    ]
    out, bar = tmp_path_factory.mktemp("mixed"), new_progress()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "CONTEXT", processes.CONTEXT)
        outcome = run(tables, out, jobs=1, progress=bar)
    return tables, out, outcome, bar.tasks[0]


def test_failures_are_rows_and_the_others_are_run(mixed):
    _, out, outcome, bar = mixed
    errors = {row["method"]: row["error"] for row in outcome.rows}
    assert errors["PCA"] is None
    assert errors["greedy"] is None
    assert errors["failing"] == "ValueError: no luck today"
    assert errors["unsendable"] == "RuntimeError: stays at home"
    assert "SIGKILL" in errors["killed"]
    assert "exit code 3" in errors["leaving"]
    assert errors["hanging"] == "TimeoutError: more than 0.2 s"
    assert "not a finite number" in errors["empty"]
    assert len(read_rows(out / ROWS)) == len(errors) == 8
    assert len(outcome.failures) == bar.fields["failed"] == 6
    assert bar.completed == bar.total == 8


def test_missing_data_are_listed(mixed):
    missing = {"small": {"lacking": "No file of this set. Fetch it."}, "late": {}}
    assert mixed[2].missing_data == missing


def test_a_row_says_what_was_run_where_and_what_came_out(mixed):
    tables, _, outcome, _ = mixed
    row = next(row for row in outcome.rows if row["method"] == "PCA")
    X = Cloud()().X
    X_corrupt, _ = reset_entries(X, 0.2, 0.5, random_state=0)
    expected = reconstruction_error(PCA(2).fit(X_corrupt), X, X_corrupt)
    assert row["scores"] == {"reconstruction_error": pytest.approx(expected, rel=1e-9)}
    assert row["estimator"]["n_components"] == 2
    assert row["settings"] == {"n_components": 2}
    assert row["data"]["n_samples"] == 40
    assert set(row["versions"]) == {"python", "numpy", "scipy", "scikit-learn", "robustpca"}
    assert row["seconds"] > 0
    assert row["converged"] is None
    assert row["iterations"] is None
    assert row["table"] == tables[0].name


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can forget an earlier peak")
def test_the_peak_memory_is_that_of_the_fit(mixed):
    rows = {row["method"]: row for row in mixed[2].rows}
    extra = {
        name: rows[name]["memory_peak"] - rows[name]["memory_start"] for name in ("PCA", "greedy")
    }
    assert extra["PCA"] < 2**23
    assert extra["greedy"] == pytest.approx(2**26, abs=2**22)
    assert rows["greedy"]["memory_exact"]


def test_what_is_done_is_not_done_again_and_failures_only_on_request(mixed, monkeypatch):
    monkeypatch.setattr(runner, "CONTEXT", processes.CONTEXT)
    tables, out, outcome, _ = mixed
    again = run(tables, out, jobs=2)
    assert again.n_new == 0
    assert again.rows == outcome.rows
    only = small_table(
        {"failing": makeshift.Failing(), "PCA": PCA()}, vary={"n_components": [2]}, seeds=1
    )
    retried = run([only], out, jobs=1, retry=True)
    assert retried.n_new == 1
    assert len(retried.rows) == 2
    assert len(read_rows(out / ROWS)) == 9


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


def test_of_several_fits_the_shortest_counts(monkeypatch):
    # Other work on the machine doubles the time that passes.
    clock = SimpleNamespace(perf_counter=lambda: 2 * Timed.now, process_time=lambda: Timed.now)
    monkeypatch.setattr(trial, "time", clock)
    monkeypatch.setattr(Timed, "left", [2.0, 1.0, 3.0])
    cell = small_table({"timed": Timed()}, score=fit_seconds, repeats=3).cells()[0]
    result = measure(cell, spoil(cell))
    assert not Timed.left
    assert result["scores"]["fit_seconds"] == result["cpu_seconds"] == 1.0
    assert result["seconds"] == 2.0


def test_a_long_fit_is_not_repeated(monkeypatch):
    clock = SimpleNamespace(perf_counter=lambda: Timed.now, process_time=lambda: Timed.now)
    monkeypatch.setattr(trial, "time", clock)
    monkeypatch.setattr(Timed, "left", [1.0, 20.0, 19.0])  # from the end
    cell = small_table({"timed": Timed()}, score=fit_seconds, repeats=3).cells()[0]
    assert measure(cell, spoil(cell))["cpu_seconds"] == 19.0
    assert Timed.left == [1.0]


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
def test_killed_at_any_row_and_started_again_it_gives_the_same_rows(tmp_path, start):
    whole, pieces, gate = tmp_path / "whole", tmp_path / "pieces", tmp_path / "gate"
    for n_rows in range(N_CELLS):
        process = start(makeshift.run_gated, pieces, gate, n_rows + 1)
        wait_until(lambda process=process: gate.exists() or not process.is_alive())
        assert n_lines(pieces) == n_rows
        how = signal.SIGINT if n_rows in (0, 3) else signal.SIGKILL
        os.kill(process.pid, how)
        process.join(PATIENCE)
        # After Ctrl-C `run` returns what is done, and the process ends as always.
        assert process.exitcode == (0 if how == signal.SIGINT else -how)
        worker = int(gate.read_text())
        wait_until(lambda worker=worker: not is_running(worker))
        assert n_lines(pieces) == n_rows
        gate.unlink()
    for out in (pieces, whole):
        process = start(makeshift.run_gated, out)
        process.join(PATIENCE)
        assert process.exitcode == 0
        assert n_lines(out) == N_CELLS
    assert results(pieces) == results(whole)
    assert not any(error for _, error in results(whole).values())


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_killed_without_any_order_and_started_again_it_gives_the_same_rows(tmp_path, start, rng):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    for delay in rng.uniform(0, 0.2, size=5):
        process = start(makeshift.run_gated, pieces)
        process.join(delay)
        process.kill()
        process.join(PATIENCE)
        wait_until(lambda group=process.pid: not members(group))
    for out in (pieces, whole):
        process = start(makeshift.run_gated, out)
        process.join(PATIENCE)
        assert n_lines(out) == N_CELLS
    assert results(pieces) == results(whole)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_do_not_go_on_without_a_parent(tmp_path, start):
    gate = tmp_path / "gate"
    process = start(makeshift.run_gated, tmp_path, gate, 1, "spawn")
    wait_until(lambda: gate.exists() or not process.is_alive())
    process.kill()
    worker = int(gate.read_text())
    wait_until(lambda: not is_running(worker))


def test_the_bar_shows_how_many_are_done_and_how_many_failed(capsys):
    with new_progress() as bar:
        bar.add_task("cells", total=10, completed=3, failed=1)
    assert "3/10 1 failed" in capsys.readouterr().err
