"""Tables in text files, as people have them."""

import gzip

import numpy as np
import pytest

from robustpca.tools.files import read, with_values, write_like

pytest.importorskip("pandas")

# What a person gets out of a spreadsheet: names, an index, text, dates, holes and decimal commas.
DIRTY = """\
id;name;größe;gewicht;datum;raucher;stadt
007;Müller;1,5;70;05.01.2024;true;Köln
008;Åse;;71;06.01.2024;false;NA
009;Bo;1,75;k. A.;07.01.2024;true;Köln
010;Ida;1,8;72;08.01.2024;true;Bonn
011;Kim;1,65;80;09.01.2024;false;Bonn
012;Lee;NA;75;10.01.2024;true;Bonn
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_a_spoiled_export_of_a_spreadsheet(written):
    table = read(written(DIRTY, "mine.csv", "cp1252"))
    nan = np.nan
    expected = [
        [1.5, 70], [nan, 71], [1.75, nan], [1.8, 72], [1.65, 80], [nan, 75],
    ]  # fmt: skip
    np.testing.assert_array_equal(table.X, expected)
    assert table.X.dtype == np.float64
    assert table.names == ["größe", "gewicht"]
    assert table.labels == ["007", "008", "009", "010", "011", "012"]
    assert table.left_out == {
        "id": "row names", "name": "text", "datum": "date", "stadt": "text",
        "raucher": "yes or no",
    }  # fmt: skip
    assert table.summary() == (
        "mine.csv: 6 rows, 2 numeric columns used; left out: id (row names), name (text), datum "
        "(date), stadt (text), raucher (yes or no); 25.0 % of the cells are missing. The file is "
        "not in UTF-8 and was read as cp1252. 1 cell has text in the column 'gewicht' (line 4: "
        "'k. A.') and counts as missing."
    )
    assert list(table.frame) == ["id", *list(table.left_out)[1:2], *table.names[:2], "datum",
                                 "raucher", "stadt"]  # fmt: skip


def test_it_is_written_as_it_was_read(written, tmp_path):
    table = read(written(DIRTY, encoding="cp1252"))
    filled = np.where(np.isnan(table.X), 1.25, table.X)
    filled[2, 1] = 73
    write_like(table, with_values(table, filled), tmp_path / "out.csv")
    expected = (
        DIRTY.replace("k. A.", "73").replace("Åse;;", "Åse;1,25;").replace("Lee;NA", "Lee;1,25")
    )
    assert (tmp_path / "out.csv").read_bytes().decode("cp1252") == expected


@pytest.mark.parametrize(
    ("text", "X", "names"),
    [
        ("a,b,c\n1,2,3\n4,,NA\n7,8.5,-1e3\n", [[1, 2, 3], [4, None, None], [7, 8.5, -1000]], "abc"),
        ("1,2\n3,4\n", [[1, 2], [3, 4]], ["column 1", "column 2"]),
        ("x;y\n1,5;2\n3;-4,25", [[1.5, 2], [3, -4.25]], "xy"),
        ("x\ty\n1,5\t2\n3\t-4,25", [[1.5, 2], [3, -4.25]], "xy"),
        ("x|y\n1,5|2\n3|-4,25", [[1.5, 2], [3, -4.25]], "xy"),
        ('x,y\n"1,5","2,25"\n"3","4"\n', [[1.5, 2.25], [3, 4]], "xy"),
        ("  1.5   2\n 3 4\n", [[1.5, 2], [3, 4]], ["column 1", "column 2"]),
        ('"x" "y"\n"r1" 1 2\n"r2" 3 4\n', [[1, 2], [3, 4]], "xy"),
        ("sample,400,410\ns1,1,2\ns2,3,4\n", [[1, 2], [3, 4]], ["400", "410"]),
        (",x,y\n0,1,2\n1,3,4\n", [[1, 2], [3, 4]], "xy"),
        ("x,x,,y\n1,2,3,4\n5,6,7,8\n", [[1, 2, 3, 4], [5, 6, 7, 8]], ["x", "x.1", "column 3", "y"]),
        ("\ufeff1;2\r\n3;4\r\n", [[1, 2], [3, 4]], ["column 1", "column 2"]),
        ("x,y,z\n1,2,no\n3,4,yes\n", [[1, 2], [3, 4]], "xy"),
        ("x\n1.5\n?\n#DIV/0!\n-\n", [[1.5], [None], [None], [None]], "x"),
        ('x,y\n"1,234.50",$3\n"-2,000",$4.5\n', [[1234.5, 3], [-2000, 4.5]], "xy"),
        ("x;y\n1.234,5;12,5 %\n(2);-3 %\n7;4 %\n", [[1234.5, 12.5], [-2, -3], [7, 4]], "xy"),
        ("x;y\n1 234,5;3 kg\n\u22122;4 kg\n", [[1234.5, 3], [-2, 4]], "xy"),
    ],
)  # fmt: skip
def test_numbers_and_names(written, text, X, names):
    table = read(written(text))
    np.testing.assert_array_equal(table.X, np.array(X, dtype=float))
    assert table.names == list(names)


def test_cells_that_did_not_change_are_written_to_the_letter(written, tmp_path):
    text = 'x,y,z\n"1,234.50",5.0%,007\n2.10,6%,008\nNA,7%,100\n'
    table = read(written(text))
    assert "The numbers of y are given in %." in table.summary()
    X = table.X.copy()
    X[2, :2] = 8.25, 9
    write_like(table, with_values(table, X), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text.replace("NA,7%", "8.25,9.0%")
    write_like(table, with_values(table, table.X), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text


@pytest.mark.parametrize(
    ("code", "times", "is_code"),
    [("-999", 2, True), ("-999.25", 2, True), ("-999", 1, False), ("999", 2, False),
     ("999", 3, True), ("-7", 3, False)],
)  # fmt: skip
def test_numbers_that_stand_for_missing_ones(written, code, times, is_code, rng):
    rows = [[f"{a:.2f}", f"{2000 * b:.2f}"] for a, b in rng.normal(size=(50, 2))]
    for row in rows[:times]:
        row[0] = code
    path = written("\n".join(["small,large", *map(",".join, rows)]))
    table = read(path)
    assert np.isnan(table.X).sum() == (times if is_code else 0)
    words = f"{code} stands in {times} cells of 1 column and counts as missing"
    assert (words in table.summary()) == is_code
    assert not np.isnan(read(path, missing=[]).X).any()
    assert np.isnan(read(path, missing=[float(code)]).X).sum() == times


def test_a_negative_code_of_one_column_is_one_of_all(written, rng):
    X = rng.normal(size=(50, 3)) * [1, 1, 2000]
    X[3:6, 0] = X[8, 2] = X[:, 1] = -999
    table = read(written("\n".join(["a,b,c", *(",".join(map(str, row)) for row in X)])))
    assert table.left_out == {"b": "empty"}
    np.testing.assert_array_equal(np.argwhere(np.isnan(table.X)), [[3, 0], [4, 0], [5, 0], [8, 1]])


def test_numbers_are_read_to_the_last_digit(written, rng):
    X = rng.normal(size=(50, 4)) * 10.0 ** rng.integers(-300, 300, (50, 4))
    for mark in ".,":
        lines = ["; ".join(repr(float(x)).replace(".", mark) for x in row) for row in X]
        np.testing.assert_array_equal(read(written("\n".join(lines))).X, X)


def test_a_compressed_file(tmp_path):
    path = tmp_path / "table.tsv.gz"
    with gzip.open(path, "wt") as file:
        file.write("a\tb\n1\t2\n3\t4\n")
    table = read(path)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    write_like(table, with_values(table, table.X), tmp_path / "out.tsv.gz")
    with gzip.open(tmp_path / "out.tsv.gz", "rt") as file:
        assert file.read() == "a\tb\n1\t2\n3\t4\n"


def test_numbers_that_count_or_name_are_left_out(written):
    lines = ["time,number,customer_id,ShopID,day,grid"]
    lines += [f"{i / 2},{i},{i % 3},{50 - i},2024010{i},{i * 10}" for i in range(1, 8)]
    table = read(written("\n".join(lines)))
    assert table.names == ["time", "grid"]
    assert table.left_out == {
        "number": "row numbers", "customer_id": "identifier", "ShopID": "identifier", "day": "date",
    }  # fmt: skip
    assert table.labels == list("1234567")


def test_time_stamps_are_no_measurements(written):
    lines = ["a,seconds,millis,back,jumps,b"]
    lines += [
        f"{i / 8},{1700000000 + 60 * i},{1700000000000 + i * i},{1700000000 - i},"
        f"{1700000000 + 7 * i % 5},{i**2 / 8}"
        for i in range(9)
    ]
    table = read(written("\n".join(lines)))
    assert table.names == ["a", "jumps", "b"]
    assert table.left_out == {"seconds": "date", "millis": "date", "back": "date"}


def test_answers_are_left_out_beside_measurements(written):
    lines = ["a,b,c,passed,shift,rare,level"]
    lines += [
        f"{i / 8},{i**2 / 8},{-i / 4},{i % 5 > 0},{i % 4 // 3},{i // 39},{i % 3}" for i in range(40)
    ]
    table = read(written("\n".join(lines)))
    assert table.names == ["a", "b", "c", "rare", "level"]
    assert table.left_out == {"passed": "yes or no", "shift": "yes or no"}
    asked = read(written("\n".join(lines)), columns=["a", "passed", "shift"])
    assert asked.names == ["a", "passed", "shift"]
    assert asked.X[:6, 1:].tolist() == [[0, 0], [1, 0], [1, 0], [1, 1], [1, 0], [0, 0]]


def test_answers_are_used_where_they_are_all_there_is(written):
    lines = ["x,a,b,c"] + [f"{i / 8},{i % 2},{i % 3 // 2},{i % 5 // 4}" for i in range(40)]
    assert read(written("\n".join(lines))).names == ["x", "a", "b", "c"]


def test_an_identifier_in_front_names_the_rows(written):
    table = read(written("part_id,a,b\n1007,5,6\n1003,7,8\n1020,0,1\n"))
    assert table.labels == ["1007", "1003", "1020"]
    assert table.left_out == {"part_id": "row names"}
    assert "Rows have no names" not in table.summary()
    repeated = read(written("shop_id,a,b\n7,5,6\n7,7,8\n9,0,1\n"))
    assert repeated.left_out == {"shop_id": "identifier"}
    assert repeated.labels == ["1", "2", "3"]


def test_times_in_front_name_the_rows_if_all_differ(written):
    times = [f"2024-03-{day:02} 10:{minute:02}" for day in (5, 6) for minute in range(0, 60, 5)]
    table = read(
        written("time,a,b\n" + "".join(f"{t},{i}.5,{i * i}.5\n" for i, t in enumerate(times)))
    )
    assert table.labels == times
    assert table.left_out == {"time": "row names"}
    days = read(
        written("day,a,b\n" + "".join(f"{t[:10]},{i}.5,{i * i}.5\n" for i, t in enumerate(times)))
    )
    assert days.left_out == {"day": "date"}
    assert days.labels[0] == "1"


def test_columns_and_index_are_those_asked_for(written):
    path = written("n,a,b,who\n1,5,6,x\n2,7,8,y\n3,0,1,\n")
    table = read(path, columns=["b", "n"], index="who")
    np.testing.assert_array_equal(table.X, [[6, 1], [8, 2], [1, 3]])
    assert table.labels == ["x", "y", "3"]
    assert table.left_out == {"a": "not chosen", "who": "row names"}
    assert read(path, drop=["b"]).left_out == {"b": "not chosen", "who": "text"}
    for asked, words in {
        "c": "No column is called 'c': there are n, a, b, who",
        "whom": "No column is called 'whom': did you mean 'who'",
        "who": "The column 'who' cannot be used as numbers: it is text",
    }.items():
        with pytest.raises(ValueError, match=words):
            read(path, columns=["a", asked])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# by a machine\n# today\n\nx,y,z\n1,2,3\n", "Before the table, 2 lines of text skipped."),
        ("x,y,z\n1,2,3\n4,5\n", "1 line ends before the last column (the first is line 3)"),
        ("x,y\ninf,2\n3,4\n", "1 infinite number counts as missing."),
        ("x,y\n1,2\n\n3,q\n5,6\n7,8\n9,r\n" + 9 * "1,2\n",
         "2 cells have text in the column 'y' (the first in line 4: 'q') and count as missing."),
    ],
)  # fmt: skip
def test_what_a_reader_decided_is_said(written, text, words):
    assert words in read(written(text)).summary()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,b\n", "has names of columns and no rows"),
        ("a,b\nx,y\n", r"No column of .* holds measurements: a \(row names\), b \(text\)"),
        ("1,2\n3,4\n\n5,6,7\n", "Line 4 of .* has 3 cells, and the first lines have 2"),
        ("PK\0\0\1", "is no text"),
        ("a,b\n1,2\n" + 200_000 * "9" + ",3\n", "field larger than .* a quote without an end"),
        ('a,b\n1,2\n3,"4\n' + 40_000 * "5,6\n", "field larger than .* a quote without an end"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(written, text, words):
    with pytest.raises(ValueError, match=words):
        read(written(text))


def test_a_damaged_archive_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 500)[:-20])
    with pytest.raises(ValueError, match="is damaged: it cannot be decompressed"):
        read(tmp_path / "a.csv.gz")


def test_titles_above_a_table_are_skipped_though_they_have_all_separators(written):
    table = read(written("Export of May;;\n;;\nsite;x;y\na;1,5;2\nb;3;4\n"))
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, 4]])
    assert table.names == ["x", "y"]
    assert table.labels == ["a", "b"]
    assert "Before the table, 2 lines of text skipped." in table.summary()


def test_rows_without_any_number_are_left_out_and_written_as_they_are(written, tmp_path):
    good = "".join(f"r{i},{i}.0,{i * i},\n" for i in range(1, 30))
    text = f"id,x,y,note\n,kg,m,units\n{good}b,,,broken\nc,3,,\n,,,\n"
    table = read(written(text))
    assert table.X.shape == (30, 2)
    assert table.labels[-2:] == ["r29", "c"]
    assert table.summary() == (
        "table.csv: 30 rows, 2 numeric columns used; left out: id (row names), note (text); 1.7 % "
        "of the cells are missing. 3 rows (the first is row 1) without any number are left out."
    )
    X = table.X.copy()
    X[29, 1] = 4
    frame = with_values(table, X)
    write_like(table, frame, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text.replace("c,3,,", "c,3,4,")
    frame["flag"] = np.arange(30) < 1
    write_like(table, frame, tmp_path / "flags.csv")
    lines = (tmp_path / "flags.csv").read_text().splitlines()
    assert lines[:3] == ["id,x,y,note,flag", ",kg,m,units,", "r1,1.0,1,,True"]
    assert lines[-3:] == ["b,,,broken,", "c,3,4,,False", ",,,,"]
    write_like(table, with_values(table, X), tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").shape == (33, 2)


@pytest.mark.parametrize(
    ("text", "index", "left_out"),
    [
        ("Kundennummer,x\n4711,1.5\n815,2.5\n", "Kundennummer", {}),
        ("Part No.,x\n4711,1.5\n815,2.5\n", "Part No.", {}),
        ("x,zip\n1.5,80331\n2.5,50667\n", None, {"zip": "identifier"}),
        ("x,town\n1.5,01067\n2.5,50667\n", None, {"town": "identifier"}),
        ('x;town\n1,5;"01067"\n2,5;"50667"\n', None, {"town": "identifier"}),
        ("x,count\n1.5,0\n0.5,50\n", None, {}),
    ],
)
def test_numbers_that_name_things_are_no_measurements(written, text, index, left_out):
    table = read(written(text))
    rows = {} if index is None else {index: "row names"}
    assert table.left_out == rows | left_out


def test_a_film_is_sent_to_the_verb_for_films(written):
    with pytest.raises(ValueError, match=r"is a film: `robustpca separate .*traffic\.MP4` takes"):
        read(written("x", "traffic.MP4"))
