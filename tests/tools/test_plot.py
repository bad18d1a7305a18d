import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import robustpca
from robustpca import EPCA, PCAAN, RPCA, RVFLClassifier, plot, sparsity_path
from robustpca.datasets import make_low_rank_plus_sparse, make_subspace_with_outliers, make_video
from robustpca.models.paths import Path
from robustpca.plot import image_rows
from robustpca.tools.plot.style import diverging, ground, ink

plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    """Rows of which every fifth is an outlier, and a model of them."""
    data = make_subspace_with_outliers(120, 8, 2, noise=0.3, random_state=0)
    return data.X, data.extras["is_outlier"], PCAAN(2).fit(data.X)


@pytest.fixture(scope="module")
def entries():
    """A matrix with wrong and missing entries, a model of it, and its passes."""
    data = make_low_rank_plus_sparse(60, 12, 2, noise=0.05, random_state=0)
    X = data.X.copy()
    X[3, 4] = np.nan
    return X, data.extras["mask"], RPCA().fit(X)


@pytest.fixture(scope="module")
def passes():
    """A fit that takes many passes, and what its callback got."""
    X, history = make_low_rank_plus_sparse(60, 12, 2, random_state=0).X, []
    return RPCA(callback=history.append).fit(X), history


@pytest.fixture(scope="module")
def path():
    values, error = np.array([0.1, 0.2, 0.4]), np.array([0.5, 0.2, 0.3])
    return Path(
        ("sparsity",), values, np.array([1, 2, 9]), error, error, 0.02 + 0 * error, 5 + 0 * error
    )


@pytest.fixture(scope="module")
def displays(rows, entries, passes, path):
    """How to draw each picture, given axes."""
    (X, _, model), (A, _, split), (exact, history) = rows, entries, passes
    return {
        "map": lambda ax: plot.OutlierMapDisplay.from_estimator(model, X, ax=ax),
        "scores": lambda ax: plot.ScoresDisplay.from_estimator(model, X, ax=ax),
        "scree": lambda ax: plot.ScreeDisplay.from_estimator(model, X, ax=ax),
        "loadings": lambda ax: plot.LoadingsDisplay.from_estimator(model, X, ax=ax),
        "entries": lambda ax: plot.EntriesDisplay.from_estimator(split, A, ax=ax),
        "images": lambda ax: plot.ImagesDisplay.from_estimator(split, A, image_shape=(3, 4), ax=ax),
        "values": lambda ax: plot.SingularValuesDisplay.from_estimator(split, A, ax=ax),
        "objective": lambda ax: plot.ConvergenceDisplay.from_estimator(exact, ax=ax),
        "change": lambda ax: plot.ConvergenceDisplay.from_progress(history, tol=1e-6, ax=ax),
        "path": lambda ax: plot.PathDisplay.from_path(path, ax=ax),
    }


