import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import block_diag

from robustpca.diagnostics import (
    alignment_order,
    coupling_matrix,
    shape_interaction_matrix,
    singular_values_before_and_after,
    theorem2_bound,
    theorem2_smoothness,
)

seeds = st.integers(0, 2**32 - 1)


def laplacian_of(adjacency, *, normed=False):
    degrees = adjacency.sum(axis=1)
    laplacian = np.diag(degrees) - adjacency
    return laplacian / np.sqrt(np.outer(degrees, degrees)) if normed else laplacian


def ring(n_vertices, *, normed=True):
    steps = np.eye(n_vertices)[np.r_[1:n_vertices, 0]]
    return laplacian_of(steps + steps.T, normed=normed)


def random_laplacian(rng, n_vertices, *, normed=False):
    """Laplacian of a connected graph with random edges and weights, so no eigenvalue repeats."""
    weights = rng.uniform(0.1, 2, size=(n_vertices, n_vertices))
    weights *= rng.random(size=weights.shape) < 0.3
    weights[np.arange(n_vertices - 1), np.arange(1, n_vertices)] = rng.uniform(
        0.1, 2, size=n_vertices - 1
    )
    adjacency = np.triu(weights, 1)
    return laplacian_of(adjacency + adjacency.T, normed=normed)


def minimise(X, sample_laplacian, feature_laplacian, sample_smoothness, feature_smoothness):
    """Minimiser of the two-graph problem, proven by its optimality conditions."""

    def gradient(U):
        return 2 * (
            sample_smoothness * sample_laplacian @ U + feature_smoothness * U @ feature_laplacian
        )

    steepness = 2 * sample_smoothness * np.linalg.norm(sample_laplacian, 2)
    steepness += 2 * feature_smoothness * np.linalg.norm(feature_laplacian, 2)
    U, Y, t = X, X, 1.0
    for _ in range(50_000):
        change = Y - gradient(Y) / steepness - X
        new = X + np.sign(change) * np.maximum(np.abs(change) - 1 / steepness, 0)
        moved = np.abs(new - Y).max()
        if np.vdot(Y - new, new - U) > 0:
            t = 1.0
        following = (1 + np.sqrt(1 + 4 * t**2)) / 2
        Y = new + (t - 1) / following * (new - U)
        U, t = new, following
        if moved < 1e-12:
            break
    slope = gradient(U)
    assert np.abs(slope).max() < 1 + 1e-6
    free = U != X
    assert_allclose(slope[free], np.sign(X - U)[free], atol=1e-6)
    return U


def planted(rng, n_samples, n_features, n_sample, n_feature, *, normed):
    """Two random graphs, clean data that are smooth on both, and gross and small errors."""
    sample_laplacian = random_laplacian(rng, n_samples, normed=normed)
    feature_laplacian = random_laplacian(rng, n_features, normed=normed)
    Q = np.linalg.eigh(sample_laplacian)[1][:, :n_sample]
    P = np.linalg.eigh(feature_laplacian)[1][:, :n_feature]
    X_star = 3 * Q @ rng.normal(size=(n_sample, n_feature)) @ P.T
    errors = 5 * rng.normal(size=X_star.shape) * (rng.random(size=X_star.shape) < 0.2)
    X = X_star + errors + 0.1 * rng.normal(size=X_star.shape)
    return X, X_star, sample_laplacian, feature_laplacian


def subspaces(rng, n_subspaces=3, n_samples=10, n_features=20, n_components=2):
    """Samples of independent subspaces that are far from orthogonal, ordered by subspace."""
    shared = rng.normal(size=n_features)
    bases = rng.normal(size=(n_subspaces, n_components, n_features)) + 2 * shared
    return np.vstack([rng.normal(size=(n_samples, n_components)) @ basis for basis in bases])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_alignment_is_1_when_the_graph_diagonalises_the_covariance(kind, rng):
    laplacian = random_laplacian(rng, 7)
    P = np.linalg.eigh(laplacian)[1]
    rows = rng.uniform(1, 9, size=7)[:, None] * P.T
    # Every sample beside its opposite: the mean is 0 and the covariance is diagonal in P.
    X = np.vstack([rows, -rows])
    assert alignment_order(X, kind(laplacian)) == pytest.approx(1.0, abs=1e-12)


