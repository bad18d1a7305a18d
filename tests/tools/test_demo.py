import base64
import re
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from robustpca import EPCA, PCAOM
from robustpca.models import all_methods
from robustpca.tools import demo
from robustpca.tools.plot import image_rows

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Broken(PCA):
    def fit(self, X, y=None):
        raise RuntimeError("no <luck> today")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return demo.run(tmp_path_factory.mktemp("demo") / "made" / "here", n_samples=200)


def test_the_table_has_a_row_for_pca_and_for_every_method(small):
    rows = demo.table(small.results).splitlines()[2:]
    names = [row.replace("*", " ").split()[0] for row in rows[: len(small.results)]]
    assert sorted(names) == sorted(["PCA", *all_methods()])


def test_every_method_works_on_the_digits(small):
    assert [result.failure for result in small.results] == [""] * len(small.results)


def test_the_rows_are_sorted_by_error_and_the_first_is_marked(small):
    errors = [result.error for result in small.results]
    assert errors == sorted(errors)
    rows = demo.table(small.results).splitlines()[2:]
    assert [row.startswith("*") for row in rows].index(True) == 0
    assert sum(row.startswith("*") for row in rows) == 1


def test_errors_are_given_relative_to_pca(small):
    by_name = {result.name: result for result in small.results}
    pca = by_name["PCA"]
    assert pca.relative == 1.0
    assert pca.cells[3:5] == ("-", "-")
    for result in small.results:
        assert result.relative == pytest.approx(result.error / pca.error)


def test_robust_methods_find_outliers_and_restore_better_than_pca(small):
    by_name = {result.name: result for result in small.results}
    # As many digits are flagged as are corrupted; at random a fifth of them would be right.
    for name, least in {"PCAAN": 0.8, "PCAOM": 0.5, "EPCA": 0.4, "R1PCA": 0.4}.items():
        assert by_name[name].precision == by_name[name].recall > least
        assert by_name[name].relative < 1


def test_the_picture_is_a_png_and_the_page_holds_it(small):
    picture = small.picture.read_bytes()
    assert picture.startswith(PNG_SIGNATURE)
    embedded = re.search(r'src="data:image/png;base64,([^"]+)"', small.page.read_text("utf-8"))
    assert base64.b64decode(embedded[1]) == picture


def test_the_page_refers_to_nothing_outside_itself(small):
    page = small.page.read_text("utf-8")
    targets = re.findall(r'(?:src|href)\s*=\s*"([^"]{0,20})', page)
    assert targets == ["data:image/png;base64"[:20]]
    for outside in ("http:", "https:", "url(", "@import", "<script", "<link"):
        assert outside not in page


def test_the_page_has_every_row(small):
    page = small.page.read_text("utf-8")
    for result in small.results:
        for cell in result.cells:
            assert f"<td>{cell}<" in page


def test_a_method_that_fails_gets_a_row_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "all_methods", lambda: {"Broken": Broken, "PCAOM": PCAOM})
    result = demo.run(tmp_path, n_samples=60)
    assert "  Broken" in demo.table(result.results)
    assert "failed: RuntimeError: no <luck> today" in demo.table(result.results)
    assert "failed: RuntimeError: no &lt;luck&gt; today" in result.page.read_text("utf-8")
    assert result.results[-1].name == "Broken"
    assert result.best.name == "PCAOM"


def test_the_demo_ends_well_if_all_methods_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "all_methods", lambda: {"Broken": Broken})
    result = demo.run(tmp_path, n_samples=60)
    assert [row.name for row in result.results] == ["PCA", "Broken"]
    assert result.best is None
    assert result.picture.read_bytes().startswith(PNG_SIGNATURE)


def test_warnings_are_remarks_below_the_table(tmp_path, monkeypatch):
    class Hasty(PCAOM):
        def __init__(self, n_components=None, *, max_iter=1):
            super().__init__(n_components, max_iter=max_iter)

    monkeypatch.setattr(demo, "all_methods", lambda: {"Hasty": Hasty})
    result = demo.run(tmp_path, n_samples=60)
    assert "Hasty: Hasty stopped after max_iter=1 passes" in demo.table(result.results)
    assert "Hasty stopped after max_iter=1 passes" in result.page.read_text("utf-8")


def test_image_methods_get_the_shape_of_the_digits():
    class ImageMethod:
        def __init__(self, n_components=None, *, image_shape=None):
            pass

    assert demo.settings(ImageMethod) == {"image_shape": (8, 8), "n_components": (4, 4)}
    assert demo.settings(PCA) == {"n_components": 16}


def test_the_command_prints_the_table_and_where_the_files_are(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "all_methods", lambda: {"EPCA": EPCA, "PCAOM": PCAOM})
    demo.main(["--out", str(tmp_path), "--n-samples", "60", "--scattered"])
    printed = capsys.readouterr().out
    for name in ("PCA", "EPCA", "PCAOM"):
        assert f" {name} " in printed
    assert str(tmp_path / "demo.png") in printed
    assert str(tmp_path / "demo.html") in printed
    assert "others in each" in (tmp_path / "demo.html").read_text("utf-8")


def test_too_few_samples_are_refused_with_the_numbers(tmp_path, capsys):
    with pytest.raises(SystemExit):
        demo.main(["--out", str(tmp_path), "--n-samples", "10"])
    assert "n_samples=10 does not do: choose from 30" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    missing, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit, match=rf"{missing}, not installed.*robustpca\[plot,report\]"):
        demo.main(["--out", str(tmp_path)])


def test_image_rows_puts_samples_in_rows_and_versions_in_columns(rng):
    first, second = rng.uniform(size=(2, 3, 20))
    ax = image_rows([first, second], (4, 5), ["one", "two"], ax=Figure().subplots())
    mosaic = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert mosaic.shape == (3 * 4 + 2, 2 * 5 + 1)
    for row in range(3):
        for column, version in enumerate((first, second)):
            tile = mosaic[5 * row : 5 * row + 4, 6 * column : 6 * column + 5]
            np.testing.assert_array_equal(tile, version[row].reshape(4, 5))
    assert np.isnan(mosaic[4]).all()
    assert np.isnan(mosaic[:, 5]).all()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["one", "two"]
    assert ax.images[0].get_clim() == (first.min(), first.max())


def test_image_rows_refuses_images_that_do_not_fit(rng):
    images = rng.uniform(size=(3, 20))
    with pytest.raises(ValueError, match="1 versions of the images and 2 titles"):
        image_rows([images], (4, 5), ["one", "two"])
    with pytest.raises(ValueError, match=r"needs arrays of shape \(n_samples, 25\)"):
        image_rows([images], (5, 5), ["one"])
    with pytest.raises(ValueError, match=r"'two' has shape \(2, 20\)"):
        image_rows([images, images[:2]], (4, 5), ["one", "two"])
