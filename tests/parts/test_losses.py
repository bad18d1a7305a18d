import re
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from robustpca.parts.losses import (
    LOSSES,
    CappedLoss,
    CauchyLoss,
    HuberLoss,
    L21Loss,
    SigmaLoss,
    SquaredLoss,
    named,
)

examples = settings(max_examples=25)

# Residual norms of a start: an odd number, so that the median is one of them.
START = np.array([0.2, 3.0, 0.9, 0.0, 1.7, 0.4, 12.0]) ** 2
MEDIAN = 0.9

# A new entry of LOSSES comes under the laws by itself; the others try several parameters.
LAWFUL = [
    *(pytest.param(kind().tuned(START, 1e-3), id=f"{name}-tuned") for name, kind in LOSSES.items()),
    *(
        pytest.param(loss, id=repr(loss))
        for loss in [
            L21Loss(),
            L21Loss(floor=0.1),
            HuberLoss(0.3),
            CauchyLoss(5.0),
            SigmaLoss(1e-3),
            SigmaLoss(100.0),
            CappedLoss(0.7),
            CappedLoss(3.0, floor=0.1),
        ]
    ),
]
lawful = pytest.mark.parametrize("loss", LAWFUL)

# Zero, the kinks of the losses above, and all that is large enough for its square not to vanish.
norms = st.sampled_from([0.0, 0.1, 0.3, 0.7, MEDIAN, 3.0, 5.0]) | st.floats(1e-50, 1e3)
many_norms = st.lists(norms, min_size=2, max_size=20).map(np.array)

# What rounding may do: a value is off by a few units in its last place. An error of the squared
# residual is not magnified, for a concave loss changes relatively less than its argument.
ROUNDING = 1e-14


@lawful
@examples
@given(norms=many_norms)
def test_a_larger_residual_never_has_a_smaller_loss(loss, norms):
    values = loss.values(np.sort(norms) ** 2)
    assert np.all(np.diff(values) >= -ROUNDING * values[1:])
    assert np.all(values >= 0)


@lawful
@examples
@given(norms=many_norms, share=st.floats(1e-6, 1))
def test_loss_is_concave_in_the_squared_residual(loss, norms, share):
    residuals = norms**2
    a, b = residuals[:, None], residuals[None, :]
    chord = share * loss.values(a) + (1 - share) * loss.values(b)
    arc = loss.values(share * a + (1 - share) * b)
    assert np.all(arc >= chord * (1 - ROUNDING))


@lawful
@examples
@given(norms=many_norms)
def test_a_larger_residual_never_has_a_larger_weight(loss, norms):
    weights = loss.weights(np.sort(norms) ** 2)
    assert np.all(np.diff(weights) <= ROUNDING * weights[:-1])
    assert np.all(weights >= 0)
    assert np.all(np.isfinite(weights))


@lawful
@examples
@given(norms=many_norms)
def test_loss_lies_below_each_of_its_tangents(loss, norms):
    # This holds at a kink too, where a difference quotient would say nothing.
    residuals = norms**2
    here, there = residuals[:, None], residuals[None, :]
    rise = loss.weights(here) * (there - here)
    tangent = loss.values(here) + rise
    slack = ROUNDING * (loss.values(here) + np.abs(rise))
    assert np.all(loss.values(there) <= tangent + slack)


@lawful
@examples
@given(norm=st.floats(0.03, 30))
def test_weights_are_the_derivative_of_the_loss(loss, norm):
    kinks = [v for v in asdict(loss).values() if v is not None]
    assume(all(abs(norm - kink) > 0.01 * kink for kink in kinks))
    t = norm**2
    h = 1e-3 * t
    up, down, far_up, far_down = loss.values(t + h * np.array([1, -1, 2, -2]))
    slope = (8 * (up - down) - (far_up - far_down)) / (12 * h)
    # Truncation leaves (h/t)^4 = 1e-12 of value/t, rounding of the values 1e-16 / (h/t) = 1e-13.
    value, weight = loss.values(np.array([t]))[0], loss.weights(np.array([t]))[0]
    assert slope == pytest.approx(weight, rel=0, abs=1e-11 * value / t)


