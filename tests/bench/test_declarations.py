from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from makeshift import Cloud, small_table
from sklearn.decomposition import PCA

from robustpca import EPCA, PCAOM
from robustpca.bench import best_of, by_level
from robustpca.bench.declarations import asked_for, variants
from robustpca.bench.runner import Outcome, _prepare
from robustpca.datasets import occlude_blocks, reset_entries
from robustpca.papers.pcaan.scores import mean_error, unit_pixels


def test_cells_are_the_product_of_all_parts():
    table = small_table(
        {"PCA": PCA(), "PCA-OM": PCAOM()},
        datasets={"a": Cloud(), "b": Cloud(seed=1)},
        corruption={"none": None, "some": reset_entries},
        vary={"n_components": [1, 2, 3]},
        seeds=4,
    )
    cells = table.cells()
    assert len(cells) == 2 * 2 * 2 * 3 * 4
    identities = {table.name + str(cell.identity()) for cell in cells}
    assert len(identities) == len(cells)
    assert {(cell.method, cell.variant.estimator.n_components) for cell in cells} == {
        (name, c) for name in ("PCA", "PCA-OM") for c in (1, 2, 3)
    }


def test_cells_on_the_same_corrupted_data_are_neighbours():
    table = small_table(
        {"PCA": PCA(), "PCA-OM": PCAOM()}, datasets={"a": Cloud(), "b": Cloud(seed=1)}, seeds=3
    )
    blocks = [(cell.dataset, cell.corruption, cell.seed) for cell in table.cells()]
    changes = sum(first != second for first, second in pairwise(blocks))
    assert changes == len(set(blocks)) - 1


def test_nothing_is_loaded_to_list_the_cells():
    def forbidden():
        raise AssertionError

    assert len(small_table(datasets={"a": forbidden}).cells()) == 4


def test_levels_choose_grids_seeds_data_sizes_and_limits():
    table = small_table(
        {"EPCA": best_of(EPCA(), sigma=by_level(quick=[1.0], default=[1.0, 2.0], full=[1, 2, 3]))},
        datasets={"a": by_level(quick=Cloud(10), default=Cloud(20), full=Cloud(30))},
        vary={"n_components": by_level(quick=[1], default=[1, 2], full=[1, 2, 3])},
        seeds=by_level(quick=1, default=2, full=3),
        time_limit=by_level(quick=1, default=2, full=3),
    )
    expected = {"quick": (2, 10), "default": (3 * 2 * 2, 20), "full": (4 * 3 * 3, 30)}
    for level, (n_cells, n_samples) in expected.items():
        cells = table.cells(level)
        assert len(cells) == n_cells
        assert {cell.source.n_samples for cell in cells} == {n_samples}
    assert table.limit("full") == 3.0
    with pytest.raises(ValueError, match="level='huge' is not known"):
        table.cells("huge")


def test_cells_of_a_lower_level_are_among_those_of_a_higher_one():
    table = small_table(seeds=by_level(quick=1, default=3, full=5))
    quick, full = (
        {str(cell.identity()) for cell in table.cells(level)} for level in ("quick", "full")
    )
    assert quick < full


def test_best_of_holds_the_default_and_every_candidate():
    given = EPCA(sigma="auto")
    method = best_of(given, "the labels", sigma=[1.0, 2.0], max_weight=[None, 0.5])
    found = variants(method, {"n_components": 3}, "quick")
    assert [variant.role for variant in found] == ["default"] + 4 * ["candidate"]
    assert {variant.chosen_by for variant in found} == {"the labels"}
    assert found[0].estimator.get_params() == given.set_params(n_components=3).get_params()
    assert found[-1].tuned == {"sigma": 2.0, "max_weight": 0.5}
    assert found[-1].estimator.sigma == 2.0
    assert found[-1].estimator.n_components == 3


def test_best_of_says_what_it_needs():
    with pytest.raises(ValueError, match="at least one parameter"):
        best_of(EPCA())
    with pytest.raises(ValueError, match="chosen_by='luck' is not known"):
        best_of(EPCA(), "luck", sigma=[1.0])


