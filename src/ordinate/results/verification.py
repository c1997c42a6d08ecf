"""Verify: a report is made again from what it carries, and compared with what it shows."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, OrdinateError, UnknownMetric, shorten
from ordinate.render import PROVENANCE, Document, Grid, render
from ordinate.render.estimates import format_count, join_names
from ordinate.render.html_tokens import Token, read_page
from ordinate.render.packed_text import unpack_text
from ordinate.render.tables import Column, Kind, Table
from ordinate.results.base import SCHEMA, Record, Result
from ordinate.results.provenance import (
    CARRIED,
    SUMMARIES,
    VERSION,
    compute_checksum,
    list_makers,
    load_value,
)

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
PAGE_DATA = {"ordinate-summary": "data of the page", "ordinate-provenance": PROVENANCE}
NOTHING = object()  # stands in for what only one of two reports has
BESIDE = re.compile(r"[^/\\\x00]+\.[0-9a-f]{16}\.json")  # the name of a file, and no path
VERSION_NAME = re.compile(r"[\w.+-]{1,40}")  # as it stands on a page: never markup
LARGEST_FILE = 256_000_000  # bytes of a report, and of what stands beside it
MOST_SHOWN = 20  # differences in the report for people
LONGEST_SHOWN = 60  # letters of one of them
CHECKSUM = "what the report is made of"
NO_SUMMARY = (
    "Nothing was recomputed: the report carries no summary, and was written again from its own "
    "tables, charts and sentences."
)


@dataclass(frozen=True)
class DigitDifference:
    """Where a report shows something else than it is when it is made again; None is nothing."""

    where: str
    shown: str | None
    recomputed: str | None


@dataclass(frozen=True, repr=False, eq=False)
class Verification(Result):
    """Whether all digits of a report agree with those of the report made again.

    `summaries` are what numbers were recomputed from, `carried` what was shown again only.
    """

    file: str
    made_with: Record
    numbers: int  # that the report shows and carries
    differences: tuple[DigitDifference, ...]
    summaries: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    unmade: str | None = None  # why the report could not be made again

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "schema": SCHEMA,
            "task": "verify",
            "file": self.file,
            "made_with": self.made_with,
            "verified_with": {"ordinate": VERSION, "numpy": np.__version__},
            "agrees": self.agrees,
            "numbers": self.numbers,
            "recomputed_from": list(self.summaries),
            "carried": list(self.carried),
            "differences": self.get_table("differences").to_list(),
            "unmade": self.unmade,
        }

    def tables(self) -> Iterable[Table]:
        """Return the differences; what only one of the reports has is empty in the other."""
        shown = Kind(_shorten_shown, words=True)
        columns = [Column(key, kind=shown) for key in ("where", "shown", "recomputed")]
        yield Table("differences", "Differences", columns, self.differences, most=MOST_SHOWN)

    def document(self) -> Document:
        """Return the report for people."""
        blocks: list[Grid | str] = [*self.get_table("differences").grids()]
        if self.summaries:
            carried = (
                f" Shown again as carried: {join_names(self.carried)}." if self.carried else ""
            )
            blocks.append(f"Recomputed from {join_names(self.summaries)}.{carried}")
        if (more := len(self.differences) - MOST_SHOWN) > 0:
            rest = format_count(more, "more difference")
            blocks.append(f"And {rest}: --format json lists all of them.")
        return Document(f"Verification of {self.file}", tuple(blocks), self._state_verdict())

    def _state_verdict(self) -> str:
        count, many = (
            format_count(*one)
            for one in ((self.numbers, "number"), (len(self.differences), "difference"))
        )
        agreement = "All digits agree" if self.summaries else "What was written again agrees"
        verdict = f"{agreement}: {count}, and every word and drawing beside them."
        if not self.agrees:
            verdict = f"{many} to the report made again, which shows and carries {count}."
        if not self.summaries:
            verdict = f"{NO_SUMMARY} {verdict}"
        if self.unmade is not None:
            verdict = f"What the report is made of was changed, and makes no report: {self.unmade}"
        for name, own in (("NumPy", np.__version__), ("Ordinate", VERSION)):
            if (made_with := self.made_with[name.lower()]) != own:
                verdict = f"Made with {name} {made_with}, and verified with {own}. {verdict}"
        return verdict


def verify(path: str | Path) -> Verification:
    """Make a report again from what it carries, and say whether all digits agree.

    The file is a page or the JSON of any command. Nothing in it is executed.

    >>> import tempfile
    >>> import ordinate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/report.json"
    ...     ordinate.evaluate(["A1", "B1", "B2"], ["A1", "B1", "C1"], "cefr").save(path)
    ...     verify(path).agrees
    True
    """
    name = Path(path).name
    try:
        return _verify_text(_read_text(Path(path)), Path(path))
    except BadInput as problem:
        raise BadInput(f"{shorten(name)} cannot be verified: {problem}") from None
    except RecursionError:
        raise BadInput(f"{shorten(name)} cannot be verified: it is nested too deeply.") from None


def _verify_text(text: str, path: Path) -> Verification:
    report = read_report(text)
    provenance = _check_provenance(report.provenance)
    made_of = _load_made_of(provenance, path)
    said, known = str(provenance.get("sha256")), compute_checksum(provenance, made_of)
    differences, unmade = [] if said == known else [DigitDifference(CHECKSUM, said, known)], None
    try:
        again = _make_again(made_of, report.form)
    except BadInput as problem:
        if not differences:
            raise
        unmade = str(problem)
    else:
        differences += report.list_differences(again, str(provenance["ordinate"]))
    makers = list_makers(made_of)
    summaries, carried = (
        tuple(dict.fromkeys(title for maker, title in titles.items() if maker in makers))
        for titles in (SUMMARIES, CARRIED)
    )
    return Verification(
        path.name,
        {key: provenance.get(key) for key in ("ordinate", "numpy", "schema")},
        report.count_numbers(),
        tuple(differences),
        summaries,
        carried,
        unmade,
    )


# --- reading -------------------------------------------------------------------------------------


def read_json(text: str) -> Any:
    """Return JSON in which a number that Ordinate writes otherwise is a string: what it says.

    >>> read_json("[0.1, 0.10, 1e999]")
    [0.1, '0.10', '1e999']
    """
    try:
        return json.loads(
            text, parse_float=_parse_number, parse_constant=str, object_pairs_hook=_refuse_repeats
        )
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"its JSON is damaged or cut off: {problem}.") from None


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> Record:
    """Return an object of JSON, in which no key stands twice: readers would see one of them."""
    ((name, count),) = Counter(name for name, _ in pairs).most_common(1) or [("", 0)]
    if count > 1:
        raise ValueError(f"{shorten(name)} stands twice in one object")
    return dict(pairs)


def _parse_number(text: str) -> float | str:
    value = float(text)
    return value if repr(value) == text else text


def _read_text(path: Path) -> str:
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= LARGEST_FILE else b""
        text = content.decode()
    except OSError as problem:
        raise BadInput(f"{problem.strerror}.") from None
    except ValueError:
        raise BadInput("it is no text.") from None
    if size > LARGEST_FILE:
        raise BadInput(f"it has {size:,} bytes, and a report has {LARGEST_FILE:,} at most.")
    return text


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written: a page has tokens and JSON, and JSON has itself alone."""

    form: str
    tokens: list[Token]
    data: Record
    provenance: Any

    def list_differences(self, again: str, version: str = VERSION) -> list[DigitDifference]:
        """Return where the report differs from another; the version is that which made this one.

        What they say they are made of is not compared.
        """
        other = read_report(again.replace(f"Ordinate {VERSION}", f"Ordinate {version}"))
        return [*_compare_tokens(self.tokens, other.tokens), *_compare_plain(self.data, other.data)]

    def count_numbers(self) -> int:
        """Return how many numbers the report shows and carries."""
        return _count_numbers([one.text for one in self.tokens]) + _count_numbers(self.data)


