"""Print the lowest supported version of every dependency and extra, as constraints for pip.

They come from the lower bounds in ``pyproject.toml``, so there is no second list to maintain.
"""

import itertools
import re
import tomllib
from pathlib import Path

# The lowest versions use these without an upper bound and cause warnings, which are errors in
# tests, with newer ones: matplotlib 3.8 the first, scikit-learn 1.6 the second.
CONTEMPORARIES = ("pyparsing<3.2", "pytest<9")


def main() -> None:
    """Print one constraint a line."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"].values()
    for requirement in itertools.chain(project["dependencies"], *extras):
        if requirement.startswith("robustpca["):  # an extra that names other extras
            continue
        bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement)
        if bound is None:
            raise ValueError(f"{requirement!r} has no lower bound such as name>=1.2.")
        print(f"{bound[1]}=={bound[2]}")
    print(*CONTEMPORARIES, sep="\n")


if __name__ == "__main__":
    main()
