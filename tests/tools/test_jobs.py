"""Jobs on tables with planted truth."""

import json
from dataclasses import replace

import numpy as np
import pytest

import robustpca
from robustpca import check, clean_entries, find_rows
from robustpca.parts.units import Units
from robustpca.tools.checks import tune
from robustpca.tools.jobs import as_table
from robustpca.tools.reasons import Columns, Reason, reasons
from robustpca.tools.tails import long_tails


def table(seed=0, n=300, d=12, noise=0.1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + noise * rng.normal(size=(n, d)), rng


@pytest.mark.parametrize("seed", range(3))
def test_one_cell_typed_as_999_is_found_and_restored(seed):
    X, _ = table(seed)
    truth, X[17, 4] = X[17, 4], 999.0
    found = clean_entries(X)
    cells = [(cell.row, cell.column, cell.given, cell.kind) for cell in found.cells]
    assert cells[0] == ("17", "x4", 999.0, "wrong")
    assert len(cells) == 1
    assert abs(found.X[17, 4] - truth) < 0.6
    assert found.cells[0].sigmas > 1000
    untouched = ~found.wrong
    np.testing.assert_array_equal(found.X[untouched], X[untouched])
    assert "of 3600 cells" in found.verdict
    assert "999" in str(found)


def test_missing_cells_are_filled_and_others_stay_to_the_last_bit():
    X, rng = table(1)
    X *= np.logspace(0, 4, 12)  # units that differ
    truth, hidden = X.copy(), rng.random(X.shape) < 0.05
    X[hidden] = np.nan
    found = clean_entries(X)
    kept = ~(hidden | found.wrong)
    assert np.array_equal(found.X[kept].view(np.int64), X[kept].view(np.int64))
    errors = np.abs(found.X - truth)[hidden] / np.tile(np.logspace(0, 4, 12), (300, 1))[hidden]
    assert np.median(errors) < 0.2
    missing = [cell for cell in found.cells if cell.kind == "missing"]
    assert len(missing) == hidden.sum()
    assert f"{hidden.sum()} are missing" in found.verdict
    assert all(np.isnan(cell.given) and np.isnan(cell.sigmas) for cell in missing)


def test_wrong_cells_can_be_removed_instead():
    X, _ = table(2)
    X[5, 3] = np.nan
    X[6, 2] = -500.0
    found = clean_entries(X, remove=True)
    assert np.isnan(found.X[6, 2])
    assert np.isnan(found.X[5, 3])
    assert np.isnan(found.X).sum() == found.wrong.sum() + 1


def test_rows_that_are_wrong_as_a_whole_are_left_as_given():
    X, rng = table(3)
    X[:6] = 10 * rng.normal(size=(6, 12))
    found = clean_entries(X)
    assert set(found.whole_rows) <= set(range(6))
    assert len(found.whole_rows) >= 4
    np.testing.assert_array_equal(found.X[found.whole_rows], X[found.whole_rows])
    assert "wrong in many cells and left as given" in found.verdict


@pytest.mark.parametrize("seed", [1, 4])
def test_cells_that_are_a_little_off_make_no_wrong_row(seed):
    rng, hours = np.random.default_rng(seed), np.arange(240)
    day = 2 * np.pi * hours / 24
    drift = np.column_stack([np.sin(day), np.cos(day), hours / 100]) @ rng.normal(size=(3, 6))
    found = clean_entries(3 * drift + 20 + 0.1 * rng.normal(size=(240, 6)))
    assert len(found.whole_rows) <= 0.05 * 240
    assert found.wrong.any() or found.verdict == "No cell of 1440 is wrong or missing."


def test_columns_without_anything_in_common_are_answered_without_advice_on_parameters():
    X = np.random.default_rng(0).normal(size=(150, 6))
    X[7, 2] = 40.0
    found = clean_entries(X)  # warnings are errors here
    assert [(cell.row, cell.column) for cell in found.cells] == [("7", "x2")]


@pytest.mark.parametrize("noise", ["gaussian", "student"])
def test_few_cells_of_clean_tables_are_called_wrong(noise):
    counts = []
    for seed in range(4):
        X, rng = table(seed, noise=0.0)
        draw = rng.normal if noise == "gaussian" else lambda size, rng=rng: rng.standard_t(5, size)
        counts.append(int(clean_entries(X + 0.1 * draw(size=X.shape)).wrong.sum()))
    assert max(counts) <= (1 if noise == "gaussian" else 8), counts


@pytest.mark.parametrize("seed", range(3))
def test_a_group_of_bad_rows_is_found_and_its_turn_is_told(seed):
    X, rng = table(seed, n=400)
    bad = rng.choice(400, 20, replace=False)
    X[bad] = 8 * rng.normal(size=12) + 0.1 * rng.normal(size=(20, 12))
    found = find_rows(X)
    assert set(np.flatnonzero(found.far)) == set(bad)
    assert found.flags[bad].all()
    assert found.verdict.startswith("20 of 400 rows do not fit the rest; without them the first")
    assert found.turn > 10 * found.turn_by_chance
    assert found.weight[bad].max() == 0
    assert found.weight.mean() == pytest.approx(1)
    assert set(found.reasons) == set(np.flatnonzero(found.flags))
    assert found.outlyingness[found.order[0]] == found.outlyingness.max()


@pytest.mark.parametrize("seed", range(3))
def test_clean_rows_fit_together_and_nothing_turns(seed):
    X, _ = table(seed)
    found = find_rows(X)
    assert found.verdict.startswith("All 300 rows fit together.")
    assert found.flags.mean() < 0.06
    assert np.isnan(found.turn)


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_differ_along_a_direction_of_little_variance_hide_no_bad_row(seed):
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(30, 3)) * [3.0, 3.0, 0.8]
    X = codes @ rng.normal(size=(3, 200)) + 0.1 * rng.normal(size=(30, 200))
    X[[4, 11, 25]] += rng.normal(size=(3, 200))
    found = find_rows(X)
    assert found.flags[[4, 11, 25]].all()
    assert found.flags.sum() <= 5
    assert found.model.n_components_ == 3
    assert find_rows(X, n_components=0.9).model.n_components_ == 2


