"""How much memory there is."""

from pathlib import Path

from robustpca.engine.rows import Rows

__all__ = ["available_bytes", "refuse_too_large"]

# Limit, use, and what can be given back of it, where containers find them.
CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


def available_bytes() -> float:
    """Memory that this process can still have; infinity where the system does not say.

    Linux counts what can be freed at once, as caches of files; a container may have less.
    """
    found = [float("inf")]
    if "MemAvailable" in (lines := _numbers(MEMINFO)):
        found.append(1024 * lines["MemAvailable"])
    try:
        limit = float((CGROUP / "memory.max").read_text())
        used = float((CGROUP / "memory.current").read_text())
        cached = _numbers(CGROUP / "memory.stat").get("inactive_file", 0.0)
        found.append(max(limit - used + cached, 0.0))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return min(found)


def _numbers(path: Path) -> dict[str, float]:
    """Numbers by name, of a file with one of them in each line."""
    try:
        words = [line.replace(":", " ").split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {name: float(value) for name, value, *_ in words}


def refuse_too_large(rows: Rows, name: str) -> None:
    """Say before anything is read that memory cannot hold all rows, which a method needs."""
    n_bytes, free = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize, available_bytes()
    if n_bytes > free:
        raise MemoryError(
            f"{name} needs all rows at once: X of shape {rows.shape} takes {shown(n_bytes)}, and "
            f"{shown(free)} of memory are free. Use a method that reads blocks of rows, such as "
            "PCAAN or EPCA (`robustpca methods NAME` says which do), or fit some of the rows."
        )


def shown(n_bytes: float) -> str:
    """A number of bytes, as in '3.2 GB'."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
