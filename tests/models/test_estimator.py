import sys
from types import ModuleType

import numpy as np
import pytest

from robustpca import EPCA, GNMF, RPCA, all_estimators, suggest
from robustpca.engine import threads
from robustpca.models.estimator import DOCUMENTATION, takers_of_nan

ESTIMATORS = all_estimators()
ALONE = {name: kind for name, kind in ESTIMATORS.items() if name != "Reweighted"}


@pytest.mark.parametrize("name", ALONE)
def test_the_picture_in_a_notebook_links_to_the_documentation(name):
    assert f"{DOCUMENTATION}/generated/robustpca.{name}.html" in ALONE[name]()._repr_html_()


@pytest.mark.parametrize("name", ["EPCA", "NCut", "GNMF", "L1PCA"])
def test_missing_entries_get_the_names_of_methods_that_take_them(name):
    rng = np.random.default_rng(0)
    X = np.outer(rng.random(40), rng.random(8)) + 0.01 * rng.random((40, 8))
    X[2, 1], X[5, 3] = np.nan, 9.0
    with pytest.raises(ValueError, match=f"{name} takes no missing.*FRPCAG, RPCA, RPCAG do") as no:
        ESTIMATORS[name]().fit(X)
    advice = str(no.value).partition("fill them in by ")[2].removesuffix(".")
    filled = eval(advice, {"np": np, "RPCA": RPCA, "X": X})
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(filled).all()


def test_those_methods_are_the_ones_that_allow_them():
    allowing = {
        name for name, kind in ALONE.items() if kind().__sklearn_tags__().input_tags.allow_nan
    }
    assert set(takers_of_nan()) == allowing


@pytest.mark.parametrize(("home", "advice"), [("anndata", "adata.X"), ("mudata", "mdata")])
@pytest.mark.parametrize("name", ["PCAAN", "RPCA", "NCut", "GNMF"])
def test_containers_are_answered_with_what_to_pass(name, home, advice, monkeypatch):
    module = ModuleType(f"{home}.core")
    kind = type("Container", (), {"__module__": module.__name__, "X": np.ones((3, 2))})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(TypeError, match=f"Container of {home}.*pass {advice}"):
        ESTIMATORS[name]().fit(kind())


def test_kernels_compile_where_nothing_can_be_written(monkeypatch):
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    def double(x):
        return 2 * x

    assert threads.compiled(double)(4.0) == 8.0


@pytest.mark.parametrize("ask", [EPCA(1).fit, RPCA().fit, GNMF(1).fit, suggest])
def test_columns_without_numbers_are_named(ask):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0) ** 2})
    frame["town"], frame["size"] = "Bonn", pandas.Categorical(["s", "m", "l"] * 3)
    for other in (frame, frame.assign(day=pandas.date_range("2024-01-01", periods=9))):
        named = ", ".join(map(repr, other.columns[2:]))
        with pytest.raises(ValueError, match=f"no numbers in the columns {named}: leave"):
            ask(other)


def test_numbers_among_objects_are_taken():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).random((9, 3)), columns=list("abc"))
    fitted = EPCA(1).fit(frame.astype({"a": object}))
    np.testing.assert_array_equal(fitted.components_, EPCA(1).fit(frame).components_)