@lawful
def test_a_loss_that_drops_far_samples_says_so(loss):
    assert loss.drops == (loss.weights(np.array([1e12]))[0] == 0)


@lawful
def test_shape_of_the_residuals_is_kept_and_they_are_not_changed(loss, rng):
    residuals = rng.exponential(size=9)
    residuals.flags.writeable = False
    assert loss.values(residuals).shape == loss.weights(residuals).shape == (9,)


@lawful
def test_each_sample_is_judged_by_its_own_residual_alone(loss, rng):
    residuals = rng.exponential(size=9)
    alone_values = [loss.values(residuals[i : i + 1])[0] for i in range(9)]
    alone_weights = [loss.weights(residuals[i : i + 1])[0] for i in range(9)]
    np.testing.assert_allclose(loss.values(residuals), alone_values, rtol=1e-15)
    np.testing.assert_allclose(loss.weights(residuals), alone_weights, rtol=1e-15)


@pytest.mark.parametrize(
    ("loss", "norm", "value", "weight"),
    [
        (SquaredLoss(), 3.0, 9.0, 1.0),
        (L21Loss(), 4.0, 4.0, 1 / 8),
        (L21Loss(floor=2.0), 1.0, 1 / 4 + 1, 1 / 4),
        (HuberLoss(2.0), 1.5, 2.25, 1.0),
        (HuberLoss(2.0), 5.0, 16.0, 2 / 5),
        (CauchyLoss(2.0), 2.0, 4 * np.log(2), 1 / 2),
        (SigmaLoss(1.0), 3.0, 4.5, 5 / 16),
        (CappedLoss(2.0), 1.0, 1.0, 1 / 2),
        (CappedLoss(2.0), 5.0, 2.0, 0.0),
    ],
    ids=repr,
)
def test_values_and_weights_worked_out_by_hand(loss, norm, value, weight):
    residuals = np.array([norm**2])
    assert loss.values(residuals)[0] == pytest.approx(value, rel=1e-15)
    assert loss.weights(residuals)[0] == pytest.approx(weight, rel=1e-15)


@examples
@given(norms=st.lists(st.floats(0.1, 1e3), min_size=1).map(np.array))
def test_sigma_loss_tends_to_the_norm_for_small_sigma(norms):
    loss = SigmaLoss(1e-13)
    # They differ by sigma + sigma / norm of the value.
    np.testing.assert_allclose(loss.values(norms**2), norms, rtol=3e-12)
    np.testing.assert_allclose(loss.weights(norms**2), 1 / (2 * norms), rtol=3e-12)


@pytest.mark.parametrize("sigma", [1e14, 1e300])
@examples
@given(norms=many_norms)
def test_sigma_loss_tends_to_the_square_for_large_sigma(sigma, norms):
    loss = SigmaLoss(sigma)
    # They differ by norm / sigma of the value, at most 1e-11.
    np.testing.assert_allclose(loss.values(norms**2), norms**2, rtol=2e-11)
    np.testing.assert_allclose(loss.weights(norms**2), 1.0, rtol=2e-11)


@examples
@given(sigma=st.floats(1e-6, 1e6))
def test_sigma_loss_of_a_residual_of_one_is_one_for_every_sigma(sigma):
    assert SigmaLoss(sigma).values(np.ones(1))[0] == pytest.approx(1, rel=1e-15)


@examples
@given(sigma=st.floats(1e-3, 1e3), a=norms, b=norms)
def test_sigma_loss_is_convex_in_the_residual_norm(sigma, a, b):
    at_a, at_b, between = SigmaLoss(sigma).values(np.array([a, b, (a + b) / 2]) ** 2)
    # The norm is squared here, so its rounding counts twice.
    assert between <= (at_a + at_b) / 2 * (1 + ROUNDING)


