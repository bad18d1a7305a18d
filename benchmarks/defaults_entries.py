"""What `RPCA()` makes of wrong, missing and noisy entries, and of tables in any units.

Ten seeds of each case, without a parameter set. Errors are relative to the planted low-rank part:
of our default, of the convex problem alone (``debias=False``), of pyrpca if it is installed, and
of least squares that is told which entries are wrong. A correct entry that is flagged is a false
flag; recall counts wrong entries beyond six deviations of the noise.
"""

import argparse
import itertools
import warnings
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

from robustpca import GLPCA, RGLPCA, RPCA

try:
    from pyrpca import rpca_pcp_ialm
except ImportError:
    rpca_pcp_ialm = None

SHAPES = ((600, 600, 10), (2000, 50, 5), (300, 2000, 10))


def planted(seed: int, shape: tuple[int, int, int], wrong: float, noise: float) -> Any:
    """Data, the low-rank part, and which entries are wrong."""
    rng = np.random.default_rng(seed)
    n, d, rank = shape
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) / np.sqrt(rank)
    errors = rng.random((n, d)) < wrong
    sizes = rng.uniform(6 * noise, 3 + 10 * noise, (n, d)) * rng.choice([-1, 1], (n, d))
    return np.where(errors, L + sizes, L + noise * rng.normal(size=(n, d))), L, errors


def told(X: Any, L: Any, errors: Any, rank: int) -> Any:
    """Least squares of the true rank to the correct entries."""
    fitted = L
    for _ in range(30):
        left, values, right = svds(np.where(errors, fitted, X), rank, random_state=0)
        fitted = (left * values) @ right
    return fitted


def relative(A: Any, B: Any) -> float:
    """Relative error in the Frobenius norm."""
    return float(np.linalg.norm(A - B) / np.linalg.norm(B))


def entries(seeds: int, peer_seeds: int = 1) -> None:
    """Rank, flags and errors on planted data."""
    print(
        "RPCA() on low rank + wrong entries + dense noise: worst of the seeds, median error\n"
        "   n x d      rank  wrong  noise  ranks found  false flags  recall  error    "
        "convex   pyrpca   told"
    )
    for shape in SHAPES:
        for wrong in (0.05, 0.2):
            for noise in (0.001, 0.01, 0.1):
                found = []
                for seed in range(seeds):
                    X, L, errors = planted(seed, shape, wrong, noise)
                    model = RPCA().fit(X)
                    flags = model.entry_flags_
                    row = [model.rank_, flags[~errors].mean(), flags[errors].mean()]
                    row += [relative(model.low_rank_, L), np.nan, np.nan, np.nan]
                    if seed < peer_seeds:
                        row[4] = relative(RPCA(debias=False).fit(X).low_rank_, L)
                        if rpca_pcp_ialm is not None:
                            weight = 1 / np.sqrt(max(X.shape))
                            row[5] = relative(rpca_pcp_ialm(X, weight, verbose=False)[0], L)
                        row[6] = relative(told(X, L, errors, shape[2]), L)
                    found.append(row)
                ranks, false, recall, *others = np.array(found).T
                ours, convex, peer, best = (np.nanmedian(errors) for errors in others)
                print(
                    f"{shape[0]:>5} x {shape[1]:<5} {shape[2]:4d}  {wrong:5.2f}  {noise:5.3f}  "
                    f"{int(ranks.min()):4d}-{int(ranks.max()):<4d}    {false.max():8.4f}    "
                    f"{recall.min():6.3f}  {ours:.5f}  {convex:.5f}  {peer:.5f}  {best:.5f}",
                    flush=True,
                )


