"""A right answer or one clear error, whatever is given: a sample of `make fuzz`, and its finds."""

from collections import Counter

import numpy as np
import pytest
from checks import fault, in_words, is_clear
from damaged import damaged, file_fault, write_all
from drawn import ESTIMATORS, Case, draw
from tables import JOBS, Question, question, question_fault

import robustpca

N_CASES, N_FILES, N_QUESTIONS = 200, 400, 100


@pytest.mark.parametrize("first", range(0, N_CASES, 20))
def test_random_cases_are_answered_or_refused(first):
    for case in map(draw, range(first, first + 20)):
        assert not fault(case), str(case)


def test_the_cases_reach_every_estimator_and_every_kind_of_data():
    cases = [draw(seed) for seed in range(1500)]
    assert {case.name for case in cases} == set(ESTIMATORS)
    assert min(Counter(case.name for case in cases).values()) > 30
    text = "\n".join(map(str, cases))
    for piece in ("float16", "csr_matrix", "np.nan", "asfortranarray", "writeable", "1e-2"):
        assert piece in text
    assert 50 < sum(case.refused for case in cases) < 300
    assert sum(case.planted for case in cases) > 100
    assert str(draw(17)) == str(draw(17))


# What the fuzzer and people have found; each was a NaN, a wrong answer or a foreign error.
FOUND = """
X = np.repeat(np.eye(2), 5, axis=0)
GLPCA(1)

X = np.eye(14)
RGLPCA(3)

X = np.repeat(np.eye(25), 3, axis=0).astype("f4")
RGLPCA()

X = np.eye(12)
MMF(11)

X = np.zeros((5, 6), "f4")
EPCA()

X = np.zeros((5, 6), "f4")
PCAOM()

X = np.zeros((5, 6), "f4")
ReweightedPCA(weighting="adaptive", solver="power")

X = np.zeros((5, 6), "f4")
R2DPCA((1, 1), image_shape=(2, 3))

X = sparse.csr_matrix(np.outer(np.arange(6.0), [1, 0, 0, 0, 0]))
RSPCA(3)

X = sparse.csr_matrix(np.ones((6, 5)))
L1PCA(3, center="geometric_median")

X = 1e4 + np.array([[0, 1, 2, 3], [3, 1, 0, 2]], "f4")
EPCA(1, max_weight=0.999)

X = 1e-90 * np.eye(5)
NCut(2)

X = 1e-175 * np.repeat(np.eye(40, 5), 3, axis=0)
LaplacianEigenmaps()

X = np.ones((25, 5)) + 1e5
GNMF(normalized=True, max_iter=50)

X = np.zeros((25, 1))
RPCA(n_components=1, noise=1.167)

X = np.zeros((3, 5)); X[0, 0] = 1e8
RGLPCA("auto")

X = np.ones((25, 5)); X[0, 0] = 1e8
EMPCA("auto")

X = np.zeros((25, 8)); X[:, 0] = 5.0
RPCA(7, solver="sampled", scale=None)

X = np.random.default_rng(0).standard_cauchy(size=(25, 14)).astype("f4"); X[::5] *= 1e6
LpPCA(p=29.69)

X = np.zeros((5, 3), "i1"); X[4] = [0, 2, 1]
GNMF(3, graph=sparse.csr_matrix((5, 5)), scale="free")

X = 1e-3 * np.eye(25, 5)
PCAAN(3, init="pca", max_iter=1)

X = np.eye(3)[np.arange(40) % 3]; X[:, 0] = 5.0
FRPCAG(3, standardize=False, tol=14.45)

X = np.array([[1e6, 0, 0], [0, 1e8, 1], [0, 1, 0]])
RPCA(solver="sampled")

X = np.ones((10, 4))
RPCAG()

X = np.outer(np.arange(25.0) % 7 - 3, [5, 3, 1, -1, -2]); X[0] = 0.0; X[:, 0] = 5.0
RPCA(4)

X = np.eye(25, 14, dtype="f4"); X[1::2] = X[0]
RSPCA(l1_bound=1.332, init="pca")

X = np.random.default_rng(40274).standard_cauchy((40, 40)); X[:, -1] = X[:, 0]; X[0, 0] = 1e8
RPCA(solver="sampled", tol=0.0, max_iter=50)

X = np.array([[5, 0, 0], [5, 1, 0], [5, 0, 1]]) + 1e6
LpPCA(3)

X = 1e200 * np.arange(50.0).reshape(25, 2); y = np.arange(25) % 2
RVFLClassifier()

X = np.array([[5.0, np.nan], [5.0, 28.0], [5.0, 1.0]])
FRPCAG(n_components=2, max_iter=5)

X = 1.0 * rng.integers(-3, 4, (25, 7)) @ rng.integers(-3, 4, (7, 40))
X[1::2] = X[0]; X[:, -1] = X[:, 0]; X = X + 1e6
RPCA(n_components=18, flag_rate=0.04228)

X = (rng.dirichlet(np.ones(5), size=25) + 1e8).astype("f4")
GNMF(3, n_neighbors=50, scale="free")

X = np.eye(40, 5, dtype="f4"); X[:, -1] = X[:, 0]; X[:, 0] = 5.0
NCut(n_init=50)

X = np.array([[1e8, 2, 0, 1, 1, 1, 2, 0]], "f4").T
RPCA(n_components="auto", sparsity=38.25)

rng = np.random.default_rng(26145586)
X = rng.normal(size=(2, 1)) @ rng.normal(size=(1, 40)) + 0.01 * rng.normal(size=(2, 40))
X[0] = 0.0; X = 1e-3 * np.abs(X)
RPCA(n_components="auto", solver="ialm")

X = np.eye(25, 5, dtype=bool); X[1::2] = X[0]; y = np.arange(25) % 2
Reweighted(KMeans(2, n_init=1, random_state=0))

X = np.eye(2, dtype="f4")[np.random.default_rng(90001263).integers(2, size=25)]
AngularEmbedding(2, power_iterations=0)

X = np.ones((25, 40)); X[0, 0] = 1e8; X[:, -1] = X[:, 0]
RPCA(n_components=4, noise=0.004584, solver="altproj", flag_rate=0.351)

X = np.ones((120, 5)); X[0] = 0.0; X *= 1e100
ReweightedPCA(n_components=4)
"""


