import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import (
    adjusted_rand_score,
    f1_score,
    mean_squared_error,
    normalized_mutual_info_score,
)

from robustpca import PCAAN, PCAOM
from robustpca.metrics import (
    clustering_accuracy,
    clustering_error,
    foreground_scores,
    outlier_precision_recall,
    principal_angles,
    reconstruction_error,
    recovery_error,
    subspace_distance,
    weighted_reconstruction_error,
)


def test_the_reconstruction_error_of_pca_is_the_variance_it_leaves_out(rng):
    X = rng.normal(size=(50, 8)) * np.arange(1, 9)
    left_out = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[3:]
    assert reconstruction_error(PCA(3).fit(X), X, X) == pytest.approx(np.sum(left_out**2))


def test_the_reconstruction_error_follows_its_formula(rng):
    X_clean = rng.normal(size=(40, 6))
    X_corrupt = X_clean + rng.normal(size=(40, 6))
    model = PCAOM(2).fit(X_corrupt)
    basis, mean = model.components_.T, model.mean_
    expected = np.linalg.norm(X_clean - mean - (X_corrupt - mean) @ basis @ basis.T) ** 2
    assert reconstruction_error(model, X_clean, X_corrupt) == pytest.approx(expected)


def test_reconstruct_is_preferred_to_transforming_back_and_forth():
    class Model:
        def reconstruct(self, X):
            return np.full((2, 3), 2.0)

    assert reconstruction_error(Model(), np.ones((2, 3)), np.zeros((2, 3))) == 6.0


def test_equal_weights_give_the_mean_error_of_a_sample(rng):
    X_clean, X_corrupt = rng.normal(size=(2, 40, 6))
    model = PCA(2).fit(X_corrupt)
    expected = reconstruction_error(model, X_clean, X_corrupt) / 40
    for weights in (np.ones(40), np.full(40, 0.01)):
        error = weighted_reconstruction_error(model, X_clean, X_corrupt, weights)
        assert error == pytest.approx(expected)


def test_a_single_weight_gives_the_error_of_its_sample(rng):
    X_clean, X_corrupt = rng.normal(size=(2, 40, 6))
    model = PCA(2).fit(X_corrupt)
    restored = model.inverse_transform(model.transform(X_corrupt))
    error = weighted_reconstruction_error(model, X_clean, X_corrupt, 3.0 * (np.arange(40) == 7))
    assert error == pytest.approx(np.sum((X_clean[7] - restored[7]) ** 2))


def test_weights_come_from_the_model_unless_given(rng):
    X = rng.normal(size=(40, 6))
    X[:5] *= 20
    model = PCAAN(2).fit(X)
    own = weighted_reconstruction_error(model, X, X)
    assert own == weighted_reconstruction_error(model, X, X, model.weights_)
    assert own < 0.5 * weighted_reconstruction_error(model, X, X, np.ones(40))


def test_errors_of_data_that_do_not_match_are_refused_with_the_numbers(rng):
    X = rng.normal(size=(40, 6))
    model, plain = PCAOM(2).fit(X), PCA(2).fit(X)
    with pytest.raises(ValueError, match=r"\(40, 6\) and X_corrupt has shape \(39, 6\)"):
        reconstruction_error(model, X, X[1:])
    with pytest.raises(ValueError, match="PCA has no weights_: pass weights="):
        weighted_reconstruction_error(plain, X, X)
    with pytest.raises(ValueError, match="40 weights and 39 samples"):
        weighted_reconstruction_error(model, X[1:], X[1:])
    with pytest.raises(ValueError, match=r"run from -1\.0 to 1\.0"):
        weighted_reconstruction_error(model, X, X, np.where(np.arange(40) == 0, -1.0, 1.0))


def test_the_recovery_error_is_the_mean_squared_error_of_an_entry(rng):
    X_clean, low_rank = rng.normal(size=(2, 30, 7))
    expected = np.linalg.norm(low_rank - X_clean) ** 2 / (30 * 7)
    assert recovery_error(X_clean, low_rank) == pytest.approx(expected)
    assert recovery_error(X_clean, low_rank) == pytest.approx(mean_squared_error(X_clean, low_rank))
    assert recovery_error(X_clean, X_clean) == 0.0
    # 8-bit pixels would wrap around.
    assert recovery_error(np.zeros((2, 2), np.uint8), np.full((2, 2), 3, np.uint8)) == 9.0


