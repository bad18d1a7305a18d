"""The kept results and the page that is made of them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results():
    path = ROOT / "scripts" / "results.py"
    if not path.exists():
        pytest.skip("scripts/ is in the repository alone")
    spec = importlib.util.spec_from_file_location("results", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_on_reproduction_is_made_of_the_kept_results(results):
    _, _, written = results.PAGE.read_text("utf-8").partition(results.MARK)
    again = "python scripts/results.py pages"
    assert written.strip() == results.generated(results.kept_report()).strip(), f"run {again}"


def test_kept_results_are_few_and_of_tables_that_there_are(results):
    files = list((results.RESULTS / results.LEVEL).glob(f"*{results.SUFFIX}"))
    assert files
    assert sum(path.stat().st_size for path in files) < 3_000_000
    names = {path.name.removesuffix(results.SUFFIX) for path in files}
    assert names <= results.all_tables().keys()


def test_times_of_a_data_set_are_those_of_one_machine(results):
    timed = {name for name, table in results.all_tables().items() if table.repeats > 1}
    machines = {}
    for row in results.read_results(results.RESULTS / results.LEVEL):
        if row["table"] in timed:
            machines.setdefault((row["table"], row["dataset"]), set()).add(str(row["machine"]))
    assert machines
    mixed = [place for place, found in machines.items() if len(found) > 1]
    assert not mixed, f"Seconds cannot be compared there: run {mixed} again, all methods."
