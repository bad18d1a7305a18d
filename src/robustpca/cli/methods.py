"""``robustpca methods``."""

__all__ = ["show_methods"]


def show_methods() -> None:
    """Print every estimator, whether it takes data larger than memory, and what it is."""
    from robustpca.models import all_estimators

    found = all_estimators()
    width = max(map(len, found))
    print(f"{'method':<{width}}  {'family':<12}  {'data':<10}  description")
    for name, kind in found.items():
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        data = "in blocks" if getattr(kind, "_by_blocks", False) else "in memory"
        print(f"{name:<{width}}  {kind.__module__.rpartition('.')[2]:<12}  {data:<10}  {summary}")
    print("\nMethods with data in blocks fit files and clusters that exceed the memory.")
