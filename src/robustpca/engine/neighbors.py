"""Nearest neighbours: exact, projected or approximate.

A search has two steps. Products of whole tiles of rows, in single precision, propose a few
candidates for each row; the distances to these are then computed from the differences in
double precision, and the nearest are taken. The methods differ in how they propose.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from robustpca.engine.blocks import slices
from robustpca.engine.linalg import Array, orthonormal, square_norms
from robustpca.engine.scratch import contiguous, each, empty_beside, gathered, in_groups, is_scratch
from robustpca.engine.threads import ThreadPool, compiled

Method = Literal["auto", "exact", "projected", "approximate"]
Found = tuple[Array, Array]  # who is near, and the gaps: squared distances
Lists = tuple[Array, Array, Array]  # the gaps of those who are near, who they are, the last gap
Coded = tuple[Array, Array]  # coordinates of rows that products are taken of, and squared norms
Encoder = Callable[[Array], Coded]

# Choosing among pairs of rows costs as much as so many multiplications per pair; and the
# number of these that takes seconds: beyond, the next method is several times faster.
PAIR_WORK, EXACT_WORK, PROJECTED_WORK = 64, 5e11, 2e12
# Products of longer rows are summed in parts of so many features, which saves digits; and so
# many entries of long rows are encoded at a time.
SUMMED, CODED_ENTRIES = 4096, 1 << 19
# The products of two tiles of rows stay in the cache, and so many are tested together; each
# row has more candidates than it needs, so that rounding seldom leaves a doubt.
TILE, CHUNK, EXTRA = 512, 32, 8
# As many points at about the same distance as the last neighbour may be measured one by one, and
# all points for so few queries.
DOUBTFUL, FEW_QUERIES = 512, 4
# Principal axes of a projected search, and rows that they are found from.
N_AXES, AXES_SAMPLE = 224, 4096
# Cells per root of the number of points: to find the cells costs what searching them does.
# Those of more than CELL_LIMIT times the mean size, mostly of equal rows, are cut.
CELLS, LEAST_CELL, CELL_LIMIT, SAMPLE_PER_CELL, MEANS_PASSES = 3.0, 128, 4.0, 24, 4
# Cells are searched until they hold this share of the neighbours of a sample of queries, if
# it is not too many cells; the neighbours of so many neighbours then find most of the rest.
PROBE_SHARE, PROBE_SAMPLE, MOST_PROBES, HOPS = 0.95, 256, 48, 10


def nearest_neighbors(
    X: ArrayLike,
    n_neighbors: int,
    *,
    among: ArrayLike | None = None,
    method: Method = "auto",
    random_state: int = 0,
) -> Found:
    """Find the nearest rows to each row of ``X``, itself excluded.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows to find neighbours of. Missing values (NaN) are left out of a distance, which is
        scaled up by the share of the features that both rows have; two rows without a
        common feature are infinitely far apart.
    n_neighbors : int
        Number of neighbours, at most the number of rows to choose from.
    among : array-like of shape (n_points, n_features), default=None
        Rows to choose from, none excluded; ``None`` for the other rows of ``X``.
    method : {"auto", "exact", "projected", "approximate"}, default="auto"
        ``"exact"`` compares all pairs of rows. ``"projected"`` compares them along the first
        224 principal axes and measures the most promising: nearly exact where the rest is
        noise. ``"approximate"`` compares rows of neighbouring cells only, then tries the
        neighbours of neighbours: for millions of rows. ``"auto"`` goes from one to the next
        when it would take longer than seconds. Missing values need ``"exact"``.
    random_state : int, default=0
        Seed of the axes and of the cells.

    Returns
    -------
    indices : ndarray of int32, shape (n_samples, n_neighbors)
        Nearest rows first; of equally near ones, the smallest index first.
    square_distances : ndarray of shape (n_samples, n_neighbors)
        Squared Euclidean distances, in the precision of ``X``.
    """
    queries = checked_rows(X, "X")
    points = queries if among is None else checked_rows(among, "among")
    selves = np.arange(len(queries)) if among is None else np.full(len(queries), -1)
    search = _Search(queries, points, selves, n_neighbors, random_state, ThreadPool())
    _check_request(search, method)
    name = _quick_method(search) if method == "auto" else method
    find = {"exact": _exact, "projected": _projected, "approximate": _approximate}[name]
    with search.pool:
        indices, gaps = find(search)
    return indices, gaps.astype(queries.dtype, copy=False)


def neighbor_recall(
    X: ArrayLike, indices: Array, n_queries: int = 500, random_state: int = 0
) -> float:
    """Share of the true neighbours of some rows that ``indices`` of `nearest_neighbors` holds.

    Of several rows at the same distance any will do: distances are compared, not indices.
    ``n_queries`` rows are drawn with the seed ``random_state``.
    """
    points = checked_rows(X, "X")
    rows = _sample(np.arange(len(points)), n_queries, np.random.default_rng(random_state))
    search = _Search(points[rows], points, rows, indices.shape[1], random_state, ThreadPool())
    with search.pool:
        reach = _exact(search)[1][:, -1:]
        given = _measured(search, lambda place: _ascending(indices[rows[place]]))[1]
    return float(np.mean(given <= reach))


def checked_rows(X: ArrayLike, name: str) -> Array:
    """Rows of real numbers in floating point, or an error that says what they are instead."""
    A = np.asarray(X)
    if A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"{name} has shape {A.shape}, but rows and columns are needed.")
    A = contiguous(A, np.float32 if A.dtype == np.float32 else np.float64)
    low, high = _extremes(A)
    largest = max(float(np.fmax.reduce(high)), -float(np.fmin.reduce(low)))
    if largest > 1e150:
        told = f"{name} has a value of size {largest:g}, too large to be squared"
        raise ValueError(f"{told}. Remove infinite values, or divide the data by their scale.")
    return A


def _extremes(A: Array) -> tuple[Array, Array]:
    """Least and largest value of each column, missing ones left out."""
    tiles = [A[place] for place in slices(len(A), TILE)]
    ends = [(np.fmin.reduce(tile), np.fmax.reduce(tile)) for tile in each(tiles, A)]
    low, high = zip(*ends, strict=True)
    return np.fmin.reduce(low), np.fmax.reduce(high)


@dataclass(frozen=True)
class _Search:
    """The problem: neighbours of ``queries`` among ``points``, but not ``selves``."""

    queries: Array
    points: Array
    selves: Array
    n_neighbors: int
    seed: int
    pool: ThreadPool

    @property
    def own(self) -> bool:
        return self.queries is self.points

    @cached_property
    def masked(self) -> bool:
        return any(
            bool(np.isnan(A[place].max()))
            for A in (self.queries, self.points)
            for place in each(slices(len(A), TILE), A)
        )

    def some(self, rows: Array | slice) -> "_Search":
        return replace(self, queries=self.queries[rows], selves=self.selves[rows])


def _check_request(search: _Search, method: str) -> None:
    given, needed = search.queries.shape[1], search.points.shape[1]
    n_neighbors, available = search.n_neighbors, len(search.points) - search.own
    if given != needed:
        raise ValueError(f"X has {given} features, but among has {needed}; both need the same.")
    if not 1 <= n_neighbors <= available:
        told = f"n_neighbors={n_neighbors} is not possible with {available} rows to choose from"
        raise ValueError(f"{told}; give a number from 1 to {available}, or more rows.")
    check_option("method", method, get_args(Method))
    if method in ("projected", "approximate") and search.masked:
        told = f'method="{method}" needs complete rows, but there are missing values (NaN)'
        raise ValueError(f'{told}. Use method="exact", or fill them in.')


def check_option(name: str, given: str, known: tuple[str, ...]) -> None:
    """Refuse an option that does not exist."""
    if given not in known:
        raise ValueError(f"{name}={given!r} is unknown; choose one of {', '.join(known)}.")


def _quick_method(search: _Search) -> Method:
    n_pairs, n_features = len(search.queries) * len(search.points), search.points.shape[1]
    if n_pairs * (n_features + PAIR_WORK) <= EXACT_WORK or search.masked:
        return "exact"
    few_enough = n_pairs * (N_AXES + PAIR_WORK) <= PROJECTED_WORK
    return "projected" if few_enough and n_features > 2 * N_AXES else "approximate"


def _exact(search: _Search, dtypes: tuple[Any, ...] = (np.float32, np.float64)) -> Found:
    """Neighbours proven to be the nearest, in single precision where that is enough."""
    (n_points, n_features), n_kept = search.points.shape, search.n_neighbors + EXTRA
    # Where most of the points are candidates, or queries are few, choosing candidates costs more
    # than it saves.
    if not dtypes or 4 * n_kept > n_points or len(search.queries) <= FEW_QUERIES:
        everyone = np.broadcast_to(np.arange(n_points, dtype=np.int32), (TILE, n_points))
        return _measured(search, lambda place: everyone[: place.stop - place.start])
    encode, scale = _centred_encoder(search.points, dtypes[0], search.masked)
    points = _encode_all(encode, search.points, None, search.pool)
    kept, found, norms = _tiles(search, encode, n_kept, points)
    indices, gaps = _measured(search, lambda place: np.sort(found[place], axis=1))
    # A point that was not kept seems at least as far as the last one that was. It may be
    # nearer by the rounding error of its product, but that is bounded: a point whose norm
    # differs from ours by more than the distance to the last neighbour is no neighbour.
    reach = gaps[:, -1] * scale**2
    # Rounding errors of a sum are as good as independent: their sum exceeds ten times the root
    # of their number never in practice, and the number itself, which is sure, says nothing.
    error = 10 * np.sqrt(min(n_features, SUMMED) + 10) * np.finfo(dtypes[0]).eps
    with np.errstate(invalid="ignore"):
        limits = reach + error * (2 * np.sqrt(norms) + np.sqrt(reach)) ** 2
        sure = kept[:, -1] > limits
    if not sure.all():
        rest = np.flatnonzero(~sure)
        candidates = _within(search, rest, encode, points, limits)
        if candidates is None:
            indices[rest], gaps[rest] = _exact(search.some(rest), dtypes[1:])
        else:
            indices[rest], gaps[rest] = _measured(search, lambda place: candidates[place], rest)
    return indices, gaps


def _within(
    search: _Search, chosen: Array, encode: Encoder, points: Coded, limits: Array
) -> Array | None:
    """All points within the limits of chosen queries, then -1; None if there are too many."""
    codes, norms = points
    product, places = _comparison(search.masked), slices(len(chosen), _few(search))

    def work(place: slice) -> Array | None:
        mine, own_norms = encode(search.queries[chosen[place]])
        gaps = own_norms[:, None] + norms - 2 * product(mine, codes)
        # Where a limit is not a number there is a row without a common entry: all are near.
        rows, columns = np.nonzero(~(gaps > limits[chosen[place], None]))
        counts = np.bincount(rows, minlength=len(mine))
        if counts.max(initial=0) > DOUBTFUL:
            return None
        near = np.full((len(mine), DOUBTFUL), -1, np.int32)
        near[rows, np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]] = columns
        return near

    found = [near for near in search.pool.map(work, places) if near is not None]
    return np.concatenate(found) if len(found) == len(places) else None


def _projected(search: _Search) -> Found:
    """The nearest of the points that seem near along the principal axes."""
    wide, n_kept = search.points.shape[1] > N_AXES, 2 * search.n_neighbors + EXTRA
    encode = _axes_encoder(search) if wide else _centred_encoder(search.points)[0]
    found = _tiles(search, encode, min(n_kept, len(search.points)))[1]
    return _measured(search, lambda place: np.sort(found[place], axis=1))


def _approximate(search: _Search) -> Found:
    """The nearest of the points in some cells, and of the neighbours of these."""
    encode, n_kept = _centred_encoder(search.points)[0], search.n_neighbors
    if search.points.shape[1] > 2 * N_AXES:
        encode, n_kept = _axes_encoder(search), 2 * n_kept + EXTRA
    found, order = _cells(search, encode, n_kept)

    def candidates(place: slice) -> Array:
        near = found[order[place]]
        hops = found[near[:, :HOPS], :HOPS].reshape(len(near), -1) if search.own else near
        return _ascending(np.hstack([near, hops]))

    # In the order of the cells, rows near to each other are read soon after each other.
    if search.own and is_scratch(search.points):
        near, far = _measured_in_order(search, candidates, order)
    else:
        near, far = _measured(search, candidates, order)
    indices, gaps = np.empty_like(near), np.empty_like(far)
    indices[order], gaps[order] = near, far
    del near, far
    short = np.flatnonzero(indices[:, -1] < 0)
    if len(short):
        indices[short], gaps[short] = _exact(search.some(short))
    return indices, gaps


def _measured_in_order(
    search: _Search, candidates: Callable[[slice], Array], order: Array
) -> Found:
    """What `_measured` gives, with rows in a scratch file brought into the order first.

    Candidates of rows that follow each other are then in a few places of the file.
    """
    places = np.empty(len(order) + 1, np.int32)
    places[order], places[-1] = np.arange(len(order)), -1
    points = gathered(search.points, order)
    there = replace(search, queries=points, points=points)
    near, far = _measured(there, lambda place: places[candidates(place)])
    return np.where(near < 0, -1, order[near]).astype(np.int32), far


def _ascending(candidates: Array) -> Array:
    """Candidates in order; one that is there twice becomes -1, which is no row."""
    candidates = np.sort(candidates, axis=1)
    candidates[:, 1:][candidates[:, 1:] == candidates[:, :-1]] = -1
    return candidates


def _centred_encoder(
    points: Array, dtype: Any = np.float32, masked: bool = False
) -> tuple[Encoder, float]:
    """Rows centred in the middle of the points and scaled to a size of about one."""
    # From a median, products lose few digits, whatever a few far points do to the mean.
    n_read = min(max(33, CODED_ENTRIES // points.shape[1]), 255)
    sample = points[:: -(-len(points) // n_read)]
    parts = each(slices(points.shape[1], -(-CODED_ENTRIES // n_read)), points)
    medians = [np.median(sample[:, part], axis=0) for part in parts]
    center = np.concatenate(medians).astype(points.dtype)
    if np.isnan(center).any():
        known = ~np.isnan(points)
        center = np.sum(points, axis=0, where=known) / np.maximum(known.sum(axis=0), 1)
    extremes = np.stack(_extremes(points)) - center
    exponent = np.frexp(np.nanmax(np.abs(extremes), initial=0.0))[1]
    # A power of two changes no digit, as long as it is itself a normal number.
    least = np.finfo(points.dtype).minexp
    scale = points.dtype.type(2.0 ** np.clip(-exponent, least, -least))

    def encode(rows: Array) -> Coded:
        codes = ((rows - center) * scale).astype(dtype, copy=False)
        if not masked:
            return _plain_codes(codes)
        # Values, squares and mask side by side, for `_common_part`.
        values = np.nan_to_num(codes, nan=0.0)
        return np.hstack([values, values**2, ~np.isnan(codes)]), np.zeros(len(rows), dtype)

    return encode, float(scale)


def _plain_codes(rows: Array) -> Coded:
    return rows, square_norms(rows).astype(rows.dtype)


def _comparison(masked: bool) -> Callable[[Array, Array], Array]:
    return _common_part if masked else _products


def _products(mine: Array, others: Array) -> Array:
    """Inner products of the rows, those of long rows summed up in double precision."""
    width = mine.shape[1]
    if width <= SUMMED:
        return np.asarray(mine @ others.T)
    total = np.zeros((len(mine), len(others)))
    for part in slices(width, SUMMED):
        total += mine[:, part] @ others[:, part].T
    return total.astype(mine.dtype, copy=False)


def _common_part(mine: Array, others: Array) -> Array:
    """Compare masked rows: minus one half of a lower bound of their gap."""
    (values, squares, known), n_features = np.hsplit(mine, 3), mine.shape[1] // 3
    other_values, other_squares, other_known = np.hsplit(others, 3)
    common = _products(known, other_known)
    norms = _products(squares, other_known) + _products(known, other_squares)
    rounding = 2 * (n_features + 10) * float(np.finfo(mine.dtype).eps)
    halves: Array = _products(values, other_values) - norms * ((1 - rounding) / 2)
    halves *= n_features / np.maximum(common, 1)
    halves[common == 0] = -np.inf
    return halves


def _axes_encoder(search: _Search) -> Encoder:
    """Coordinates along the principal axes of a sample, found by subspace iteration."""
    encode, rng = _centred_encoder(search.points)[0], np.random.default_rng(search.seed)
    codes, _ = encode(_sample(search.points, AXES_SAMPLE, rng))
    axes = rng.standard_normal((codes.shape[1], N_AXES), dtype=np.float32)
    for _ in range(4):
        axes = orthonormal(codes.T @ (codes @ axes))

    def encode_along_axes(rows: Array) -> Coded:
        # Norms are those of the whole rows: off the axes, rows are taken to be orthogonal.
        codes, norms = encode(rows)
        return codes @ axes, norms

    return encode_along_axes


def _sample(rows: Array, n_drawn: int, rng: np.random.Generator) -> Array:
    return rows[np.sort(rng.choice(len(rows), min(len(rows), n_drawn), replace=False))]


def _few(search: _Search) -> int:
    """Rows of a tile, fewer if they are long: what is made of them on the way is as long."""
    return min(max(1, CODED_ENTRIES // search.points.shape[1]), TILE)


def _encode_all(encode: Encoder, X: Array, order: Array | None, pool: ThreadPool) -> Coded:
    """Encode all rows in order, a tile at a time."""
    if order is not None and is_scratch(X):
        X, order = gathered(X, order), None
    row, norm = encode(X[:1])
    codes = empty_beside(X, (len(X), row.shape[1]), row.dtype)
    norms = np.empty(len(X), norm.dtype)

    def fill(place: slice) -> None:
        # A few rows at a time if they are long: what is made on the way is as long.
        for rows in slices(place.stop, max(1, CODED_ENTRIES // X.shape[1]), place.start):
            codes[rows], norms[rows] = encode(X[rows] if order is None else X[order[rows]])

    for places in in_groups(slices(len(X), TILE), X, codes):
        pool.map(fill, places)
    return codes, norms


def _empty_lists(n_rows: int, n_kept: int, dtype: Any) -> Lists:
    gaps = np.full((n_rows, n_kept), np.inf, dtype)
    return gaps, np.full(gaps.shape, -1, np.int32), np.full(n_rows, np.inf, dtype)


def _tiles(search: _Search, encode: Encoder, n_kept: int, points: Coded | None = None) -> Lists:
    """Smallest gaps of each query to any point, whose they are, and its squared norm."""
    codes, norms = points or _encode_all(encode, search.points, None, search.pool)
    lists = _empty_lists(len(search.queries), n_kept, codes.dtype)
    never, own_norms = np.full(len(codes), -np.inf, codes.dtype), np.empty_like(lists[2])
    rows, columns = slices(len(search.queries), TILE), slices(len(codes), TILE)
    locks, offer, product = [Lock() for _ in rows], compiled(_offer), _comparison(search.masked)

    def work(i: int) -> None:
        here, first = rows[i], i if search.own else 0
        numbers = np.arange(here.start, here.stop)
        mine = (codes[here], norms[here]) if search.own else encode(search.queries[here])
        own_norms[here] = mine[1]
        for j, there in enumerate(each(columns[first:], codes), first):
            # Among its own rows, a product serves the rows of both tiles.
            others, both = codes[there], search.own and i != j
            products = product(mine[0], others)
            limits = (lists[2] if both else never)[there]
            pairs = ((mine[1], norms[there]), numbers, there.start, search.selves[here], limits)
            # All threads take locks in the order of the tiles, so there is no deadlock.
            with locks[i], locks[j] if both else nullcontext():
                offer(products, *pairs, lists)

    search.pool.map(work, range(len(rows)))
    return lists[0], lists[1], own_norms


def _cells(search: _Search, encode: Encoder, n_kept: int) -> Found:
    """Points that each query found in the nearest few cells, and the queries in cell order."""
    pool, queries, points = search.pool, search.queries, search.points
    centers = _centers(search, encode)
    visits = _nearest_centers(queries, centers, _n_probes(search, encode, centers), encode, pool)
    homes = visits if search.own else _nearest_centers(points, centers, 1, encode, pool)
    order = np.argsort(homes[:, 0], kind="stable").astype(np.int32)
    edges, pieces, first = _cut(np.bincount(homes[:, 0], minlength=len(centers)))
    codes, norms = _encode_all(encode, points, order, pool)
    # Until the end, points are known by their place in the order of the cells.
    selves = np.full(len(queries), -1)
    if search.own:
        selves[order] = np.arange(len(points))
    lists = _empty_lists(len(queries), n_kept, np.float32)
    sizes = np.diff(edges)
    never, offer = np.full(sizes.max(), -np.inf, np.float32), compiled(_offer)

    def visit(cell: int, visitors: Array) -> None:
        inside, limits = slice(edges[cell], edges[cell + 1]), never[: sizes[cell]]
        for place in slices(len(visitors), TILE):
            rows = visitors[place]
            if search.own:
                mine, own_norms = codes[selves[rows]], norms[selves[rows]]
            else:
                mine, own_norms = encode(queries[rows])
            pairs = ((own_norms, norms[inside]), rows, inside.start, selves[rows], limits)
            offer(mine @ codes[inside].T, *pairs, lists)

    # In one round each query visits one cell, so no two threads work on the same list. Those
    # that come to a cell that was cut go to one of the pieces, each to another one.
    for cells in visits.T:
        cells = first[cells] + np.arange(len(cells)) % pieces[cells]
        queue = np.argsort(cells, kind="stable")
        ends = np.searchsorted(cells[queue], np.arange(1, len(edges) - 1))
        # Those who come to a cell are from about as many other cells as each of them visits.
        for jobs in in_groups(list(enumerate(np.split(queue, ends))), *[codes] * visits.shape[1]):
            pool.map(lambda job: visit(*job), jobs)
    return np.where(lists[1] < 0, -1, order[lists[1]]), np.argsort(visits[:, 0], kind="stable")


def _n_probes(search: _Search, encode: Encoder, centers: Array) -> int:
    """Number of nearest cells that hold most neighbours, tried out on a sample of queries."""
    rng = np.random.default_rng(search.seed)
    sample = search.some(_sample(np.arange(len(search.queries)), PROBE_SAMPLE, rng))
    near = _tiles(sample, encode, search.n_neighbors)[1]
    homes = _nearest_centers(search.points[near.ravel()], centers, 1, encode, search.pool)
    n_cells = min(MOST_PROBES, len(centers))
    visits = _nearest_centers(sample.queries, centers, n_cells, encode, search.pool)
    held = np.mean(visits[:, None] == homes.reshape(*near.shape, 1), axis=(0, 1))
    # Without a second cell, neighbours of neighbours would all be in the first one.
    return min(max(1 + int(np.searchsorted(np.cumsum(held), PROBE_SHARE)), 2), n_cells)


def _nearest_centers(
    rows: Array, centers: Array, n_probes: int, encode: Encoder, pool: ThreadPool
) -> Array:
    search = _Search(rows, centers, np.full(len(rows), -1), n_probes, 0, pool)
    return _tiles(search, encode, n_probes, points=_plain_codes(centers))[1]


def _centers(search: _Search, encode: Encoder) -> Array:
    """Centres of cells: k-means of a sample, which need not converge to make good cells."""
    rng, n_points = np.random.default_rng(search.seed), len(search.points)
    n_cells = int(np.ceil(min(CELLS * np.sqrt(n_points), n_points / LEAST_CELL)))
    sample, _ = encode(_sample(search.points, SAMPLE_PER_CELL * n_cells, rng))
    centers = _sample(sample, n_cells, rng)
    for _ in range(MEANS_PASSES):
        homes = _nearest_centers(sample, centers, 1, _plain_codes, search.pool)[:, 0]
        # A cell without points is dropped.
        _, starts, sizes = np.unique(np.sort(homes), return_index=True, return_counts=True)
        sums = np.add.reduceat(sample[np.argsort(homes, kind="stable")], starts, axis=0)
        centers = sums / sizes[:, None].astype(np.float32)
    return centers


def _cut(sizes: Array) -> tuple[Array, Array, Array]:
    """Cut large cells: edges of the pieces, how many each cell has, and the first of them."""
    limit = np.ceil(CELL_LIMIT * sizes.mean())
    pieces = np.maximum(np.ceil(sizes / limit), 1).astype(np.int32)
    first = (np.cumsum(pieces) - pieces).astype(np.int32)
    cell = np.repeat(np.arange(len(sizes)), pieces)
    part = np.arange(len(cell)) - first[cell]
    starts = (np.cumsum(sizes) - sizes)[cell] + sizes[cell] * part // pieces[cell]
    return np.append(starts, sizes.sum()), pieces, first


def _measured(
    search: _Search, candidates: Callable[[slice], Array], order: Array | None = None
) -> Found:
    """The nearest candidates of each query and their distances, in double precision.

    With ``order``, those of the queries in it and in that order; ``candidates`` gives those of a
    place in it, ascending.
    """
    n_queries = len(search.queries) if order is None else len(order)
    gaps, found, _ = _empty_lists(n_queries, search.n_neighbors, np.float64)

    def work(place: slice) -> None:
        mine = search.some(place if order is None else order[place])
        # Arrays of one kind only, lest the kernel be compiled for another one.
        offered = np.array(candidates(place), np.int32, order="C")
        lists = (gaps[place], found[place])
        compiled(_closest)(mine.queries, mine.points, offered, mine.selves, *lists)

    for places in in_groups(slices(n_queries, _few(search)), search.points):
        search.pool.map(work, places)
    return found, gaps


def _offer(
    block: Array, norms: Coded, rows: Array, first: int, selves: Array, limits: Array, lists: Lists
) -> None:
    """Kernel: put columns into the lists of near rows; within ``limits``, also rows into theirs.

    Lists are in the order of gap and index, whatever the order of the offers.
    """
    gaps, found, farthest = lists
    last = gaps.shape[1] - 1
    for r in range(len(block)):
        row, norm = rows[r], norms[0][r]
        for start in range(0, block.shape[1], CHUNK):
            part = block[r, start : start + CHUNK]
            others = norms[1][start : start + CHUNK]
            caps = limits[start : start + CHUNK]
            cap, near = gaps[row, last], np.int32(0)
            for c in range(len(part)):
                near += np.int32(norm + others[c] - part[c] - part[c] <= max(cap, caps[c]))
            if near == 0:
                continue
            for c in range(len(part)):
                gap = norm + others[c] - part[c] - part[c]
                column = first + start + c
                if gap > max(gaps[row, last], caps[c]) or column == selves[r]:
                    continue
                for side in range(1 + (gap <= caps[c])):
                    to, new = (row, column) if side == 0 else (column, row)
                    at = last + 1
                    while at > 0 and (gap, new) < (gaps[to, at - 1], found[to, at - 1]):
                        at -= 1
                        if at < last:
                            gaps[to, at + 1], found[to, at + 1] = gaps[to, at], found[to, at]
                    if at <= last:
                        gaps[to, at], found[to, at] = gap, new
                        farthest[to] = gaps[to, last]


def _closest(
    queries: Array, points: Array, candidates: Array, selves: Array, gaps: Array, found: Array
) -> None:
    """Kernel: put the nearest candidates into the lists of the queries."""
    n_features, last = points.shape[1], gaps.shape[1] - 1
    for r in range(len(queries)):
        for c in range(candidates.shape[1]):
            new = candidates[r, c]
            if new < 0 or new == selves[r]:
                continue
            gap, known = 0.0, 0
            for start in range(0, n_features, 256):
                mine, other = queries[r, start : start + 256], points[new, start : start + 256]
                for f in range(len(mine)):
                    difference = np.float64(mine[f]) - np.float64(other[f])
                    gap += difference * difference
                if gap > gaps[r, last]:
                    break
            # Only NaN differs from itself.
            if gap != gap:
                gap = 0.0
                for f in range(n_features):
                    difference = np.float64(queries[r, f]) - np.float64(points[new, f])
                    if difference == difference:
                        gap += difference * difference
                        known += 1
                gap = gap * (n_features / known) if known > 0 else np.inf
            at = last + 1
            while at > 0 and (gap < gaps[r, at - 1] or found[r, at - 1] < 0):
                at -= 1
                if at < last:
                    gaps[r, at + 1], found[r, at + 1] = gaps[r, at], found[r, at]
            if at <= last:
                gaps[r, at], found[r, at] = gap, new
            # Nothing is nearer than a duplicate, and later candidates lose the tie.
            if gaps[r, last] == 0:
                break
