"""Files of all other kinds."""

import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from robustpca.tools.files import read, with_values, write_folder, write_like


@pytest.fixture(name="X")
def _numbers(rng):
    return rng.normal(size=(6, 4)).round(3)


def test_arrays_of_numpy(X, tmp_path):
    np.save(tmp_path / "a.npy", X.astype(np.float32))
    table = read(tmp_path / "a.npy")
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, X.astype(np.float32))
    assert table.summary() == (
        "a.npy: 6 rows, 4 numeric columns used; no cell is missing. Rows have no names: the "
        "first is row 1."
    )
    assert table.frame is None
    assert table.labels == ["1", "2", "3", "4", "5", "6"]
    some = read(tmp_path / "a.npy", columns=["column 3"])
    np.testing.assert_array_equal(some.X, table.X[:, [2]])


def test_arrays_by_name(X, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, measured=X, y=np.arange(6))
    np.testing.assert_array_equal(read(path).X, X)
    np.savez(path, X=X, other=X + 1)
    np.testing.assert_array_equal(read(path).X, X)
    np.testing.assert_array_equal(read(path, key="other").X, X + 1)
    np.savez(path, a=X, b=X + 1)
    with pytest.raises(
        ValueError, match=r"has the arrays a \(6 x 4\), b \(6 x 4\): choose one, as --key a"
    ):
        read(path)
    with pytest.raises(ValueError, match=r"has no array 'c': it has a \(6 x 4\)"):
        read(path, key="c")
    np.savez(path, X=X.astype(np.uint8), shape=(2, 2))
    assert read(path).image_shape == (2, 2)
    assert read(path).X.dtype == np.float64


def test_images_in_arrays(X, tmp_path):
    np.save(tmp_path / "a.npy", X.reshape(6, 2, 2))
    table = read(tmp_path / "a.npy")
    assert table.image_shape == (2, 2)
    np.testing.assert_array_equal(with_values(table, X), X.reshape(6, 2, 2))
    assert table.summary() == "a.npy: 6 images of 2 x 2 pixels; no cell is missing."


def test_matlab_hdf5_and_zarr(X, tmp_path):
    savemat(tmp_path / "a.mat", {"data": X, "t": np.arange(6)})
    np.testing.assert_array_equal(read(tmp_path / "a.mat").X, X)
    savemat(tmp_path / "a.mat", {"counts": sparse.csc_matrix(X)})
    np.testing.assert_array_equal(read(tmp_path / "a.mat").X, X)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/first"], file["run/second"] = X, X + 1
    np.testing.assert_array_equal(read(f"{tmp_path}/a.h5:run/second").X, X + 1)
    np.testing.assert_array_equal(read(tmp_path / "a.h5", key="/run/first").X, X)
    with pytest.raises(ValueError, match=r"has the arrays run/first \(6 x 4\), run/second"):
        read(tmp_path / "a.h5")
    # Version 7.3 of MATLAB: HDF5 with 512 bytes before it, and the axes in reverse.
    with h5py.File(tmp_path / "b.mat", "w", userblock_size=512) as file:
        file["data"] = X.T
    with (tmp_path / "b.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    np.testing.assert_array_equal(read(tmp_path / "b.mat").X, X)
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "a.zarr"), X)
    np.testing.assert_array_equal(read(tmp_path / "a.zarr").X, X)