def read_report(text: str) -> WrittenReport:
    """Return a report from a page or JSON."""
    if text.lstrip()[:1] == "{":
        values = read_json(text)
        provenance = values.pop(PROVENANCE, None)
        return WrittenReport("json", [], values, provenance)
    if "<html" not in text[:1_000].lower():
        raise BadInput("it is neither a page nor JSON that Ordinate wrote.")
    page = read_page(text)
    data = {PAGE_DATA.get(name, name): read_json(part) for name, part in page.data.items()}
    provenance = data.pop(PROVENANCE, None)
    return WrittenReport("html", page.tokens, data, provenance)


def _check_provenance(found: Any) -> Record:
    """Return what a report says about how it was made, if it says so."""
    if not isinstance(found, dict):
        raise BadInput("it does not say what it is made of: no report of Ordinate, or cut off.")
    if not VERSION_NAME.fullmatch(str(found.get("ordinate"))):
        raise BadInput("it does not say which version of Ordinate made it.")
    if "left_out" in found:
        raise BadInput(
            f"it does not carry what it is made of ({found['left_out']}). Write it to a file."
        )
    return found


def _load_made_of(provenance: Record, path: Path) -> Any:
    """Return what a report is made of, which may stand in a file beside it."""
    if "made_of" in provenance:
        return provenance["made_of"]
    beside = str(provenance.get("file"))
    if BESIDE.fullmatch(beside):
        other = path.resolve().parent / beside
        if not other.is_file():
            raise BadInput(f"what it is made of stands in {beside}, which is not beside it.")
        provenance = read_json(_read_text(other))
    packed = provenance.get("packed") if isinstance(provenance, dict) else None
    if not isinstance(packed, str):
        raise BadInput("it does not say what it is made of.")
    try:
        text = unpack_text(packed, LARGEST_FILE)
    except ValueError as problem:
        raise BadInput(f"what it is made of cannot be unpacked: {problem}.") from None
    return read_json(text)


