"""What to change if a decomposition with a nuclear norm is trivial, or its columns have units."""

from typing import Any

from robustpca.engine.linalg import Array
from robustpca.parts.units import unit_differences


def units_advice(model: Any, X: Array) -> tuple[Warning, ...]:
    """What to change if columns of different units were taken as they are."""
    if model.center is not None and model.scale is not None:
        return ()
    found = unit_differences(X)
    hidden = (found.medians and model.center is None) or (found.spreads and model.scale is None)
    if not hidden:
        return ()
    return (
        UserWarning(
            f"{type(model).__name__}: the medians or spreads of the columns differ so much that "
            "they seem to have different units, and errors in small columns are not visible "
            "beside large ones. Set center='median' and scale='mad', or leave both at 'auto'."
        ),
    )


def pursuit_advice(
    model: Any, rank: int, density: float, noise: float, sparsity: float, short: int
) -> tuple[Warning, ...]:
    """What to change if the decomposition is trivial."""
    solver = getattr(model, "solver", "admm")
    if solver == "sampled":
        # It has checked its result, and takes the rank and the noise from the data.
        return ()
    if solver == "altproj":
        if not ((density == 0 and rank > 0) or rank == short > 1):
            return ()
        advice = (
            f"low_rank_ has rank {rank} and sparse_ a density of {density:.3g}. Lower "
            f"n_components={model.n_components}."
        )
    elif density == 0 and rank > 0 and noise == 0:
        advice = (
            f"sparse_ is all zero and low_rank_ is the data: sparsity={sparsity:.3g} is too high "
            "for them. Lower it, and see sparsity_path."
        )
    elif rank == 0 and density > 0:
        advice = (
            f"low_rank_ is zero and sparse_ is the data: sparsity={sparsity:.3g} is too low for "
            "them. Raise it, and see sparsity_path."
        )
    elif rank == short > 1:
        advice = (
            f"low_rank_ has full rank {rank}. Lower sparsity={sparsity:.3g}, or set noise='auto' "
            "if the entries carry dense noise."
        )
    else:
        return ()
    return (UserWarning(f"{type(model).__name__}: {advice}"),)
