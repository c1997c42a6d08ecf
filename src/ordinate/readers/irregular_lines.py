"""What is irregular in the files of a campaign: counted by kind, with the first example of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ordinate.errors import BadInput

MOST_KINDS_LISTED = 8  # kinds that an error lists


class IrregularityKind(StrEnum):
    """The kinds of irregularity; a line is of the first that fits."""

    ENCODING = "bytes that are not UTF-8"
    QUOTES = "malformed quotes"
    COLUMNS = "wrong number of columns"
    TEST_CASE = "empty test case"
    ID = "empty id"
    UNKNOWN = "id that gold lacks"
    VALUE = "empty value"
    OFF_SCALE = "label off the scale"
    REPEATED = "repeated id, same value"
    CONTRADICTING = "repeated id, other value"
    MISSING = "id that the run lacks"


KINDS = list(IrregularityKind)


@dataclass(frozen=True)
class Irregularity:
    """How often a file is irregular in one way, and the first example.

    `example` is the text of that line, or the first id that a run lacks, which has no line.
    """

    file: str
    kind: IrregularityKind
    count: int
    line: int | None
    example: str

    @property
    def place(self) -> str:
        """Where the first example stands."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


def sort_irregularities(irregular: Iterable[Irregularity]) -> list[Irregularity]:
    """Return the irregularities of a file by their kinds."""
    return sorted(irregular, key=lambda one: KINDS.index(one.kind))


def refuse_irregularities(irregular: Sequence[Irregularity]) -> None:
    """Say what is irregular, in all files together, if anything is."""
    if not irregular:
        return
    found = [[one for one in irregular if one.kind == kind] for kind in KINDS]
    told = [_format_irregularity(ones) for ones in found if ones]
    more = (
        f"; and {len(told) - MOST_KINDS_LISTED} more kinds" if len(told) > MOST_KINDS_LISTED else ""
    )
    total = sum(one.count for one in irregular)
    hint = " Pass --encoding if a file is not UTF-8." if found[0] else ""
    raise BadInput(
        f"The files have {total:,} irregular {'line or id' if total == 1 else 'lines or ids'}: "
        f"{'; '.join(told[:MOST_KINDS_LISTED])}{more}. Correct the files, or pass lenient=True "
        f"(--lenient) to leave these lines out and evaluate the rest.{hint}"
    )


def _format_irregularity(ones: list[Irregularity]) -> str:
    """Return one kind with its count and its first example."""
    first, count = ones[0], sum(one.count for one in ones)
    files = f" in {len(ones)} files" if len(ones) > 1 else ""
    begin = ", first" if count > 1 else ""
    return f"{first.kind} ({count:,}{files}{begin}: {first.place} '{first.example}')"
