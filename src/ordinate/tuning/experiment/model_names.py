"""Short names of saved models: what a report calls them, with the full names among its details."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ordinate.render.charts import Chart
from ordinate.render.document import Block, Document, Grid, Variants

MODEL_NAME = re.compile(r"(?:(?P<features>.+)-)?(?P<model_type>\w+)-(?P<digest>[0-9a-f]{12})")
DIGEST_DIGITS = 4  # that tell models of one type and feature set apart


def shorten_model_names(names: Iterable[str]) -> dict[str, str]:
    """Return feature set and model type of each name, with digits of the hash where two are alike.

    >>> shorten_model_names(["tfidf-ridge-0123456789ab", "vote-ba9876543210", "by hand"])
    {'tfidf-ridge-0123456789ab': 'tfidf/ridge', 'vote-ba9876543210': 'vote', 'by hand': 'by hand'}
    """
    shorts = {name: _shorten(name, 0) for name in names}
    for digits in (DIGEST_DIGITS, 12):
        count = Counter(shorts.values())
        shorts = {n: s if count[s] == 1 else _shorten(n, digits) for n, s in shorts.items()}
    return shorts


def _shorten(name: str, digits: int) -> str:
    match = MODEL_NAME.fullmatch(name)
    if match is None:
        return name
    parts = [part for part in (match["features"], match["model_type"]) if part]
    return "/".join(parts) + (f"-{match['digest'][:digits]}" if digits else "")


def use_short_names(document: Document, names: Iterable[str]) -> Document:
    """Return a document that calls models by short names, and has the full ones as a detail."""
    shorts = {name: short for name, short in shorten_model_names(names).items() if short != name}
    if not shorts:
        return document
    grid = Grid("Models", ("short name", "name"), tuple((s, n) for n, s in shorts.items()), left=2)
    renamed = _rename(document, shorts)
    return replace(renamed, details=(*renamed.details, grid))


def shorten_names_in_chart(chart: Chart, names: Iterable[str]) -> Chart:
    """Return a chart that calls models by short names."""
    rename = _make_renamer(shorten_model_names(names))

    def rename_texts(value: Any) -> Any:
        if isinstance(value, str):
            return rename(value)
        if isinstance(value, tuple):
            return tuple(map(rename_texts, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value, **{x.name: rename_texts(getattr(value, x.name)) for x in fields(value)}
            )
        return value

    return cast("Chart", rename_texts(chart))


def _make_renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that puts the new names of a mapping for its old ones in a text."""
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def _rename(document: Document, names: Mapping[str, str]) -> Document:
    rename = _make_renamer(names)

    def rename_leaf(block: str | Grid) -> str | Grid:
        if isinstance(block, str):
            return rename(block)
        rows = tuple(
            tuple(rename(cell) if isinstance(cell, str) else cell for cell in row)
            for row in block.rows
        )
        return replace(
            block,
            title=rename(block.title),
            header=tuple(map(rename, block.header)),
            rows=rows,
            optional=tuple(map(rename, block.optional)),
        )

    def rename_block(block: Block) -> Block:
        if isinstance(block, Document):
            return _rename(block, names)
        return block.map(rename_leaf) if isinstance(block, Variants) else rename_leaf(block)

    return replace(
        document,
        title=rename(document.title),
        verdict=rename(document.verdict),
        verdicts={metric: rename(text) for metric, text in document.verdicts.items()},
        blocks=tuple(map(rename_block, document.blocks)),
        notes=tuple(map(rename, document.notes)),
    )
