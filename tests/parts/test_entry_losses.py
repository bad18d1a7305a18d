"""A proximal step beats every other point, and losses cost what the textbooks say."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robustpca.parts.entry_losses import ENTRY_LOSSES, HuberNorm, L1Norm, SquaredNorm

examples = settings(max_examples=25)

SHAPE = (5, 4)
# What is missing, zero, or at a threshold below must occur; so must all between.
entries = st.sampled_from([0.0, 0.5, -0.5, 0.7, 1.0, -2.0]) | st.floats(-10, 10, width=32)
matrices = arrays(np.float64, SHAPE, elements=entries)
steps = st.sampled_from([1e-3, 0.5, 1.0, 2.0]) | st.floats(1e-3, 1e3)

# A new entry of the registry comes under the laws by itself; the others try several parameters.
LOSSES = [
    *(kind() for kind in ENTRY_LOSSES.values()),
    L1Norm(0.7),
    HuberNorm(0.7, 0.5),
    HuberNorm(3.0, 2.0),
    SquaredNorm(0.2),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def prox(loss, A, step):
    """The proximal step, from the two numbers of the dual map."""
    slope, bound = loss.dual_map(step)
    return A - np.clip(slope * A, -bound, bound)


@every_loss
@examples
@given(A=matrices, other=matrices, step=steps, closeness=st.sampled_from([1.0, 1e-2, 1e-4]))
def test_a_proximal_step_beats_every_other_point(loss, A, other, step, closeness):
    def cost(Z):
        return loss.value(Z) + np.sum((Z - A) ** 2) / (2 * step)

    best = prox(loss, A, step)
    near = best + closeness * (other - best)
    # The cost is strongly convex, so a point at a distance is worse by at least its square.
    worse = cost(best) + np.sum((near - best) ** 2) / (2 * step)
    assert cost(near) >= worse - 1e-12 * (1 + cost(near))


@every_loss
@examples
@given(A=matrices, B=matrices, step=steps)
def test_proximal_steps_are_firmly_nonexpansive(loss, A, B, step):
    moved = prox(loss, A, step) - prox(loss, B, step)
    assert np.sum(moved**2) <= np.vdot(moved, A - B) + 1e-12 * (1 + np.sum((A - B) ** 2))


@every_loss
@examples
@given(A=matrices)
def test_a_step_of_zero_is_the_identity(loss, A):
    np.testing.assert_allclose(prox(loss, A, 0.0), A, rtol=0, atol=1e-13)


@every_loss
@examples
@given(A=matrices, step=steps)
def test_a_proximal_step_of_a_loss_is_optimal(loss, A, step):
    best = prox(loss, A, step)
    force = (A - best) / step
    # The force is a subgradient: it is feasible, and loss and conjugate add up to the product.
    if not isinstance(loss, SquaredNorm):
        assert np.abs(force).max() <= loss.weight * (1 + 1e-12) + 1e-12 / step
    product = np.vdot(best, force)
    total = loss.value(best) + loss.conjugate(float(np.sum(force**2)))
    assert total == pytest.approx(product, rel=1e-10, abs=1e-10 * (1 + 1 / step))


@examples
@given(A=matrices, step=steps)
def test_what_the_l1_norm_takes_away_is_the_projection_on_its_dual_ball(A, step):
    # Moreau: a point is its proximal step and the proximal step of the conjugate.
    loss, projected = L1Norm(0.7), np.clip(A, -0.7 * step, 0.7 * step)
    best = prox(loss, A, step)
    np.testing.assert_allclose(A - best, projected, rtol=0, atol=1e-12)
    # The two are aligned as a norm and its dual must be.
    aligned = np.vdot(best, projected / step)
    assert loss.value(best) == pytest.approx(aligned, rel=1e-9, abs=1e-9)


@every_loss
@examples
@given(A=matrices)
def test_the_sparse_part_is_what_exceeds_the_threshold(loss, A):
    expected = np.sign(A) * np.maximum(np.abs(A) - loss.threshold, 0)
    found = loss.sparse_part(A)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    # Zeros are exact: a sparse part is counted by them.
    np.testing.assert_array_equal(found == 0, np.abs(A) <= loss.threshold)
    assert loss.sparse_part(A.astype(np.float32)).dtype == np.float32


@examples
@given(A=matrices)
def test_values_agree_with_those_of_cvxpy(A):
    expected = {
        L1Norm(0.7): 0.7 * cp.norm1(A),
        SquaredNorm(0.7): 0.7 * cp.sum_squares(A) / 2,
        # Of slope one beyond the threshold; that of cvxpy has twice the threshold.
        HuberNorm(0.7, 0.5): 0.7 * cp.sum(cp.huber(A, 0.5)) / (2 * 0.5),
        HuberNorm(1.0, 2.0): cp.sum(cp.huber(A, 2.0)) / (2 * 2.0),
    }
    for loss, formula in expected.items():
        assert loss.value(A) == pytest.approx(formula.value, rel=1e-12, abs=1e-12), loss


@pytest.mark.parametrize(
    ("loss", "entry", "value"),
    [
        (L1Norm(2.0), -3.0, 6.0),
        (SquaredNorm(2.0), 3.0, 9.0),
        (HuberNorm(1.0, 2.0), 1.0, 1 / 4),
        (HuberNorm(1.0, 2.0), 2.0, 1.0),
        (HuberNorm(1.0, 2.0), -5.0, 4.0),
        (HuberNorm(3.0, 2.0), 6.0, 15.0),
    ],
    ids=repr,
)
def test_values_worked_out_by_hand(loss, entry, value):
    assert loss.value(np.array([[entry, 0.0]])) == pytest.approx(value, rel=1e-15)


@examples
@given(A=matrices, threshold=st.floats(0.01, 5))
def test_huber_is_what_is_left_once_sparse_part_and_noise_are_split_best(A, threshold):
    large = HuberNorm(1.0, threshold).sparse_part(A)
    expected = np.abs(large).sum() + np.sum((A - large) ** 2) / (2 * threshold)
    assert HuberNorm(1.0, threshold).value(A) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@examples
@given(A=matrices)
def test_huber_lies_between_the_absolute_value_and_half_a_threshold_less(A):
    value, absolute = HuberNorm(1.0, 0.5).value(A), np.abs(A).sum()
    assert absolute - 0.25 * A.size - 1e-12 <= value <= absolute + 1e-12


def test_huber_with_a_tiny_threshold_is_the_absolute_value(rng):
    A = rng.normal(size=SHAPE)
    huber, l1 = HuberNorm(0.7, 1e-12), L1Norm(0.7)
    assert huber.value(A) == pytest.approx(l1.value(A), rel=1e-11)
    np.testing.assert_allclose(prox(huber, A, 0.4), prox(l1, A, 0.4), rtol=0, atol=1e-11)


@every_loss
def test_the_dual_map_of_several_steps_is_that_of_each(loss):
    several = np.array([1e-3, 0.5, 2.0, 1e4])
    slopes, bounds = (np.broadcast_to(part, 4) for part in loss.dual_map(several))
    for step, slope, bound in zip(several, slopes, bounds, strict=True):
        assert (slope, bound) == pytest.approx(loss.dual_map(step), rel=1e-15)


@every_loss
@examples
@given(A=matrices, scale=st.floats(1e-3, 1e3))
def test_a_loss_in_other_units_costs_the_same_but_for_its_degree(loss, A, scale):
    expected = scale**loss.degree * loss.value(A)
    assert loss.scaled(scale).value(scale * A) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@every_loss
@examples
@given(A=matrices, hidden=arrays(np.bool_, SHAPE), step=steps)
def test_missing_entries_cost_nothing_and_stay_missing(loss, A, hidden, step):
    holed = np.where(hidden, np.nan, A)
    expected = loss.value(np.where(hidden, 0.0, A))
    assert loss.value(holed) == pytest.approx(expected, rel=1e-13, abs=1e-300)
    moved = prox(loss, holed, step)
    np.testing.assert_array_equal(np.isnan(moved), hidden)
    np.testing.assert_array_equal(moved[~hidden], prox(loss, A, step)[~hidden])


@every_loss
def test_a_matrix_without_any_entry_costs_nothing(loss):
    assert loss.value(np.full(SHAPE, np.nan)) == 0


@every_loss
def test_single_precision_stays_single(loss, rng):
    A = rng.normal(size=SHAPE)
    single = prox(loss, A.astype(np.float32), 0.3)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, prox(loss, A, 0.3), rtol=0, atol=2e-6)
    assert type(loss.value(A.astype(np.float32))) is float
    assert loss.value(A.astype(np.float32)) == pytest.approx(loss.value(A), rel=1e-6)


@every_loss
def test_losses_leave_their_argument_alone(loss, rng):
    A = rng.normal(size=SHAPE)
    A.flags.writeable = False
    before = A.copy()
    loss.value(A)
    loss.sparse_part(A)
    np.testing.assert_array_equal(A, before)


def test_the_value_of_many_small_entries_in_single_precision_is_not_lost():
    A = np.full((3000, 1000), 0.1, dtype=np.float32)
    assert L1Norm().value(A) == pytest.approx(3e5, rel=1e-7)
    assert SquaredNorm().value(A) == pytest.approx(1.5e4, rel=1e-6)


@pytest.mark.parametrize("loss", [HuberNorm(1.0, 1e20), SquaredNorm()], ids=repr)
def test_values_of_large_entries_in_single_precision_do_not_overflow(loss):
    A = np.full((2, 2), 1e20, dtype=np.float32)
    assert loss.value(A) == pytest.approx(loss.value(A.astype(np.float64)), rel=1e-6)
