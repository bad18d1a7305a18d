import json
import os

import pytest
from makeshift import write_rows
from processes import start_processes, wait_until  # noqa: F401

from robustpca.bench.store import Store, read_rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "rows.jsonl"


def test_rows_come_back_as_they_were_written(path):
    rows = [{"key": "a", "score": 0.1 + 0.2}, {"key": "b", "error": "line\nbreak | ü"}]
    with Store(path) as store:
        for row in rows:
            store.append(row)
        assert list(store.rows.values()) == rows
    assert read_rows(path) == rows
    with Store(path) as store:
        assert list(store.rows.values()) == rows


@pytest.mark.parametrize("rest", [b'{"key": "c", "sco', b"\x00\x00\x00", b'{"key": "c"}'])
def test_a_torn_last_line_is_dropped_and_nothing_else(path, rest):
    with Store(path) as store:
        store.append({"key": "a"})
        store.append({"key": "b"})
    with path.open("ab") as file:
        file.write(rest)
    assert [row["key"] for row in read_rows(path)] == ["a", "b"]
    with Store(path) as store:
        assert list(store.rows) == ["a", "b"]
        store.append({"key": "d"})
    assert [row["key"] for row in read_rows(path)] == ["a", "b", "d"]


def test_a_file_that_is_torn_in_its_first_line_is_empty(path):
    path.parent.mkdir()
    path.write_bytes(b'{"key": "a"')
    with Store(path) as store:
        assert store.rows == {}
    assert path.read_bytes() == b""


def test_a_damaged_line_in_the_middle_is_named(path):
    path.parent.mkdir()
    path.write_text('{"key": "a"}\n{"key"\n{"key": "b"}\n')
    with pytest.raises(ValueError, match=r"Line 2 of .* is not a row"), Store(path):
        pass
    path.write_text('{"key": "a"}\n[1]\n')
    with pytest.raises(ValueError, match=r"Line 2 of .* is not a row"):
        read_rows(path)


def test_a_second_program_is_told_to_wait(path):
    with Store(path) as store:
        store.append({"key": "a"})
        with pytest.raises(BlockingIOError, match="Another run is writing"), Store(path):
            pass
    with Store(path) as store:
        assert list(store.rows) == ["a"]


def test_numbers_that_are_not_finite_are_refused(path):
    with Store(path) as store:
        with pytest.raises(ValueError, match="not JSON compliant"):
            store.append({"key": "a", "score": float("nan")})
        store.append({"key": "b"})
    assert [row["key"] for row in read_rows(path)] == ["b"]


def test_a_full_disk_leaves_whole_rows_only(path, monkeypatch):
    write = os.write
    with Store(path) as store:
        store.append({"key": "a"})
        with monkeypatch.context() as patched:
            patched.setattr("os.write", lambda file, line: write(file, line[:5]))
            with pytest.raises(OSError, match="is the disk full"):
                store.append({"key": "b"})
        store.append({"key": "c"})
        assert list(store.rows) == ["a", "c"]
    assert [row["key"] for row in read_rows(path)] == ["a", "c"]


def test_a_killed_writer_leaves_whole_rows_only(path, start):
    writer = start(write_rows, path)
    wait_until(lambda: path.exists() and path.stat().st_size > 50_000)
    writer.kill()
    writer.join()
    with Store(path) as store:
        assert list(store.rows) == [str(number) for number in range(len(store.rows))]
        assert len(store.rows) >= 24


def test_the_last_row_of_a_key_counts(path):
    rows = [{"key": "a", "n": 1}, {"key": "b", "n": 2}, {"key": "a", "n": 3}]
    with Store(path) as store:
        for row in rows:
            store.append(row)
        assert [row["n"] for row in store.rows.values()] == [3, 2]
    assert read_rows(path) == rows


def test_a_line_is_plain_json(path):
    with Store(path) as store:
        store.append({"key": "a", "text": "ü"})
    assert json.loads(path.read_text()) == {"key": "a", "text": "ü"}
