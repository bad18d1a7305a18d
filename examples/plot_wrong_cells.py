"""
Which cells are wrong, and what belongs there?
==============================================

A table of readings in which some numbers were mistyped and some are missing. Most rows have a wrong
cell somewhere, so that no row can be thrown away.
"""

# %%
# Eight sensors of a plant over 200 days. They have different units and follow three common causes.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from robustpca import RPCA
from robustpca.plot import EntriesDisplay

rng = np.random.default_rng(0)
names = ["temp_in", "temp_out", "pressure", "flow", "power", "load", "humidity", "level"]
day = np.arange(200)
causes = np.column_stack([np.sin(day / 30), np.cos(day / 11), np.cumsum(rng.normal(size=200)) / 9])
units = np.array([8, 6, 0.4, 30, 250, 12, 9, 0.1])
offsets = np.array([21, 35, 4, 120, 900, 60, 45, 1.2])
truth = offsets + units * (causes @ rng.normal(size=(3, 8)) + 0.05 * rng.normal(size=(200, 8)))
wrong = rng.random(truth.shape) < 0.04
table = pd.DataFrame(truth.round(3), columns=names)
table = table.mask(wrong, lambda values: values * rng.choice([0.1, 1.6, 10], size=values.shape))
table = table.mask(rng.random(truth.shape) < 0.03)

# %%
# :class:`~robustpca.RPCA` finds the units, the noise and the rank by itself. ``entry_flags_`` says
# which cells are wrong, ``low_rank_`` what belongs there; both come in the units of the table.

model = RPCA().fit(table)
print(f"rank {model.rank_}; {model.entry_flags_.sum()} cells flagged, {wrong.sum()} were planted")
cleaned = table.mask(model.entry_flags_ | table.isna(), model.low_rank_)

# %%
# A cell is flagged when it is many standard deviations of its own column away from what the other
# cells of its row say.

figure, axes = plt.subplots(1, 2, figsize=(11, 5), width_ratios=[1.3, 1], layout="constrained")
EntriesDisplay.from_estimator(model, table, ax=axes[0])
axes[1].plot(day, table["power"], ".", color="tab:red", label="given")
axes[1].plot(day, cleaned["power"], color="tab:blue", label="cleaned")
axes[1].plot(day, truth[:, 4], ":", color="black", label="truth")
axes[1].set(xlabel="day", ylabel="power", title="one column", yscale="log")
axes[1].legend()
plt.show()

error = np.abs(cleaned.to_numpy() - truth) / units
print(f"median error of the cells that were wrong: {np.median(error[wrong]):.2f} spreads")

# %%
# From a file: ``robustpca entries mine.csv -o cleaned`` writes the cleaned table and a list of the
# cells.
