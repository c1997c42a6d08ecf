"""Parts of a report: results that join that of another."""

from dataclasses import dataclass, replace

from ordinate.render import Block
from ordinate.results.base import Record, Result

MOST_SHOWN_SUBGROUPS = 12  # on a terminal


def describe_many_subgroups(count: int) -> str:
    """Say where subgroups are that a terminal does not show."""
    return f"The {count:,} subgroups, which are many, are in a file (-o) and in JSON."


@dataclass(frozen=True)
class ReportPart:
    """A result that joins the report of another: its sentences and grids, its JSON, its records.

    `opening` says what its verdict is about.
    """

    name: str
    result: Result
    opening: str = ""
    notes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    def list_blocks(self) -> list[Block]:
        """Return its sentences and grids."""
        document = self.result.document()
        notes = (*document.notes, *self.notes)
        if not self.opening:
            return [*self.sentences, replace(document, notes=notes)]
        titled = replace(document, verdict=f"{self.opening}: {document.verdict}", notes=notes)
        return [*self.sentences, f"{document.title}.", titled]

    def rows(self) -> list[Record]:
        """Return flat records that say which part they are of."""
        return [
            row | {"part": f"{self.name}: {row['part']}" if "part" in row else self.name}
            for row in self.result.rows()
        ]