def test_alignment_is_1_over_root_d_when_the_data_vary_equally_along_all_eigenvectors(rng):
    laplacian = random_laplacian(rng, 9)
    direction = np.linalg.eigh(laplacian)[1].sum(axis=1)
    order = alignment_order(np.vstack([direction, -direction]), laplacian)
    assert order == pytest.approx(1 / 3, abs=1e-12)


def test_alignment_follows_its_formula_with_the_mean_of_all_entries(rng):
    X = rng.normal(size=(30, 6)) * np.arange(1, 7) + np.arange(6)
    laplacian = random_laplacian(rng, 6)
    P = np.linalg.eigh(laplacian)[1]
    centered = X - X.sum() / X.size
    gamma = P.T @ (centered.T @ centered / 30) @ P
    expected = np.sqrt(np.sum(np.diag(gamma) ** 2) / np.sum(gamma**2))
    assert alignment_order(X, laplacian) == pytest.approx(expected, rel=1e-12)
    # Shifting all entries alike changes nothing; shifting the features differently does.
    assert alignment_order(X + 3, laplacian) == pytest.approx(expected, rel=1e-12)
    assert abs(alignment_order(X - X.mean(axis=0), laplacian) - expected) > 0.01


@settings(max_examples=60)
@given(seeds, st.integers(1, 12), st.integers(2, 9), st.booleans(), st.integers(-200, 200))
def test_alignment_lies_between_1_over_root_d_and_1_at_any_scale(seed, n, d, normed, power):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.exponential(size=d) * 10.0**power
    order = alignment_order(X, random_laplacian(rng, d, normed=normed))
    assert (1 - 1e-12) / np.sqrt(d) <= order <= 1


def test_data_that_do_not_vary_have_no_alignment():
    with pytest.raises(ValueError, match=r"All entries of X are 0\.1, .*: pass data that vary"):
        alignment_order(np.full((5, 4), 0.1), ring(4))


@settings(max_examples=40)
@given(seeds, st.integers(1, 4), st.booleans())
def test_the_interaction_matrix_is_a_projection_of_trace_c(seed, n_components, center):
    X = np.random.default_rng(seed).normal(size=(12, 7))
    interaction = shape_interaction_matrix(X, n_components, center=center)
    assert_allclose(interaction, interaction.T, atol=1e-14)
    assert_allclose(interaction @ interaction, interaction, atol=1e-12)
    assert np.trace(interaction) == pytest.approx(n_components)


def test_independent_subspaces_give_diagonal_blocks(rng):
    X = subspaces(rng)
    interaction = shape_interaction_matrix(X)
    inside = block_diag(*[np.ones((10, 10))] * 3).astype(bool)
    assert np.abs(interaction[~inside]).max() < 1e-12
    assert np.trace(interaction) == pytest.approx(6)
    # The subspaces are far from orthogonal: the samples themselves show no blocks.
    assert np.abs(X @ X.T)[~inside].max() > 0.1 * np.abs(X @ X.T)[inside].max()


def test_without_a_number_of_components_the_rank_counts_at_its_tolerance(rng):
    left, right = np.linalg.qr(rng.normal(size=(9, 4)))[0], np.linalg.qr(rng.normal(size=(6, 4)))[0]
    A = left * [100, 10, 0.5, 1e-7] @ right.T
    assert np.trace(shape_interaction_matrix(A)) == pytest.approx(3)
    assert np.trace(shape_interaction_matrix(A, rank_tol=1e-2)) == pytest.approx(2)
    assert_allclose(
        shape_interaction_matrix(A, 2), shape_interaction_matrix(A, rank_tol=1e-2), atol=1e-14
    )