def test_the_recovery_error_counts_where_it_is_told_to(rng):
    X_clean, low_rank = rng.normal(size=(2, 30, 7))
    mask = rng.random((30, 7)) < 0.3
    squares = (low_rank - X_clean) ** 2
    assert recovery_error(X_clean, low_rank, mask) == pytest.approx(squares[mask].mean())
    columns = np.arange(7) < 3
    assert recovery_error(X_clean, low_rank, columns) == pytest.approx(squares[:, :3].mean())
    assert np.isnan(recovery_error(X_clean, low_rank, np.zeros((30, 7), dtype=bool)))


def test_recoveries_that_do_not_match_are_refused_with_the_numbers(rng):
    X = rng.normal(size=(30, 7))
    with pytest.raises(ValueError, match=r"\(30, 7\) and low_rank has shape \(29, 7\)"):
        recovery_error(X, X[1:])
    for where in (np.ones((30, 7)), np.ones(30, dtype=bool)):
        with pytest.raises(ValueError, match=r"where has shape .* for each of the 7 features"):
            recovery_error(X, X, where)


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-4, 0.5, 1.5, np.pi / 2 - 1e-9])
def test_planted_angles_are_found_small_and_large(angle, rng):
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    first = np.eye(7)[:2]
    second = np.eye(7)[:2].copy()
    second[1, 1], second[1, 2] = np.cos(angle), np.sin(angle)
    mixed = rng.normal(size=(2, 2)) @ second @ rotation
    angles = principal_angles(first @ rotation, mixed)
    # Rotating and mixing rounds the vectors themselves, by about 1e-15 each.
    np.testing.assert_allclose(angles, [0, angle], rtol=1e-9, atol=1e-14)


def test_the_largest_angle_and_the_subspace_distance_agree_with_projections(rng):
    first, second = rng.normal(size=(3, 9)), rng.normal(size=(3, 9))
    angles = principal_angles(first, second)
    assert (np.diff(angles) >= 0).all()
    A, B = (np.linalg.qr(vectors.T)[0] for vectors in (first, second))
    expected = np.linalg.norm(A - B @ (B.T @ A), 2)
    assert np.sin(angles[-1]) == pytest.approx(expected)
    assert subspace_distance(first, second) == pytest.approx(expected)
    np.testing.assert_allclose(angles, principal_angles(second, first), atol=1e-12)


def test_a_space_has_no_angle_to_a_larger_one_that_holds_it(rng):
    basis = rng.normal(size=(4, 9))
    angles = principal_angles(basis, rng.normal(size=(2, 4)) @ basis)
    assert angles.shape == (2,)
    assert angles.max() < 1e-13


def test_angles_of_impossible_pairs_are_refused_with_the_numbers():
    with pytest.raises(ValueError, match="first have 3 features and those of second 4"):
        principal_angles(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="All 2 vectors of second are 0"):
        principal_angles(np.eye(3), np.zeros((2, 3)))


def test_renamed_clusters_are_all_right(rng):
    classes = rng.integers(4, size=100)
    assert clustering_accuracy(classes, np.array(["d", "a", "c", "b"])[classes]) == 1.0


def test_the_best_matching_is_not_the_greedy_one():
    # Greedy takes the 5 samples of class 0 in cluster 0 and is left with 0 more; the best
    # matching gives up those 5 for 4 + 4.
    counts = np.array([[5, 4], [4, 0]])
    pairs = [(i, j) for i in range(2) for j in range(2) for _ in range(counts[i, j])]
    y_true, y_pred = np.array(pairs).T
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(8 / 13)


def test_clusters_left_over_count_as_wrong():
    assert clustering_accuracy([0, 0, 0, 0], [0, 0, 1, 2]) == 0.5
    assert clustering_accuracy([0, 0, 1, 2], [0, 0, 0, 0]) == 0.5


def test_the_clustering_error_is_what_the_accuracy_leaves(rng):
    y_true, y_pred = rng.integers(5, size=(2, 60))
    assert clustering_error(y_true, y_true) == 0.0
    assert clustering_error([0, 0, 1, 2], [0, 0, 0, 0]) == 0.5
    assert clustering_error(y_true, y_pred) == 1 - clustering_accuracy(y_true, y_pred)


