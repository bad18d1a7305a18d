"""Test the built packages as a user gets them: in a new environment, from an empty folder.

Usage: ``python scripts/smoke_test.py DIST``, where DIST holds one wheel, made from the source
archive, and that archive. ``make smoke`` builds both first.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
N_TABLES = 40
FIT = """
from pathlib import Path

import robustpca
from robustpca import PCAAN
from sklearn.datasets import load_digits

assert Path(robustpca.__file__).is_relative_to(Path({environment!r})), robustpca.__file__
X = load_digits().data
model = PCAAN(n_components=16).fit(X)
assert model.transform(X).shape == (len(X), 16)
assert set(model.predict(X)) == {{-1, 1}}
print("robustpca", robustpca.__version__, "fits", len(X), "digits")
"""


def main() -> None:
    """Run all checks; the first that fails ends the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path, help="folder of the wheel and the source archive")
    dist = parser.parse_args().dist.resolve()
    (wheel,) = dist.glob("*.whl")
    (archive,) = dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        check_contents(wheel, archive, Path(folder))
        check_use(wheel, Path(folder))
    print(f"{wheel.name} and {archive.name} are fit for release.")


def check_contents(wheel: Path, archive: Path, folder: Path) -> None:
    """The wheel holds every file of the package, and source tree and archive give the same one."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder)]
    run([*build, str(ROOT)])
    in_wheel = contents(wheel)
    assert in_wheel == contents(folder / wheel.name), "the source archive gives another wheel"
    package = ROOT / "src"
    source = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }
    installed = {name for name in in_wheel if ".dist-info/" not in name}
    assert installed == source, f"the wheel differs in {sorted(installed ^ source)}"
    for ending in ("py.typed", ".csv", ".html", ".css", ".js"):
        count = sum(name.endswith(ending) for name in installed)
        assert count, f"no file {ending} in {wheel.name}"
        print(f"{ending:<9} {count:>3} in the wheel")
    print(f"{len(installed)} files of the package, from the tree and from {archive.name} alike")


def contents(wheel: Path) -> dict[str, int]:
    """Names and checksums of the files in a wheel."""
    with zipfile.ZipFile(wheel) as files:
        return {file.filename: file.CRC for file in files.infolist()}


def check_use(wheel: Path, folder: Path) -> None:
    """Fit, list and report in a new environment, without and with the extras."""
    environment, here = folder / "environment", folder / "empty"
    here.mkdir()
    run([sys.executable, "-m", "venv", str(environment)])
    python, command = environment / "bin" / "python", environment / "bin" / "robustpca"
    install = [python, "-m", "pip", "install", "--quiet"]

    run([*install, str(wheel)])
    print(run([python, "-c", FIT.format(environment=str(environment))], here), end="")
    refusal = run([command, "methods"], here, status=2)
    assert "pip install 'robustpca[cli]'" in refusal, refusal
    assert not any(here.iterdir()), "importing and fitting leave files behind"

    run([*install, f"{wheel}[bench]"])
    methods = run([command, "methods"], here)
    assert {"PCAAN", "RPCA", "GLPCA"} <= set(methods.split()), methods
    print(f"robustpca methods: {len(methods.splitlines())} lines")
    tables = [line for line in run([command, "bench"], here).splitlines() if " cells " in line]
    assert len(tables) == N_TABLES, f"{len(tables)} tables instead of {N_TABLES}"
    print(f"robustpca bench: {len(tables)} tables")

    # The cheapest table that needs no data file and has printed numbers.
    name = "angular_table_1"
    shown = run([command, "bench", "--quick", "--seeds", "1", name, "--out", "out"], here)
    assert "published" in shown, shown
    assert " 0 failed" in shown, shown
    page = (here / "out" / "report.html").read_text(encoding="utf-8")
    for part in ("<style", "<script", "published"):
        assert part in page, f"the report has no {part}"
    print(f"robustpca bench {name}: {len(page)} characters of report, with printed numbers")


def run(command: list[str | Path], here: Path | None = None, status: int = 0) -> str:
    """Run a command, check its exit status, and return what it printed."""
    # Without the paths of the caller, which would lead to the source tree.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=here, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()