def test_centring_takes_the_mean_out_of_the_space(rng):
    X = subspaces(rng) + 5
    interaction = shape_interaction_matrix(X, center=True)
    assert_allclose(interaction.sum(axis=0), 0, atol=1e-12)
    centered = X - X.mean(axis=0)
    assert_allclose(interaction @ centered, centered, atol=1e-10)


def test_a_matrix_of_rank_0_interacts_with_nothing():
    assert not shape_interaction_matrix(np.zeros((4, 3))).any()
    # The mean of seven times 0.1 is not exactly 0.1.
    assert not shape_interaction_matrix(np.full((7, 3), 0.1), center=True).any()


@pytest.mark.parametrize("n_components", [0, 4, 1.5])
def test_components_beyond_the_rank_are_refused_with_the_numbers(n_components, rng):
    A = rng.normal(size=(8, 3)) @ rng.normal(size=(3, 5))
    message = rf"n_components={n_components} is not possible, as low_rank of shape \(8, 5\) has "
    with pytest.raises(ValueError, match=message + "rank 3: choose an integer from 1 to the rank"):
        shape_interaction_matrix(A, n_components)
    with pytest.raises(ValueError, match="rank 2 once centred"):
        shape_interaction_matrix([[1, 0], [0, 1], [-1, 5]], 3, center=True)


def test_the_singular_values_of_both_matrices_and_their_ranks_are_given(rng):
    X = rng.normal(size=(9, 5))
    low_rank = X @ np.diag([1, 1, 1, 0, 0])
    spectra = singular_values_before_and_after(X, low_rank)
    assert_allclose(spectra.before, np.linalg.svd(X, compute_uv=False))
    assert_allclose(spectra.after, np.linalg.svd(low_rank, compute_uv=False), atol=1e-12)
    assert (spectra.rank_before, spectra.rank_after) == (5, 3)


def test_the_tolerance_of_the_ranks_is_relative_to_the_largest_value():
    X, low_rank = np.diag([1e6, 1e5, 1e3]), np.diag([1.0, 1e-3, 0.0])
    assert singular_values_before_and_after(X, low_rank).rank_after == 2
    spectra = singular_values_before_and_after(X, low_rank, rank_tol=1e-2)
    assert (spectra.rank_before, spectra.rank_after) == (2, 1)
    assert singular_values_before_and_after(X, np.zeros((3, 3))).rank_after == 0


@pytest.mark.parametrize("rank_tol", [0, 1, -1e-3, np.nan, "small"])
def test_tolerances_that_are_no_share_are_refused(rank_tol):
    with pytest.raises(ValueError, match=f"rank_tol={rank_tol} must be between 0 and 1"):
        singular_values_before_and_after(np.eye(2), np.eye(2), rank_tol=rank_tol)
    with pytest.raises(ValueError, match=f"rank_tol={rank_tol} must be between 0 and 1"):
        shape_interaction_matrix(np.eye(2), rank_tol=rank_tol)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
def test_the_coupling_weighted_by_the_eigenvalues_is_the_cost_of_smoothness(kind, shape, rng):
    U = rng.normal(size=shape)
    for side, A in (("samples", U), ("features", U.T)):
        laplacian = random_laplacian(rng, len(A))
        coupling = coupling_matrix(U, kind(laplacian), side)
        assert coupling.shape == (5, len(A))
        cost = np.sum(np.linalg.eigvalsh(laplacian) * coupling**2)
        assert cost == pytest.approx(np.trace(A.T @ laplacian @ A))
        assert_allclose(np.linalg.norm(coupling, axis=1), np.linalg.svd(U, compute_uv=False))


def test_a_matrix_made_of_eigenvectors_couples_to_them_alone(rng):
    sample_laplacian, feature_laplacian = random_laplacian(rng, 8), random_laplacian(rng, 6)
    Q, P = np.linalg.eigh(sample_laplacian)[1], np.linalg.eigh(feature_laplacian)[1]
    U = 5 * np.outer(Q[:, 2], P[:, 0]) + 3 * np.outer(Q[:, 0], P[:, 4])
    expected = np.zeros((6, 8))
    expected[0, 2], expected[1, 0] = 5, 3
    # Largest entries are positive on both sides, so the product is too.
    assert_allclose(coupling_matrix(U, sample_laplacian), expected, atol=1e-12)
    expected = np.zeros((6, 6))
    expected[0, 0], expected[1, 4] = 5, 3
    assert_allclose(coupling_matrix(U, feature_laplacian, "features"), expected, atol=1e-12)


