"""
Data bigger than memory
=======================

``fit`` takes a file as it is: a ``numpy.memmap``, an h5py dataset, a zarr array or a Dask array. It
reads blocks of rows and gives the same bits as for the array in memory.
"""

# %%
# A file of 60 MB stands for one of 600 GB. It is written in pieces, as an instrument would.

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from robustpca import EPCA
from robustpca.plot import OutlierMapDisplay

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "large.npy"
rng = np.random.default_rng(0)
axes = rng.normal(size=(5, 250)).astype(np.float32)
file = np.lib.format.open_memmap(path, "w+", np.float32, (60_000, 250))
for start in range(0, 60_000, 10_000):
    rows = rng.normal(size=(10_000, 5)) @ axes + 0.3 * rng.normal(size=(10_000, 250))
    rows[rng.random(10_000) < 0.01] += 4 * rng.normal(size=250)
    file[start : start + 10_000] = rows
file.flush()

# %%
# Opened with ``mmap_mode="r"``, the file is read when it is needed, and never as a whole.

X = np.load(path, mmap_mode="r")
tracemalloc.start()
model = EPCA(5).fit(X)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
print(f"the file has {X.nbytes / 1e6:.0f} MB; the fit allocated {peak / 1e6:.0f} MB at most")

# %%
# What is larger than memory can be looked at in parts, too. ``as_dask(X)`` hands the same file to
# the workers of a Dask cluster.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.barh(["the fit", "the file"], [peak / 1e6, X.nbytes / 1e6], color=["tab:blue", "tab:grey"])
left.set(xlabel="MB", title="memory")
OutlierMapDisplay.from_estimator(model, X[:5000], n_labels=0, ax=right)
right.set_title("the first 5000 rows")
plt.show()

# %%
# Nothing is left behind.

del X, file
folder.cleanup()
