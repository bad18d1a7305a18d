"""How numbers, times and positions are written, the same in text, LaTeX and HTML."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["count", "number", "parameters", "percent", "position", "power", "time", "value"]


def number(value: float, digits: int = 4) -> str:
    """A number with a few digits; a dash if there is none.

    Examples
    --------
    >>> from robustpca.bench.formats import number
    >>> number(168123456.0), number(0.5), number(float("nan"))
    ('1.681e8', '0.5', '-')
    """
    return "-" if math.isnan(value) else f"{value:.{digits}g}".replace("e+0", "e")


def power(exponent: int) -> str:
    """A power of ten.

    Examples
    --------
    >>> from robustpca.bench.formats import power
    >>> power(-2), power(3), power(6)
    ('0.01', '1000', '1e6')
    """
    return f"{10.0**exponent:g}" if -3 <= exponent <= 3 else f"1e{exponent}"


def percent(share: float) -> str:
    """A signed share in percent with two digits, or without decimals from a hundred on.

    Examples
    --------
    >>> from robustpca.bench.formats import percent
    >>> percent(0.1234).replace("\N{NO-BREAK SPACE}", " ")
    '+12 %'
    """
    hundredths = 100 * share
    text = f"{hundredths:+.2g}" if abs(hundredths) < 99.5 else f"{hundredths:+.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def count(number: int, noun: str) -> str:
    """A number of things, in the singular or the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def time(seconds: float) -> str:
    """Seconds with their unit."""
    return "-" if math.isnan(seconds) else f"{seconds:.3g} s"


def value(given: Any) -> str:
    """A parameter in its shortest form."""
    return f"{given:g}" if isinstance(given, float) else str(given)


def parameters(given: Mapping[str, Any]) -> str:
    """Names and values in one line.

    Examples
    --------
    >>> from robustpca.bench.formats import parameters
    >>> parameters({"n_components": 10, "sigma": 2.0})
    'n_components=10, sigma=2'
    """
    return ", ".join(f"{name}={value(one)}" for name, one in given.items())


def position(dataset: str, corruption: str, settings: Mapping[str, Any]) -> str:
    """Data set, corruption and settings in one line, without those that are empty."""
    return ", ".join(part for part in (dataset, corruption, parameters(settings)) if part)