def test_a_side_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'samples' or 'features', but it is 'rows'"):
        coupling_matrix(np.eye(3), ring(3), "rows")


def test_the_weights_of_the_theorem_divide_by_the_next_eigenvalues(rng):
    sample_laplacian, feature_laplacian = random_laplacian(rng, 8), random_laplacian(rng, 6)
    samples, features = (np.linalg.eigvalsh(a) for a in (sample_laplacian, feature_laplacian))
    weights = theorem2_smoothness(sample_laplacian, sparse.csr_matrix(feature_laplacian), 3, 2, 0.7)
    assert weights == pytest.approx((0.7 / samples[3], 0.7 / features[2]))


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_for_exact_solutions_of_random_problems(seed, normed):
    rng = np.random.default_rng(seed)
    n_sample, n_feature = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    X, X_star, *graphs = planted(rng, 12, 7, n_sample, n_feature, normed=normed)
    for smoothness in (0.03, 0.3, 3.0):
        theorem = (*graphs, n_sample, n_feature, smoothness)
        U = minimise(X, *graphs, *theorem2_smoothness(*theorem))
        bound = theorem2_bound(U, X, X_star, *theorem)
        assert 0 < bound.lhs <= bound.rhs
        assert bound.holds


def test_both_sides_of_the_bound_follow_their_formulas(rng):
    X, X_star, *graphs = planted(rng, 9, 6, 3, 2, normed=False)
    U = rng.normal(size=X.shape)
    (samples, Q), (features, P) = (np.linalg.eigh(graph) for graph in graphs)
    rough = np.linalg.norm(Q[:, 3:].T @ U) ** 2 + np.linalg.norm(U @ P[:, 2:]) ** 2
    gaps = samples[2] / samples[3] + features[1] / features[2]
    bound = theorem2_bound(U, X, X_star, *map(sparse.csr_matrix, graphs), 3, 2, 0.7)
    assert bound.lhs == pytest.approx(np.abs(U - X).sum() + 0.7 * rough)
    expected = np.abs(X - X_star).sum() + 0.7 * np.linalg.norm(X_star) ** 2 * gaps
    assert bound.rhs == pytest.approx(expected)


def test_the_printed_form_of_the_theorem_is_false_and_the_proven_one_holds():
    # A wave of one period along a ring of samples, the same in all features, is the second
    # eigenvector; its eigenvalue 0.022 makes the printed weight 46 times as large as the proven.
    graphs = ring(30), ring(6)
    wave = 0.4 * np.sqrt(2) * np.sin(2 * np.pi * np.arange(30) / 30)
    X, X_star = np.outer(wave, np.ones(6)), np.zeros((30, 6))
    weights = theorem2_smoothness(*graphs, 1, 1, 1.0)
    U = minimise(X, *graphs, *weights)

    bound = theorem2_bound(U, X, X_star, *graphs, 1, 1, 1.0)
    assert bound.lhs == pytest.approx(28.8, abs=0.05)
    assert bound.rhs == pytest.approx(64.6, abs=0.05)
    assert bound.holds

    # The lowest eigenvectors of rings are constant, so the rest of U is what is not.
    rough = [np.sum((U - U.mean(axis=axis, keepdims=True)) ** 2) for axis in (0, 1)]
    printed = np.abs(U - X).sum() + weights[0] * rough[0] + weights[1] * rough[1]
    assert printed == pytest.approx(1288.9, abs=0.05)
    assert printed > bound.rhs


