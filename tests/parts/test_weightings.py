import itertools
import re
from fractions import Fraction
from math import ceil

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from robustpca.parts import weightings
from robustpca.parts.weightings import (
    WEIGHTINGS,
    AdaptiveNeighbors,
    CoRobust,
    Uniform,
    simplex_projection,
)

examples = settings(max_examples=25)
# For exponents above 1, whose weights come from two nested bisections.
few = settings(examples, max_examples=10)

# Whole numbers bring ties; reals spread over some decades.
ties = st.lists(st.integers(0, 8).map(float), min_size=2, max_size=12).map(np.array)
spread = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=12).map(np.array)
positive_ties = ties.map(lambda losses: losses + 1)

# A weighting of each kind that works for any number of samples from 2 on.
SIMPLEX = [
    AdaptiveNeighbors(0.5),
    AdaptiveNeighbors(1),
    AdaptiveNeighbors(1.0),
    AdaptiveNeighbors(gamma=0.1),
    AdaptiveNeighbors(gamma=30.0),
    CoRobust(),
    CoRobust(max_weight=0.7),
    CoRobust(gamma=1.5),
    CoRobust(max_weight=0.7, gamma=3.0),
]
MONOTONE = [weighting for weighting in SIMPLEX if weighting.monotone]
CO_ROBUST = [weighting for weighting in SIMPLEX if isinstance(weighting, CoRobust)]
# Not convex: of samples with equal losses some may weigh more.
BELOW_ONE = [CoRobust(gamma=0.5), CoRobust(gamma=0.9), CoRobust(max_weight=0.7, gamma=0.2)]


def minimum(objective, weights, *constraints):
    """Value and minimiser over the simplex, from a general convex solver."""
    problem = cp.Problem(cp.Minimize(objective), [weights >= 0, cp.sum(weights) == 1, *constraints])
    tight = dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas"], 1e-10)
    problem.solve(solver=cp.CLARABEL, **tight)
    return problem.value, weights.value