def tables(seeds: int) -> None:
    """Tables of rank 3, 2 % wrong and 3 % missing cells, whose columns have different units."""
    print(
        "\nRPCA() on tables of 400 x 20, rank 3, noise 0.1, 2 % wrong and 3 % missing cells; root "
        "mean\nsquare error in deviations of the columns, worst and median of the seeds\n"
        "offsets   scales    default  (worst)   center='median'  as it is   median fill"
    )
    for offset, decades in ((0.0, 0.0), (1e5, 0.0), (300.0, 1.0), (0.0, 4.0), (1e5, 4.0)):
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            L = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 20))
            scale, shift = 10 ** rng.uniform(0, decades, 20), rng.uniform(-offset, offset, 20)
            truth = L * scale + shift
            X = truth + 0.1 * scale * rng.normal(size=L.shape)
            errors = rng.random(L.shape) < 0.02
            gross = scale * rng.choice([-1, 1], L.shape) * rng.uniform(5, 50, L.shape)
            X = np.where(errors, X + gross, X)
            X[rng.random(L.shape) < 0.03] = np.nan
            deviations = L.std(axis=0) * scale

            def rms(low_rank: Any, truth: Any = truth, deviations: Any = deviations) -> float:
                return float(np.sqrt(np.mean(((low_rank - truth) / deviations) ** 2)))

            plain = {"noise": 0.0, "scale": None}
            filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
            found.append(
                [
                    rms(RPCA().fit(X).low_rank_),
                    rms(RPCA(center="median", **plain).fit(X).low_rank_),
                    rms(RPCA(center=None, **plain).fit(X).low_rank_),
                    rms(filled),
                ]
            )
        ours, centred, raw, fill = np.median(found, axis=0)
        print(
            f"{offset:7.0e}   1-1e{decades:.0f}   {ours:8.4f} ({np.max(found, axis=0)[0]:.4f})  "
            f"{centred:12.4f}  {raw:12.4g}  {fill:10.4g}",
            flush=True,
        )


def columns(seeds: int) -> None:
    """Tables of which few columns have an offset."""
    print(
        "\nRPCA() on tables of 200 x d, rank 3, noise 0.1, 1 % wrong entries, whose first columns "
        "are moved by\nso many deviations; root mean square error, median (worst) of the seeds\n"
        "   d  columns  offset          default      center='median'       center=None"
    )
    for d, count, offset in itertools.product((9, 30), (1, 3, 9), (0.5, 1.0, 5.0)):
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            truth = rng.normal(size=(200, 3)) @ rng.normal(size=(3, d))
            truth[:, :count] += offset * truth[:, :count].std(axis=0)
            X = truth + 0.1 * rng.normal(size=truth.shape)
            errors = rng.random(X.shape) < 0.01
            X[errors] += 15 * rng.choice([-1, 1], np.count_nonzero(errors))
            models = [RPCA(), *(RPCA(center=center, scale=None) for center in ("median", None))]
            parts = [model.fit(X).low_rank_ for model in models]
            found.append([np.sqrt(np.mean((part - truth) ** 2)) for part in parts])
        cells = zip(np.median(found, axis=0), np.max(found, axis=0), strict=True)
        text = "".join(f"     {middle:6.3f} ({worst:.3f})" for middle, worst in cells)
        print(f"{d:4d}  {count:7d}  {offset:6.1f} {text}", flush=True)


def scales(seeds: int) -> None:
    """Data of extreme size or offset: largest sine between the subspaces."""
    methods = (RPCA, GLPCA, RGLPCA)
    print(
        "\nLargest sine to the subspace of the data as they are, worst of the seeds; ! if all warn"
    )
    print(f"{'':20}" + "".join(f"{method.__name__:>10}" for method in methods))
    cases = {
        "times 1e-100": (1e-100, 0.0, np.float64),
        "times 1e30": (1e30, 0.0, np.float64),
        "plus 1e8": (1.0, 1e8, np.float64),
        "float32": (1.0, 0.0, np.float32),
        "float32, plus 1e3": (1.0, 1e3, np.float32),
        "float32, plus 1e8": (1.0, 1e8, np.float32),
    }
    for name, (factor, offset, dtype) in cases.items():
        cells = [sine(method, factor, offset, dtype, seeds) for method in methods]
        print(f"{name:<20}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def sine(method: Any, factor: float, offset: float, dtype: Any, seeds: int) -> str:
    """The worst sine of a method, and whether all fits warned of the precision."""
    sines, warned = [], []
    for seed in range(seeds):
        X = planted(seed, (200, 40, 3), 0.05, 0.1)[0]
        axes = method(3).fit(X).components_
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            other = method(3).fit((factor * X + offset).astype(dtype)).components_
        cosines = np.linalg.svd(axes @ other.T.astype(np.float64), compute_uv=False)
        sines.append(np.sqrt(max(1 - cosines.min() ** 2, 0.0)))
        warned.append(any("float32 holds little" in str(warning.message) for warning in caught))
    return f"{max(sines):.0e}{'!' if all(warned) else ' '}"


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="entries, tables, columns or scales; all if none")
    parser.add_argument("--quick", action="store_true", help="two seeds")
    given = parser.parse_args()
    seeds = 2 if given.quick else 10
    if rpca_pcp_ialm is None:
        print("pyrpca is not installed: its column is empty (pip install pyrpca).")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in (entries, tables, columns, scales):
            if not given.tables or table.__name__ in given.tables:
                table(seeds)


if __name__ == "__main__":
    main()
