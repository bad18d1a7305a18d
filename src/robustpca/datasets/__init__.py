"""Data to try the methods on, and ways to spoil it."""

from robustpca.datasets.corruptions import (
    drop_pixels,
    occlude_blocks,
    occlude_randomly,
    reset_entries,
)

__all__ = ["drop_pixels", "occlude_blocks", "occlude_randomly", "reset_entries"]