def test_a_folder_of_images(rng, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = rng.integers(0, 255, (3, 5, 4), dtype=np.uint8)
    for name, one in zip(["b.png", "a.png", "c.tif"], pixels, strict=True):
        image.fromarray(one).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    table = read(tmp_path)
    assert (table.image_shape, table.labels) == ((5, 4), ["a.png", "b.png", "c.tif"])
    np.testing.assert_array_equal(with_values(table, table.X), pixels[[1, 0, 2]])
    colour = rng.integers(0, 255, (5, 4, 3), dtype=np.uint8)
    image.fromarray(colour).save(tmp_path / "d.png")
    table = read(tmp_path)
    assert table.image_shape == (5, 4, 3)
    np.testing.assert_array_equal(table.X[3], colour.ravel())
    np.testing.assert_array_equal(table.X[0].reshape(5, 4, 3)[..., 1], pixels[1])
    image.fromarray(pixels[0][:4]).save(tmp_path / "e.png")
    with pytest.raises(ValueError, match=r"e\.png has 4 x 4 pixels, and .*a\.png has 5 x 4"):
        read(tmp_path)
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"a\.png is damaged"):
        read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"The folder .* holds no images"):
        read(tmp_path / "empty")
    with pytest.raises(ValueError, match="give the folder of all images"):
        read(tmp_path / "b.png")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_a_stack_of_images(rng, tmp_path, kind):
    image = pytest.importorskip("PIL.Image")
    pixels = rng.integers(0, np.iinfo(kind).max, (3, 5, 4), dtype=kind)
    first, *others = (image.fromarray(one) for one in pixels)
    first.save(tmp_path / "a.tif", save_all=True, append_images=others)
    table = read(tmp_path / "a.tif")
    assert table.image_shape == (5, 4)
    np.testing.assert_array_equal(with_values(table, table.X), pixels)


def test_workbooks(tmp_path):
    pandas, book = pytest.importorskip("pandas"), pytest.importorskip("openpyxl")
    frame = pandas.DataFrame({
        "id": ["a", "b", "c"], "x": [1.5, None, 3], "n": [1, 2, 4], "who": ["k", "l", "l"],
        "day": pandas.to_datetime(["2024-01-01"] * 3),
    })  # fmt: skip
    path = tmp_path / "a.xlsx"
    frame.to_excel(path, index=False)
    table = read(path)
    np.testing.assert_array_equal(table.X, [[1.5, 1], [np.nan, 2], [3, 4]])
    assert table.labels == ["a", "b", "c"]
    assert table.left_out == {"id": "row names", "who": "text", "day": "date"}
    write_like(table, with_values(table, table.X + 1), tmp_path / "b.xlsx")
    again = read(tmp_path / "b.xlsx")
    np.testing.assert_array_equal(again.X, table.X + 1)
    assert again.left_out == table.left_out
    work = book.load_workbook(path)
    work.create_sheet("second").append(["only", 1, 2])
    work.save(path)
    assert "Of 2 sheets the first, 'Sheet1', was read." in read(path).summary()
    np.testing.assert_array_equal(read(path, sheet="second").X, [[1, 2]])
    with pytest.raises(ValueError, match="has no sheet 'third': it has Sheet1, second"):
        read(path, sheet="third")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="is damaged"):
        read(path)


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"x": np.float32([1, 2, 3]), "y": np.float32([4, np.nan, 6]), "who": ["k", "l", "l"]},
        index=["a", "b", "c"],
    )
    frame.to_parquet(tmp_path / "a.parquet")
    table = read(tmp_path / "a.parquet")
    assert table.X.dtype == np.float32
    assert table.labels == ["a", "b", "c"]
    write_like(table, with_values(table, table.X), tmp_path / "b.parquet")
    again = read(tmp_path / "b.parquet")
    np.testing.assert_array_equal(again.X, table.X)
    assert (again.names, again.labels, again.X.dtype) == (table.names, table.labels, np.float32)


@pytest.mark.parametrize("kind", ["npy", "npz", "mat", "h5", "csv", "tsv", "csv.gz"])
def test_arrays_are_written_in_many_formats(X, tmp_path, kind):
    np.save(tmp_path / "a.npy", X)
    table = read(tmp_path / "a.npy")
    write_like(table, X + 1, tmp_path / f"b.{kind}")
    np.testing.assert_array_equal(read(tmp_path / f"b.{kind}").X, X + 1)