def test_scikit_learn_measures_clusterings_as_the_papers_define_it(rng):
    y_true, y_pred = rng.integers(4, size=(2, 50))
    same_class = y_true[:, None] == y_true
    same_cluster = y_pred[:, None] == y_pred
    pairs = np.triu_indices(50, 1)
    together, clustered = same_class[pairs], same_cluster[pairs]
    tp, tn = np.sum(together & clustered), np.sum(~together & ~clustered)
    fn, fp = np.sum(together & ~clustered), np.sum(~together & clustered)
    # A published form has (FP + FN) as its last factor, and gives 2 for a perfect clustering.
    expected = 2 * (tp * tn - fn * fp) / ((tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))
    assert adjusted_rand_score(y_true, y_pred) == pytest.approx(expected)
    joint = np.histogram2d(y_true, y_pred, bins=4)[0] / 50
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    positive = joint > 0
    mutual = np.sum(joint[positive] * np.log((joint / np.outer(p, q))[positive]))
    entropies = np.sum(p * np.log(p)) * np.sum(q * np.log(q))
    measured = normalized_mutual_info_score(y_true, y_pred, average_method="geometric")
    assert measured == pytest.approx(mutual / np.sqrt(entropies))
    ones = np.ones(50)
    assert adjusted_rand_score(ones, ones) == 1
    assert normalized_mutual_info_score(ones, ones, average_method="geometric") == 1
    assert normalized_mutual_info_score(y_true, ones, average_method="geometric") == 0


def test_labels_of_different_length_are_refused_with_the_numbers():
    with pytest.raises(ValueError, match="y_true has 3 labels and y_pred has 2"):
        clustering_accuracy([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="y_true has 0 labels"):
        clustering_accuracy([], [])


def test_precision_and_recall_are_the_shares_their_names_say():
    is_outlier = np.array([True] * 4 + [False] * 6)
    flags = np.array([-1, -1, -1, 1, -1, -1, 1, 1, 1, 1])
    assert outlier_precision_recall(is_outlier, flags) == (3 / 5, 3 / 4)


def test_precision_and_recall_are_nan_where_there_is_nothing_to_divide_by():
    precision, recall = outlier_precision_recall([True, False], [1, 1])
    assert np.isnan(precision)
    assert recall == 0.0
    precision, recall = outlier_precision_recall([False, False], [-1, 1])
    assert precision == 0.0
    assert np.isnan(recall)


def test_flags_that_are_not_flags_are_refused():
    with pytest.raises(ValueError, match=r"flags -1 and 1, but they hold .* and \[0, 1\]"):
        outlier_precision_recall([True, False], [0, 1])
    with pytest.raises(ValueError, match="is_outlier must hold booleans"):
        outlier_precision_recall([-1, 1], [True, False])
    with pytest.raises(ValueError, match="2 entries and flags has 3"):
        outlier_precision_recall([True, False], [1, 1, -1])


def test_the_foreground_is_scored_by_the_rules_of_the_masks(rng):
    masks = rng.choice([0, 50, 85, 170, 255], size=(20, 30))
    foreground = rng.random((20, 30)) < 0.4
    precision, recall, f_measure = foreground_scores(masks, foreground)
    scored = (masks == 0) | (masks == 50) | (masks == 255)
    expected = f1_score(masks[scored] == 255, foreground[scored])
    assert f_measure == pytest.approx(expected)
    assert f_measure == pytest.approx(2 * precision * recall / (precision + recall))
    assert precision == np.mean(masks[scored & foreground] == 255)
    assert recall == np.mean(foreground[masks == 255])


def test_unknown_pixels_do_not_count_and_shadows_are_background():
    masks = np.array([[0, 50, 85, 170, 255]])
    assert foreground_scores(masks, masks >= 85) == (1.0, 1.0, 1.0)
    assert foreground_scores(masks, masks == 255) == (1.0, 1.0, 1.0)
    assert foreground_scores(masks, masks >= 50) == (0.5, 1.0, pytest.approx(2 / 3))


def test_foreground_scores_are_nan_where_there_is_nothing_to_divide_by():
    still, moving = np.zeros((2, 3), dtype=int), np.full((2, 3), 255)
    none, all_of_it = np.zeros((2, 3), dtype=bool), np.ones((2, 3), dtype=bool)
    assert np.isnan(foreground_scores(still, none)).all()
    assert foreground_scores(still, all_of_it)[0] == 0.0
    assert np.isnan(foreground_scores(still, all_of_it).recall)
    scores = foreground_scores(moving, none)
    assert np.isnan(scores.precision)
    assert (scores.recall, scores.f_measure) == (0.0, 0.0)


def test_what_is_no_mask_or_no_foreground_is_refused():
    masks = np.zeros((2, 3), dtype=int)
    with pytest.raises(ValueError, match=r"\(2, 3\), and foreground has shape \(3, 2\)"):
        foreground_scores(masks, np.zeros((3, 2), dtype=bool))
    with pytest.raises(ValueError, match="type float64: pass one boolean per pixel"):
        foreground_scores(masks, np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"must hold 0, 50, 85, 170 and 255.* \[0, 1\]"):
        foreground_scores([[0, 1]], [[True, False]])
