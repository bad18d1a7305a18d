"""Any method by name on a table."""

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from robustpca import GLRAM, PCAAN, RPCA, AngularEmbedding, load, save
from robustpca.metrics import subspace_distance
from robustpca.models import all_methods
from robustpca.tools.files import read
from robustpca.tools.fitting import (
    fit_table,
    last_step,
    method_named,
    model_lines,
    names_of,
    rebuilt_table,
    scores_table,
    settings_from,
)

pytest.importorskip("pandas")


@pytest.fixture(name="path")
def _table(tmp_path, rng):
    """A table of two directions in four units, with an index, a text and ten bad rows."""
    X = rng.normal(size=(80, 2)) @ [[1, 20, 300, 0], [0, 20, -300, 4]] + [170, 70, 2000, 5]
    X += rng.normal(size=X.shape) * [0.02, 0.4, 6, 0.1]
    X[:10] += [0, 300, 3000, 0]
    lines = [f"r{i};{'ab'[i % 2]};" + ";".join(f"{x:.4f}" for x in row) for i, row in enumerate(X)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["name;group;size;mass;pay;mark", *lines]))
    return path


def test_units_are_scaled_and_come_back(path, tmp_path):
    table = read(path)
    model = fit_table(table, PCAAN, {})
    assert isinstance(model, Pipeline)
    assert names_of(model) == ["size", "mass", "pay", "mark"]
    assert last_step(model).n_components_ == 2
    rebuilt = rebuilt_table(model, table)
    assert list(rebuilt) == ["name", "group", "size", "mass", "pay", "mark"]
    errors = np.abs(rebuilt[table.names].to_numpy() - table.X)[10:]
    assert (errors.mean(axis=0) < [0.05, 1, 15, 0.2]).all()
    save(model, tmp_path / "a.rpca")
    scores = scores_table(load(tmp_path / "a.rpca"), table)
    assert list(scores) == ["name", "group", "pcaan0", "pcaan1"]
    np.testing.assert_array_equal(scores.iloc[:, 2:], model.transform(table.frame[table.names]))
    assert isinstance(fit_table(table, PCAAN, {}, scale=None), PCAAN)
    # A method that would keep all directions finds their number.
    assert last_step(fit_table(table, AngularEmbedding, {})).n_components_ == 2
    # A method that scales by itself is left to it.
    assert isinstance(fit_table(table, RPCA, {}), RPCA)


def test_the_model_is_that_of_the_same_data_in_one_unit(path):
    table = read(path)
    model = fit_table(table, PCAAN, {"n_components": 2})
    plain = PCAAN(2).fit((table.X - model[0].center_) / model[0].scale_)
    assert subspace_distance(last_step(model).components_, plain.components_) < 1e-12


def test_columns_are_found_by_name_in_any_order(path, tmp_path):
    model = fit_table(read(path), PCAAN, {"n_components": 2})
    frame = read(path).frame[["mark", "pay", "group", "size", "mass"]]
    frame.to_csv(tmp_path / "other.csv", index=False)
    table = read(tmp_path / "other.csv", columns=names_of(model))
    expected = scores_table(model, read(path))
    np.testing.assert_array_equal(scores_table(model, table)["pcaan1"], expected["pcaan1"])
    np.save(tmp_path / "narrow.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match="has 2 numeric columns, and the model was fitted to 4"):
        scores_table(model, read(tmp_path / "narrow.npy"))


def test_missing_cells_need_a_method_that_takes_them(path):
    lines = path.read_text().splitlines()
    lines[4] = "r3;b;;70;2000;5"
    path.write_text("\n".join(lines))
    table = read(path)
    with pytest.raises(ValueError, match=r"1 missing cell, and PCAAN takes none: .* RPCA, RPCAG"):
        fit_table(table, PCAAN, {})
    model = fit_table(table, RPCA, {"n_components": 2})
    assert np.isfinite(scores_table(model, table)["rpca0"]).all()


def test_images_give_their_shape(tmp_path, rng):
    np.save(tmp_path / "a.npy", rng.normal(size=(12, 5, 4)))
    table = read(tmp_path / "a.npy")
    model = fit_table(table, GLRAM, {"n_components": (2, 2)})
    assert model.image_shape == (5, 4)
    assert scores_table(model, table).shape[0] == 12
    assert rebuilt_table(model, table).shape == (12, 5, 4)
    np.save(tmp_path / "b.npy", rng.normal(size=(12, 20)))
    with pytest.raises(ValueError, match="GLRAM takes grey images"):
        fit_table(read(tmp_path / "b.npy"), GLRAM, {})


def test_methods_are_found_in_any_case():
    assert method_named("pcaan") is PCAAN
    assert {method_named(name) for name in all_methods()} == set(all_methods().values())
    for name, words in {
        "PCAN": "No method is called 'PCAN'. Did you mean PCAAN. `robustpca methods`",
        "Reweighted": "Reweighted needs estimator: use it from Python",
        "NCut": "NCut has no scores of new rows",
    }.items():
        with pytest.raises(ValueError, match=words):
            method_named(name)


def test_settings_are_read_from_texts():
    texts = ["n_components=3", "tol = 1e-4", "init=uniform", "gamma=none", "random_state='x'"]
    assert settings_from(PCAAN, texts) == {
        "n_components": 3, "tol": 1e-4, "init": "uniform", "gamma": None, "random_state": "x",
    }  # fmt: skip
    assert settings_from(GLRAM, ["n_components=(4,3)"]) == {"n_components": (4, 3)}
    for text, words in {
        "n_components": "--set n_components should read name=value",
        "n_component=3": r"PCAAN has no parameter 'n_component': it takes .* Did you mean n_comp",
        "callback=print": "PCAAN has no parameter 'callback'",
        "tol=__import__('os')": "is neither a number nor a word",
        "tol=1+": "is neither a number nor a word",
    }.items():
        with pytest.raises(ValueError, match=words):
            settings_from(PCAAN, [text])


def test_a_model_is_described(path):
    lines = model_lines(fit_table(read(path), PCAAN, {"tol": 1e-4}))
    assert lines[0] == "PCAAN, fitted to 80 rows and 4 columns"
    assert lines[1] == "components: 2"
    assert lines[3:] == [
        "after RobustScaler",
        "parameters: tol=0.0001",
        "names of columns: size, mass, pay, mark",
    ]
