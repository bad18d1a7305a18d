"""Read what people have, and write what they want, in the format it came in.

`table` has the values that are read and what is written of them; `text` reads delimited text,
`columns` decides which columns of a table are used, `arrays` reads files of arrays, `large` those
that memory need not hold, and `images` reads folders and stacks of images.
"""

from robustpca.tools.files.images import write_folder
from robustpca.tools.files.large import LargeTable, open_large, row_writer
from robustpca.tools.files.reading import KINDS, of_frame, read
from robustpca.tools.files.table import Layout, Table
from robustpca.tools.files.writing import WRITABLE, with_values, write_like

__all__ = [
    "KINDS",
    "WRITABLE",
    "LargeTable",
    "Layout",
    "Table",
    "of_frame",
    "open_large",
    "read",
    "row_writer",
    "with_values",
    "write_folder",
    "write_like",
]