def test_a_matrix_far_from_the_minimum_may_break_the_bound(rng):
    X, X_star, *graphs = planted(rng, 9, 6, 2, 2, normed=True)
    assert not theorem2_bound(100 * X, X, X_star, *graphs, 2, 2, 1.0).holds
    # The clean data have no more than their own objective, which is all that the proof needs.
    assert theorem2_bound(X_star, X, X_star, *graphs, 2, 2, 1.0).holds


def test_the_bound_holds_with_equality_for_clean_data_that_are_perfectly_smooth(rng):
    X = np.full((9, 6), 1e3 / 7)
    for normed in (True, False):
        graphs = ring(9, normed=normed), ring(6, normed=normed)
        bound = theorem2_bound(X, X, X, *graphs, 1, 1, 1.0)
        assert bound.holds
        assert max(bound.lhs, bound.rhs) < 1e-9


def test_clean_data_along_any_of_several_equal_eigenvalues_are_accepted():
    # A sine and a cosine share the second eigenvalue of a ring; the theorem takes either, and
    # every mixture, for the second eigenvector.
    graphs = ring(10), ring(6)
    for phase in (0.0, 0.3, 1.7):
        X = np.outer(np.sin(2 * np.pi * np.arange(10) / 10 + phase), np.ones(6))
        U = minimise(X, *graphs, *theorem2_smoothness(*graphs, 2, 1, 1.0))
        assert theorem2_bound(U, X, X, *graphs, 2, 1, 1.0).holds


def test_a_laplacian_in_single_precision_has_the_same_zero_eigenvalues(rng):
    parts = block_diag(random_laplacian(rng, 6, normed=True), random_laplacian(rng, 5, normed=True))
    feature_laplacian = random_laplacian(rng, 4)
    expected = theorem2_smoothness(parts, feature_laplacian, 2, 1, 1.0)
    single = parts.astype(np.float32)
    assert theorem2_smoothness(single, feature_laplacian, 2, 1, 1.0) == pytest.approx(expected)
    with pytest.raises(ValueError, match="the graph has 2 connected parts"):
        theorem2_smoothness(single, feature_laplacian, 1, 1, 1.0)


def call_bound(**changes):
    given = {
        "low_rank": np.ones((5, 4)),
        "X": np.ones((5, 4)),
        "X_star": np.ones((5, 4)),
        "sample_laplacian": ring(5),
        "feature_laplacian": ring(4),
        "n_sample": 1,
        "n_feature": 1,
        "smoothness": 1.0,
    }
    return theorem2_bound(**{**given, **changes})


def call_smoothness(**changes):
    given = {
        "sample_laplacian": ring(5),
        "feature_laplacian": ring(4),
        "n_sample": 1,
        "n_feature": 1,
        "smoothness": 1.0,
    }
    return theorem2_smoothness(**{**given, **changes})


@pytest.mark.parametrize("call", [call_bound, call_smoothness])
def test_numbers_of_eigenvectors_out_of_range_are_refused_with_the_numbers(call):
    for count in (0, 5, -1, 1.0):
        message = f"n_sample={count} must be an integer from 1 to 4, as sample_laplacian has 5 "
        with pytest.raises(ValueError, match=message + "eigenvalues and the next one is needed"):
            call(n_sample=count)
    message = "n_feature=4 must be an integer from 1 to 3, as feature_laplacian has 4"
    with pytest.raises(ValueError, match=message):
        call(n_feature=4)


@pytest.mark.parametrize("call", [call_bound, call_smoothness])
def test_a_next_eigenvalue_of_0_is_refused_with_what_to_do(call):
    parts = block_diag(ring(3), ring(2))
    message = (
        "n_sample=1 needs eigenvalue 2 of sample_laplacian to be positive, but it is 0, as the "
        "graph has 2 connected parts: choose n_sample from 2 to 4, or connect the parts"
    )
    with pytest.raises(ValueError, match=message):
        call(sample_laplacian=parts)
    parts = block_diag(ring(2), ring(2))
    with pytest.raises(ValueError, match="n_feature=1 needs eigenvalue 2 of feature_laplacian"):
        call(feature_laplacian=parts)
    with pytest.raises(ValueError, match=r"All eigenvalues of feature_laplacian are 0.*edges"):
        call(feature_laplacian=np.zeros((4, 4)))


