"""``robustpca compare``."""

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import components_of, option
from robustpca.cli.progress import counting
from robustpca.cli.request import Request
from robustpca.cli.rows import draw_map

__all__ = ["run_compare"]


def run_compare(
    request: Request,
    methods: Annotated[
        str | None, option("Names from `methods`, PCA, module:Class, or all.")
    ] = None,
    corrupt: Annotated[
        list[str] | None,
        option("Plant this instead, as reset_entries:samples=0.2; may be repeated."),
    ] = None,
    components: Annotated[str, option("Dimension of the subspaces.")] = "auto",
    image_shape: Annotated[str | None, option("Height x width, as 32x32.")] = None,
    seeds: Annotated[int, option("How often troubles are drawn.", least=1)] = 3,
) -> None:
    """Find the method that is best on my data.

    Bad rows, wrong cells and missing cells are planted in the data, so that the truth is known;
    each method is measured by how near it comes to it, beside PCA.
    """
    from robustpca.bench.compare import USUAL_METHODS, compare

    # Classes of the user lie where the command is given; a console script searches elsewhere.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    names: tuple[str, ...] = USUAL_METHODS
    if methods is not None:
        names = tuple(name.strip() for name in methods.split(",") if name.strip())
    shape = None if image_shape is None else _sides(image_shape)
    n_components = components_of(components)
    table = request.read()
    options: dict[str, Any] = {
        "corrupt": list(corrupt or []),
        "n_components": n_components,
        "image_shape": shape,
        "seeds": seeds,
    }
    options_used = {"methods": names, **options}
    with request.page() as write_page, request.outputs(table, options_used) as outputs:
        if outputs is not None:
            trials = outputs.claim(None if outputs.file else "compare.csv")
            text, picture = outputs.claim("compare.txt"), outputs.claim("map.png")
        with counting("Comparing", request.quiet) as progress:
            result = compare(table, names, **options, progress=progress)
        if outputs is not None:
            with trials.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(vars(result.trials[0]))
                writer.writerows(vars(one).values() for one in result.trials)
            text.write_text(f"{table.summary()}\n\n{result}\n", encoding="utf-8")
            draw_map(result.rows, picture)
        write_page(result)
    request.show(table, result, outputs)
    if result.failed:  # every fit
        raise SystemExit(1)


def _sides(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.split("x"))
    except ValueError:
        raise ValueError(f"--image-shape {text} should be height and width as in 32x32.") from None
    return height, width