def test_a_method_may_be_a_function_of_what_is_varied():
    table = small_table({"PCA": lambda side: PCA(side**2)}, vary={"side": [1, 2]}, seeds=1)
    assert [cell.variant.estimator.n_components for cell in table.cells()] == [1, 4]
    with pytest.raises(TypeError, match="is not a method"):
        small_table({"PCA": 3}).cells()


def test_declared_estimators_are_not_changed():
    given = PCA()
    small_table({"PCA": given}).cells()
    assert given.n_components is None


def keys(table):
    return tuple(job.row["key"] for job in _prepare([table], "default", Outcome()))


def test_keys_change_with_any_part_that_can_change_a_result():
    table = small_table()
    assert keys(table) == keys(small_table())
    assert keys(table) == keys(small_table(notes=["a remark"], published=None))
    assert keys(table) == keys(small_table(datasets={"cloud": partial(Cloud())}))
    changes = {
        "datasets": {"cloud": Cloud(seed=1)},
        "methods": {"PCA": PCA(whiten=True)},
        "corruption": None,
        "vary": {"n_components": [1, 3]},
        "seeds": 3,
        "prepare": unit_pixels,
        "score": mean_error,
    }
    found = {keys(replace(table, **{name: value})) for name, value in changes.items()}
    assert len(found | {keys(table)}) == len(changes) + 1


def test_a_figure_is_a_table_with_an_axis():
    assert small_table(x="n_components").x == "n_components"
    assert small_table(x="corruption").x == "corruption"
    with pytest.raises(ValueError, match="x='sigma' is not varied"):
        small_table(x="sigma")


def test_wrong_names_and_directions_are_refused():
    with pytest.raises(ValueError, match="must do as the name of a file"):
        small_table(name="Table 1")
    with pytest.raises(ValueError, match="better='more' is not known"):
        small_table(better="more")


def test_functions_get_what_they_ask_for_and_nothing_else():
    offers = {"image_shape": (2, 3), "random_state": 0, "y": None}
    assert asked_for(reset_entries, **offers) == {"random_state": 0}
    assert set(asked_for(occlude_blocks, **offers)) == {"image_shape", "random_state"}
    given = partial(occlude_blocks, image_shape=(3, 2))
    assert asked_for(given, **offers) == {"random_state": 0}


def test_published_values_of_your_own_are_read_from_any_folder(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("dataset,method,n_components,value\ncloud,PCA,2,1.5e3\n")
    assert small_table(published=str(path)).targets() == {("cloud", "", "PCA", "2"): 1500.0}


def test_values_may_be_published_for_each_score(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("score,dataset,method,n_components,value\na,c,PCA,2,1\nb,c,PCA,2,3\n")
    table = small_table(published=str(path), score={"a": len, "b": max})
    assert table.targets() == table.targets("a") == {("c", "", "PCA", "2"): 1.0}
    assert table.targets("b") == {("c", "", "PCA", "2"): 3.0}
    assert small_table().targets() == {}


def test_another_number_of_seeds_keeps_the_cells_and_what_is_not_drawn():
    table = small_table(seeds=by_level(quick=1, default=2, full=3))
    assert [cell.identity() for cell in table.repeated(2).cells("quick")] == [
        cell.identity() for cell in table.cells("default")
    ]
    fixed = small_table(seeds=1, deterministic=True)
    assert fixed.repeated(5) is fixed


def test_a_piece_has_some_cells_of_the_whole_with_their_identity():
    clouds = {"cloud": Cloud(), "other": Cloud(seed=1)}
    table = small_table(
        {"PCA": PCA(), "EPCA": EPCA()}, datasets=clouds, corruption={"raw": None, "bad": None}
    )
    piece = table.piece(datasets=["other"], methods=["EPCA"], corruptions=["bad"])
    assert [cell.identity() for cell in piece.cells()] == [
        cell.identity()
        for cell in table.cells()
        if (cell.dataset, cell.method, cell.corruption) == ("other", "EPCA", "bad")
    ]
    assert len(piece.cells()) == 4
    assert list(piece.sources()) == ["other"]
    with pytest.raises(ValueError, match="small has no method 'LDA' at the default level: choose"):
        table.piece(methods=["LDA"])
    with pytest.raises(ValueError, match=r"small has no corruption 'x'.* none: leave the option"):
        small_table().piece(corruptions=["x"])
