"""The command line, ``robustpca``: parses arguments and calls the library, nothing more.

A verb and its arguments are in the file of its name; `app` lists all of them. Nothing of the
library is imported before a verb runs.
"""

__all__ = ["main"]


def main() -> None:
    """Entry point of the console script; stopped at any moment, it ends with a word."""
    try:
        from robustpca.cli.app import main as run

        run()
    except KeyboardInterrupt:
        import sys

        print("Stopped.", file=sys.stderr)
        raise SystemExit(130) from None