def test_types_of_columns_are_kept_where_they_can(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "a.csv").write_text("n,m,b\n1,1,True\n2,,False\n3,9,True\n")
    table = read(tmp_path / "a.csv", columns=["n", "m", "b"])
    write_like(table, with_values(table, table.X), tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == (tmp_path / "a.csv").read_text()
    X = table.X.copy()
    X[1] = 0.5
    write_like(table, with_values(table, X), tmp_path / "b.csv")
    text = "n,m,b\n1,1,True\n0.5,0.5,0.5\n3,9,True\n"
    assert (tmp_path / "b.csv").read_text() == text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.doc", b"1", r"is of no kind that can be read; known are \.csv, .*\.parquet"),
        ("a.npy", b"1,2", "is damaged: it is cut off, or holds Python objects"),
        ("a.npz", b"PK\x03\x04", "is damaged: File is not a zip file"),
        ("a.mat", b"nothing" * 100, "is damaged"),
        ("a.npy", b"", "is empty"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / name)


def test_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object))
    with pytest.raises(ValueError, match="holds Python objects, which are not loaded"):
        read(tmp_path / "a.npy")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        (
            "pandas",
            "a.csv",
            r"needs pandas, .* `pip install 'robustpca\[files\]'`",
        ),
        ("openpyxl", "a.xlsx", r"needs openpyxl, .*robustpca\[files\]"),
        ("pyarrow", "a.parquet", r"needs pyarrow, .*robustpca\[files\]"),
        ("h5py", "a.h5", r"needs h5py, .*robustpca\[hdf5\]"),
    ],
)
def test_an_extra_that_lacks_is_named(tmp_path, monkeypatch, module, name, words):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"1,2\n")
    with pytest.raises(ImportError, match=words):
        read(tmp_path / name)


@pytest.mark.parametrize("top", [255, 4000])
def test_images_come_back_as_images(rng, tmp_path, top):
    image = pytest.importorskip("PIL.Image")
    kind = np.uint8 if top == 255 else np.uint16
    images = rng.integers(0, top, (5, 6, 4), endpoint=True).astype(kind)
    images[0, 0, 0] = top
    (tmp_path / "in").mkdir()
    for i, one in enumerate(images):
        image.fromarray(one).save(tmp_path / "in" / f"{i}.png")
    table = read(tmp_path / "in")
    assert table.names[5] == "pixel 2,2"
    X = table.X.copy()
    X[1, 3] = top + 7.2
    (tmp_path / "out").mkdir()
    write_folder(table, X, lambda name: tmp_path / "out" / name)
    write_like(table, with_values(table, X), tmp_path / "stack.tiff")
    expected = np.minimum(X, top if top == 255 else np.rint(X))
    for back in (read(tmp_path / "out"), read(tmp_path / "stack.tiff")):
        np.testing.assert_array_equal(back.X, expected)
    with image.open(tmp_path / "out" / "0.png") as a, image.open(tmp_path / "in" / "0.png") as b:
        assert a.mode == b.mode


def test_units_in_the_cells_of_a_workbook_are_written_again(tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("openpyxl")
    given = pandas.DataFrame({"x": [1.5, 2.5, 3.5], "mass": ["3 kg", None, "70.5 kg"]})
    given.to_excel(tmp_path / "mine.xlsx", index=False)
    table = read(tmp_path / "mine.xlsx")
    X = table.X.copy()
    X[0, 0], X[1, 1] = 9, 5.25
    write_like(table, with_values(table, X), tmp_path / "out.xlsx")
    found = pandas.read_excel(tmp_path / "out.xlsx")
    assert found["mass"].tolist() == ["3 kg", "5.25 kg", "70.5 kg"]
    assert found["x"].tolist() == [9, 2.5, 3.5]


def test_titles_above_a_table_in_a_workbook_are_skipped(tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("openpyxl")
    rows = [["Export of May", None, None, None], [None] * 4, [None, "name", "x", "y"],
            [None, "a", 1.5, 2], [None, "b", 3, 4]]  # fmt: skip
    pandas.DataFrame(rows).to_excel(tmp_path / "mine.xlsx", index=False, header=False)
    table = read(tmp_path / "mine.xlsx")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, 4]])
    assert (table.names, table.labels) == (["x", "y"], ["a", "b"])
    assert "Before the table, 1 line of text skipped." in table.summary()
