"""Parts of a report: results that join that of another."""

from dataclasses import dataclass

from ordinate.render import Block, Document
from ordinate.results.base import Record, Result


@dataclass(frozen=True)
class ReportPart:
    """A result that joins the report of another: its sentences and grids, its JSON, its records.

    `opening` comes before its title, `title` is a head above it.
    """

    name: str
    result: Result
    opening: str = ""
    title: str = ""
    notes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    def list_blocks(self) -> list[Block]:
        """Return its sentences and grids."""
        document = self.result.document()
        if self.title:
            return [Document(self.title, (document,), notes=self.notes)]
        opening = [f"{self.opening}: {document.title}."] if self.opening else []
        return [*opening, *self.sentences, document]

    def rows(self) -> list[Record]:
        """Return flat records that say which part they are of."""
        return [
            row | {"part": f"{self.name}: {row['part']}" if "part" in row else self.name}
            for row in self.result.rows()
        ]
