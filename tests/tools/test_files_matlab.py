"""Files of MATLAB: what SciPy writes is read alike, and damaged ones end no program."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from robustpca.tools.files import read
from robustpca.tools.files.matlab import mat_arrays


# SciPy 1.18 asks whether sparse ones shall be arrays, which older versions cannot be told.
@pytest.mark.filterwarnings("ignore:The default value for `spmatrix`:DeprecationWarning")
@pytest.mark.parametrize("compressed", [False, True])
def test_matrices_of_numbers_are_those_that_scipy_reads(compressed, rng, tmp_path):
    X = rng.integers(0, 100, size=(7, 5))
    arrays = {f"of_{name}": X.astype(name) for name in ("u1", "i2", "i8", "f4", "f8", "bool")}
    arrays |= {"z": X + 1j, "images": rng.normal(size=(4, 3, 2)), "nothing": np.zeros((0, 3))}
    arrays |= {"x": np.float64(3), "s": sparse.csc_matrix(X * (X > 80))}
    others = {"word": "some", "struct": {"a": X}, "cell": np.array([X, "b"], dtype=object)}
    path = tmp_path / "a.mat"
    savemat(path, {**others, **arrays}, do_compression=compressed)
    found, expected = mat_arrays(path.read_bytes()), loadmat(path)
    assert found.keys() == arrays.keys()
    for name, array in found.items():
        known = expected[name]
        np.testing.assert_array_equal(array, known.toarray() if sparse.issparse(known) else known)
    np.testing.assert_array_equal(read(path, key="s").X, arrays["s"].toarray())


def test_masks_that_are_sparse_are_bytes_whatever_is_said(tmp_path):
    X = np.eye(12, 4)
    path = tmp_path / "a.mat"
    savemat(path, {"s": sparse.csc_matrix(X)})
    content = path.read_bytes()
    # MATLAB writes the four ones of such a mask as bytes, in an element that says it has doubles.
    doubles = np.array([9, 32], "<u4").tobytes() + np.ones(4).tobytes()
    assert content.endswith(doubles)
    mask = np.array([9, 4], "<u4").tobytes() + bytes([1, 1, 1, 1, 0, 0, 0, 0])
    size = np.array([14, len(content) - 136], "<u4").tobytes()
    less = np.array([14, len(content) - 136 - 24], "<u4").tobytes()
    spoilt = content.replace(doubles, mask).replace(size, less)
    np.testing.assert_array_equal(mat_arrays(spoilt)["s"], X)


def replaced(content, old, new, count=1):
    assert old in content
    return content.replace(old, new, count)


# Each of these ends SciPy's reader, or the conversion to a dense array, with a broken process.
FATAL = {
    "complex": lambda c: replaced(c, b"\6\0\0\0\x08\0\0\0\6\0", b"\6\0\0\0\x08\0\0\0\6\x08"),
    "type": lambda c: replaced(c, b"\x09\0\0\0\x80\1\0\0", b"\x63\0\0\0\x80\1\0\0"),
    "sides": lambda c: replaced(c, b"\5\0\0\0\x08\0\0\0\x0c\0", b"\5\0\0\0\0\0\0\0\x0c\0"),
    "columns": lambda c: replaced(
        c, b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4", b"\0\0\0\0l" + bytes(12)
    ),
}


@pytest.mark.parametrize("kind", FATAL)
def test_damaged_files_are_refused(kind, tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"X": np.arange(48.0).reshape(12, 4), "s": sparse.csc_matrix(np.eye(12, 4))})
    path.write_bytes(FATAL[kind](path.read_bytes()))
    with pytest.raises(ValueError, match=r"a\.mat is damaged: "):
        read(path)


def test_sparse_matrices_of_many_rows_are_refused(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"s": sparse.csc_matrix(([1.0], ([5], [3])), shape=(10**9, 40))})
    with pytest.raises(ValueError, match="its sparse matrix would take 298 GiB as a dense one"):
        read(path)


def test_files_of_version_4(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    savemat(tmp_path / "a.mat", {"X": X}, format="4")
    np.testing.assert_array_equal(read(tmp_path / "a.mat").X, X)
