"""Tokens of a page: its texts, tags and attributes in their order, each with where it stands."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from ordinate.render.html import PACKED_TYPE, render_variant
from ordinate.render.packed_text import MOST_UNPACKED, unpack_text

PACKED = re.compile(rf'<script type="{PACKED_TYPE}">([\w+/=]*)</script>')
HEADINGS = {"title", "h1", "h2", "h3", "caption"}
UNCLOSED = {"meta", "link", "input", "br"}


@dataclass(frozen=True)
class Token:
    """A text, a tag or an attribute of a page."""

    where: str
    text: str


@dataclass
class PageContent:
    """What a page has: tokens, and the JSON in its scripts by their identifiers."""

    tokens: list[Token] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)


def read_page(text: str) -> PageContent:
    """Return what a page has, its packed variants included. Nothing in it is executed.

    >>> page = "<table><caption>Metrics</caption><tr><th>mae</th><td>0.5</td></tr></table>"
    >>> [one for one in read_page(page).tokens if one.text == "0.5"]
    [Token(where='Metrics, mae', text='0.5')]
    """
    reader = _PageReader()
    reader.feed(unpack_variants(text))
    reader.close()
    return reader.content


def unpack_variants(page: str) -> str:
    """Return a page in which all variants stand as they are; what cannot be unpacked is left.

    >>> from ordinate.render.html import render_variants
    >>> page = render_variants({"mae": "<p>0.5</p>", "bias": "<p>0.1</p>"}, "metric", {})
    >>> "0.1" in page, "0.1" in unpack_variants(page)
    (False, True)
    """
    room = MOST_UNPACKED

    def unpack(packed: re.Match[str]) -> str:
        nonlocal room
        try:
            text = unpack_text(packed[1], room)
            elements = json.loads(text)
        except (ValueError, RecursionError):
            return packed[0]
        room -= len(text)
        if not isinstance(elements, dict):
            return packed[0]
        return "\n".join(render_variant(name, str(x)) for name, x in elements.items())

    return PACKED.sub(unpack, page)


class _PageReader(HTMLParser):
    """Collects tokens, and keeps in mind under which heading and in which row they stand."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.content = PageContent()
        self._open: list[str] = []
        self._heading, self._row, self._column = "", "", 0
        self._columns: list[str] = []
        self._data: str | None = None  # the identifier of a script that is JSON

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in UNCLOSED:
            self._open.append(tag)
        if tag == "thead":
            self._columns = []
        elif tag == "tr":
            self._row, self._column = "", 0
        elif tag in {"td", "th"}:
            self._column += 1
        given = dict(attrs)
        if tag == "script" and given.get("type") == "application/json":
            self._data = given.get("id") or ""
        self._add(f"<{tag}>")
        for name, value in attrs:
            self._add(f'{name}="{value}"')

    def handle_endtag(self, tag: str) -> None:
        self._add(f"</{tag}>")
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        if tag == "script":
            self._data = None

    def handle_data(self, data: str) -> None:
        tag = self._open[-1] if self._open else ""
        if tag == "script" and self._data is not None:
            self.content.data[self._data] = self.content.data.get(self._data, "") + data
            return
        if tag in HEADINGS:
            self._heading = data.strip()
        elif tag == "th" and "thead" in self._open:
            self._columns.append(data.strip())
        elif tag == "th":
            self._row = data.strip()
        if data.strip():
            self._add(data)

    def handle_comment(self, data: str) -> None:
        self._add(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._add(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        self._add(f"<![{data}]>")  # a drawing may have a text in CDATA

    def handle_pi(self, data: str) -> None:
        self._add(f"<?{data}>")

    def _add(self, text: str) -> None:
        self.content.tokens.append(Token(self._describe_place(), text))

    def _describe_place(self) -> str:
        if self._open and self._open[-1] in {"script", "style"}:
            return self._open[-1]
        if "td" not in self._open:
            return self._heading
        column = self._columns[self._column - 1] if self._column <= len(self._columns) else ""
        return ", ".join(filter(None, (self._heading, self._row, column)))