def assert_same_minimum(step, value, weights):
    # The solver gives about ten digits of the value, hence five of the weights, because
    # near its minimum the value hardly changes. The conditions of optimality below are sharp.
    assert step.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(step.weights, weights, rtol=0, atol=2e-5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("gamma", [0.05, 1.0, 20.0])
def test_adaptive_neighbors_with_a_fixed_gamma_agree_with_a_convex_solver(gamma, seed):
    losses = np.random.default_rng(seed).exponential(size=9)
    weights = cp.Variable(9)
    value = weights @ losses + gamma * cp.sum_squares(weights)
    step = AdaptiveNeighbors(gamma=gamma).solve(losses)
    assert_same_minimum(step, *minimum(value, weights))


@pytest.mark.parametrize("n_active", [1, 2, 5, 8])
def test_adaptive_neighbors_agree_with_a_convex_solver_for_the_gamma_they_choose(n_active, rng):
    # Losses at least 0.5 apart: the solver finds the weights only to 1e-5 / sqrt(gamma).
    losses = rng.permutation(9) + rng.uniform(0, 0.5, size=9)
    step = AdaptiveNeighbors(n_active).solve(losses)
    weights = cp.Variable(9)
    value = weights @ losses + step.gamma * cp.sum_squares(weights)
    assert_same_minimum(step, *minimum(value, weights))


@pytest.mark.parametrize("gamma", [1 + 1e-6, 1.1, 2.0, 10.0, 1000.0])
def test_slopes_of_co_robust_weights_are_met_to_the_last_digits(gamma):
    log_slope = np.linspace(-60, 60, 241)
    weights = CoRobust(gamma=gamma)._slope_root(log_slope)
    assert (np.diff(weights) >= 0).all()
    seen = weights > 0
    logs = np.log(weights[seen])
    left = -np.expm1(gamma * logs)
    met = np.log(gamma) + (gamma - 1) * logs - 2 * np.log(left) - log_slope[seen]
    # A weight is rounded, and near one the slope changes fast with it.
    rounding = np.finfo(float).eps * (np.abs(log_slope[seen]) + 4 * gamma / left)
    assert (np.abs(met) <= 4 * rounding).all()


@pytest.mark.parametrize("max_weight", [None, 0.15, 0.3])
@pytest.mark.parametrize("gamma", [1.0, 1.5, 3.0])
def test_co_robust_weights_agree_with_a_convex_solver(gamma, max_weight, rng):
    losses = rng.exponential(size=9) + 0.1
    weights = cp.Variable(9)
    bound = [] if max_weight is None else [weights <= max_weight]
    value = losses @ cp.inv_pos(1 - (weights if gamma == 1 else cp.power(weights, gamma)))
    step = CoRobust(max_weight, gamma).solve(losses)
    assert_same_minimum(step, *minimum(value, weights, *bound))


@pytest.mark.parametrize("weighting", [*SIMPLEX, *BELOW_ONE], ids=repr)
@few
@given(losses=ties | spread)
def test_weights_lie_in_the_simplex(weighting, losses):
    step = weighting.solve(losses)
    assert np.all(step.weights >= 0)
    assert step.weights.sum() == pytest.approx(1, rel=1e-14)
    assert step.n_active == np.count_nonzero(step.weights)


@pytest.mark.parametrize("weighting", SIMPLEX, ids=repr)
@few
@given(losses=positive_ties | spread)
def test_a_worse_sample_never_weighs_more_and_an_equal_one_weighs_the_same(weighting, losses):
    weights = weighting.solve(losses).weights
    order = np.argsort(losses, kind="stable")
    assert np.all(np.diff(weights[order]) <= 0)
    same = np.diff(losses[order]) == 0
    np.testing.assert_array_equal(np.diff(weights[order])[same], 0)


@pytest.mark.parametrize("weighting", [Uniform(), *SIMPLEX], ids=repr)
def test_shuffling_the_samples_shuffles_the_weights(weighting, rng):
    losses = np.round(rng.exponential(size=40) + 0.1, 1)  # with ties
    order = rng.permutation(40)
    step, shuffled = weighting.solve(losses), weighting.solve(losses[order])
    np.testing.assert_allclose(shuffled.direct, step.direct[order], rtol=1e-13, atol=1e-16)
    assert shuffled.n_active == step.n_active
    assert shuffled.objective == pytest.approx(step.objective, rel=1e-13)


@pytest.mark.parametrize("weighting", [Uniform(), *SIMPLEX, *BELOW_ONE], ids=repr)
def test_the_losses_are_not_changed(weighting, rng):
    losses = rng.exponential(size=12)
    losses[:2] = 0
    losses.flags.writeable = False
    weighting.solve(losses)


@pytest.mark.parametrize(
    "weighting",
    [Uniform(), AdaptiveNeighbors(3), AdaptiveNeighbors(gamma=30.0), *CO_ROBUST, *BELOW_ONE],
    ids=repr,
)
def test_a_weighting_that_drops_far_samples_says_so(weighting):
    losses = np.array([1.0, 1.1, 1.2, 1.3, 1e6])
    assert weighting.drops == (weighting.solve(losses).direct[-1] == 0)


@pytest.mark.parametrize("weighting", [Uniform(), *MONOTONE, *BELOW_ONE], ids=repr)
def test_direct_weights_are_the_gradient_of_the_objective(weighting, rng):
    losses = rng.uniform(1, 3, size=4)
    step = 1e-3
    at = [
        [weighting.solve(losses + k * step * e).objective for e in np.eye(4)]
        for k in (1, -1, 2, -2)
    ]
    up, down, far_up, far_down = np.array(at)
    slopes = (8 * (up - down) - (far_up - far_down)) / (12 * step)
    # The objective is rounded to 1e-15 and divided by the step of 1e-3. Where a sample turns
    # active within the step only two derivatives exist, which these losses avoid.
    np.testing.assert_allclose(slopes, weighting.solve(losses).direct, rtol=0, atol=1e-10)


@pytest.mark.parametrize("weighting", [Uniform(), *MONOTONE, *BELOW_ONE], ids=repr)
@few
@given(losses=positive_ties | spread, others=spread)
def test_objective_lies_below_each_of_its_tangents(weighting, losses, others):
    n = min(len(losses), len(others))
    here, there = losses[:n], others[:n]
    step = weighting.solve(here)
    tangent = step.objective + step.direct @ (there - here)
    slack = 1e-14 * (step.direct @ (there + here) + step.objective)
    assert weighting.solve(there).objective <= tangent + slack


class TestUniform:
    def test_every_sample_counts_once(self):
        step = Uniform().solve(np.array([3.0, 0.0, 2.5]))
        np.testing.assert_array_equal(step.direct, 1.0)
        assert (step.weights, step.objective, step.n_active, step.gamma) == (None, 5.5, 3, None)

    def test_it_is_monotone_and_frozen_already(self):
        weighting = Uniform()
        assert weighting.monotone
        assert weighting.frozen(weighting.solve(np.ones(3))) is weighting


def exact_projection(point):
    """Project on the simplex in rational arithmetic: drop what is negative until nothing is."""
    kept = {i: Fraction(value) for i, value in enumerate(point)}
    while True:
        shift = (sum(kept.values()) - 1) / len(kept)
        left = {i: value for i, value in kept.items() if value > shift}
        if len(left) == len(kept):
            return np.array([float(max(Fraction(value) - shift, 0)) for value in point])
        kept = left


class TestSimplexProjection:
    @examples
    @given(point=st.lists(st.floats(-3, 3) | st.floats(-1e6, 1e6), min_size=1, max_size=12))
    def test_it_is_the_exact_projection(self, point):
        projected = simplex_projection(np.array(point))
        np.testing.assert_allclose(projected, exact_projection(point), rtol=0, atol=1e-14)

    def test_it_agrees_with_a_convex_solver(self, rng):
        point = rng.normal(size=8) / 2
        weights = cp.Variable(8)
        _, nearest = minimum(cp.sum_squares(weights - point), weights)
        # The solver is good to the root of its tolerance of 1e-10.
        np.testing.assert_allclose(simplex_projection(point), nearest, rtol=0, atol=1e-5)

    @examples
    @given(losses=ties)
    def test_a_point_of_the_simplex_stays(self, losses):
        point = (losses + 1) / (losses + 1).sum()
        np.testing.assert_allclose(simplex_projection(point), point, rtol=0, atol=1e-15)

    @examples
    @given(point=spread, shift=st.integers(-(10**6), 10**6))
    def test_adding_a_constant_to_all_entries_changes_nothing(self, point, shift):
        point = np.round(point * 64) / 64  # such fractions stay exact when shifted
        np.testing.assert_allclose(
            simplex_projection(point + shift), simplex_projection(point), rtol=0, atol=1e-15
        )

    def test_far_smaller_entries_do_not_drown_the_others(self):
        projected = simplex_projection(np.array([0.3, -1e20, 0.1, -1e17]))
        np.testing.assert_allclose(projected, [0.6, 0, 0.4, 0], rtol=1e-15)

    def test_one_entry_projects_to_one(self):
        np.testing.assert_array_equal(simplex_projection(np.array([-7.0])), [1.0])


class TestAdaptiveNeighbors:
    @examples
    @given(losses=ties | spread, data=st.data())
    def test_weights_meet_the_conditions_of_optimality(self, losses, data):
        k = data.draw(st.integers(1, len(losses) - 1))
        step = AdaptiveNeighbors(k).solve(losses)
        assume(step.gamma > 0)
        ordered = np.sort(losses)
        level = 1 / k + ordered[:k].sum() / (2 * step.gamma * k)
        expected = np.maximum(level - losses / (2 * step.gamma), 0)
        # The level and the losses over 2 gamma cancel; each is large when gamma is small.
        np.testing.assert_allclose(step.weights, expected, rtol=0, atol=1e-14 * max(level, 1))

    @examples
    @given(losses=ties | spread, gamma=st.floats(1e-3, 1e3))
    def test_weights_for_a_fixed_gamma_meet_the_conditions_of_optimality(self, losses, gamma):
        step = AdaptiveNeighbors(gamma=gamma).solve(losses)
        gradient = losses + 2 * gamma * step.weights
        active = step.weights > 0
        level = gradient[active].mean()
        slack = 1e-13 * (losses.max() + 2 * gamma)
        np.testing.assert_allclose(gradient[active], level, rtol=0, atol=slack)
        assert np.all(gradient[~active] >= level - slack)

    @examples
    @given(losses=ties | spread, data=st.data())
    def test_exactly_k_are_active_if_and_only_if_no_tie_is_at_the_boundary(self, losses, data):
        k = data.draw(st.integers(1, len(losses) - 1))
        ordered = np.sort(losses)
        step = AdaptiveNeighbors(k).solve(losses)
        assert (step.n_active == k) == (ordered[k - 1] < ordered[k])

    @examples
    @given(losses=spread, data=st.data())
    def test_gamma_is_the_formula_of_the_paper(self, losses, data):
        k = data.draw(st.integers(1, len(losses) - 1))
        ordered = [Fraction(value) for value in np.sort(losses)]
        expected = float((k * ordered[k] - sum(ordered[:k])) / 2)
        gamma = AdaptiveNeighbors(k).solve(losses).gamma
        # The margins are subtracted from losses that are rounded to 1e-16 of their size.
        assert gamma == pytest.approx(expected, rel=1e-14, abs=1e-15 * losses.max())

    @examples
    @given(losses=ties, scale=st.floats(1e-3, 1e3), shift=st.floats(-10, 10), data=st.data())
    def test_weights_ignore_scale_and_shift_of_the_losses(self, losses, scale, shift, data):
        # Only gaps between losses of the same order as the shift: otherwise it swallows them.
        scale, shift = 2.0 ** np.round(np.log2(scale)), np.round(shift)
        k = data.draw(st.integers(1, len(losses)))
        step = AdaptiveNeighbors(k).solve(losses)
        moved = AdaptiveNeighbors(k).solve(scale * (losses + shift))
        np.testing.assert_allclose(moved.weights, step.weights, rtol=1e-15)
        assert moved.n_active == step.n_active

    def test_weights_fall_linearly_from_the_best_sample_to_the_first_excluded_one(self):
        step = AdaptiveNeighbors(3).solve(np.array([4.0, 1.0, 9.0, 2.0, 5.0]))
        np.testing.assert_allclose(step.weights, np.array([1, 4, 0, 3, 0]) / 8, rtol=1e-15)
        assert step.gamma == 4.0
        assert step.objective == pytest.approx(14 / 8 + 4 * 26 / 64, rel=1e-15)

    def test_a_tie_at_the_boundary_leaves_fewer_active(self):
        step = AdaptiveNeighbors(4).solve(np.array([1.0, 2, 3, 3, 3, 5]))
        np.testing.assert_allclose(step.weights, [2 / 3, 1 / 3, 0, 0, 0, 0], rtol=1e-15)
        assert (step.n_active, step.gamma) == (2, 1.5)

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_when_more_than_k_tie_for_the_best_they_all_share(self, k):
        step = AdaptiveNeighbors(k).solve(np.array([2.0, 7, 2, 2, 9, 2]))
        np.testing.assert_array_equal(step.weights, [0.25, 0, 0.25, 0.25, 0, 0.25])
        assert (step.objective, step.n_active, step.gamma) == (2.0, 4, 0.0)

    @pytest.mark.parametrize("loss", [0.0, 3.0])
    @pytest.mark.parametrize("k", [1, 3, 5])
    def test_when_all_tie_all_share(self, loss, k):
        step = AdaptiveNeighbors(k).solve(np.full(5, loss))
        np.testing.assert_allclose(step.weights, 1 / 5, rtol=1e-15)
        assert step.objective == pytest.approx(loss, rel=1e-15)
        assert step.n_active == 5

    def test_auto_is_three_quarters_or_those_that_are_usual(self, rng):
        residuals, auto = rng.chisquare(10, 200), AdaptiveNeighbors()
        assert auto.count(200) == 150
        assert auto.tuned(residuals) is auto
        residuals[:80] *= 1e4
        assert auto.tuned(residuals) == AdaptiveNeighbors(120)
        residuals[:130] = 1e4 * rng.chisquare(10, 130)
        assert auto.tuned(residuals).count(200) >= 100

    @pytest.mark.parametrize(
        "given",
        [AdaptiveNeighbors(0.75), AdaptiveNeighbors(gamma=2.0), AdaptiveNeighbors(999, gamma=2.0)],
    )
    def test_numbers_that_are_given_stay(self, given, rng):
        residuals = rng.chisquare(10, 200)
        residuals[:80] *= 1e4
        assert given.tuned(residuals) is given

    @pytest.mark.parametrize("n_active", [6, 1.0])
    def test_all_active_means_all_count_the_same(self, n_active, rng):
        losses = rng.exponential(size=6)
        step = AdaptiveNeighbors(n_active).solve(losses)
        np.testing.assert_array_equal(step.weights, 1 / 6)
        assert (step.n_active, step.gamma) == (6, np.inf)
        assert step.objective == pytest.approx(losses.mean(), rel=1e-15)

    def test_one_active_sample_takes_all_the_weight(self):
        step = AdaptiveNeighbors(1).solve(np.array([3.0, 1.0, 2.0]))
        np.testing.assert_array_equal(step.weights, [0, 1, 0])

    def test_direct_weights_are_the_weights(self, rng):
        step = AdaptiveNeighbors(4).solve(rng.exponential(size=9))
        np.testing.assert_array_equal(step.direct, step.weights)

    @pytest.mark.parametrize("n", [1, 7, 10, 99, 100, 165, 1000])
    def test_a_share_is_rounded_up_as_exact_arithmetic_would(self, n):
        for percent in range(1, 101):
            expected = ceil(Fraction(percent, 100) * n)
            assert AdaptiveNeighbors(percent / 100).count(n) == expected

    @pytest.mark.parametrize("given", [1, 4, 10, 4.0, np.int64(4), np.float64(4)])
    def test_a_number_is_taken_as_it_is(self, given):
        assert AdaptiveNeighbors(given).count(10) == given

    @pytest.mark.parametrize("given", [0, 0.0, -1, -0.5, 1.5, 2.25, 11])
    def test_neither_a_share_nor_a_possible_number_is_refused(self, given):
        message = (
            f"n_active={given!r} must be 'auto', a share in (0, 1] or a number from 1 to 10, "
            "the number of samples."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            AdaptiveNeighbors(given).solve(np.ones(10))

    def test_only_a_fixed_gamma_is_monotone(self):
        assert not AdaptiveNeighbors(3).monotone
        assert AdaptiveNeighbors(3, gamma=1.0).monotone

    @examples
    @given(losses=spread, data=st.data())
    def test_frozen_holds_the_gamma_and_so_gives_the_same_weights(self, losses, data):
        weighting = AdaptiveNeighbors(data.draw(st.integers(1, len(losses) - 1)))
        step = weighting.solve(losses)
        assume(step.gamma > 0)
        frozen = weighting.frozen(step)
        assert frozen == AdaptiveNeighbors(weighting.n_active, gamma=step.gamma)
        again = frozen.solve(losses)
        # Losses over 2 gamma are rounded, the more the smaller gamma is beside them.
        slack = 1e-14 * max(1, losses.max() / step.gamma)
        np.testing.assert_allclose(again.weights, step.weights, rtol=0, atol=slack)

    @pytest.mark.parametrize("losses", [np.zeros(5), np.ones(5), np.array([1.0, 1, 1, 1, 2])])
    @pytest.mark.parametrize("n_active", [3, 5])
    def test_frozen_changes_nothing_where_gamma_is_zero_or_infinite(self, losses, n_active):
        weighting = AdaptiveNeighbors(n_active)
        assert weighting.frozen(weighting.solve(losses)) is weighting


class TestCoRobust:
    @pytest.mark.parametrize("spread", [0.5, 1e-6, 0.0])
    def test_among_many_samples_they_are_those_of_all_in_order(self, spread, rng):
        # Few are active, more than are put into order at first, and all.
        roots = 1 + spread * np.abs(rng.normal(size=20_000))
        ordered = np.sort(roots)
        sums = np.cumsum(ordered)
        k = np.count_nonzero(sums - np.arange(len(roots)) * ordered > 0)
        assert (k < weightings.FEW_ACTIVE) == (spread == 0.5)
        expected = np.maximum(1 - (k - 1) * roots / sums[k - 1], 0.0)
        np.testing.assert_array_equal(CoRobust._closed_form(roots**2), expected / expected.sum())

    @examples
    @given(losses=positive_ties | spread)
    def test_weights_meet_the_conditions_of_optimality(self, losses):
        weights = CoRobust().solve(losses).weights
        slopes = losses / (1 - weights) ** 2
        level = slopes[weights > 0].mean()
        # 1 - w loses as many digits as w has nines: the losses span 6 decades, their roots 3.
        np.testing.assert_allclose(slopes[weights > 0], level, rtol=1e-11)
        assert np.all(losses[weights == 0] >= level * (1 - 1e-11))

    @pytest.mark.parametrize("gamma", [1.0, 1.5, 4.0])
    @pytest.mark.parametrize("max_weight", [0.55, 0.8])
    @few
    @given(losses=positive_ties | spread)
    def test_bounded_weights_meet_the_conditions_of_optimality(self, max_weight, gamma, losses):
        weights = CoRobust(max_weight, gamma).solve(losses).weights
        slopes = losses * gamma * weights ** (gamma - 1) / (1 - weights**gamma) ** 2
        top = weights >= max_weight * (1 - 1e-13)
        between = (weights > 0) & ~top
        assert np.all(weights <= max_weight * (1 + 1e-15))
        low = slopes[top].max(initial=0)
        high = slopes[weights == 0].min(initial=np.inf)
        for level in slopes[between]:
            assert low * (1 - 1e-11) <= level <= high * (1 + 1e-11)
            assert level == pytest.approx(slopes[between][0], rel=1e-11)
        assert low <= high * (1 + 1e-11)

    @pytest.mark.parametrize("gamma", [1.3, 2.0, 5.0])
    @few
    @given(losses=positive_ties | spread)
    def test_an_exponent_above_one_makes_all_slopes_equal(self, gamma, losses):
        weights = CoRobust(gamma=gamma).solve(losses).weights
        assert np.all(weights > 0)
        slopes = losses * gamma * weights ** (gamma - 1) / (1 - weights**gamma) ** 2
        # As above: 1 - w^gamma loses as many digits as w has nines.
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-10)

    @examples
    @given(roots=st.lists(st.integers(1, 60), min_size=2, max_size=15))
    @example(roots=[3, 11, 14, 20, 20, 20, 20])
    def test_the_number_of_active_samples_alone_meets_condition_12(self, roots):
        # Squares of whole numbers, so that the condition is evaluated without rounding.
        n, ordered = len(roots), sorted(roots)
        surplus = [sum(ordered[:j]) - (j - 1) * ordered[j - 1] for j in range(1, n + 1)]
        fitting = [k for k in range(1, n + 1) if surplus[k - 1] > 0 and (k == n or surplus[k] <= 0)]
        step = CoRobust().solve(np.square(roots).astype(float))
        # Where the surplus of a sample is zero, its weight is zero up to rounding.
        assert fitting == [np.count_nonzero(step.weights > 1e-15)]
        assert surplus[step.n_active - 1] >= 0
        assert fitting[0] >= 2

    @examples
    @given(losses=positive_ties | spread)
    def test_objective_is_the_sum_with_the_weights_eliminated(self, losses):
        step = CoRobust().solve(losses)
        k, ordered = step.n_active, np.sort(losses)
        expected = np.sqrt(ordered[:k]).sum() ** 2 / (k - 1) + ordered[k:].sum()
        assert step.objective == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("weighting", CO_ROBUST, ids=repr)
    @few
    @given(losses=positive_ties | spread)
    def test_objective_lies_within_a_factor_n_over_n_minus_1_of_the_plain_sum(
        self, weighting, losses
    ):
        n, step = len(losses), weighting.solve(losses)
        uniform = losses.sum() / (1 - n**-weighting.gamma)  # what equal weights would reach
        assert losses.sum() * (1 - 1e-14) <= step.objective <= uniform * (1 + 1e-14)
        assert uniform <= n / (n - 1) * losses.sum() * (1 + 1e-14)

    @pytest.mark.parametrize("weighting", [*CO_ROBUST, *BELOW_ONE], ids=repr)
    @few
    @given(losses=positive_ties | spread)
    def test_direct_weights_and_objective_follow_from_the_weights(self, weighting, losses):
        step = weighting.solve(losses)
        np.testing.assert_allclose(step.direct, 1 / (1 - step.weights**weighting.gamma), rtol=1e-14)
        assert step.objective == pytest.approx(step.direct @ losses, rel=1e-14)
        assert np.all(step.direct >= 1)

    @pytest.mark.parametrize("weighting", [*CO_ROBUST, *BELOW_ONE], ids=repr)
    @few
    @given(losses=positive_ties | spread, scale=st.floats(1e-30, 1e30))
    def test_weights_ignore_the_scale_of_the_losses(self, weighting, losses, scale):
        step, scaled = weighting.solve(losses), weighting.solve(scale * losses)
        # A product of a loss and the scale is rounded; so is a weight that ought to be zero.
        np.testing.assert_allclose(scaled.weights, step.weights, rtol=1e-11, atol=1e-14)
        assert scaled.objective == pytest.approx(scale * step.objective, rel=1e-13)

    @pytest.mark.parametrize("loss", [1e-20, 1.0, 1e20])
    @pytest.mark.parametrize("weighting", CO_ROBUST, ids=repr)
    def test_equal_losses_give_equal_weights(self, weighting, loss):
        np.testing.assert_allclose(weighting.solve(np.full(7, loss)).weights, 1 / 7, rtol=1e-14)

    @examples
    @given(first=st.floats(1e-4, 1e4), second=st.floats(1e-4, 1e4))
    def test_two_samples_share_in_inverse_proportion_to_their_norms(self, first, second):
        step = CoRobust().solve(np.array([first, second]))
        expected = np.sqrt([second, first]) / np.sqrt([first, second]).sum()
        # The lesser weight is found as 1 minus the greater.
        np.testing.assert_allclose(step.weights, expected, rtol=1e-11)

    def test_samples_tied_with_the_last_active_one_are_active_too(self):
        step = CoRobust().solve(np.array([16.0, 1.0, 1.0, 2.25, 2.25, 2.25, 9.0]))
        # Roots 1, 1 and 1.5 three times: sqrt(lambda) = 6.5 / 4.
        expected = np.array([0, 5, 5, 1, 1, 1, 0]) / 13
        np.testing.assert_allclose(step.weights, expected, rtol=1e-14)

    @pytest.mark.parametrize("weighting", [CoRobust(), CoRobust(max_weight=0.7)], ids=repr)
    @pytest.mark.parametrize("n_zeros", [2, 3, 5])
    def test_two_or_more_perfect_samples_share_all_the_weight(self, weighting, n_zeros, rng):
        losses = np.r_[np.zeros(n_zeros), rng.uniform(1, 2, size=6)]
        order = rng.permutation(len(losses))
        step = weighting.solve(losses[order])
        expected = np.where(losses > 0, 0, 1 / n_zeros)[order]
        np.testing.assert_allclose(step.weights, expected, rtol=1e-14)
        assert step.objective == pytest.approx(losses.sum(), rel=1e-14)

    @pytest.mark.parametrize("weighting", CO_ROBUST, ids=repr)
    def test_perfect_samples_in_the_majority_share_all_the_weight(self, weighting):
        step = weighting.solve(np.array([0.0, 0.0, 0.0, 1.0, 2.0]))
        # Above exponent 1 the others keep a trace: w^(gamma - 1) is about the floor of 1e-12.
        trace = 0 if weighting.gamma == 1 else 1e-12 ** (1 / (weighting.gamma - 1))
        np.testing.assert_allclose(step.weights, np.array([1, 1, 1, 0, 0]) / 3, atol=trace + 1e-15)

    @pytest.mark.parametrize("weighting", CO_ROBUST, ids=repr)
    def test_a_perfect_fit_of_all_samples_weighs_them_equally(self, weighting):
        step = weighting.solve(np.zeros(4))
        np.testing.assert_array_equal(step.weights, 1 / 4)
        np.testing.assert_allclose(step.direct, 1 / (1 - 0.25**weighting.gamma), rtol=1e-15)
        assert (step.objective, step.n_active) == (0.0, 4)

    @pytest.mark.parametrize("loss", [0.0, 1e-200, 1e-20])
    def test_one_perfect_sample_stays_finite_thanks_to_the_floor(self, loss):
        step = CoRobust().solve(np.array([2.0, loss, 3.0, 5.0]))
        # As if its loss were 1e-12 of the next best one's, which shares with it.
        np.testing.assert_allclose(step.weights, [1e-6, 1 - 1e-6, 0, 0], rtol=1e-8)
        assert step.direct.max() == pytest.approx(1e6, rel=1e-8)
        assert step.objective == pytest.approx(2 / (1 - 1e-6) + 8, rel=1e-12)

    def test_the_floor_bounds_the_weights(self):
        losses = np.array([0.0, 4.0, 9.0])
        floored, bounded = CoRobust(floor=0.01).solve(losses), CoRobust(0.9).solve(losses)
        np.testing.assert_allclose(floored.weights, bounded.weights, rtol=1e-14)
        assert floored.weights.max() == pytest.approx(0.9, rel=1e-14)
        # The bound leaves room for equal weights, however few the samples are.
        np.testing.assert_allclose(CoRobust(floor=0.99).solve(np.ones(2)).weights, 0.5)

    @pytest.mark.parametrize("weighting", [*CO_ROBUST, *BELOW_ONE], ids=repr)
    def test_the_objective_does_not_rise_while_one_loss_vanishes(self, weighting):
        vanishing = [0.0, *10.0 ** np.arange(-40, 1)]
        values = [weighting.solve(np.array([1.0, loss])).objective for loss in vanishing]
        assert np.all(np.diff(values) >= -1e-14)

    @pytest.mark.parametrize("gamma", [1.0, 2.0])
    def test_a_bound_keeps_one_perfect_sample_in_its_place(self, gamma):
        step = CoRobust(max_weight=0.6, gamma=gamma).solve(np.array([2.0, 0.0, 3.0, 5.0]))
        assert step.weights[1] == pytest.approx(0.6, rel=1e-14)
        assert step.direct.max() == pytest.approx(1 / (1 - 0.6**gamma), rel=1e-13)

    @examples
    @given(losses=st.lists(st.floats(1, 4), min_size=4, max_size=12).map(np.array))
    def test_a_bound_that_does_not_bind_changes_nothing(self, losses):
        # Roots differ by a factor of 2 at most, so no weight exceeds 2/3.
        free, bounded = CoRobust().solve(losses), CoRobust(max_weight=0.7).solve(losses)
        assert free.weights.max() < 0.7
        np.testing.assert_allclose(bounded.weights, free.weights, rtol=0, atol=1e-14)

    def test_an_exponent_near_one_gives_nearly_the_plain_weights(self, rng):
        losses = rng.uniform(1, 1.5, size=8)
        near = CoRobust(gamma=1 + 1e-9).solve(losses)
        # All are active, and weights move in proportion to the change of the exponent.
        np.testing.assert_allclose(near.weights, CoRobust().solve(losses).weights, atol=1e-8)

    @pytest.mark.parametrize("n_samples", [50, 500, 5000])
    def test_the_extra_weight_stays_near_one_however_many_samples_there_are(self, n_samples, rng):
        losses = rng.chisquare(20, size=n_samples)
        assert 1 < np.sum(CoRobust().solve(losses).direct - 1) < 1.5

    def test_one_sample_is_refused(self):
        message = "Co-robust weights need at least 2 samples, but n_samples=1."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            CoRobust().solve(np.ones(1))

    @pytest.mark.parametrize("given", [0.25, 0.1, 0, -1, 1, 1.5, np.nan])
    def test_a_bound_that_cannot_hold_or_does_not_bind_is_refused(self, given):
        message = f"max_weight={given} must lie between 1/n_samples = 0.25 and 1."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            CoRobust(max_weight=given).solve(np.ones(4))

    @pytest.mark.parametrize("given", [0.995, 0, -1, np.nan, np.inf])
    def test_an_exponent_for_which_there_is_no_solver_is_refused(self, given):
        message = f"gamma={given} must be at least 1, or positive and at most 0.99: in between"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            CoRobust(gamma=given).solve(np.ones(4))


class TestExponentsBelowOne:
    @pytest.mark.parametrize("max_weight", [None, 0.6])
    @pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
    def test_no_weights_on_a_grid_are_better(self, gamma, max_weight, rng):
        first, second = np.mgrid[0:1:0.005, 0:1:0.005]
        grid = np.stack([first, second, 1 - first - second], axis=-1).reshape(-1, 3)
        grid = grid[(grid.min(axis=1) >= 0) & (grid.max(axis=1) <= (max_weight or 0.9999))]
        for spread in (0.1, 1.0, 3.0):
            losses = np.exp(spread * rng.normal(size=3))
            step = CoRobust(max_weight, gamma).solve(losses)
            assert step.objective <= np.min(1 / (1 - grid**gamma) @ losses) * (1 + 1e-13)
            assert step.weights.max() <= (max_weight or 1) * (1 + 1e-13)

    @pytest.mark.parametrize("gamma", [0.3, 0.8])
    def test_no_descent_from_random_weights_ends_below(self, gamma, rng):
        losses = rng.exponential(size=12) + 0.2

        def value(z):
            weights = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            return losses @ (1 / (1 - np.minimum(weights, 1 - 1e-9) ** gamma))

        ends = [minimize(value, 3 * rng.normal(size=12)).fun for _ in range(20)]
        best = CoRobust(gamma=gamma).solve(losses).objective
        assert best <= min(ends) * (1 + 1e-13)
        assert max(ends) > best * 1.001  # there are others to fall into

    @pytest.mark.parametrize("beyond", [1e-3, 0.1, 0.4])
    @pytest.mark.parametrize("gamma", [1.5e-4, 0.05, 0.4])
    def test_bounds_near_the_concave_part_leave_no_pair_to_be_moved(self, gamma, beyond, rng):
        turn = ((1 - gamma) / (1 + gamma)) ** (1 / gamma)
        bound = turn + beyond * (1 - turn)
        for spread in (0.1, 1.0, 3.0, 10.0) * 5:
            losses = np.exp(spread * rng.normal(size=20))
            step = CoRobust(bound, gamma).solve(losses)
            assert step.weights.sum() == pytest.approx(1, rel=1e-12)
            assert step.weights.max() <= bound * (1 + 1e-13)
            for i, j in itertools.combinations(np.argsort(losses)[: step.n_active + 1], 2):
                both = step.weights[i] + step.weights[j]
                shares = np.linspace(max(0, both - bound), min(both, bound), 201)
                pairs = [losses[i], losses[j]] @ (
                    1 / (1 - np.array([shares, both - shares]) ** gamma)
                )
                here = [losses[i], losses[j]] @ (1 / (1 - step.weights[[i, j]] ** gamma))
                assert here <= pairs.min() + 1e-11 * step.objective

    def test_of_ten_equal_samples_four_share_the_weight(self):
        # 4 / (1 - sqrt(1/4)) + 6 = 14; three or five samples have 14.1 and 14.05.
        step = CoRobust(gamma=0.5).solve(np.full(10, 2.0))
        np.testing.assert_allclose(step.weights, np.repeat([0.25, 0], [4, 6]), rtol=1e-12)
        assert step.objective == pytest.approx(28, rel=1e-14)

    def test_a_far_better_sample_leaves_the_next_a_weight_in_the_concave_part(self):
        # With w = 1 - t the value is nearly f1 / (gamma t) + f2 (1 + t^gamma) for tiny t.
        gamma, better, next_best = 0.5, 1e-9, 1.0
        step = CoRobust(gamma=gamma).solve(np.array([next_best, better, 1.5]))
        expected = (better / (next_best * gamma**2)) ** (1 / (1 + gamma))
        # What is neglected is of the order of t^gamma.
        assert step.weights[0] == pytest.approx(expected, rel=2 * expected**gamma)
        assert step.weights[0] < ((1 - gamma) / (1 + gamma)) ** (1 / gamma)
        assert step.weights[2] == 0

    @pytest.mark.parametrize(("gamma", "most"), [(0.5, 10), (0.9, 27)])
    def test_few_samples_are_active_however_many_there_are(self, gamma, most, rng):
        step = CoRobust(gamma=gamma).solve(1 + 1e-9 * rng.uniform(size=3000))
        assert 2 <= step.n_active <= most

    def test_a_bound_in_the_concave_part_is_refused(self):
        message = "max_weight=0.05 must be at least 0.111 if gamma=0.5: below, only the bound"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            CoRobust(max_weight=0.05, gamma=0.5).solve(np.ones(40))

    @pytest.mark.parametrize("weighting", CO_ROBUST, ids=repr)
    def test_it_is_monotone_and_frozen_already(self, weighting):
        assert weighting.monotone
        assert weighting.frozen(weighting.solve(np.ones(3))) is weighting


def test_the_weightings_have_the_names_users_know():
    expected = {"uniform": Uniform, "adaptive": AdaptiveNeighbors, "corobust": CoRobust}
    assert expected == dict(WEIGHTINGS)


def test_many_perfect_samples_share_the_weight_whatever_the_far_ones_are():
    weights = CoRobust().solve(np.array([0.0, 0.0, 0.0, 1.0, 1e14])).weights
    np.testing.assert_allclose(weights, [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-15)


def test_a_bound_that_does_not_bind_changes_nothing_for_a_large_exponent():
    losses = np.repeat([1.0, 1e6], 500)
    free = CoRobust(gamma=20).solve(losses).weights
    np.testing.assert_allclose(CoRobust(0.0015, gamma=20).solve(losses).weights, free, rtol=1e-9)
    assert free[0] > 2 * free[-1] > 0


@pytest.mark.parametrize("gamma", [1.01, 1.05, 1.5, 4.0])
def test_an_exponent_above_one_leaves_no_sample_without_weight(gamma, rng):
    assert CoRobust(gamma=gamma).solve(rng.uniform(1, 5, 60)).weights.min() > 0


@pytest.mark.parametrize("weighting", [CoRobust(0.5), CoRobust(gamma=2.0), CoRobust()])
def test_huge_and_tiny_losses_do_not_overflow(weighting, rng):
    losses = rng.uniform(1, 5, 20)
    expected = weighting.solve(losses).weights
    for scale in (1e295, 1e-295):
        np.testing.assert_allclose(weighting.solve(scale * losses).weights, expected, rtol=1e-9)


@pytest.mark.parametrize("floor", [0.0, -1.0, 1.0])
def test_a_floor_that_is_not_a_share_is_refused(floor):
    with pytest.raises(ValueError, match=f"floor={floor} must be positive"):
        CoRobust(floor=floor).solve(np.array([0.0, 1.0, 2.0]))


@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf])
def test_a_fixed_gamma_that_is_not_positive_is_refused(gamma):
    with pytest.raises(ValueError, match=f"gamma={gamma} must be a positive number"):
        AdaptiveNeighbors(gamma=gamma).solve(np.array([0.0, 1.0, 2.0]))


def test_a_share_that_asks_for_a_little_more_is_not_rounded_down():
    assert AdaptiveNeighbors(0.0100005).count(1000) == 11


def test_a_share_however_small_leaves_one_sample():
    assert AdaptiveNeighbors(1e-12).count(50) == 1
    assert AdaptiveNeighbors(np.float32(0.5)).count(50) == 25


@pytest.mark.parametrize("given", [np.nan, np.inf, "0.5", None, 2.5, 0])
def test_anything_else_for_n_active_is_refused_in_words(given):
    with pytest.raises(ValueError, match=r"'auto', a share in \(0, 1\] or a number from 1 to 50"):
        AdaptiveNeighbors(given).count(50)
