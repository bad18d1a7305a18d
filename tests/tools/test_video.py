"""Videos: the background, the masks, and what a separator does with frames."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from robustpca import VideoSeparator
from robustpca.metrics import foreground_scores
from robustpca.tools.video.background import light_codes, square_noise
from robustpca.tools.video.masks import is_shadow
from robustpca.tools.video.samples import Samples, is_cut, thumbnail

SHAPE = (40, 56)


def place_of(seed=0):
    field = gaussian_filter(np.random.default_rng(seed).normal(size=SHAPE), 2)
    return 120 + 20 * field / field.std()


def scene(n_frames=80, *, standing=0.0, light=None, lamp=None, channels=0, noise=2.0, seed=0):
    """A block that walks by; with ``standing``, another one is there for a share of the time."""
    rng = np.random.default_rng(seed)
    light = np.ones(n_frames) if light is None else light
    field = light[:, None, None] * np.ones(SHAPE)
    if lamp is not None:
        field = field + lamp[:, None, None] * np.exp(-np.linspace(0, 3, SHAPE[1]))
    behind = field * place_of()
    X, masks = behind.copy(), np.zeros((n_frames, *SHAPE), bool)
    for i in range(n_frames):
        column = 2 * i % (SHAPE[1] + 20) - 10
        part = (i, slice(22, 34), slice(max(column, 0), max(column + 8, 0)))
        X[part], masks[part] = 215.0, True
        if abs(i - n_frames / 2) < standing * n_frames / 2:
            X[i, 4:18, 30:40], masks[i, 4:18, 30:40] = 50.0, True
    if channels:
        X, behind = X[..., None] * [1.0, 0.9, 0.8], behind[..., None] * [1.0, 0.9, 0.8]
    X = np.clip(X + noise * rng.normal(size=X.shape), 0, 255).round().astype(np.uint8)
    return X, masks, behind


def f_measure(masks, found):
    flat = np.where(masks, 255, 0).reshape(len(masks), -1)
    return foreground_scores(flat, found.reshape(len(masks), -1)).f_measure


def psnr(behind, found):
    return 10 * np.log10(255**2 / np.mean((behind - found.astype(float)) ** 2))


@pytest.mark.parametrize("channels", [0, 3])
def test_what_moves_is_found_and_the_background_is_restored(channels):
    X, masks, behind = scene(channels=channels)
    parts = VideoSeparator().fit(X).separate(X)
    assert f_measure(masks, parts.masks) > 0.97
    assert psnr(behind, parts.backgrounds) > 45
    assert parts.backgrounds.dtype == parts.foregrounds.dtype == X.dtype
    assert parts.backgrounds.shape == parts.foregrounds.shape == X.shape
    np.testing.assert_array_equal(parts.foregrounds[parts.masks], X[parts.masks])
    assert not parts.foregrounds[~parts.masks].any()


def test_somebody_who_stands_for_long_spoils_the_median_and_not_the_background():
    X, masks, behind = scene(100, standing=0.45)
    model = VideoSeparator().fit(X)
    covered = np.s_[5:17, 31:39]
    median = np.median(X, axis=0)
    ours = model.background_.center[..., 0]
    assert psnr(behind[0][covered], ours[covered]) > 3 + psnr(behind[0][covered], median[covered])
    assert f_measure(masks, model.separate(X).masks) > 0.97


def test_squares_of_a_coarse_codec_do_not_move():
    X, masks, _ = scene(120)
    rng = np.random.default_rng(1)
    # Every twelve frames other squares are off by some grey levels, until the next such frame.
    errors = 10.0 * rng.normal(size=(10, 5, 7)) * (rng.random((10, 5, 7)) < 0.5)
    squares = np.kron(errors.repeat(12, axis=0), np.ones((8, 8)))
    coarse = np.clip(X + squares, 0, 255).round().astype(np.uint8)
    model = VideoSeparator().fit(coarse)
    # Without the squares in the noise this is 0.52.
    assert f_measure(masks, model.separate(coarse).masks) > 0.7


def test_no_squares_are_seen_where_there_are_none():
    X, _, _ = scene(120, standing=0.4)
    model = VideoSeparator().fit(X)
    noise = square_noise(X[..., None], model.background_, np.zeros((120, 0)))
    assert noise < 0.5 * np.median(model.background_.sigma)


def test_components_are_admitted_for_light_alone():
    time = np.linspace(0, 1, 80)
    still, _, _ = scene(standing=0.4)
    drifts, _, _ = scene(light=1 + 0.3 * np.sin(6 * time))
    lamp, masks, behind = scene(light=1 + 0.3 * np.sin(6 * time), lamp=0.4 * (time > 0.6))
    ranks = [light_codes(X[..., None]).shape[1] for X in (still, drifts, lamp)]
    assert ranks == [0, 1, 2]
    parts = VideoSeparator().fit(lamp).separate(lamp)
    assert f_measure(masks, parts.masks) > 0.95
    assert psnr(behind, parts.backgrounds) > 40


ROBUST = ["median", "rpca", "frpcag", "tae", "grassmann", "pcaan"]


@pytest.mark.parametrize("method", ROBUST)
def test_every_robust_method_finds_what_moves_where_pca_takes_it_for_background(method):
    X, masks, _ = scene(40)
    found = [VideoSeparator(one).fit(X).separate(X).masks for one in (method, "pca")]
    assert f_measure(masks, found[0]) > 0.8 > f_measure(masks, found[1])


def layers_of(model, X):
    return list(model.stream(iter(X)))


@pytest.mark.parametrize("window", [1, 7, 64])
def test_masks_do_not_depend_on_how_many_frames_come_at_a_time(window):
    X, _, _ = scene(200)
    whole, pieces = (VideoSeparator(n_samples=20, horizon=80).fit(X[:80]) for _ in range(2))
    whole.partial_fit(X[80:])
    for first in range(80, 200, window):
        pieces.partial_fit(X[first : first + window])
    assert pieces.n_frames_seen_ == whole.n_frames_seen_ == 200
    np.testing.assert_array_equal(pieces.background_.center, whole.background_.center)
    np.testing.assert_array_equal(pieces.background_.sigma, whole.background_.sigma)
    np.testing.assert_array_equal(pieces.separate(X).masks, whole.separate(X).masks)


def test_masks_of_a_stream_do_not_depend_on_its_windows():
    X, _, _ = scene(240, light=1 + 0.2 * np.sin(np.arange(240) / 40))
    masks = []
    for window in (240, 1, 37):
        model = VideoSeparator(n_samples=20, horizon=80).fit(X[:80])
        parts = (X[first : first + window] for first in range(0, 240, window))
        masks.append(np.stack([one.mask for part in parts for one in model.stream(part)]))
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


def test_where_the_first_window_ends_does_not_matter_in_a_static_scene():
    still = np.repeat(place_of().round().astype(np.uint8)[None], 90, axis=0)
    for i in range(90):  # nothing changes but what moves
        still[i, 20:30, i % 46 : i % 46 + 6] = 240
    masks = []
    for horizon in (60, 77, 90):
        model = VideoSeparator(n_samples=30, horizon=horizon).fit(still)
        masks.append([layers.mask for layers in layers_of(model, still)])
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


def test_a_cut_is_noticed_and_the_new_scene_is_learned():
    first, masks, _ = scene(70)
    other = (255 - first.astype(int)[:, ::-1, ::-1]).astype(np.uint8)
    X, truth = np.concatenate([first, other]), np.concatenate([masks, masks[:, ::-1, ::-1]])
    for model in (VideoSeparator(), VideoSeparator().fit(X)):
        layers = layers_of(model, X)
        assert [one.number for one in layers] == list(range(140))
        assert {one.number: one.event for one in layers if one.event} == {70: "scene cut"}
        assert f_measure(truth, np.stack([one.mask for one in layers])) > 0.95


@pytest.mark.parametrize("method", ["masked", "pca"])
def test_a_scene_of_one_frame_is_all_background(method):
    X, _, _ = scene(20)
    X[-1] = X[-1, ::-1, ::-1]
    last = layers_of(VideoSeparator(method).fit(X), X)[-1]
    assert last.event == "scene cut"
    assert not last.mask.any()
    np.testing.assert_array_equal(last.background, X[-1])


def test_a_camera_may_use_one_buffer_for_all_frames():
    X, _, _ = scene(40)
    buffer = np.empty_like(X[0])

    def camera():
        for frame in X:
            buffer[:] = frame
            yield buffer

    for one, other in zip(
        VideoSeparator().stream(camera()), layers_of(VideoSeparator(), X), strict=True
    ):
        np.testing.assert_array_equal(one.mask, other.mask)


def test_a_light_that_was_never_seen_is_noticed_and_learned():
    light = np.where(np.arange(200) < 100, 1.0, 1.5)
    X, masks, _ = scene(200, light=light)
    model = VideoSeparator(n_samples=40).fit(X[:90])
    layers = layers_of(model, X)
    assert layers[100].event == "light change"
    assert f_measure(masks, np.stack([one.mask for one in layers])) > 0.9


def test_what_was_parked_becomes_background_after_a_while():
    X, _, _ = scene(600)
    X[200:, 4:18, 30:40] = 50
    layers = layers_of(VideoSeparator(n_samples=40, horizon=160).fit(X[:160]), X)
    assert layers[210].mask[6:16, 32:38].all()
    assert not layers[-1].mask[6:16, 32:38].any()


def test_shadows_can_be_left_out():
    X, masks, _ = scene()
    X[:, :18] = (X[:, :18] * np.where(np.arange(80) % 8 == 0, 0.7, 1.0)[:, None, None]).astype(int)
    parts = VideoSeparator().fit(X).separate(X)
    without = VideoSeparator(shadows=False).fit(X).separate(X)
    assert parts.masks[::8, 2:16].mean() > 0.5
    assert without.masks[::8, 2:16].mean() < 0.1
    assert f_measure(masks[:, 20:], without.masks[:, 20:]) > 0.9
    assert not is_shadow(X[1][..., None], X[1][..., None].astype(float), 255.0).any()


def test_other_types_of_numbers_give_the_same_masks():
    X, _, _ = scene(40)
    plain = VideoSeparator().fit(X).separate(X)
    deep = VideoSeparator().fit(X.astype(np.uint16) * 257).separate(X.astype(np.uint16) * 257)
    unit = VideoSeparator().fit(X.astype(np.float32) / 255).separate(X.astype(np.float32) / 255)
    assert deep.backgrounds.dtype == np.uint16
    assert unit.backgrounds.dtype == np.float32
    for other in (deep, unit):
        assert np.mean(other.masks != plain.masks) < 0.01


def test_samples_are_spread_over_what_was_seen():
    samples = Samples(8)
    for i in range(100):
        samples.add(np.full((1, 1, 1), i))
    assert samples.held.ravel().tolist() == [0, 16, 32, 48, 64, 80, 96]
    samples.learning = False
    for i in range(100, 200):
        samples.add(np.full((1, 1, 1), i))
    assert samples.held.ravel().tolist() == [80, 96, 112, 128, 144, 160, 176, 192]


def test_cuts_are_told_from_light_and_movement():
    X, _, _ = scene()
    before, after = thumbnail(X[10][..., None]), thumbnail(X[11][..., None])
    assert not is_cut(before, after)
    assert not is_cut(before, 0.6 * after)
    assert is_cut(before, before[::-1])
    assert not is_cut(np.zeros(4), np.ones(4))


def test_noise_alone_is_hardly_ever_marked():
    rng = np.random.default_rng(0)
    X = np.clip(place_of() + 6 * rng.normal(size=(100, *SHAPE)), 0, 255).round().astype(np.uint8)
    model = VideoSeparator().fit(X[:50])
    assert model.false_positive_rate_ < 1e-3
    assert model.separate(X[50:]).masks.mean() < 1e-3
    np.testing.assert_allclose(np.median(model.background_.sigma), 6, rtol=0.1)


def test_mistakes_are_answered_with_what_to_do():
    X, _, _ = scene(20)
    with pytest.raises(ValueError, match="'method' parameter"):
        VideoSeparator("magic").fit(X)
    with pytest.raises(ValueError, match="is not enough for frames of shape"):
        VideoSeparator(memory=1e4).fit(X)
    with pytest.raises(ValueError, match="was fitted to frames of shape"):
        VideoSeparator().fit(X).separate(X[:, :-1])
    with pytest.raises(ValueError, match="frames have shape"):
        VideoSeparator().fit(X[0])
    with pytest.raises(ValueError, match="NaN"):
        VideoSeparator().fit(np.full((5, 8, 8), np.nan))
