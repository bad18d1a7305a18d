import sys
from types import ModuleType

import numpy as np
import pytest

from robustpca import all_estimators
from robustpca.engine import threads
from robustpca.models.estimator import DOCUMENTATION, takers_of_nan

ESTIMATORS = all_estimators()
ALONE = {name: kind for name, kind in ESTIMATORS.items() if name != "Reweighted"}


@pytest.mark.parametrize("name", ALONE)
def test_the_picture_in_a_notebook_links_to_the_documentation(name):
    assert f"{DOCUMENTATION}/generated/robustpca.{name}.html" in ALONE[name]()._repr_html_()


@pytest.mark.parametrize("name", ["EPCA", "NCut", "GNMF", "L1PCA"])
def test_missing_entries_get_the_names_of_methods_that_take_them(name):
    X = np.ones((10, 3))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=f"{name} takes no missing.*FRPCAG, RPCA, RPCAG do"):
        ESTIMATORS[name]().fit(X)


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