KINDS = ["map", "scores", "scree", "loadings", "entries", "images", "values"]
KINDS += ["objective", "change", "path"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_is_drawn_where_it_should_be(displays, kind, tmp_path):
    figure, (left, right) = plt.subplots(1, 2)
    display = displays[kind](right)
    assert (display.ax_, display.figure_) == (right, figure)
    assert not left.has_data()
    assert plt.get_fignums() == [figure.number]
    assert display.plot(left) is display
    assert display.ax_ is left
    assert left.has_data()
    figure.savefig(tmp_path / "picture.png")


@pytest.mark.parametrize("kind", KINDS)
def test_without_axes_one_figure_of_a_sensible_size_is_made(displays, kind):
    display = displays[kind](None)
    assert plt.get_fignums() == [display.figure_.number]
    assert all(1.5 < size <= 12 for size in display.figure_.get_size_inches())


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_can_be_read_on_black(displays, kind):
    with plt.style.context("dark_background"):
        display = displays[kind](None)
        display.figure_.draw_without_rendering()
        assert ink(display.ax_)[0] > 0.9
        for text in display.ax_.texts:
            if isinstance(text.get_color(), tuple):
                assert max(text.get_color()) > 0.3


def test_the_map_has_the_cutoffs_and_flags_of_the_model(rows):
    X, is_outlier, model = rows
    display = plot.OutlierMapDisplay.from_estimator(model, X)
    vertical, horizontal = display.ax_.lines
    assert set(vertical.get_xdata()) == {model.score_cutoff_}
    assert set(horizontal.get_ydata()) == {model.orthogonal_cutoff_}
    np.testing.assert_array_equal(display.is_outlier, model.predict(X) == -1)
    assert display.kinds_[is_outlier].min() >= 1
    np.testing.assert_array_equal(display.kinds_ > 0, display.is_outlier)
    names = [text.get_text() for text in display.ax_.texts]
    for kind, field in enumerate(display.FIELDS):
        assert f"{field} ({np.sum(display.kinds_ == kind)})" in names
    far = display.orthogonal_distances > model.orthogonal_cutoff_
    assert np.isin(display.kinds_[far & is_outlier], (2, 3)).all()


def test_the_worst_rows_are_labelled_and_labels_do_not_overlap(rows):
    X, _, model = rows
    names = [f"row {i}" for i in range(len(X))]
    display = plot.OutlierMapDisplay.from_estimator(model, X, labels=names, n_labels=12)
    worst = [names[i] for i in np.argsort(model.score_samples(X))[:12]]
    written = [label.get_text() for label in display.labels_]
    assert len(written) >= 4
    assert set(written) <= set(worst)
    display.figure_.draw_without_rendering()
    boxes = [Text.get_window_extent(label) for label in display.labels_]  # without its line
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    none = plot.OutlierMapDisplay.from_estimator(model, X, n_labels=0)
    assert none.labels_ == []


def test_axes_of_the_map_are_logarithmic_only_if_rows_are_far_away(rows, rng):
    X, _, model = rows
    assert plot.OutlierMapDisplay.from_estimator(model, X).ax_.get_yscale() == "log"
    clean = rng.normal(size=(200, 6))
    display = plot.OutlierMapDisplay.from_estimator(PCAAN(2).fit(clean), clean)
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("linear", "linear")


def test_every_row_is_within_the_map(rows):
    X, _, model = rows
    exact = np.vstack([X, model.mean_])  # a row at the centre: both distances are 0
    ax = plot.OutlierMapDisplay.from_estimator(model, exact).ax_
    points = np.concatenate([np.asarray(dots.get_offsets()) for dots in ax.collections])
    assert len(points) == len(exact)
    for values, limits in zip(points.T, (ax.get_xlim(), ax.get_ylim()), strict=True):
        assert (values >= limits[0]).all()
        assert (values <= limits[1]).all()


def test_plain_pca_has_a_classical_map(rows, rng):
    clean = rng.normal(size=(2000, 6))
    display = plot.OutlierMapDisplay.from_estimator(PCA(2).fit(clean), clean)
    assert display.score_cutoff == pytest.approx(2.716, abs=1e-3)  # chi-square, 2 degrees
    beyond = display.orthogonal_distances > display.orthogonal_cutoff
    assert 0.01 < beyond.mean() < 0.04
    X, is_outlier, model = rows
    robust = plot.OutlierMapDisplay.from_estimator(model, X)
    assert robust.is_outlier[is_outlier].all()


def test_a_pipeline_is_drawn_as_its_last_step_sees_the_data(rows):
    X, _, _ = rows
    pipeline = make_pipeline(StandardScaler(), PCAAN(2)).fit(X)
    display = plot.OutlierMapDisplay.from_estimator(pipeline, X)
    scaled = pipeline[0].transform(X)
    expected = pipeline[-1].orthogonal_distances(scaled)
    np.testing.assert_allclose(display.orthogonal_distances, expected)
    assert plot.ConvergenceDisplay.from_estimator(pipeline).values.size > 1
    assert plot.LoadingsDisplay.from_estimator(pipeline).loadings.shape == (8, 2)


def test_names_of_rows_and_columns_come_from_the_data_frame(rows):
    pandas = pytest.importorskip("pandas")
    X, _, _ = rows
    table = pandas.DataFrame(X, columns=list("abcdefgh")).set_index([[f"s{i}" for i in range(120)]])
    model = PCAAN(2).fit(table)
    display = plot.OutlierMapDisplay.from_estimator(model, table)
    assert all(label.get_text().startswith("s") for label in display.labels_)
    loadings = plot.LoadingsDisplay.from_estimator(model)
    assert [text.get_text() for text in loadings.ax_.get_yticklabels()] == list("abcdefgh")
    heat = plot.EntriesDisplay.from_estimator(model, table, n_rows=5)
    assert len(heat.rows) == 5
    assert set(heat.rows) <= set(table.index)


def test_the_ellipse_holds_clean_rows_and_leaves_out_those_far_away(rng):
    X = rng.multivariate_normal([1, 2], [[4, 1.5], [1.5, 1]], size=600)
    X[:40] += [30, -30]
    display = plot.ScoresDisplay.from_estimator(PCAAN(2).fit(X), X)
    inside = np.linalg.solve(display.axes, (display.scores - display.center).T)
    inside = np.sum(inside**2, axis=0) <= 1
    assert not inside[:40].any()
    assert 0.95 < inside[40:].mean() < 0.995
    with pytest.raises(ValueError, match=r"components=\(0, 2\) are not all there: the model has 2"):
        plot.ScoresDisplay.from_estimator(PCAAN(2).fit(X), X, components=(0, 2))


def test_scree_shows_variances_of_the_model_and_of_plain_pca(rows):
    X, _, model = rows
    display = plot.ScreeDisplay.from_estimator(model, X, n_components=5)
    np.testing.assert_allclose(display.robust, model.explained_variance_)
    np.testing.assert_allclose(display.classical, PCA(5).fit(X).explained_variance_)
    drawn = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    np.testing.assert_allclose(drawn["PCAAN"], model.explained_variance_)


def test_loadings_keep_the_features_that_count_most(rows):
    X, _, model = rows
    display = plot.LoadingsDisplay.from_estimator(model, X, n_features=3)
    importance = model.explained_variance_ratio_ @ model.components_**2
    assert sorted(np.argsort(-importance)[:3]) == [int(name) for name in display.features]
    assert display.n_left_out == 5
    assert "and 5 features that count less" in [text.get_text() for text in display.ax_.texts]


def test_entries_are_in_sigmas_and_dots_are_the_flags_of_the_model(entries):
    X, mask, model = entries
    display = plot.EntriesDisplay.from_estimator(model, X, n_rows=60)
    expected = (X - model.low_rank_) / model.column_noise_
    np.testing.assert_allclose(display.sigmas, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(display.flags, model.flag_entries(X))
    dots, dashes = (
        c for c in display.ax_.collections if hasattr(c, "get_sizes") and len(c.get_offsets())
    )
    assert len(dots.get_offsets()) == display.flags.sum()
    np.testing.assert_array_equal(dashes.get_offsets(), [[4, 3]])
    few = plot.EntriesDisplay.from_estimator(model, X, n_rows=10)
    assert few.n_left_out == (50, 0)
    assert few.flags.any(axis=1).all()
    assert few.flags.sum() >= 0.3 * display.flags.sum()
    narrow = plot.EntriesDisplay.from_estimator(model, X, n_rows=10, n_columns=5)
    assert narrow.n_left_out == (50, 7)
    assert narrow.flags.any(axis=0).all()
    assert mask[[int(name) for name in few.rows]].any(axis=1).mean() > 0.8


def test_entries_of_a_subspace_are_flagged_by_their_residuals(rng):
    X = np.outer(rng.normal(size=80), [3.0, 2.0, -1.0, 4.0, 1.0]) + 0.1 * rng.normal(size=(80, 5))
    X[7, 2] += 6.0
    display = plot.EntriesDisplay.from_estimator(PCAAN(1).fit(X), X, n_rows=80)
    assert display.flags[7, 2]
    assert display.flags.mean() < 0.02


def test_images_show_both_parts_and_missing_pixels():
    video = make_video(20, (12, 16), n_movers=1, random_state=0)
    X = video.X.copy()
    X[0, :5] = np.nan
    model = RPCA().fit(X)
    display = plot.ImagesDisplay.from_estimator(model, X, image_shape=(12, 16), images=[0, 7])
    low_rank, sparse = model.decompose(X[[0, 7]])
    np.testing.assert_allclose(display.low_rank, low_rank)
    np.testing.assert_allclose(display.sparse, sparse.toarray())
    picture = display.ax_.images[0].get_array()
    assert picture.shape == (2 * 12 + 1, 3 * 16 + 2, 4)
    assert (picture[0, :5, 2] > picture[0, :5, 1]).all()  # violet
    nothing = sparse.toarray()[0].reshape(12, 16) == 0
    np.testing.assert_allclose(picture[:12, 34:][nothing][:, :3], 1.0)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["given", "low rank", "sparse"]


def test_singular_values_end_at_the_rank(entries):
    X, _, model = entries
    display = plot.SingularValuesDisplay.from_estimator(model, X)
    given, restored = display.ax_.lines
    assert restored.get_label() == f"RPCA: rank {model.rank_}"
    assert np.isfinite(restored.get_ydata()).sum() == model.rank_
    assert np.isfinite(given.get_ydata()).all()


def test_convergence_is_that_of_the_objective_or_of_the_change(passes):
    model, history = passes
    display = plot.ConvergenceDisplay.from_estimator(model)
    objective = model.objective_[np.isfinite(model.objective_)]
    expected = np.abs(objective - objective[-1]) / abs(objective[0])
    np.testing.assert_allclose(display.values, expected)
    display = plot.ConvergenceDisplay.from_progress(history, tol=1e-3)
    counted = [step.change for step in history if step.counted]
    assert len(counted) == model.n_iter_ < len(history)
    np.testing.assert_array_equal(display.values, counted)
    assert set(display.ax_.lines[1].get_ydata()) == {1e-3}
    with pytest.raises(ValueError, match=r"pass callback=history\.append"):
        plot.ConvergenceDisplay.from_progress([])


def test_a_path_marks_its_best_value(path):
    display = plot.PathDisplay.from_path(path)
    ring = display.ax_.lines[-1]
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (path.best, 0.2)
    assert "rank 2" in [text.get_text() for text in display.ax_.texts]


def test_paths_of_real_fits_are_drawn():
    X = make_low_rank_plus_sparse(40, 20, 2, random_state=0).X
    display = plot.PathDisplay.from_path(sparsity_path(X, [0.1, 0.2]))
    assert display.parameter == "sparsity"


def test_what_cannot_be_drawn_is_refused_in_a_sentence(rows, rng):
    X, _, model = rows
    with pytest.raises(ValueError, match="There are 3 labels and 120 rows"):
        plot.OutlierMapDisplay.from_estimator(model, X, labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="There are 2 names and 8 columns"):
        plot.LoadingsDisplay.from_estimator(model, features=["a", "b"])
    classifier = RVFLClassifier(n_hidden=3).fit(X, rng.integers(2, size=120))
    with pytest.raises(ValueError, match="RVFLClassifier has no distances of rows"):
        plot.OutlierMapDisplay.from_estimator(classifier, X)
    with pytest.raises(ValueError, match="has no course of an objective"):
        plot.ConvergenceDisplay.from_estimator(PCA(2).fit(X))


def test_signed_colours_have_the_background_in_the_middle():
    for color in ("white", "black", "#223344"):
        ax = plt.figure().add_subplot(facecolor=color)
        np.testing.assert_allclose(diverging(ax)(0.5)[:3], ground(ax))


def test_single_precision_is_drawn_too(rows):
    X, _, _ = rows
    model = EPCA(2).fit(X.astype(np.float32))
    plot.OutlierMapDisplay.from_estimator(model, X.astype(np.float32))
    plot.ScoresDisplay.from_estimator(model, X.astype(np.float32))


def test_the_module_is_loaded_when_it_is_first_used():
    code = "import sys, robustpca; assert 'robustpca.plot' not in sys.modules; robustpca.plot"
    code += "; assert 'matplotlib' not in sys.modules; from robustpca.plot import image_rows"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(plot.__all__) <= set(dir(plot))
    assert "plot" in dir(robustpca)


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


def test_names_with_dollars_are_no_formulas(rows, entries):
    names = [rf"$\frac$ {i}" for i in range(120)]
    shown = [
        plot.OutlierMapDisplay.from_estimator(rows[2], rows[0], labels=names),
        plot.ScoresDisplay.from_estimator(rows[2], rows[0], labels=names),
        plot.LoadingsDisplay.from_estimator(rows[2], features=names[:8]),
        plot.EntriesDisplay.from_estimator(
            entries[2], entries[0], labels=names[:60], features=names[:12]
        ),
    ]
    for display in shown:
        display.figure_.canvas.draw()
        assert any(r"$\frac$" in text.get_text() for text in display.figure_.findobj(Text))
