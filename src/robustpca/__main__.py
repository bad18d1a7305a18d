"""``python -m robustpca``: the command line where the script ``robustpca`` is not on the path."""

from robustpca.cli import main

if __name__ == "__main__":  # workers of a benchmark import this file, too
    main()