@examples
@given(norms=many_norms)
def test_huber_with_an_infinite_cutoff_is_squared(norms):
    residuals = norms**2
    np.testing.assert_array_equal(HuberLoss(np.inf).values(residuals), residuals)
    np.testing.assert_array_equal(HuberLoss(np.inf).weights(residuals), 1.0)


@examples
@given(norms=many_norms)
def test_huber_with_a_tiny_cutoff_weighs_like_the_norm(norms):
    norms = norms + 1e-3
    cutoff = 1e-6
    np.testing.assert_allclose(
        HuberLoss(cutoff).weights(norms**2), 2 * cutoff * L21Loss().weights(norms**2), rtol=1e-14
    )


@examples
@given(norms=many_norms)
def test_cauchy_with_a_huge_cutoff_is_squared(norms):
    residuals = norms**2
    # They differ by (norm / cutoff)^2 / 2 of the value, at most 1e-14.
    np.testing.assert_allclose(CauchyLoss(1e10).values(residuals), residuals, rtol=2e-14)
    np.testing.assert_allclose(CauchyLoss(1e10).weights(residuals), 1.0, rtol=2e-14)


@pytest.mark.parametrize("floor", [None, 1e-6, 0.5])
@examples
@given(norms=many_norms)
def test_capped_without_a_cap_is_the_norm_loss(floor, norms):
    capped, plain = CappedLoss(np.inf, floor=floor), L21Loss(floor)
    np.testing.assert_array_equal(capped.values(norms**2), plain.values(norms**2))
    np.testing.assert_array_equal(capped.weights(norms**2), plain.weights(norms**2))


@examples
@given(norms=many_norms, threshold=st.floats(0.01, 100))
def test_samples_beyond_the_cap_all_lose_the_same_and_weigh_nothing(norms, threshold):
    far = (threshold * (1.001 + norms)) ** 2
    np.testing.assert_array_equal(CappedLoss(threshold).values(far), threshold)
    np.testing.assert_array_equal(CappedLoss(threshold).weights(far), 0.0)


@examples
@given(norms=many_norms, floor=st.floats(1e-8, 1))
def test_floored_norm_loss_is_the_norm_above_the_floor_and_over_it_below(norms, floor):
    values = L21Loss(floor).values(norms**2)
    above = norms > floor * (1 + 1e-12)
    np.testing.assert_allclose(values[above], norms[above], rtol=1e-15)
    assert np.all(values >= norms * (1 - ROUNDING))
    assert np.all(values[~above] >= floor / 2)


@examples
@given(floor=st.floats(1e-8, 1))
def test_floored_norm_loss_touches_the_norm_at_the_floor(floor):
    # Value and slope of the parabola just below the floor are those of the norm just above it.
    below, above = (floor * (1 - 1e-9)) ** 2, (floor * (1 + 1e-9)) ** 2
    loss = L21Loss(floor)
    # The two points are 2e-9 apart.
    np.testing.assert_allclose(loss.values(np.array([below, above])), floor, rtol=2e-9)
    np.testing.assert_allclose(loss.weights(np.array([below, above])), 1 / (2 * floor), rtol=2e-9)


@examples
@given(floor=st.floats(1e-12, 1e3))
def test_a_sample_on_the_subspace_has_a_finite_weight(floor):
    loss = L21Loss(floor)
    assert loss.weights(np.zeros(1))[0] == pytest.approx(1 / (2 * floor), rel=1e-15)
    assert loss.values(np.zeros(1))[0] == pytest.approx(floor / 2, rel=1e-15)


@pytest.mark.parametrize("floor", [None, 0.0])
def test_without_a_floor_a_sample_on_the_subspace_still_has_a_finite_weight(floor):
    weight = L21Loss(floor).weights(np.zeros(1))[0]
    assert 1e100 < weight < np.inf
    assert L21Loss(floor).values(np.zeros(1))[0] < 1e-100


