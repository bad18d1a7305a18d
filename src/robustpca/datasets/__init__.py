"""Data to try the methods on, and ways to spoil it."""

from robustpca.datasets.corruptions import (
    drop_pixels,
    occlude_blocks,
    occlude_randomly,
    reset_entries,
    shift_samples,
)
from robustpca.datasets.dataset import Dataset, resize_images
from robustpca.datasets.fetching import fetch
from robustpca.datasets.files import data_folders, read
from robustpca.datasets.loading import Status, catalog, describe, load, save
from robustpca.datasets.synthetic import (
    make_graph_clusters,
    make_low_rank_plus_sparse,
    make_shifted_classes,
    make_subspace_with_outliers,
    make_video,
)

__all__ = [
    "Dataset",
    "Status",
    "catalog",
    "data_folders",
    "describe",
    "drop_pixels",
    "fetch",
    "load",
    "make_graph_clusters",
    "make_low_rank_plus_sparse",
    "make_shifted_classes",
    "make_subspace_with_outliers",
    "make_video",
    "occlude_blocks",
    "occlude_randomly",
    "read",
    "reset_entries",
    "resize_images",
    "save",
    "shift_samples",
]
