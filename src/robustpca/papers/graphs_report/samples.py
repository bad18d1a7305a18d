"""Images of the report on graphs: persons of CMU PIE, and planted images."""

from dataclasses import replace

import numpy as np

from robustpca.datasets import Dataset, make_graph_clusters
from robustpca.papers.samples import ordered_classes

__all__ = ["one_face", "planted_images"]

N_PERSONS = 68  # of CMU PIE


def one_face(n_images: int = 20, random_state: int = 0) -> Dataset:
    """A single person of CMU PIE, another one for each seed, evenly over the lights."""
    return ordered_classes("pie", [random_state % N_PERSONS], n_images, spaced=True)


def planted_images(n_samples: int = 200, side: int = 16, random_state: int = 0) -> Dataset:
    """Square images of six kinds, of low rank and smooth on the graphs of images and of pixels.

    This is `make_graph_clusters` without gross errors, as grey levels from 1 to 255: black is
    left to the corruption.
    """
    data = make_graph_clusters(
        n_samples, side * side, share=0.0, noise=0.05, random_state=random_state
    )
    pixels = np.clip(128 + 40 * data.X, 1, 255)
    return replace(data, X=pixels, image_shape=(side, side), extras={})