@pytest.mark.parametrize("contamination", ["auto", 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_bad_rows_are_found_among_wrong_cells_in_every_third_row(seed, contamination):
    X, rng = table(seed, n=200, d=40)
    wrong = rng.random(X.shape) < 0.01
    wrong[:10] = False
    X[wrong] += 10.0 * rng.choice([-1, 1], wrong.sum())
    X[:10] += 5 * rng.normal(size=(10, 40))
    found = find_rows(X, contamination=contamination)
    spoiled = wrong.any(axis=1)
    spoiled[:10] = True
    assert found.far[spoiled].all()
    assert not found.far[~spoiled].any()
    assert found.n_restored == wrong.sum()
    text = f"The fit is without {wrong.sum()} wrong cells, which are in too many rows to leave out."
    assert text in found.remarks


def test_the_features_that_make_a_row_stand_out_are_named_with_their_sign():
    X, _ = table(4, n=500)
    X[10, 2] += 3.0
    X[20, 7] -= 4.0
    X[20, 1] += 2.0
    found = find_rows(X)
    assert [(one.column, one.sigmas > 0) for one in found.reasons[10][:1]] == [("x2", True)]
    named = {one.column: one.sigmas for one in found.reasons[20]}
    assert named["x7"] < -10
    assert named["x1"] > 5
    assert "x7 -" in found.columns()["reasons"][20]


@pytest.mark.parametrize("seed", range(4))
def test_what_was_expected_of_a_wrong_cell_does_not_follow_other_wrong_ones(seed):
    X, rng = table(seed)
    good = X.copy()
    for i in range(10):
        wrong = rng.choice(12, 3, replace=False)
        X[i, wrong] += rng.choice([-1, 1], 3) * rng.uniform(5, 15, 3)
    found = find_rows(X)
    cells = [(i, int(one.column[1:]), one.expected) for i in range(10) for one in found.reasons[i]]
    errors = [abs(expected - good[i, j]) for i, j, expected in cells if X[i, j] != good[i, j]]
    assert len(errors) >= 25
    assert np.quantile(errors, 0.8) < 0.3


def test_rows_with_single_wrong_cells_are_told_from_rows_that_are_wrong_altogether():
    X, rng = table(4, n=500)
    X[10, 2] += 5.0
    X[20, [7, 1]] -= 6.0
    X[30] = 8 * rng.normal(size=12)
    found = find_rows(X)
    assert set(np.flatnonzero(found.far)) == {10, 20, 30}
    assert found.n_single == found.to_dict()["n_single"] == 2
    said = "2 rows have one or two wrong cells: `robustpca entries` restores these."
    assert found.remarks == [said]
    assert find_rows(X[:, :5]).n_single == 0  # two of five are no single ones


def test_reasons_of_a_row_far_out_along_the_subspace_are_its_own_values():
    X, _ = table(5, n=400, d=6)
    axis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    X[3] = X.mean(axis=0) + 60 * axis
    found = find_rows(X)
    assert found.far[3]
    assert found.score_distance[3] > found.score_cutoff
    first = found.reasons[3][0]
    assert abs(first.sigmas) > 5
    place = int(first.column.removeprefix("x"))
    assert first.given == pytest.approx(X[3, place])
    assert first.expected == pytest.approx(np.median(X[~found.flags, place]))
    assert np.sign(first.sigmas) == np.sign(axis[place])


def test_wrong_entries_are_picked_one_after_the_other_without_smear():
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(8, 2))
    columns = Columns(np.zeros(8), loadings, np.full(8, 0.01))
    row = loadings @ rng.normal(size=2)
    row[[1, 6]] += [5.0, -3.0]
    at, sigmas, _ = columns.given_others(row[None], 3)
    assert set(at[0, :2]) == {1, 6}
    assert abs(sigmas[0, 2]) < 1
    units, names = Units(np.full(8, 50.0), np.full(8, 2.0)), list("abcdefgh")
    told = reasons(columns, row[None], np.array([False]), names, units)
    assert [names.index(one.column) for one in told[0]] == at[0, :2].tolist()
    # Once both are left out, the others tell what belongs there, in the units of the user, and
    # how sure that is: by the conditional distribution of a Gaussian.
    left, scatter = np.delete(np.arange(8), [1, 6]), loadings @ loadings.T + 0.01 * np.eye(8)
    for one in told[0]:
        j = names.index(one.column)
        shares = np.linalg.solve(scatter[np.ix_(left, left)], scatter[left, j])
        belongs, spread = shares @ row[left], np.sqrt(scatter[j, j] - shares @ scatter[left, j])
        assert one.sigmas == pytest.approx((row[j] - belongs) / spread)
        assert one.given == pytest.approx(50 + 2 * row[j])
        assert one.expected == pytest.approx(50 + 2 * belongs)
    assert reasons(columns, row[None][:0], np.zeros(0, bool), names, units) == []


@pytest.mark.parametrize("seed", range(40))
def test_entries_that_follow_from_each_other_have_reasons_that_are_numbers(seed):
    # Columns in any units, of some of which nothing is left once the others are known.
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(5, 4)) * 10.0 ** rng.uniform(-4, 2, (5, 1))
    columns = Columns(np.zeros(5), loadings, 10.0 ** rng.uniform(-15, -4, 5))
    rows = rng.normal(size=(3, 5)) * 10.0 ** rng.uniform(-3, 3, (3, 1))
    _, sigmas, off = columns.given_others(rows, 3)
    assert np.isfinite(sigmas).all()
    assert np.isfinite(off).all()


