"""Files of every kind that is read, and what may happen to them on the way."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from checks import TOO_LONG, HangsError, WrongError, answer, in_words, limited
from scipy.io import savemat

from robustpca import EPCA, RPCA, load
from robustpca.bench.store import read_rows
from robustpca.tools.files import KINDS, Table, read


def write_all(folder: Path) -> list[Path]:
    """Write a healthy file of every kind; return their places."""
    import h5py
    import pandas
    import zarr
    from PIL import Image

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4)).round(3)
    frame = pandas.DataFrame(X, columns=["height", "mass", "a b", "température"])
    frame.insert(0, "name", [f"row {i}" for i in range(len(X))])
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.tsv", index=False, sep="\t", encoding="utf-16")
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes(), mtime=0))
    frame.to_csv(folder / "a.txt", index=False, sep=";", decimal=",")
    frame.to_csv(folder / "a.dat", index=False, sep=" ", header=False)
    frame.to_excel(folder / "a.xlsx", index=False)
    frame.to_parquet(folder / "a.parquet")
    np.save(folder / "a.npy", X)
    np.savez(folder / "a.npz", X=X, y=np.arange(12))
    savemat(folder / "a.mat", {"X": X, "words": "some"})
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("group/X", data=X, chunks=(4, 4), compression="gzip")
    shutil.copy(folder / "a.h5", folder / "a.hdf5")
    stored = zarr.open(folder / "a.zarr", mode="w", shape=X.shape, chunks=(5, 4), dtype="f8")
    stored[:] = X
    images = rng.integers(0, 255, size=(4, 6, 5), dtype=np.uint8)
    first, *others = (Image.fromarray(image) for image in images)
    for kind in ("tif", "tiff"):
        first.save(folder / f"a.{kind}", save_all=True, append_images=others)
    (folder / "images").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / "images" / f"{number}.png")
    EPCA(2).fit(X).save(folder / "a.rpca")
    RPCA().fit(np.repeat(X, 2, axis=0)).save(folder / "b.rpca")
    rows = [{"key": f"{i}", "score": float(i), "tuned": {"p": [1, None]}} for i in range(5)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    missing = set(KINDS) - {path.suffix for path in folder.iterdir()}
    assert not missing, missing
    return sorted(folder.iterdir())


def cut(content: bytes, rng: Any) -> bytes:
    """Lose the end."""
    return content[: rng.integers(len(content))]


def flip(content: bytes, rng: Any) -> bytes:
    """Change some bytes, more of them near the beginning, where headers are."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        reach = len(changed) if rng.random() < 0.5 else min(len(changed), 200)
        changed[rng.integers(reach)] = rng.integers(256)
    return bytes(changed)


def blank(content: bytes, rng: Any) -> bytes:
    """Lose what stands in a piece, and keep the length."""
    start = int(rng.integers(len(content)))
    size = int(rng.integers(1, 64))
    return content[:start] + bytes(len(content[start : start + size])) + content[start + size :]


def drop(content: bytes, rng: Any) -> bytes:
    """Lose a piece of the middle."""
    start = int(rng.integers(len(content)))
    return content[:start] + content[start + int(rng.integers(1, 64)) :]


def double(content: bytes, rng: Any) -> bytes:
    """Have everything twice."""
    return content + content


def empty(content: bytes, rng: Any) -> bytes:
    """Have nothing."""
    return b""


DAMAGES: tuple[Callable[[bytes, Any], bytes], ...] = (cut, flip, flip, blank, drop, double, empty)


def damaged(paths: list[Path], seed: int, folder: Path) -> Path:
    """One of the files, damaged, in another folder; it may have a wrong extension too."""
    rng = np.random.default_rng(seed)
    path = paths[rng.integers(len(paths))]
    name = path.name
    if rng.random() < 0.15:
        name = f"a{rng.choice(sorted(KINDS))}" if path.is_file() else "a.zarr"
    place = folder / f"{seed}-{name}"
    (shutil.copytree if path.is_dir() else shutil.copy)(path, place)
    files = sorted(one for one in place.rglob("*") if one.is_file()) if path.is_dir() else [place]
    hit = files[rng.integers(len(files))]
    n_damages = rng.integers(0 if name != path.name else 1, 3)
    for damage in rng.choice(np.array(DAMAGES), size=n_damages):
        content = hit.read_bytes()
        hit.write_bytes(damage(content, rng) if content else b"")
    return place


def opened(path: Path) -> Any:
    """What a file holds, by the function that is made for it."""
    opens = {".rpca": load, ".jsonl": read_rows}.get(path.suffix, read)
    return opens(path)


def file_fault(path: Path) -> str:
    """What is wrong with the answer to a file; empty if nothing is."""
    found: list[Any] = []
    try:
        with limited(TOO_LONG):
            refused = answer(lambda: found.append(opened(path)))
    except (WrongError, HangsError) as error:
        return str(error)
    if refused is not None:
        return "" if path.name in str(refused) else f"the file is not named: {in_words(refused)}"
    if isinstance(found[0], Table) and np.isinf(found[0].X).any():
        return "read: X is infinite"
    return ""
