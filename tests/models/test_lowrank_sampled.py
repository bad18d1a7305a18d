"""RPCA by sampled rows and columns, as a user calls it."""

import numpy as np
import pytest
from pursuit import rpca

from robustpca import RPCA


def planted(seed, n=120, d=60, rank=3, *, corrupted=0.05, noise=0.0, missing=0.0):
    """Data, and the low-rank and the sparse part that they were made of."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    S = np.where(rng.random((n, d)) < corrupted, rng.uniform(-10, 10, (n, d)), 0.0)
    X = L + S + noise * rng.normal(size=(n, d))
    X[rng.random((n, d)) < missing] = np.nan
    return X, L, S


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


@pytest.mark.parametrize("n_components", [None, 3, 0.9])
def test_the_sampled_solver_finds_rank_and_noise(n_components):
    X, L, S = planted(0, 400, 350, 5, noise=0.1, missing=0.05)
    model = rpca(n_components, solver="sampled").fit(X)
    assert model.rank_ == 5
    assert model.n_components_ == {None: 5, 3: 3}.get(n_components, model.n_components_)
    assert model.noise_ == pytest.approx(0.1, rel=0.15)
    assert relative(model.low_rank_, L) < 0.01
    assert model.converged_
    assert model.dual_gap_ < 0.02
    assert model.density_ == pytest.approx(np.mean((np.abs(S) > 0.5)[~np.isnan(X)]), rel=0.05)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_sampled_solver_says_when_another_one_takes_over():
    X, L, _ = planted(0, 300, 200, 60)
    with pytest.warns(UserWarning, match=r"solver='sampled' found no .*: .* solver='admm' was"):
        model = rpca(2, solver="sampled", max_iter=50).fit(X)
    plain = rpca(2, solver="admm", max_iter=50).fit(X)
    np.testing.assert_allclose(model.low_rank_, plain.low_rank_, atol=1e-8)
    # A few rows that sampling is bound to miss.
    X, L, _ = planted(0, 2000, 60, 2, corrupted=0.02)
    L[:3] += 40 * np.random.default_rng(1).normal(size=60)
    X[:3] = L[:3]
    model = rpca(3, solver="sampled").fit(X)
    assert (model.predict(X[:3]) == -1).all()


@pytest.mark.filterwarnings("ignore:RPCA. low_rank_ is zero:UserWarning")
@pytest.mark.parametrize(("n_components", "solver"), [(None, "admm"), (3, "altproj")])
def test_a_single_wrong_entry_is_no_low_rank_part(n_components, solver):
    X = np.zeros((400, 350))
    X[5, 7] = 10.0
    told = rf"the rows and columns that were drawn have no low-rank part.* solver='{solver}' was"
    with pytest.warns(UserWarning, match=told):
        model = rpca(n_components, solver="sampled", noise="auto").fit(X)
    assert not model.low_rank_.any()
    np.testing.assert_allclose(model.sparse_.toarray(), X, rtol=1e-9)


@pytest.mark.parametrize("rank", [1, 3])
def test_rows_and_columns_of_zeros_do_no_harm(rank):
    for empty in ("rows", "every other column", "most columns"):
        X, L, S = planted(rank, 120, 90, rank, corrupted=0.03)
        place = {
            "rows": np.s_[::3],
            "every other column": np.s_[:, ::2],
            "most columns": np.s_[:, 30:],
        }[empty]
        X[place] = L[place] = S[place] = 0.0
        model = RPCA(3, solver="sampled", debias=False).fit(X)
        assert model.rank_ == rank
        assert relative(model.low_rank_, L) < 1e-6
        assert relative(model.sparse_.toarray(), S) < 1e-6
