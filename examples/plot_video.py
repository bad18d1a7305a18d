"""
Separate a video into background and what moves
===============================================

Frames are rows. The background changes little from frame to frame, so it has low rank; what moves
covers few pixels of a frame, so it is sparse.
"""

# %%
# A synthetic video of 80 frames: a scene, changing light, objects that cross it.

import matplotlib.pyplot as plt

from robustpca import RPCA
from robustpca.datasets import make_video
from robustpca.metrics import foreground_scores
from robustpca.plot import image_rows

video = make_video(80, (48, 64), random_state=0)
print(video)

# %%
# One fit separates both. ``entry_flags_`` is the mask of what moves.

model = RPCA().fit(video.X)
scores = foreground_scores(video.extras["masks"], model.entry_flags_)
print(f"rank of the background: {model.rank_}; F-measure of the mask: {scores.f_measure:.2f}")

# %%
# Three frames: as filmed, the background, and the mask.

frames = [10, 40, 70]
low, high = float(video.X.min()), float(video.X.max())
masks = low + (high - low) * model.entry_flags_[frames]
image_rows(
    [video.X[frames], model.low_rank_[frames], masks],
    video.image_shape,
    ["frame", "background", "what moves"],
)
plt.show()

# %%
# A new frame needs no new fit: ``model.decompose(frame)`` splits it by the background that is
# known. For files of films there is ``robustpca separate film.mp4 -o out``, which reads them frame
# by frame.
