"""Variants of a page's elements: one is shown, the others wait in the page, compressed.

A page has a view of each of many metrics. The first one stands in it as it is; the script of the
page (`page.js`) unpacks another one where that is chosen.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping

from ordinate.render.html import escape_text
from ordinate.render.packed_text import MOST_UNPACKED, pack_text, unpack_text

PACKED_TYPE = "application/x-ordinate-variants"
PACKED = re.compile(rf'<script type="{PACKED_TYPE}">([\w+/=]*)</script>')
NONE_TEXT = {"metric": "Undefined by this metric."}


def render_variants(
    elements: Mapping[str, str], varies_by: str, choices: Mapping[str, Collection[str]]
) -> str:
    """Return elements of which one is shown: by a choice for the whole page, or by their own.

    `choices` are the names that can be chosen for the whole page, by what varies.
    """
    (first, shown), *others = elements.items()
    if not others:
        return shown
    parts = [
        _render_variant(first, shown),
        f'<script type="{PACKED_TYPE}">{pack_text(json.dumps(dict(others)))}</script>',
    ]
    if set(elements) <= set(choices.get(varies_by, ())):
        none = NONE_TEXT.get(varies_by, f"There is none for this {varies_by}.")
        parts.append(f'<p class="none" hidden>{none}</p>')
        head = f'<div class="variants" data-follows="{varies_by}">'
    else:
        head = f'<div class="variants">\n{render_chooser(varies_by, elements)}'
    return "\n".join([head, *parts, "</div>"])


def render_chooser(varies_by: str, names: Iterable[str]) -> str:
    """Return a list of names to choose from, which is hidden until the script runs."""
    options = "".join(f"<option>{escape_text(name)}</option>" for name in names)
    label = varies_by.capitalize()
    return (
        f'<label class="chooser" hidden>{label} <select data-chooses="{varies_by}">{options}'
        "</select></label>"
    )


def _render_variant(name: str, element: str) -> str:
    return f'<div data-variant="{escape_text(name)}">\n{element}\n</div>'


def unpack_variants(page: str) -> str:
    """Return a page in which all variants stand as they are; what cannot be unpacked is left.

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
        return "\n".join(_render_variant(name, str(x)) for name, x in elements.items())

    return PACKED.sub(unpack, page)
