import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from robustpca import PCAOM
from robustpca.models import all_methods
from robustpca.tools import demo
from robustpca.tools.demo import digits
from robustpca.tools.demo.page import render, table
from robustpca.tools.demo.scenes import photographs, slipped_records, street

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Broken(PCA):
    def fit(self, X, y=None):
        raise RuntimeError("no <luck> today")


class Hasty(PCAOM):
    def __init__(self, n_components=None, *, max_iter=1):
        super().__init__(n_components, max_iter=max_iter)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return demo.run(tmp_path_factory.mktemp("demo") / "made" / "here", quick=True)


def numbers(shown):
    return {m.name: m.values for trouble in shown.troubles for m in trouble.measures}


def test_each_method_is_far_better_than_plain_pca_and_near_the_best(small):
    found = numbers(small)
    plain, ours, best = found["slipped records found"]
    assert plain < 0.7
    assert ours == best == 1
    plain, ours, best = found["first component is off by"]
    assert plain > 60
    assert best < ours < 25
    plain, ours, best = found["restored photographs are off by"]
    assert plain > 0.1
    assert best < ours < 2 * best
    plain, ours, best = found["F-measure of moving pixels, 1 is perfect"]
    assert plain < 0.85
    assert best - 0.02 < ours
    assert best > 0.95
    plain, ours, best = found["background is off by"]
    assert plain > 5 * ours


def test_the_picture_is_a_png_of_1200_pixels(small):
    picture = small.picture.read_bytes()
    assert picture.startswith(PNG_SIGNATURE)
    assert int.from_bytes(picture[16:20]) == 1200
    assert len(picture) < 300_000


def test_the_page_refers_to_nothing_outside_itself(small):
    page = small.page.read_text("utf-8")
    targets = re.findall(r'(?:src|href)\s*=\s*"([^"]{0,20})', page)
    assert set(targets) == {"data:image/png;base64"[:20], *(f"#trouble-{i}" for i in (1, 2, 3))}
    assert page.count("data:image/png") == 3
    for outside in ("http:", "https:", "url(", "@import", "<script", "<link"):
        assert outside not in page


def test_page_and_table_have_every_number(small):
    page, printed = small.page.read_text("utf-8"), table(small.troubles)
    for trouble in small.troubles:
        assert f"{trouble.title}</h2>" in page
        assert trouble.title in printed
        for measure in trouble.measures:
            assert re.search(r"\s+".join(map(re.escape, measure.texts)), printed)
            assert all(text in page for text in measure.texts)
    assert max(map(len, printed.splitlines())) <= 100


def test_files_are_not_lost_without_force(small):
    with pytest.raises(FileExistsError, match="pass --force to write over them"):
        demo.run(small.page.parent, quick=True)


def test_the_command_prints_the_table_and_where_the_files_are(small, tmp_path, capsys, monkeypatch):
    blank = replace(small.troubles[0], draw=lambda axes: None)
    monkeypatch.setattr(demo, "TROUBLES", [lambda seed, quick: blank])
    demo.main(["--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "slipped records found" in printed
    assert str(tmp_path / "demo.png") in printed
    assert str(tmp_path / "demo.html") in printed
    with pytest.raises(SystemExit):
        demo.main(["--out", str(tmp_path)])
    assert "would be lost" in capsys.readouterr().err
    demo.main(["--out", str(tmp_path), "--force"])


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        demo.main(["--out", str(tmp_path)])
    assert "needs matplotlib, not installed here. Run `pip install 'robustpca[plot]'`." in (
        capsys.readouterr().err
    )


def test_the_page_needs_no_template_engine(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "Bad rows in a group" in render(small.troubles[:1], [], 0, "1.0")


def test_slipped_records_differ_from_the_truth_in_ten_columns():
    data = slipped_records(0)
    changed = data.truth != data.X
    np.testing.assert_array_equal(changed.any(axis=1), data.is_wrong)
    assert data.is_wrong.sum() == 57
    np.testing.assert_array_equal(changed.any(axis=0), np.arange(30) < 10)


def test_photographs_have_rank_3_before_they_are_spoiled():
    data = photographs(0, 12, 16)
    assert np.linalg.matrix_rank(data.truth.reshape(12, -1), tol=1e-3) == 3
    missing = np.isnan(data.X)
    assert 0.05 < missing.mean() < 0.15
    wrong = np.abs(data.X - data.clean)[~missing] > 0
    assert 0.05 < wrong.mean() < 0.25


def test_the_street_differs_from_the_background_where_something_moves():
    data = street(0, 30, 36)
    assert np.linalg.matrix_rank(data.background.reshape(30, -1), tol=1) == 2
    still = np.abs(data.X - data.empty)[~data.is_moving]
    np.testing.assert_array_equal(still, 0)
    assert 0.01 < data.is_moving.mean() < 0.15
    # Nothing stands at one place most of the time.
    assert data.is_moving.mean(axis=0).max() < 0.75


@pytest.mark.parametrize("make", [slipped_records, lambda seed: street(seed, 10, 36)])
def test_scenes_are_drawn_from_the_seed(make):
    np.testing.assert_array_equal(make(3).X, make(3).X)
    assert (make(3).X != make(4).X).any()


@pytest.fixture(scope="module")
def results():
    return digits.compare()


def test_every_method_works_on_the_digits(results):
    assert {result.name for result in results} == {"PCA", *all_methods()}
    assert [result.failure for result in results] == [""] * len(results)


def test_the_rows_are_sorted_by_error_and_the_first_is_marked(results):
    errors = [result.error for result in results]
    assert errors == sorted(errors)
    rows = digits.table(results).splitlines()[2:]
    assert [row.startswith("*") for row in rows].index(True) == 0
    assert sum(row.startswith("*") for row in rows) == 1


def test_errors_are_given_relative_to_pca(results):
    by_name = {result.name: result for result in results}
    pca = by_name["PCA"]
    assert pca.relative == 1.0
    assert pca.cells[3:5] == ("-", "-")
    for result in results:
        assert result.relative == pytest.approx(result.error / pca.error)


def test_robust_methods_find_outliers_and_restore_better_than_pca(results):
    by_name = {result.name: result for result in results}
    # As many digits are flagged as are corrupted; at random a fifth of them would be right.
    for name, least in {"PCAAN": 0.8, "PCAOM": 0.9, "EPCA": 0.9, "R1PCA": 0.9}.items():
        assert by_name[name].precision == by_name[name].recall > least
        assert by_name[name].relative < 1


def test_a_method_that_fails_gets_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(digits, "all_methods", lambda: {"Broken": Broken, "Hasty": Hasty})
    results = digits.compare(n_samples=60)
    assert [result.name for result in results][-1] == "Broken"
    printed, page = digits.table(results), render([], results, 0, "1.0")
    assert "failed: RuntimeError: no <luck> today" in printed
    assert "failed: RuntimeError: no &lt;luck&gt; today" in page
    assert "<details>" in page
    assert "Hasty: Hasty stopped after max_iter=1 passes" in printed
    assert "Hasty stopped after max_iter=1 passes" in page


def test_image_methods_get_the_shape_of_the_digits():
    class ImageMethod:
        def __init__(self, n_components=None, *, image_shape=None):
            pass

    assert digits.settings(ImageMethod) == {"image_shape": (8, 8), "n_components": (4, 4)}
    assert digits.settings(PCA) == {"n_components": 16}
