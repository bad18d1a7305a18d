"""``robustpca demo``."""

from pathlib import Path

__all__ = ["show_demo"]


def show_demo(out: Path, n_samples: int | None, seed: int, scattered: bool) -> None:
    """Fit every method to corrupted digits."""
    from robustpca.tools import demo

    demo.show(out, n_samples, seed, not scattered)