def test_rows_that_hardly_vary_far_from_zero_have_a_first_direction():
    found = find_rows(np.eye(90, 2) + 1e8)
    assert found.far.any()
    assert np.isfinite(found.turn)


def test_units_are_allowed_for_by_default():
    X, _ = table(6)
    X = X * np.logspace(0, 5, 12) + 1e4
    X[9, 0] += 4.0  # many deviations of a small column, nothing beside the large ones
    found = find_rows(X)
    assert found.scaled
    assert found.far[9]
    assert found.reasons[9][0].column == "x0"
    assert not find_rows(X, scale=None).flags[9]
    with pytest.raises(ValueError, match="scale='std' is not known"):
        find_rows(X, scale="std")


def test_missing_cells_are_filled_before_rows_are_judged_and_that_is_said():
    X, rng = table(7)
    X[30] += 10 * rng.normal(size=12)
    X[rng.random(X.shape) < 0.05] = np.nan
    found = find_rows(X)
    assert found.far[30]
    assert found.n_filled == np.isnan(X).sum()
    assert "filled by the low-rank part of RPCA first" in str(found)


def test_any_method_can_be_used_and_wrong_names_are_told():
    X, rng = table(8, n=120, d=8)
    X[3] += 8 * rng.normal(size=8)
    for name in ("EPCA", "RPCA", "L1PCA", "AngularEmbedding"):
        found = find_rows(X, method=name)
        assert type(found.model).__name__ == name
        assert found.order[0] == 3
    assert find_rows(X, n_components=2, contamination=0.05).flags.sum() == 6
    with pytest.raises(ValueError, match="No method is called 'PCANN': choose from"):
        find_rows(X, method="PCANN")
    with pytest.raises(ValueError, match="GLRAM is for images, and data holds none"):
        find_rows(X, method="GLRAM")


