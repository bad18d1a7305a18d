"""Speed and memory of the reweighted methods against plain PCA and the textbook loop.

Everything is measured in one run, on the same arrays, at one BLAS thread by CPU seconds (best
of three, interleaved), with wall seconds at two threads beside. The textbook loop forms the
weighted covariance (of the features, or of the samples where these are fewer) and all its
eigenvectors in every pass.

    python benchmarks/reweighted.py [--shapes 5000x1024 ...] [--quick]
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from measure import best, peak_memory
from robustpca import EPCA, PCAAN, PCAOM
from robustpca.engine.rows import ArrayRows
from robustpca.parts.losses import L21Loss, SigmaLoss, SquaredLoss
from robustpca.parts.starts import trusted_half
from robustpca.parts.weightings import AdaptiveNeighbors, CoRobust, Uniform

N_COMPONENTS = 50
METHODS = (EPCA, PCAAN, PCAOM)
SHAPES = ("5000x1024", "50000x784", "1000x10000")
BARS = {"PCA": 3.0, "50 passes": 40.0, "to tol": 10.0, "memory": 1.6, "objective": 1e-6}


def planted(n_samples: int, n_features: int, dtype: type, seed: int = 0) -> Any:
    """A subspace of 50 dimensions with noise, and a fifth of the samples gross outliers."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n_features, N_COMPONENTS)))[0]
    scales = np.linspace(3.0, 1.0, N_COMPONENTS)
    X = (rng.normal(size=(n_samples, N_COMPONENTS)) * scales) @ basis.T
    X += 0.05 * rng.normal(size=X.shape) + rng.normal(size=n_features)
    bad = rng.permutation(n_samples)[: n_samples // 5]
    X[bad] += 0.5 * rng.normal(size=(len(bad), n_features))
    return X.astype(dtype)


class Textbook:
    """The loop as one would write it down: everything anew in every pass."""

    def __init__(self, X: Any, model: Any) -> None:
        self.X, self.tol = X, model.tol
        self.weights = np.ones(len(X))
        if isinstance(model, EPCA):
            self.loss, self.weighting = SigmaLoss(model.sigma_), CoRobust()
        elif isinstance(model, PCAOM):
            self.loss, self.weighting = L21Loss(model.loss_.floor), Uniform()
        else:
            self.loss, self.weighting = SquaredLoss(), AdaptiveNeighbors(model.n_active)
            rows = ArrayRows(X).median_centred()
            self.weights = trusted_half(rows, np.zeros(len(X)), np.random.RandomState(0))

    def step(self) -> Any:
        """Fit with the present weights, then weigh anew."""
        X, weights = self.X, self.weights.astype(self.X.dtype)
        centred = X - weights @ X / weights.sum()
        if X.shape[0] >= X.shape[1]:
            covariance = (centred * weights[:, None]).T @ centred
            basis = np.linalg.eigh(covariance)[1][:, -N_COMPONENTS:]
        else:
            scaled = centred * np.sqrt(weights)[:, None]
            vectors = np.linalg.eigh(scaled @ scaled.T)[1][:, -N_COMPONENTS:]
            basis = np.linalg.qr(scaled.T @ vectors)[0]
        rest = centred - (centred @ basis) @ basis.T
        residuals = np.einsum("ij,ij->i", rest, rest, dtype=np.float64)
        step = self.weighting.solve(self.loss.values(residuals))
        self.weights = step.direct * self.loss.weights(residuals)
        return step

    def run(self, n_passes: int) -> tuple[float, int, float, Any]:
        """Seconds and passes to the tolerance, seconds of ``n_passes``, the last step."""
        started, step, reached = time.process_time(), self.step(), (np.nan, 0)
        for done in range(2, n_passes + 1):
            previous, step = step, self.step()
            if self.weighting.monotone:
                change = (previous.objective - step.objective) / abs(previous.objective)
            else:
                change = float(np.abs(step.direct - previous.direct).max())
            if change <= self.tol and not reached[1]:
                reached = (time.process_time() - started, done)
        seconds = time.process_time() - started
        return (*(reached if reached[1] else (seconds, n_passes)), seconds, step)


def measure(shape: str, dtype: type, n_passes: int) -> None:
    """Print the rows of one array."""
    n_samples, n_features = map(int, shape.split("x"))
    X = planted(n_samples, n_features, dtype)

    def pca() -> Any:
        return PCA(N_COMPONENTS, svd_solver="auto", random_state=0).fit(X)

    with threadpool_limits(1):
        plain = min(best(pca, time.process_time), best(pca, time.process_time))
        plain_wall = best(pca, time.perf_counter)
    with threadpool_limits(2):
        plain_wall = min(plain_wall, best(pca, time.perf_counter))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        on_disk = np.load(path, mmap_mode="r")
        for method in METHODS:
            row(method, X, on_disk, plain, plain_wall, n_passes)


def row(method: Any, X: Any, on_disk: Any, plain: float, plain_wall: float, n_passes: int) -> None:
    """Measure and print one method on one array."""
    model = method(N_COMPONENTS).fit(X)
    with threadpool_limits(1):
        ours = best(lambda: method(N_COMPONENTS).fit(X), time.process_time)
        memory = peak_memory(lambda: method(N_COMPONENTS).fit(X)) / X.nbytes
        disk = peak_memory(lambda: method(N_COMPONENTS).fit(on_disk)) / 2**20
        textbook = Textbook(X, model)
        to_tol, n_tol, all_passes, step = textbook.run(n_passes)
    with threadpool_limits(2):
        wall = best(lambda: method(N_COMPONENTS).fit(X), time.perf_counter)
    # Adaptive gammas differ a little at the end, so both results are judged by the textbook's.
    residuals = np.square(model.orthogonal_distances(X), dtype=np.float64)
    judge = textbook.weighting.frozen(step)
    gap = judge.solve(textbook.loss.values(residuals)).objective / step.objective - 1
    scale = n_passes and 50 / n_passes
    print(
        f"{X.shape[0]:>6}x{X.shape[1]:<6} {X.dtype.name:8} {method.__name__:6} "
        f"{plain:6.2f} {ours:6.2f} {ours / plain:6.2f} {plain_wall:6.2f} {wall:6.2f} "
        f"{wall / plain_wall:6.2f} {all_passes * scale / ours:8.0f}x {to_tol / ours:6.0f}x "
        f"({n_tol:3d}) {model.n_iter_:4d} {gap:9.1e} {memory:6.2f} {disk:7.0f}",
        flush=True,
    )


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), metavar="NxD")
    parser.add_argument("--passes", type=int, default=50, help="textbook passes [%(default)s]")
    options = parser.parse_args()
    print(
        "pca, fit: CPU seconds at one thread; wall at the better of one and two threads.\n"
        "gap: our objective over the textbook's after its passes, less one. mem: peak extra\n"
        "memory over the data; disk: the same in MiB when the data are a file.\n"
        f"Bars: fit/pca <= {BARS['PCA']}, over 50 passes >= {BARS['50 passes']}, over the loop "
        f"to its tolerance >= {BARS['to tol']}, gap <= {BARS['objective']}, mem <= "
        f"{BARS['memory']}.\n"
    )
    print(
        "        shape    dtype method    pca    fit  ratio   wall    fit  ratio  50 passes"
        "  to tol (passes) n_iter      gap    mem    disk"
    )
    for shape in options.shapes:
        for dtype in (np.float64, np.float32):
            measure(shape, dtype, options.passes)


if __name__ == "__main__":
    main()
