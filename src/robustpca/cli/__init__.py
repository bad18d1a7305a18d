"""The command line, ``robustpca``: parses arguments and calls the library, nothing more.

`app` declares the arguments of all verbs; what a verb does is in the file of its name. Nothing of
the library is imported before a verb runs.
"""

from robustpca.cli.app import main

__all__ = ["main"]