@pytest.mark.parametrize(
    ("kind", "name"), [(HuberLoss, "cutoff"), (CauchyLoss, "cutoff"), (SigmaLoss, "sigma")]
)
class TestAutomaticParameter:
    @examples
    @given(norms=many_norms)
    def test_auto_is_the_median_residual_norm(self, kind, name, norms):
        norms = norms[: len(norms) - 1 + len(norms) % 2]  # an odd number: the median is a sample
        tuned = kind().tuned(np.square(norms), 1e-10)
        # A quarter of it for sigma, which is to be nearer to the norm.
        wanted = np.median(norms) / (4 if kind is SigmaLoss else 1)
        assert asdict(tuned)[name] == pytest.approx(max(wanted, 1e-10), rel=1e-15)

    def test_auto_is_the_floor_when_most_samples_fit_exactly(self, kind, name):
        tuned = kind().tuned(np.array([0.0, 0.0, 0.0, 4.0, 9.0]), 1e-7)
        assert asdict(tuned) == {name: 1e-7}
        assert np.all(np.isfinite(tuned.weights(np.array([0.0, 1e-20, 9.0]))))

    def test_auto_is_the_default(self, kind, name):
        assert kind() == kind(**{name: "auto"})

    @pytest.mark.parametrize("given", [0.3, 2, np.float32(0.5), np.int64(7)])
    def test_a_number_is_kept_as_a_float(self, kind, name, given):
        tuned = kind(given).tuned(START, 1e-10)
        assert asdict(tuned) == {name: float(given)}
        assert type(asdict(tuned)[name]) is float

    @pytest.mark.parametrize("given", [0, 0.0, -1.5, np.nan, 1j, "median", "q0.8", "2.0"])
    def test_anything_else_is_refused(self, kind, name, given):
        message = f"{name}={given!r} must be a positive number or 'auto'."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            kind(given).tuned(START, 1e-10)


@pytest.mark.parametrize("share", [0.05, 0.8, 1.0])
@examples
@given(norms=many_norms)
def test_a_quantile_threshold_is_that_quantile_of_the_residual_norms(share, norms):
    tuned = CappedLoss(f"q{share}").tuned(norms**2, 1e-10)
    # It never comes nearer to the smallest residual than this, as the next test says.
    expected = max(np.quantile(norms, share), 1.001 * norms.min() + 1e-10)
    assert tuned.threshold == pytest.approx(expected, rel=1e-15)
    assert tuned.floor == 1e-10


@pytest.mark.parametrize("floor", [None, 0.25])
def test_equal_residuals_are_not_all_beyond_their_quantile_once_rounding_moves_them(floor):
    residuals = np.full(4, 9.0)
    tuned = CappedLoss("q0.7", floor).tuned(residuals, 1e-10)
    moved = (1 + 1e-4) * residuals
    np.testing.assert_array_equal(tuned.values(moved), np.sqrt(moved))
    np.testing.assert_array_equal(tuned.weights(moved), 1 / (2 * np.sqrt(moved)))
    # Residuals that count as zero may become as large as the floor.
    tuned = CappedLoss("q0.7").tuned(np.full(4, 1e-20), 1e-8)
    assert np.all(tuned.weights(np.full(4, 1e-16)) > 0)


def test_the_default_cap_silences_the_worst_fifth_of_the_samples():
    residuals = np.arange(11.0) ** 2
    tuned = CappedLoss().tuned(residuals, 1e-10)
    assert tuned.threshold == 8.0
    np.testing.assert_array_equal(tuned.weights(residuals) > 0, np.arange(11) <= 8)


def test_a_cap_at_the_last_quantile_silences_nobody(rng):
    residuals = rng.exponential(size=50)
    assert np.all(CappedLoss("q1").tuned(residuals, 1e-10).weights(residuals) > 0)


