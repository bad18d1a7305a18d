"""``robustpca separate``: what moves in a video, and what stays."""

import json
import re
from pathlib import Path
from typing import Annotated

from robustpca.cli.arguments import Force, Json, Key, Quiet, argument, components_of, option
from robustpca.cli.progress import counting

__all__ = ["run_separate"]

METHODS = ["masked", "median", "pca", "rpca", "frpcag", "tae", "grassmann", "pcaan"]
UNITS = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def bytes_of(text: str) -> float:
    """Number of bytes in a text such as 2GB."""
    match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?i?B?)\s*", text, re.IGNORECASE)
    unit = match.group(2).upper().replace("I", "") if match else ""
    unit = unit if unit in UNITS else f"{unit}B"
    try:
        if match and unit in UNITS:
            return float(match.group(1)) * UNITS[unit]
    except ValueError:
        pass
    raise ValueError(f"--memory {text} should be a number of bytes, as 2GB or 500MB.")


def run_separate(
    video: Annotated[
        str, argument("Film (.mp4 ...), .tif stack, folder of images, .npy; - for stdin.")
    ],
    out: Annotated[Path | None, option("Folder to write to.", "-o", "--out")] = None,
    method: Annotated[
        str,
        option(
            f"{', '.join(METHODS[:-1])} or {METHODS[-1]}: see the guide.",
            completion=lambda: METHODS,
        ),
    ] = "masked",
    components: Annotated[str, option("Number of components of the light, or auto.")] = "auto",
    horizon: Annotated[int, option("Frames over which the background is learned.", least=4)] = 3000,
    shadows: Annotated[
        bool, option("Whether shadows count as moving.", "--shadows/--no-shadows")
    ] = True,
    min_size: Annotated[int, option("Pixels that move together.", least=1)] = 12,
    memory: Annotated[str, option("Memory for frames and background, as 500MB.")] = "2GB",
    cutout: Annotated[
        bool, option("Also write what moves on transparent ground.", "--cutout")
    ] = False,
    rate: Annotated[float | None, option("Frames per second.")] = None,
    key: Key = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Separate what moves in a video from what stays.

    Writes background, foreground and mask as videos of the same size and rate, a list of the
    frames, a sheet of pictures and a page.
    """
    from robustpca.cli.request import command_line
    from robustpca.tools.video import VideoSeparator, open_frames
    from robustpca.tools.video.job import separate_video

    if method.lower() not in METHODS:
        raise ValueError(f"--method {method} is not known: choose from {', '.join(METHODS)}.")
    separator = VideoSeparator(
        method.lower(),
        n_components=components_of(components),
        horizon=horizon,
        shadows=shadows,
        min_size=min_size,
        memory=bytes_of(memory),
    )
    frames = open_frames(video, rate, key)
    if not quiet and not as_json:
        print(frames.summary(), flush=True)
    with counting("Separating frames", quiet or as_json) as report:
        found = separate_video(
            frames,
            out,
            separator=separator,
            cutout=cutout,
            force=force,
            command=command_line(),
            callback=lambda done, total: report(done, total or 0),
        )
    if as_json:
        print(json.dumps({"read": frames.summary(), **found.to_dict()}, indent=2))
        return
    print(found.verdict if quiet else found)
    if out is not None and not quiet:
        print(f"\nWrote the layers, frames.csv and report.html to {out}.")
