"""Items that belong together, numbered inside the engine in the order in which groups appear."""

from collections.abc import Callable

from ordinate.readers.duckdb_connection import Connection, read_rows
from ordinate.readers.query import ItemQuery

FILE_ROW_OFFSET = 1 << 40  # more rows than a file has: `nth` counts on from file to file


def store_cluster_counts(
    connection: Connection, items: list[ItemQuery], grouping: Callable[[ItemQuery, str], str]
) -> None:
    """Keep the counts of each group in the engine, as `counted`: there may be millions of groups.

    `grouping` is SQL that counts the items of a file, with further columns.
    """
    for index, part in enumerate(items):
        further = f", cluster, min(nth) + {index * FILE_ROW_OFFSET} AS nth"
        begin = "INSERT INTO counted" if index else "CREATE TEMP TABLE counted AS"
        read_rows(connection, f"{begin} {grouping(part, further)}", part.name)


def build_cluster_number_sql(items: str) -> str:
    """Return SQL that adds the number of a cluster; items without one come after the last."""
    first = "CASE WHEN cluster IS NOT NULL THEN min(nth) OVER (PARTITION BY cluster) END AS first"
    return (
        "SELECT *, dense_rank() OVER (ORDER BY first) - 1 AS number, cluster IS NULL AS alone "
        f"FROM (SELECT *, {first} FROM ({items}))"
    )


def read_clusters(connection: Connection, items: str, name: str) -> list[str]:
    """Return the clusters by their numbers."""
    query = (
        f"SELECT cluster FROM ({items}) WHERE cluster IS NOT NULL GROUP BY cluster "
        "ORDER BY min(nth)"
    )
    return [row[0] for row in read_rows(connection, query, name)]
