from types import SimpleNamespace

import numpy as np
import pytest

from robustpca.bench.shown import picture
from robustpca.papers.frpcag.background import (
    background_rmse,
    motion_left,
    show_background,
    show_foreground,
    show_frame,
)
from robustpca.papers.video import foreground


@pytest.fixture
def video():
    """Four frames of a grey wall of 2 x 3 pixels; a white pixel moves through its first row."""
    X = np.full((4, 6), 100.0)
    masks = np.zeros((4, 6), np.uint8)
    for frame in range(3):
        X[frame, frame] = 255.0
        masks[frame, frame] = 255
    X[2, 3] = 200.0  # most motion here
    masks[2, 3] = 255
    return X, {"masks": masks, "background": np.full(6, 100.0)}


def test_the_true_background_leaves_nothing(video):
    X, extras = video
    model = SimpleNamespace(low_rank_=np.full((4, 6), 100.0))
    assert motion_left(model, X, X) == 0
    assert background_rmse(model, X, X, extras) == 0
    assert foreground(model, X, X, extras, "f_measure") == 1


def test_the_video_itself_is_no_background(video):
    X, extras = video
    model = SimpleNamespace(low_rank_=X)
    assert motion_left(model, X, X) == 1
    expected = np.sqrt((3 * 155.0**2 + 100.0**2) / 24)
    assert background_rmse(model, X, X, extras) == pytest.approx(expected)
    assert foreground(model, X, X, extras, "f_measure") == 0


def test_half_of_the_motion_is_half(video):
    X, _ = video
    assert motion_left(SimpleNamespace(low_rank_=50 + X / 2), X, X) == pytest.approx(0.5)


def test_pixels_whose_background_nobody_knows_do_not_count(video):
    X, extras = video
    model = SimpleNamespace(low_rank_=np.full((4, 6), 100.0) + np.eye(1, 6))
    known = extras | {"background_valid": np.arange(6) > 0}
    assert background_rmse(model, X, X, extras) > 0
    assert background_rmse(model, X, X, known) == 0


def test_without_truth_there_is_no_score(video):
    X, _ = video
    model = SimpleNamespace(low_rank_=X)
    assert np.isnan(background_rmse(model, X, X, {}))
    assert np.isnan(foreground(model, X, X, {}, "f_measure"))


def test_the_frame_with_most_motion_is_shown(video):
    X, _ = video
    model = SimpleNamespace(low_rank_=np.full((4, 6), 100.0))
    assert show_frame(model, X, X, (2, 3)) == picture(X[2].reshape(2, 3), zoom=53)
    assert show_background(model, X, X, (2, 3)) == picture(np.full((2, 3), 100), zoom=53)
    moving = [[0, 0, 255], [255, 0, 0]]
    assert show_foreground(model, X, X, (2, 3)) == picture(moving, zoom=53)
