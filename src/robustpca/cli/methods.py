"""``robustpca methods``."""

__all__ = ["show_methods"]


def show_methods() -> None:
    """Print every estimator with the first line of its documentation."""
    from robustpca.models import all_estimators

    found = all_estimators()
    width = max(map(len, found))
    for name, kind in found.items():
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        print(f"{name:<{width}}  {kind.__module__.rpartition('.')[2]:<12}  {summary}")