@pytest.mark.parametrize("call", [call_bound, call_smoothness])
@pytest.mark.parametrize("smoothness", [0, -1.0, np.inf, np.nan, "much"])
def test_smoothness_that_is_not_positive_is_refused(call, smoothness):
    with pytest.raises(ValueError, match=f"smoothness={smoothness} must be a positive number"):
        call(smoothness=smoothness)


def test_clean_data_that_are_not_smooth_are_refused_with_what_to_do():
    rough = np.ones((5, 4)) + np.outer(np.arange(5) == 0, np.ones(4))
    message = (
        r"X_star must lie in the span of the lowest 1 eigenvectors of sample_laplacian, but 0\.32 "
        "of its norm is outside: project X_star on that span, or raise n_sample"
    )
    with pytest.raises(ValueError, match=message):
        call_bound(X_star=rough)
    rough = np.ones((5, 4)) + (np.arange(4) == 0)
    with pytest.raises(ValueError, match=r"eigenvectors of feature_laplacian.* raise n_feature"):
        call_bound(X_star=rough)


@pytest.mark.parametrize("name", ["low_rank", "X_star"])
def test_matrices_of_different_shape_are_refused_with_both(name):
    message = rf"X has shape \(5, 4\) and {name} has shape \(4, 5\): pass the same samples"
    with pytest.raises(ValueError, match=message):
        call_bound(**{name: np.ones((4, 5))})
    if name == "low_rank":
        with pytest.raises(ValueError, match=message):
            singular_values_before_and_after(np.ones((5, 4)), np.ones((4, 5)))


def test_graphs_of_another_size_are_refused_with_what_to_do():
    X = np.arange(20.0).reshape(5, 4)
    message = r"laplacian has shape \(5, 5\), but there are 4 features: build .* the same features"
    with pytest.raises(ValueError, match="feature_" + message):
        alignment_order(X, ring(5))
    with pytest.raises(ValueError, match="feature_" + message):
        call_bound(feature_laplacian=ring(5))
    with pytest.raises(ValueError, match=message):
        coupling_matrix(X, ring(5), "features")
    message = r"laplacian has shape \(4, 4\), but there are 5 samples: .* has shape \(5, 5\)"
    with pytest.raises(ValueError, match=message):
        coupling_matrix(X, ring(4))
    with pytest.raises(ValueError, match="sample_" + message):
        call_bound(sample_laplacian=ring(4))
    with pytest.raises(ValueError, match=r"has shape \(5, 4\), but a Laplacian must be square"):
        call_smoothness(sample_laplacian=X)


def test_matrices_that_are_no_laplacian_are_refused_with_what_to_do():
    one_way = np.eye(4)[[1, 2, 3, 0]]
    with pytest.raises(ValueError, match=r"must be symmetric, but differs .* to 1: symmetrise"):
        alignment_order(np.eye(4), np.eye(4) - one_way)
    with pytest.raises(ValueError, match="negative eigenvalues, but has -2: pass the Laplacian"):
        alignment_order(np.eye(4), one_way + one_way.T)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_refused_by_name(bad):
    broken, graph = np.eye(4), ring(4)
    broken[1, 2] = graph[1, 2] = bad
    for name, call in {
        "X": lambda: alignment_order(broken, ring(4)),
        "feature_laplacian": lambda: alignment_order(np.eye(4), sparse.csr_matrix(graph)),
        "low_rank": lambda: shape_interaction_matrix(broken),
        "laplacian": lambda: coupling_matrix(np.eye(4), graph),
        "sample_laplacian": lambda: call_smoothness(sample_laplacian=graph),
        "X_star": lambda: call_bound(X_star=broken),
    }.items():
        with pytest.raises(ValueError, match=f"Input {name} contains"):
            call()
    with pytest.raises(ValueError, match="Input low_rank contains"):
        singular_values_before_and_after(np.eye(4), broken)