def test_check_tells_all_that_is_wrong():
    X, rng = table(9)
    X[17, 4], X[20:25, 1] = 999.0, np.nan
    X[40] += 10 * rng.normal(size=12)
    X = np.column_stack([X, np.full(300, 7.0), X[:, 0]])
    X[100] = X[99]
    found = check(X)
    assert found.verdict == "Found 5 missing cells, 1 wrong cell and 1 bad row."
    assert found.constant == ["x12"]
    assert found.twins == {"x13": "x0"}
    assert found.repeated == {"100": "99"}
    assert found.lines["bad rows"] == "1 of 300: 40"
    assert "row 17, x4: 999 instead of" in found.lines["wrong cells"]
    assert found.missing_shares == {"x1": 5 / 300}
    text = str(found)
    assert "robustpca entries data -o cleaned" in text
    assert "robustpca rows data -o marked" in text
    assert "RPCA()" in found.code
    json.dumps(found.to_dict(), allow_nan=False)


def test_check_finds_nothing_in_a_clean_table():
    X, _ = table(10)
    found = check(X)
    assert found.verdict == "Nothing is wrong that PCA would mind."
    assert "PCA(n_components=3)" in found.code
    assert set(found.lines.values()) == {"none", "much the same in all columns"}


@pytest.mark.parametrize("seed", [2, 3])
def test_rows_are_not_bad_by_cells_that_check_restored(seed):
    rng = np.random.default_rng(seed)
    shares = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 5)) + 0.2 * rng.normal(size=(150, 5))
    shares = np.exp(0.4 * shares)
    X = np.round(100 * shares / shares.sum(axis=1, keepdims=True), 1)  # percentages of a whole
    found = check(X)
    assert found.entries.wrong.any()
    assert found.rows.far.sum() <= find_rows(X).far.sum() + 1


@pytest.mark.parametrize("seed", range(4))
def test_check_tells_a_bad_row_among_few(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 120)) + 0.2 * rng.normal(size=(30, 120)) + 5
    X[4] = 8 * rng.normal(size=120)
    found = check(X)
    assert found.bad.nonzero()[0].tolist()[:1] == [4]
    assert "bad row" in found.verdict
    assert found.lines["bad rows"].split(": ")[1].startswith("4")
    assert "robustpca rows data -o marked" in found.commands


def test_check_looks_at_a_sample_of_a_long_table(monkeypatch):
    monkeypatch.setattr("robustpca.tools.checks.CHECKED_ROWS", 200)
    found = check(table(11, n=400)[0])
    assert found.n_rows == 200
    assert "in a sample of 200 of the 400 rows" in str(found)


def test_the_code_of_check_runs(tmp_path):
    pytest.importorskip("pandas")
    X, rng = table(12)
    X[:30] = 10 * rng.normal(size=(30, 12))
    X *= np.logspace(0, 4, 12)
    np.save(tmp_path / "mine.npy", X)
    found = check(tmp_path / "mine.npy")
    place = {}
    exec(found.code, place)
    assert place["model"].transform(X).shape[0] == 300
    assert "make_pipeline(RobustScaler(), PCAAN(" in found.code


def test_tune_tells_a_method_and_the_number_of_components():
    X, rng = table(13)
    assert tune(X).n_components == 3
    X[rng.random(X.shape) < 0.03] += 20
    found = tune(X)
    assert found.n_components == 3
    assert found.verdict == "Use RPCA(); the data have 3 components."
    assert "bad entries" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_reason_for_a_method_of_cells_does_not_forget_bad_rows():
    X, rng = table(0)
    X[:15] += 8 * rng.normal(size=(15, 12))
    X[20, 3] += 50
    found = tune(X)
    assert {"bad rows", "bad entries"} <= set(found.suggestion.troubles)
    assert str(found.suggestion.reason).endswith("see find_rows(clean_entries(X).X).")


def test_data_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X, _ = table(14)
    X[3, 1] = 400.0
    frame = pandas.DataFrame(X, columns=list("abcdefghijkl"), index=[f"s{i}" for i in range(300)])
    worst = clean_entries(frame).cells[0]
    assert (worst.row, worst.column) == ("s3", "b")
    assert find_rows(frame).to_dict()["rows"][0]["row"] == "s3"


def test_a_data_frame_may_hold_texts_and_names_of_rows():
    pandas = pytest.importorskip("pandas")
    X, _ = table(3)
    X[40] += 30 * np.array([1.0, -1.0] * 6)
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    frame.insert(0, "who", [f"r{i}" for i in range(300)])
    frame["place"] = "north"
    found = find_rows(frame)
    assert found.table.left_out == {"who": "row names", "place": "text"}
    assert found.table.labels[found.order[0]] == "r40"
    assert find_rows(frame.set_index("who")).table.labels[40] == "r40"
    np.testing.assert_array_equal(found.flags, find_rows(X).flags)


