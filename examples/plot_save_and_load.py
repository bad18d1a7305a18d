"""
Save a model and use it elsewhere
=================================

Fit once, keep the model in a file, and flag new rows on another machine.
"""

# %%
# Fit a model to wines of three growers.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import robustpca
from robustpca import RPCA
from robustpca.plot import EntriesDisplay

wines = load_wine().data
is_new = np.arange(len(wines)) % 6 == 0
model = RPCA().fit(wines[~is_new])

# %%
# A file of a model holds arrays and a header in JSON. Nothing in it can be executed, unlike a
# pickle; what this version does not understand is refused.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "wines.rpca"
model.save(path)
print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")

# %%
# Elsewhere, ``robustpca.load`` gives the model back, to the last bit. On the command line:
# ``robustpca transform new.csv --model wines.rpca -o scores.csv``.

again = robustpca.load(path)
new = wines[is_new]
new[3, 6] = 27.6  # a decimal point in the wrong place: 2.76
assert np.array_equal(again.transform(new), model.transform(new))
names = load_wine().feature_names
for row, column in np.argwhere(again.flag_entries(new)):
    value, restored = new[row, column], again.decompose(new)[0][row, column]
    print(f"new wine {row}, {names[column]}: {value:g}, expected about {restored:.3g}")

# %%
# The rows of the new table, as the model from the file sees them.

display = EntriesDisplay.from_estimator(again, new, features=names, n_rows=30)
plt.show()
folder.cleanup()
