"""Plain text: as wide as it is in a file, fitted to the columns of a terminal."""

import re
import unicodedata
from dataclasses import dataclass

from ordinate.errors import JOINERS
from ordinate.render.document import NOTES_TITLE, Document, Grid, format_grid_rows

NARROWEST = 80  # columns that every terminal is taken to have
PAGE_WIDTH = 100  # where there is no terminal, and for sentences everywhere
GAP = "  "  # between two columns
SHORTEST_BREAK = 16  # a word is broken in a table only if it is longer
LONGEST_NAME = 24  # a name is broken for the sake of an optional column only if it is longer
DECIMALS = re.compile(r"(?<![\w.])\d+\.\d{3,}(?![\w.])")


def render(document: Document, width: int | None = None, *, details: bool = True) -> str:
    """Return the document as plain text, no line of which is longer than the width."""
    page = PAGE_WIDTH if width is None else min(width, PAGE_WIDTH)
    title = wrap_words(document.title, page)
    parts = ["\n".join([*title, "=" * max(map(measure_width, title))])]
    for block in document.list_body(details=details):
        lines = _render_grid(block, width) if isinstance(block, Grid) else wrap_words(block, page)
        parts.append("\n".join(lines))
    if notes := document.list_notes():
        parts.append("\n".join([NOTES_TITLE, *(_render_note(note, page) for note in notes)]))
    return "\n\n".join(parts) + "\n"


def measure_width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(bool(unicodedata.combining(x)) or x in JOINERS for x in text)


def wrap_words(text: str, width: int) -> list[str]:
    """Return the lines of a text, at least one; a word is broken if no line can hold it.

    >>> wrap_words("share of the squared error", 12)
    ['share of the', 'squared', 'error']
    >>> wrap_words("lexical-german/ridge", 12)
    ['lexical-', 'german/ridge']
    """
    if measure_width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        while True:
            line = f"{lines[-1]} {word}" if lines[-1] else word
            if measure_width(line) <= width:
                lines[-1] = line
                break
            if lines[-1]:
                lines.append("")
                continue
            cut = _find_break(word, width)
            lines[-1:], word = [word[:cut], ""], word[cut:]  # noqa: PLW2901 - the rest of it
    return lines


