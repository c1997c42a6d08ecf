"""Options of files and databases, which `--help-files` shows: how rows are read and joined."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated, TextIO, cast

from ordinate.cli.flags import add_flags, collect_given
from ordinate.cli.help import FILES, ShowFileOptions
from ordinate.errors import BadOption
from ordinate.settings import Setting, format_flag, list_settings

if TYPE_CHECKING:
    from ordinate.readers.columns import Files
    from ordinate.readers.databases import Query
    from ordinate.readers.tables import LazyTable

LABEL_COLUMNS = (
    *("gold", "predicted", "weights", "by", "groups", "second_rater", "probabilities"),
    *("gold_file", "id", "row_order"),
)
SYSTEM_COLUMNS = ("gold", "systems", "predicted", "weights", "groups", "id")
OF_FORMATS = (
    *("row_order", "delimiter", "encoding", "quote", "header", "columns", "hive", "bad_lines"),
    *("memory", "decimal", "sheet"),
)
OF_FILES = ("gold_file", "id", *OF_FORMATS)  # what has no meaning for a database


@dataclass(frozen=True)
class DatabaseRows:
    """Rows of a database, in place of files."""

    sql: Annotated[
        str | None,
        Setting(
            "address of a database, in place of files: sqlite:///FILE, duckdb:///FILE or "
            "postgresql://USER:PASSWORD@HOST/NAME",
            metavar="URL",
        ),
    ] = None
    query: Annotated[
        str | None, Setting("its rows, which are counted there: select …", metavar="SELECT")
    ] = None


def add_column_options(
    parser: argparse.ArgumentParser,
    group: argparse._ActionsContainer,
    columns: type,
    only: Collection[str] | None = None,
    *,
    without: Collection[str] = (),
    databases: bool = False,
) -> argparse._ActionsContainer:
    """Add the flags of columns; those of files go into the group of --help-files, returned.

    `only` names the columns, and how files are joined, where not everything has a flag.
    """
    from ordinate.readers.columns import FileOptions

    of_files = {x.name for x in list_settings(FileOptions)}
    apart = parser.add_argument_group(FILES)
    parser.add_argument(
        "--help-files",
        action=ShowFileOptions,
        nargs=0,
        default=argparse.SUPPRESS,
        help="show the options of files (delimiter, encoding, label map, …) and of databases, "
        "and exit",
    )
    add_flags(group, columns, only, without=(*OF_FORMATS, *without))
    shown = [x for x in OF_FORMATS if only is None or x in only or x in of_files]
    add_flags(apart, columns, shown, without=without)
    if databases:
        add_flags(apart, DatabaseRows)
    return apart


@contextmanager
def open_source(
    options: argparse.Namespace, not_yet: Sequence[str] = ()
) -> "Iterator[Files | Query]":
    """Give the files that were named, or the rows of a database.

    Options in `not_yet` have no meaning for a database, as those of files have none.
    """
    from ordinate.cli.progress import watch_files
    from ordinate.readers.columns import Files

    given = DatabaseRows(**collect_given(options, DatabaseRows))
    if (given.sql is None) != (given.query is None):
        raise BadOption("--sql names a database, and --query its rows: give both.")
    if given.sql is None or given.query is None:
        if not options.files:
            raise BadOption(
                "Name a file, or a database with --sql URL --query 'select …' "
                f"(see ordinate {options.command} --help)."
            )
        yield Files(options.files, watch=watch_files, **collect_given(options, Files))
        return
    if options.files:
        raise BadOption("Name files, or a database with --sql, not both.")
    for name in (*OF_FILES, "items", *not_yet):
        if getattr(options, name, None):
            raise BadOption(f"{format_flag(name)} is for files, not for the rows of a database.")
    from ordinate.cli.database_addresses import connect_database
    from ordinate.readers.databases import Query

    with connect_database(given.sql) as connection:
        yield Query(connection, given.query)


@contextmanager
def open_rows(
    options: argparse.Namespace, not_yet: Sequence[str] = ()
) -> "Iterator[LazyTable | None]":
    """Give the rows of the database that was named, None where there are files."""
    from ordinate.readers.columns import Files
    from ordinate.readers.tables import LazyTable, open_table

    with open_source(options, not_yet) as source:
        table = None if isinstance(source, Files) else open_table(source)
        assert table is None or isinstance(table, LazyTable)  # noqa: S101 - a query is one
        yield table


@contextmanager
def keep_standard_input() -> Iterator[None]:
    """Let standard input be read twice, as predicted levels and probabilities are."""
    given = sys.stdin
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(given.buffer, copy)
        sys.stdin = cast("TextIO", _Rewound(copy))
        try:
            yield
        finally:
            sys.stdin = given


class _Rewound:
    """Bytes in place of standard input, which begin anew each time that they are asked for."""

    def __init__(self, copy: IO[bytes]) -> None:
        self.copy = copy

    @property
    def buffer(self) -> IO[bytes]:
        """The bytes from the first one on."""
        self.copy.seek(0)
        return self.copy
