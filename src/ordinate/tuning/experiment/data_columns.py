"""The columns of training data, by what they hold."""

from dataclasses import dataclass
from typing import Annotated

from ordinate.readers.columns import (
    Delimiter,
    Encoding,
    FileOptions,
    LabelMapFile,
    Sheet,
    TidyLabels,
)
from ordinate.scale.declaration_files import read_label_map
from ordinate.scale.label_maps import LabelMap
from ordinate.settings import Setting

BY_NAME = "by its name"


def _declare_column(flag: str, help_: str, default: str | None = None) -> Setting:
    return Setting(help_, metavar="COL", default=default, flag=flag)


@dataclass(frozen=True)
class DataColumns:
    """Which columns hold what, and how files are read; None is recognised by its name.

    `group` is a column of items that belong together (writers, topics); without it there is none.
    Labels are `renamed`, or by the file of a `label_map`, and tidied where that was said.
    """

    label: Annotated[
        str | None, _declare_column("--label-column", "column of the levels", BY_NAME)
    ] = None
    text: Annotated[
        str | None, _declare_column("--text-column", "column of the texts", BY_NAME)
    ] = None
    id: Annotated[str | None, _declare_column("--id-column", "column of the ids", BY_NAME)] = None
    group: Annotated[
        str | None, _declare_column("--group-column", "column of clusters of items (writers, …)")
    ] = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    sheet: Sheet = None
    label_map: LabelMapFile = None
    tidy_labels: TidyLabels = None
    renamed: dict[str, str | None] | None = None

    @property
    def spelling(self) -> LabelMap:
        """How labels become levels."""
        renamed = self.renamed if self.label_map is None else read_label_map(self.label_map)
        return LabelMap(renamed, tidy=bool(self.tidy_labels))

    @property
    def file_options(self) -> FileOptions:
        """How text files are written, and which sheet of a spreadsheet has the data."""
        return FileOptions(delimiter=self.delimiter, encoding=self.encoding, sheet=self.sheet)