@pytest.mark.parametrize("found", FOUND.strip().split("\n\n"))
def test_what_was_found_stays_repaired(found):
    *lines, model = found.split("\n")
    lines = ("rng = np.random.default_rng(718)", *lines)
    case = Case(model.partition("(")[0], lines, model, refused=False, planted=False)
    assert not fault(case)


def test_infinite_entries_are_refused_without_a_warning(rng):
    X = rng.normal(size=(20, 4)).astype(np.float32)
    X[0, 0], X[1, 1] = np.inf, -np.inf
    with pytest.raises(ValueError, match="infinity"):
        robustpca.EPCA(1).fit(X)


def test_new_rows_that_cannot_be_squared_are_refused_and_tiny_ones_are_not(rng):
    model = robustpca.EPCA(1).fit(rng.normal(size=(20, 4)))
    with pytest.raises(ValueError, match="squares overflow or vanish in float64: divide X by"):
        model.transform(np.full((1, 4), 1e200))
    assert np.isfinite(model.transform(np.full((1, 4), 1e-200))).all()


def test_errors_of_other_libraries_are_not_clear():
    def error_of(work):
        try:
            work()
        except Exception as error:
            return error

    ours = error_of(lambda: robustpca.EPCA(n_components=0).fit(np.eye(4)))
    assert is_clear(ours)
    assert "n_components" in in_words(ours)
    assert is_clear(error_of(lambda: robustpca.EPCA(9).fit(np.eye(4))))
    assert not is_clear(error_of(lambda: np.ones(3) + np.ones(4)))
    assert not is_clear(error_of(lambda: np.linalg.inv(np.zeros((2, 2)))))
    assert not is_clear(error_of(lambda: [][0]))


@pytest.fixture(scope="module", name="healthy")
def _healthy_files(tmp_path_factory):
    for module in ("h5py", "pandas", "zarr", "PIL", "openpyxl", "pyarrow"):
        pytest.importorskip(module)
    return write_all(tmp_path_factory.mktemp("healthy"))


def test_healthy_files_are_read(healthy):
    assert [path.name for path in healthy if file_fault(path)] == []


def test_damaged_files_are_read_or_refused(healthy, tmp_path):
    faults = {}
    for seed in range(N_FILES):
        path = damaged(healthy, seed, tmp_path)
        faults[path.name] = file_fault(path)
    assert {name: words for name, words in faults.items() if words} == {}


@pytest.mark.parametrize("first", range(0, N_QUESTIONS, 20))
def test_questions_about_random_tables_are_answered_or_refused(first):
    pytest.importorskip("pandas")
    for asked in map(question, range(first, first + 20)):
        assert not question_fault(asked), str(asked)


def test_the_questions_reach_every_job():
    questions = [question(seed) for seed in range(200)]
    assert {asked.job for asked in questions} == set(JOBS)
    assert str(question(17)) == str(question(17))


# Tables of which a job said what an estimator inside said of other data, or warned of numbers.
QUESTIONS_FOUND = """
X = np.tile([1.0, 2.0, 3.0], (30, 1))
check

X = np.zeros((25, 3)); X[0, 0] = 1e8
suggest

X = np.repeat(np.eye(25), 3, axis=0); X[0, 0] = 1e8
check

X = 1e8 + np.ones((40, 8)); X[0] = 1e8; X[rng.random(X.shape) < 0.1] = np.nan
tune

X = np.ones((25, 5), complex)
tune

X = np.full((25, 5), "word")
find_rows

X = 1e214 * rng.normal(size=(40, 5))
find_rows

X = 1.0 * rng.integers(-3, 4, (25, 6)) @ rng.integers(-3, 4, (6, 25)); X[0] = 0; X[1::2] = 0
clean_entries

X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 8)); X[:, 0] = 1e30
clean_entries

X = np.eye(12, 2)
check

X = np.zeros((120, 8)); X[:15, 0] = X[10:25, 1] = 1.0
check

X = 1e-8 * rng.poisson(0.5, size=(10, 40)); X[1::2] = X[0]
check
"""


@pytest.mark.parametrize("found", QUESTIONS_FOUND.strip().split("\n\n"))
def test_what_was_found_in_tables_stays_repaired(found):
    *lines, job = found.split("\n")
    lines = ("rng = np.random.default_rng(598)", *lines)
    assert not question_fault(Question(job, lines))
