"""Tables in text files, as people have them."""

import gzip

import numpy as np
import pytest

from robustpca.datasets.tables import read_table


def written(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_numbers_with_names_and_missing_cells(tmp_path):
    table = read_table(written(tmp_path, "a,b,c\n1,2,3\n4,,NA\n7,8.5,-1e3\n"))
    np.testing.assert_array_equal(table.X, [[1, 2, 3], [4, np.nan, np.nan], [7, 8.5, -1000]])
    assert table.names == ["a", "b", "c"]
    assert table.dropped == []


def test_a_table_without_names(tmp_path):
    table = read_table(written(tmp_path, "1,2\n3,4\n"))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    assert table.names == ["column 1", "column 2"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_and_a_decimal_comma(tmp_path, separator):
    lines = ["x y".replace(" ", separator), f"1,5{separator}2", f"3{separator}-4,25"]
    table = read_table(written(tmp_path, "\n".join(lines)))
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, -4.25]])


def test_columns_of_text_are_left_out_and_named(tmp_path):
    table = read_table(written(tmp_path, 'id,size,"color, inside"\nr1,1,red\nr2,2,blue\n'))
    np.testing.assert_array_equal(table.X, [[1], [2]])
    assert table.dropped == ["id", "color, inside"]


def test_a_compressed_file(tmp_path):
    path = tmp_path / "table.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("1,2\n3,4\n")
    np.testing.assert_array_equal(read_table(path).X, [[1, 2], [3, 4]])


def test_a_file_of_a_spreadsheet_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("\ufeff1;2\r\n3;4\r\n".encode())
    np.testing.assert_array_equal(read_table(path).X, [[1, 2], [3, 4]])


def test_infinity_is_missing(tmp_path):
    assert np.isnan(read_table(written(tmp_path, "1,2\nNaN,4\n")).X[1, 0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\nx,y\n", "No column of .* holds numbers alone: a, b"),
        ("1,2\n3,4\n\n5\n", "Line 4 of .* has 1 cells and most have 2"),
        ("x,y\n1,2\n3,red\n4,5\n", "Line 3 of .* has 'red' in the column 'y', which holds numbers"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_table(written(tmp_path, text))