def test_a_quantile_of_zero_becomes_the_floor():
    tuned = CappedLoss("q0.5").tuned(np.array([0.0, 0.0, 0.0, 4.0, 9.0]), 1e-7)
    assert asdict(tuned) == {"threshold": 1e-7, "floor": 1e-7}


def test_a_numerical_threshold_is_kept():
    assert asdict(CappedLoss(2).tuned(START, 1e-7)) == {"threshold": 2.0, "floor": 1e-7}


@pytest.mark.parametrize("given", ["0.8", "q", "q0", "q-0.1", "q1.5", "qnan", "qx", "auto", ""])
def test_a_threshold_that_is_no_quantile_is_refused(given):
    message = f"threshold={given!r} must be a positive number or a quantile such as 'q0.8'."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CappedLoss(given).tuned(START, 1e-10)


@pytest.mark.parametrize("given", [0, -1.5, np.nan])
def test_a_threshold_that_is_not_positive_is_refused(given):
    message = f"threshold={given!r} must be a positive number or a quantile."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CappedLoss(given).tuned(START, 1e-10)


@pytest.mark.parametrize("kind", [L21Loss, CappedLoss])
def test_tuning_sets_a_missing_floor_and_keeps_a_given_one(kind):
    assert kind().tuned(START, 1e-7).floor == 1e-7
    assert kind(floor=0.25).tuned(START, 1e-7).floor == 0.25


def test_the_squared_loss_has_nothing_to_tune():
    assert SquaredLoss().tuned(START, 1e-7) == SquaredLoss()


@pytest.mark.parametrize("name", LOSSES)
def test_tuning_a_tuned_loss_changes_nothing(name):
    tuned = LOSSES[name]().tuned(START, 1e-3)
    assert tuned.tuned(100 * START + 1, 1e-5) == tuned
    assert all(np.isfinite(value) and value > 0 for value in asdict(tuned).values())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
@examples
@given(norms=many_norms)
def test_relative_weights_of_a_tuned_loss_do_not_depend_on_the_unit(name, scale, norms):
    # A power of two scales without rounding, so no sample crosses a threshold by luck.
    def relative_weights(residuals, floor):
        weights = LOSSES[name]().tuned(residuals, floor).weights(residuals)
        return weights / weights.max()

    expected = relative_weights(norms**2, 1e-8)
    scaled = relative_weights((scale * norms) ** 2, 1e-8 * scale)
    np.testing.assert_allclose(scaled, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["squared", "huber", "cauchy"])
@examples
@given(norms=many_norms, scale=st.floats(1e-3, 1e3))
def test_values_of_a_tuned_loss_scale_like_squares(name, norms, scale):
    residuals = (norms + 0.01) ** 2
    tuned = LOSSES[name]().tuned(residuals, 1e-10)
    scaled = LOSSES[name]().tuned(scale**2 * residuals, 1e-10)
    np.testing.assert_allclose(
        scaled.values(scale**2 * residuals), scale**2 * tuned.values(residuals), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["l21", "capped"])
@examples
@given(norms=many_norms, scale=st.floats(1e-3, 1e3))
def test_values_of_a_tuned_loss_scale_like_norms(name, norms, scale):
    residuals = (norms + 0.01) ** 2
    tuned = LOSSES[name]().tuned(residuals, 1e-10)
    scaled = LOSSES[name]().tuned(scale**2 * residuals, 1e-10)
    np.testing.assert_allclose(
        scaled.values(scale**2 * residuals), scale * tuned.values(residuals), rtol=1e-12
    )


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_can_be_asked_for_by_name(name):
    assert named(name, LOSSES, "loss") == LOSSES[name]()


def test_a_loss_object_is_passed_through():
    loss = HuberLoss(3.0)
    assert named(loss, LOSSES, "loss") is loss


def test_an_unknown_name_is_refused_with_the_list_of_known_ones():
    message = "loss='tukey' is not one of 'squared', 'l21', 'huber', 'cauchy', 'sigma', 'capped'."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        named("tukey", LOSSES, "loss")