def test_numbers_of_sigmas_end_somewhere_and_values_stand_beside_them():
    assert str(Reason("m3", -48332.1, -999.0, 1.25)) == "m3 <-1000 (-999, expected 1.25)"
    assert str(Reason("m3", 12.34, 8.0, 2.0)) == "m3 +12.3 (8, expected 2)"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((5, 4)), "data has 5 rows and 4 numeric columns: at least 10 rows and 2 columns"),
        (np.ones(20), r"A table has rows and columns, but the data have shape \(20,\)"),
        (np.where(np.eye(20) > 0, np.inf, 1.0), "Row 0 of data has an infinite number"),
    ],
)
def test_tables_that_do_not_do_are_described(X, message):
    with pytest.raises(ValueError, match=message):
        check(X)


def test_results_are_json_without_nan():
    X, _ = table(15)
    X[3, 1] = np.nan
    for result in (find_rows(X), clean_entries(X)):
        json.dumps(result.to_dict(), allow_nan=False)


def test_exact_data_without_noise_are_no_trouble():
    X, _ = table(16, noise=0.0)
    X[3, 1] += 5
    found = clean_entries(X)
    assert [(cell.row, cell.column) for cell in found.cells] == [("3", "x1")]
    assert find_rows(X).order[0] == 3


def test_the_jobs_are_public():
    assert {"check", "find_rows", "clean_entries", "tune"} <= set(robustpca.__all__)


def planted(seed, *, shape=(300, 6), rank=2):
    rng = np.random.default_rng(seed)
    noise = 0.1 * rng.normal(size=shape)
    return rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) + noise


@pytest.mark.parametrize("seed", range(6))
def test_a_wrong_cell_is_found_in_a_column_that_others_hardly_tell(seed):
    # With seed 0 the other columns tell 15 % of what that of the cell varies by.
    X = planted(seed)
    X[5, 2] += 3.4
    assert clean_entries(X).wrong[5, 2]


def test_counts_with_zeros_may_have_long_tails():
    rng = np.random.default_rng(2)
    rates = np.exp(2 + 0.3 * rng.normal(size=(200, 2)) @ rng.normal(size=(2, 7)))
    found = clean_entries(rng.poisson(rates))
    assert found.wrong.any()
    told = "right numbers may look wrong: take their logarithms first, of 1 + x where"
    assert told in found.remarks[0]
    assert clean_entries(np.log1p(found.table.X)).wrong.sum() < found.wrong.sum() / 3


def test_columns_with_one_number_in_most_rows_are_named_where_others_are_called_wrong():
    rng = np.random.default_rng(0)
    X = np.column_stack([planted(0), rng.poisson(0.15, 300), planted(1)[:, 0]])
    X[4, 7] = 99
    found = clean_entries(X)
    assert found.wrong[:, 6].mean() > 0.05
    assert found.remarks[0].startswith("x6 has one number in most rows")
    assert found.remarks[0] in str(found)
    assert not clean_entries(X[:, [0, 1, 2, 3, 4, 5, 7]]).remarks


def test_columns_with_long_tails_are_named_where_something_is_flagged():
    X = planted(0)
    tailed = np.exp(X)
    tailed[5, 2] *= 30
    names = long_tails(as_table(tailed))
    assert names == ["x0", "x1", "x2", "x3", "x4", "x5"]
    for found in (find_rows(tailed), clean_entries(tailed)):
        assert "x0, x1, x2, x3, x4, 1 more have a long upper tail" in str(found)
        assert found.remarks[-1] in found.to_dict()["remarks"]
    assert not long_tails(as_table(X))
    assert "tail" not in str(clean_entries(X))


@pytest.mark.parametrize("draw", ["uniform", "normal", "logistic"])
def test_symmetric_and_short_columns_have_no_long_tail(draw):
    X = getattr(np.random.default_rng(0), draw)(size=(100, 5)) + 20
    assert not long_tails(as_table(X))
    assert not long_tails(as_table(np.exp(X[:20])))


def test_more_rows_near_the_cutoff_than_good_ones_have_are_said_to_be_more():
    found = find_rows(planted(0))
    few, many = found.flags.copy(), found.flags.copy()
    few[:], many[:] = False, False
    few[:1], many[:40] = True, True
    far = np.zeros_like(few)
    assert (
        "1 row is just beyond the cutoff, as 1 to 5 %" in replace(found, flags=few, far=far).verdict
    )
    text = replace(found, flags=many, far=far).verdict
    assert (
        "40 rows are just beyond the cutoff, more than the 1 to 5 % of good rows that are" in text
    )
    far = few.copy()
    few[1] = True
    assert ". Another row is just beyond" in replace(found, flags=few, far=far).verdict