def _find_break(word: str, width: int) -> int:
    """Return where to break a long word: after a mark within the width, or where that ends."""
    most = len(word)
    while most > 1 and measure_width(word[:most]) > width:
        most -= 1
    marks = [k for k in range(1, most + 1) if word[k - 1] in "-/_.,(=" and k > width // 3]
    return marks[-1] if marks else most


def _render_note(note: str, width: int) -> str:
    first, *others = wrap_words(note, width - 2)
    return "\n".join([f"- {first}", *(f"  {line}" for line in others)])


# --- grids ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """The texts of a column, its head first."""

    texts: tuple[str, ...]
    words: bool

    @property
    def natural(self) -> int:
        """The width at which no text is wrapped."""
        return max(map(measure_width, self.texts))

    @property
    def with_wrapped_head(self) -> int:
        """The width at which nothing but the head of numbers is wrapped."""
        return self.natural if self.words else self.narrowest

    @property
    def narrowest(self) -> int:
        """The width below which numbers do not fit, or words would be broken."""
        return self.measure_unbroken(SHORTEST_BREAK)

    def measure_unbroken(self, longest: int) -> int:
        """Return the width below which numbers do not fit, or words up to a length are broken."""
        head, *cells = self.texts
        wrapped = self.texts if self.words else (head,)
        words = max((measure_width(x) for text in wrapped for x in text.split()), default=0)
        numbers = 0 if self.words else max(map(measure_width, cells), default=0)
        return max(numbers, min(words, longest))

    def shorten_numbers(self) -> "_Column":
        """Return the column with two digits after the point where these say enough."""
        head, *cells = self.texts
        return _Column((head, *(DECIMALS.sub(_drop_digits, cell) for cell in cells)), self.words)


def _drop_digits(match: re.Match[str]) -> str:
    value = float(match[0])
    return f"{value:.2f}" if value >= 0.1 or value == 0 else match[0]  # p-values, say


def _render_grid(grid: Grid, width: int | None) -> list[str]:
    columns = [
        _Column(texts, words=index < grid.left)
        for index, texts in enumerate(zip(*format_grid_rows(grid), strict=True))
    ]
    title = [] if not grid.title else [grid.title]
    if title and width is not None:
        title = wrap_words(grid.title, width)
    widths = [column.natural for column in columns]
    if width is None or _measure(widths) <= width:
        return [*title, *_render_columns(columns, widths)]
    columns, dropped = _drop_columns(grid, columns, width)
    lines = [line for part in _split_columns(columns, grid.left, width) for line in part]
    if dropped:
        names = ", ".join(dict.fromkeys(dropped))
        note = f"Not shown at this width: {names} (-o FILE or --format json has all columns)."
        lines += wrap_words(note, min(width, PAGE_WIDTH))
    return [*title, *lines]


def _measure(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _drop_columns(
    grid: Grid, columns: list[_Column], width: int
) -> tuple[list[_Column], list[str]]:
    """Return columns that fit, if dropping those that are optional is enough, and who went."""
    optional = [k for name in grid.optional for k, head in enumerate(grid.header) if head == name]
    shown = dict(enumerate(columns))
    if _measure([column.with_wrapped_head for column in columns]) > width:
        shown |= {k: columns[k].shorten_numbers() for k in optional}
    dropped = []
    while optional and _measure([x.measure_unbroken(LONGEST_NAME) for x in shown.values()]) > width:
        dropped.append(optional.pop(0))
        del shown[dropped[-1]]
    return list(shown.values()), [columns[k].texts[0] for k in sorted(dropped)]


def _split_columns(columns: list[_Column], left: int, width: int) -> list[list[str]]:
    """Return the grid in as many parts, one below the other, as its numbers need."""
    words, numbers = columns[:left], columns[left:]
    least, narrowest = [x.narrowest for x in words], [x.narrowest for x in numbers]
    parts, start = [], 0
    while True:
        end = start + 1
        while end < len(numbers) and _measure([*least, *narrowest[start : end + 1]]) <= width:
            end += 1
        part = [*words, *numbers[start:end]]
        parts.append(_render_columns(part, _share_width(part, width)))
        start = end
        if start >= len(numbers):
            return parts


def _share_width(columns: list[_Column], width: int) -> list[int]:
    """Return the widths of columns: heads give way first, then words, then numbers."""
    widths = [column.natural for column in columns]
    room = width - len(GAP) * (len(columns) - 1)
    for least in (
        [column.with_wrapped_head for column in columns],
        [column.narrowest for column in columns],
        [1] * len(columns),
    ):
        while sum(widths) > room:
            able = [k for k, size in enumerate(widths) if size > least[k]]
            if not able:
                break
            widths[max(able, key=lambda k: widths[k])] -= 1
    return widths


def _render_columns(columns: list[_Column], widths: list[int]) -> list[str]:
    rows = [
        _render_row(row, widths, [column.words for column in columns])
        for row in zip(*(column.texts for column in columns), strict=True)
    ]
    rule = "-" * max(measure_width(line) for row in rows for line in row)
    return [rule, *rows[0], rule, *(line for row in rows[1:] for line in row)]


def _render_row(row: tuple[str, ...], widths: list[int], words: list[bool]) -> list[str]:
    cells = [wrap_words(text, width) for text, width in zip(row, widths, strict=True)]
    lines = []
    for k in range(max(map(len, cells))):
        line = [
            _pad(cell[k] if k < len(cell) else "", width, left=left)
            for cell, width, left in zip(cells, widths, words, strict=True)
        ]
        lines.append(GAP.join(line).rstrip())
    return lines


def _pad(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - measure_width(text))
    return text + space if left else space + text
