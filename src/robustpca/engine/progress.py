"""What a loop tells while it runs, and what it says of its end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from robustpca.engine.linalg import Array


@dataclass(frozen=True)
class Progress:
    """What a callback receives after each pass of any loop.

    Attributes
    ----------
    iteration : int
        Number of passes so far.
    objective : float
        The objective, or the latest value that is known.
    change : float
        What is compared with ``tol``.
    n_active : int or None
        Samples with a positive weight (reweighted methods).
    rank : int or None
        Rank of the low-rank part (RPCA, RPCAG).
    stage : int or None
        The component at work (methods that find components one by one).
    n_restarts : int or None
        Restarts of the momentum so far (FRPCAG).
    phase : str or None
        Part of the method that is running: 'splitting' and 'polishing' (RGLPCA); 'noise' while it
        is estimated, and 'refit', whose objective are the squared residuals that count, in
        units of the noise (RPCA, RPCAG).
    counted : bool
        Whether the pass is one of ``n_iter_`` and ``objective_``: those of 'noise' and 'refit' are
        not, and are compared with no tolerance of the user.
    method : str or None
        Class of the estimator.
    tol : float or None
        Its tolerance: the loop ends when ``change`` is below.
    max_iter : int or None
        Its largest number of passes.
    """

    iteration: int
    objective: float
    change: float
    n_active: int | None = None
    rank: int | None = None
    stage: int | None = None
    n_restarts: int | None = None
    phase: str | None = None
    counted: bool = True
    method: str | None = None
    tol: float | None = None
    max_iter: int | None = None

    @property
    def detail(self) -> str:
        """The fields that only some methods have, in words."""
        words = {
            "n_active": f"{self.n_active} active",
            "rank": f"rank {self.rank}",
            "stage": f"stage {self.stage}",
            "n_restarts": f"{self.n_restarts} restarts",
            "phase": self.phase,
        }
        return ", ".join(str(text) for name, text in words.items() if vars(self)[name] is not None)


Callback = Callable[[Any], object]


def ignore(progress: Progress) -> None:
    """The callback of a loop without one given by the user."""


class Ending(Protocol):
    """What every loop's result says of how it ended."""

    @property
    def objective(self) -> Array:
        """Objective at the start and after each pass."""

    @property
    def n_iter(self) -> int:
        """Number of passes."""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""

    @property
    def change(self) -> float:
        """The last value of what is compared with the tolerance."""


@dataclass(frozen=True)
class ClosedForm:
    """The ending of a method that needs no loop."""

    objective: Array
    n_iter: int = 1
    converged: bool = True
    change: float = 0.0
