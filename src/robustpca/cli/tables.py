"""Tables that verbs write: in the format that was read, if it can be written."""

from typing import Any

__all__ = ["TABLES", "extension_of", "new_frame"]

# Formats in which a table with columns of text can be written as it was read.
TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".xlsx", ".parquet")


def extension_of(table: Any, kinds: tuple[str, ...], otherwise: str = ".csv") -> str:
    """The extension of the file that was read, if files of that kind can be written."""
    suffixes = [suffix.lower() for suffix in table.path.suffixes]
    for found in ("".join(suffixes[-2:]), "".join(suffixes[-1:])):
        if found in kinds:
            return found
    return otherwise


def new_frame(values: Any, columns: Any = None) -> Any:
    """A data frame of values."""
    from robustpca.tools.files.table import extra

    return extra("pandas", "Writing tables").DataFrame(values, columns=columns)
