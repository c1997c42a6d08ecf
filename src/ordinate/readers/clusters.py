"""Items that belong together, numbered inside the engine in the order in which groups appear."""

from collections.abc import Callable

from ordinate.readers.duckdb_engine import Connection
from ordinate.readers.files import read
from ordinate.readers.query import Items

FILE = 1 << 40  # more rows than a file has: `nth` counts on from file to file


def store(
    connection: Connection, items: list[Items], grouping: Callable[[Items, str], str]
) -> None:
    """Keep the counts of each group in the engine, as `counted`: there may be millions of groups.

    `grouping` is SQL that counts the items of a file, with further columns.
    """
    for index, part in enumerate(items):
        further = f", cluster, min(nth) + {index * FILE} AS nth"
        begin = "INSERT INTO counted" if index else "CREATE TEMP TABLE counted AS"
        read(connection, f"{begin} {grouping(part, further)}", part.name)


def numbered(items: str) -> str:
    """Return SQL that adds the number of a cluster; items without one come after the last."""
    first = "CASE WHEN cluster IS NOT NULL THEN min(nth) OVER (PARTITION BY cluster) END AS first"
    return (
        "SELECT *, dense_rank() OVER (ORDER BY first) - 1 AS number, cluster IS NULL AS alone "
        f"FROM (SELECT *, {first} FROM ({items}))"
    )


def clusters(connection: Connection, items: str, name: str) -> list[str]:
    """Return the clusters by their numbers."""
    query = (
        f"SELECT cluster FROM ({items}) WHERE cluster IS NOT NULL GROUP BY cluster "
        "ORDER BY min(nth)"
    )
    return [row[0] for row in read(connection, query, name)]
