"""`--sql` and `--query`: rows of a database in place of files."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ordinate.cli.flags import add_flags, collect_given
from ordinate.errors import BadOption
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.readers.tables import LazyTable

PLACES = "files and databases"  # the options that say where rows are, and how they are written
OF_JOINS = ("gold_file", "id", "row_order")
OF_FORMATS = ("delimiter", "encoding", "quote", "header", "columns", "hive", "lenient", "memory")
OF_FILES = (*OF_JOINS, *OF_FORMATS)  # those of files alone


def add_place_options(parser: argparse.ArgumentParser, columns: type) -> None:
    """Add the options that say where the rows of columns are, and how they are written."""
    from ordinate.readers.columns import DatabaseRows

    group = parser.add_argument_group(PLACES)
    add_flags(group, columns, OF_JOINS)
    add_flags(group, columns, OF_FORMATS)
    add_flags(group, DatabaseRows)


@contextmanager
def open_rows(
    options: argparse.Namespace, not_yet: Sequence[str] = ()
) -> "Iterator[LazyTable | None]":
    """Give the rows of the database that was named, None where there are files.

    Options in `not_yet` have no meaning for a database, as those of files have none.
    """
    from ordinate.readers.columns import DatabaseRows
    from ordinate.readers.databases import Query, connect_database
    from ordinate.readers.tables import LazyTable, open_table

    given = DatabaseRows(**collect_given(options, DatabaseRows))
    if (given.sql is None) != (given.query is None):
        raise BadOption("--sql names a database, and --query its rows: give both.")
    if given.sql is None or given.query is None:
        if not options.files:
            raise BadOption(
                "Name a file, or a database with --sql URL --query 'select …' "
                f"(see ordinate {options.command} --help)."
            )
        yield None
        return
    if options.files:
        raise BadOption("Name files, or a database with --sql, not both.")
    for name in (*OF_FILES, "items", *not_yet):
        if getattr(options, name, None):
            raise BadOption(f"{format_flag(name)} is for files, not for the rows of a database.")
    with connect_database(given.sql) as connection:
        table = open_table(Query(connection, given.query))
        assert isinstance(table, LazyTable)  # noqa: S101 - a query is one
        yield table
