import numpy as np
import pytest
from sklearn.decomposition import NMF, PCA

from robustpca import PCAOM
from robustpca.bench.compare import File, comparison, find_corruption, find_method
from robustpca.bench.runner import Outcome, _prepare
from robustpca.bench.trial import measure, spoil
from robustpca.datasets import occlude_blocks
from robustpca.models import all_methods


@pytest.fixture
def images(rng, tmp_path):
    path = tmp_path / "images.npz"
    np.savez(path, X=rng.integers(0, 255, (30, 12), dtype=np.uint8), shape=(3, 4), y=np.arange(30))
    return path


def test_files_of_all_kinds_hold_the_same(rng, tmp_path):
    X = rng.normal(size=(5, 6))
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(5), shape=[2, 3])
    np.save(tmp_path / "b.npy", X)
    np.save(tmp_path / "c.npy", X.reshape(5, 2, 3))
    np.savetxt(tmp_path / "d.csv", X, delimiter=",", fmt="%.17g")
    text = (tmp_path / "d.csv").read_text()
    (tmp_path / "e.csv").write_text("one,two,three,four,five,six\n" + text + "\n")
    shapes = {"a.npz": (2, 3), "b.npy": None, "c.npy": (2, 3), "d.csv": None, "e.csv": None}
    for name, shape in shapes.items():
        data = File(tmp_path / name)()
        np.testing.assert_array_equal(data.X, X)
        assert data.image_shape == shape
    assert File(tmp_path / "b.npy", (3, 2))().image_shape == (3, 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "1,2\n3,red\n", "Line 2 of .*a.csv has 'red' in the column 'column 2'"),
        ("a.csv", "x,y\n1,2\n\n3\n", "Line 4 of .*a.csv has 1 cells and most have 2"),
        ("a.csv", "x,y\n", "No column of .*a.csv holds numbers"),
        ("a.csv", "1,2\nnan,3\n", "not finite"),
        ("a.txt", "1,2\n", "is none of .npz, .npy, .csv"),
    ],
)
def test_files_that_do_not_do_are_described(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        File(path)()


def test_missing_files_and_wrong_shapes_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        File(tmp_path / "nothing.npy")()
    np.save(tmp_path / "a.npy", np.ones((3, 5)))
    with pytest.raises(ValueError, match="X has 5 features, but its images are 2x3"):
        File(tmp_path / "a.npy", (2, 3))()
    np.savez(tmp_path / "b.npz", Y=np.ones((3, 5)))
    with pytest.raises(ValueError, match="it has no array X"):
        File(tmp_path / "b.npz")()


def test_methods_are_found_by_name_or_place():
    assert find_method("PCA") is PCA
    assert find_method("PCAOM") is PCAOM
    assert find_method("sklearn.decomposition:NMF") is NMF
    with pytest.raises(ValueError, match="Did you mean PCAOM"):
        find_method("PCAON")
    with pytest.raises(ValueError, match=r"There are PCA, .*EPCA"):
        find_method("zzz")
    with pytest.raises(ValueError, match="cannot be imported: No module named 'nowhere'"):
        find_method("nowhere:Thing")
    with pytest.raises(ValueError, match="cannot be imported"):
        find_method("sklearn.decomposition:Thing")
    with pytest.raises(ValueError, match="is not a class of transformers: it lacks transform"):
        find_method("sklearn.linear_model:Ridge")


def test_corruptions_are_read_from_text():
    found = find_corruption("occlude_blocks:area=0.5,fill=noise,samples=1")
    assert found.func is occlude_blocks
    assert found.keywords == {"area": 0.5, "fill": "noise", "samples": 1}
    assert find_corruption("none") is None
    for text, message in {
        "blur": "No corruption is called 'blur'",
        "drop_pixels:half": "should read name=value",
        "drop_pixels:area=1": "drop_pixels has no 'area': it takes share, random_state",
    }.items():
        with pytest.raises(ValueError, match=message):
            find_corruption(text)


def test_a_comparison_is_a_table_like_any_other(images, tmp_path):
    table = comparison(
        File(images),
        ["PCA", "GLRAM", "sklearn.decomposition:NMF"],
        ["none", "occlude_blocks:area=0.3"],
        [4, 6],
        seeds=2,
    )
    assert len(table.cells()) == 3 * 2 * 2 * 2
    glram = [cell for cell in table.cells() if cell.method == "GLRAM"]
    assert {cell.variant.estimator.n_components for cell in glram} == {(2, 2), (2, 3)}
    one = comparison(File(images), ["PCA", "GLRAM"], ["occlude_blocks"], [4], seeds=1)
    for job in _prepare([one], "default", Outcome()):
        result = measure(job.task.cell, spoil(job.task.cell))
        assert result["scores"]["reconstruction_error"] > 0
        assert str(tmp_path) not in str([job.row, result])


def test_the_same_data_elsewhere_are_the_same_experiment(images):
    moved = images.with_name("elsewhere") / images.name
    moved.parent.mkdir()
    moved.write_bytes(images.read_bytes())
    first, second = (
        [job.row["key"] for job in _prepare([comparison(File(path), ["PCA"])], "quick", Outcome())]
        for path in (images, moved)
    )
    assert first == second


def test_all_means_pca_and_every_method(images):
    methods = comparison(File(images), ["all"]).methods
    assert list(methods) == ["PCA", *all_methods()]


def test_corruptions_of_images_need_images(rng, tmp_path):
    np.save(tmp_path / "a.npy", rng.normal(size=(8, 6)))
    with pytest.raises(ValueError, match="occlude_blocks needs images"):
        comparison(File(tmp_path / "a.npy"), ["PCA"], ["occlude_blocks"])