def _make_again(made_of: Any, form: str) -> str:
    """Return the report, whatever stands in a file that anybody may have changed."""
    try:
        with np.errstate(all="ignore"):
            result = load_value(made_of)
            if not isinstance(result, Result):
                raise BadInput("it is made of no result.")
            return render(result, form).encode(errors="replace").decode()
    except UnknownMetric as problem:
        raise BadInput(f"{problem} A metric that you declared is loaded with --load.") from None
    except OrdinateError as problem:
        raise BadInput(str(problem)) from None
    except Exception as problem:  # noqa: BLE001 - whatever a formula makes of damaged values
        raise BadInput(f"what it is made of is damaged ({type(problem).__name__}).") from None


# --- comparing -----------------------------------------------------------------------------------


def _compare_plain(shown: Any, recomputed: Any, where: str = "") -> Iterator[DigitDifference]:
    """Yield where two plain values differ, each number and each string by itself."""
    if isinstance(shown, dict) and isinstance(recomputed, dict):
        for key in dict.fromkeys((*shown, *recomputed)):
            pair = (shown.get(key, NOTHING), recomputed.get(key, NOTHING))
            yield from _compare_plain(*pair, f"{where}.{key}" if where else key)
    elif isinstance(shown, list) and isinstance(recomputed, list):
        for k, pair in enumerate(zip_longest(shown, recomputed, fillvalue=NOTHING)):
            yield from _compare_plain(*pair, f"{where}[{k}]")
    elif type(shown) is not type(recomputed) or shown != recomputed:
        yield DigitDifference(where, *map(_show_value, (shown, recomputed)))


def _show_value(value: Any) -> str | None:
    return None if value is NOTHING else json.dumps(value, ensure_ascii=False)


def _compare_tokens(shown: list[Token], recomputed: list[Token]) -> Iterator[DigitDifference]:
    """Yield where two pages differ, token by token, or by places where there are more of them."""
    if len(shown) != len(recomputed):
        yield from _compare_plain(_group_by_place(shown), _group_by_place(recomputed))
        return
    for first, second in zip(shown, recomputed, strict=True):
        if first.text != second.text:
            yield DigitDifference(first.where, first.text, second.text)


def _group_by_place(tokens: list[Token]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for token in tokens:
        places.setdefault(token.where, []).append(token.text)
    return places


def _count_numbers(value: Any) -> int:
    """Return how many numbers plain values have, those within sentences among them."""
    if isinstance(value, dict):
        return sum(map(_count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(_count_numbers, value))
    if isinstance(value, str):
        return len(NUMBER.findall(value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def _shorten_shown(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
