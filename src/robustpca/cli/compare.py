"""``robustpca compare``."""

import sys
from collections.abc import Sequence
from pathlib import Path

from robustpca.cli.bench import run_tables

__all__ = ["run_compare"]


def run_compare(
    data: Path,
    methods: str,
    corrupt: Sequence[str],
    components: str,
    image_shape: str | None,
    seeds: int,
    out: Path,
    jobs: int | None,
) -> None:
    """Compare methods on the user's own data."""
    from robustpca.bench.compare import File, comparison

    # Classes of the user lie where the command is given; a console script searches elsewhere.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    shape = None if image_shape is None else _sides(image_shape)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    table = comparison(File(data, shape), names, corrupt, _numbers(components), seeds)
    run_tables([table], "default", out, jobs, retry=True)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--components {text} should be numbers such as 10,30,50.") from None


def _sides(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.split("x"))
    except ValueError:
        raise ValueError(f"--image-shape {text} should be height and width as in 32x32.") from None
    return height, width
