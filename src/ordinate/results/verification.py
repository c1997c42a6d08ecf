"""Verify: a report is made again from what it carries, and compared with what it shows."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, OrdinateError, UnknownMetric, shorten
from ordinate.render import PROVENANCE, Document, Grid, render
from ordinate.render.estimates import format_count, join_names
from ordinate.render.html_tokens import PageContent, Token, read_page
from ordinate.render.packed_text import unpack_text
from ordinate.results.base import SCHEMA, Record, Result, Serializable
from ordinate.results.provenance import (
    CARRIED,
    SUMMARIES,
    VERSION,
    compute_checksum,
    list_tags,
    load_value,
)

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
DATA = "data of the page"
NOTHING = object()  # stands in for what only one of two reports has
BESIDE = re.compile(r"[^/\\\x00]+\.[0-9a-f]{16}\.json")  # the name of a file, and no path
VERSION_NAME = re.compile(r"[\w.+-]{1,40}")  # as it stands on a page: never markup
LARGEST_FILE = 256_000_000  # bytes of a report, and of what stands beside it
MOST_SHOWN = 20  # differences in the report for people
LONGEST_SHOWN = 60  # letters of one of them
MOST_UNMATCHED = 4_000  # parts of two pages that are matched one by one
CHECKSUM = "what the report is made of"
NO_SUMMARY = (
    "Nothing was recomputed: the report carries no summary, and was written again from its own "
    "tables, charts and sentences."
)


@dataclass(frozen=True)
class DigitDifference(Serializable):
    """Where a report shows something else than it is when it is made again; None is nothing."""

    where: str
    shown: str | None
    recomputed: str | None


@dataclass(frozen=True, repr=False, eq=False)
class Verification(Result):
    """Whether all digits of a report agree with those of the report made again.

    `summaries` are what numbers were recomputed from, `carried` what was shown again only.
    """

    table_name = "differences"

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
            "differences": self.rows(),
            "unmade": self.unmade,
        }

    def rows(self) -> list[Record]:
        """Return one flat record for each difference."""
        return [one.to_dict() for one in self.differences]

    def document(self) -> Document:
        """Return the report for people."""
        head = ("where", "shown", "recomputed")
        rows = tuple(
            (one.where, *map(_shorten_shown, (one.shown, one.recomputed)))
            for one in self.differences[:MOST_SHOWN]
        )
        grids = (Grid("Differences", head, rows, left=3),) if rows else ()
        more = len(self.differences) - len(rows)
        rest = f"And {format_count(more, 'more difference')}: --format json lists all of them."
        sentences = [self._state_source(), *([rest] if more > 0 else [])]
        verdict = " ".join([*self._state_versions(), *self._state_agreement()])
        return Document(f"Verification of {self.file}", (*grids, *sentences), verdict)

    def _state_versions(self) -> list[str]:
        return [
            f"Made with {title} {self.made_with.get(name)}, and verified with {own}."
            for name, title, own in (
                ("ordinate", "Ordinate", VERSION),
                ("numpy", "NumPy", np.__version__),
            )
            if self.made_with.get(name) != own
        ]

    def _state_agreement(self) -> list[str]:
        count = format_count(self.numbers, "number")
        if self.unmade is not None:
            return [f"What the report is made of was changed, and makes no report: {self.unmade}"]
        source = [] if self.summaries else [NO_SUMMARY]
        if not self.agrees:
            many = format_count(len(self.differences), "difference")
            return [*source, f"{many} to the report made again, which shows and carries {count}."]
        agreement = "All digits agree" if self.summaries else "What was written again agrees"
        return [*source, f"{agreement}: {count}, and every word and drawing beside them."]

    def _state_source(self) -> str:
        if not self.summaries:
            return ""
        carried = f" Shown again as carried: {join_names(self.carried)}." if self.carried else ""
        return f"Recomputed from {join_names(self.summaries)}.{carried}"


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
    report = _read_report(text)
    provenance = report.get_provenance()
    made_of = _load_made_of(provenance, path)
    known, differences = compute_checksum(provenance, made_of), []
    if known != provenance.get("sha256"):
        differences.append(DigitDifference(CHECKSUM, str(provenance.get("sha256")), known))
    unmade = None
    try:
        again = _render_again(_make_result(made_of), report.form)
    except BadInput as problem:
        if not differences:
            raise
        unmade = str(problem)
    else:
        differences += report.compare(again, str(provenance.get("ordinate")))
    tags = list_tags(made_of)
    return Verification(
        path.name,
        {key: provenance.get(key) for key in ("ordinate", "numpy", "schema")},
        report.count_numbers(),
        tuple(differences),
        tuple(title for tag, (_, title) in SUMMARIES.items() if tag in tags),
        tuple(title for tag, (_, title) in CARRIED.items() if tag in tags),
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
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{shorten(twice)} stands twice in one object")
    return found


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
class _JsonReport:
    """A report as JSON."""

    values: Record
    form = "json"

    def get_provenance(self) -> Record:
        return _check_provenance(self.values.get(PROVENANCE))

    def compare(self, again: str, version: str) -> Iterator[DigitDifference]:
        del version
        return _compare_plain(self._get_shown(self.values), self._get_shown(read_json(again)))

    def count_numbers(self) -> int:
        return _count_numbers(self._get_shown(self.values))

    def _get_shown(self, values: Record) -> Record:
        return {name: x for name, x in values.items() if name != PROVENANCE}


@dataclass(frozen=True)
class _PageReport:
    """A report as a page: texts and attributes in their order, and the data in it."""

    content: PageContent
    form = "html"

    def get_provenance(self) -> Record:
        text = self.content.data.get("ordinate-provenance")
        return _check_provenance(None if text is None else read_json(text))

    def compare(self, again: str, version: str) -> Iterator[DigitDifference]:
        other = read_page(again.replace(f"Ordinate {VERSION}", f"Ordinate {version}"))
        yield from _compare_tokens(self.content.tokens, other.tokens)
        mine, own = self._load_data(self.content), self._load_data(other)
        for key in sorted({*mine, *own}):
            yield from _compare_plain(mine.get(key), own.get(key), DATA)

    def count_numbers(self) -> int:
        shown = sum(len(NUMBER.findall(one.text)) for one in self.content.tokens)
        return shown + sum(map(_count_numbers, self._load_data(self.content).values()))

    def _load_data(self, content: PageContent) -> dict[str, Any]:
        """Return the data of a page but for what it is made of."""
        known = content.data.items()
        return {key: read_json(text) for key, text in known if key != "ordinate-provenance"}


def _read_report(text: str) -> _JsonReport | _PageReport:
    if text.lstrip()[:1] == "{":
        return _JsonReport(read_json(text))
    if "<html" not in text[:1_000].lower():
        raise BadInput("it is neither a page nor JSON that Ordinate wrote.")
    return _PageReport(read_page(text))


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
    if isinstance(packed := provenance.get("packed"), str):
        return read_json(_unpack(packed))
    beside = provenance.get("file")
    if not isinstance(beside, str) or not BESIDE.fullmatch(beside):
        raise BadInput("it does not say what it is made of.")
    other = path.resolve().parent / beside
    if not other.is_file():
        raise BadInput(f"what it is made of stands in {beside}, which is not beside it.")
    found = read_json(_read_text(other))
    if isinstance(found, dict) and isinstance(packed := found.get("packed"), str):
        return read_json(_unpack(packed))
    return found


def _unpack(packed: str) -> str:
    try:
        return unpack_text(packed)
    except ValueError as problem:
        raise BadInput(f"what it is made of cannot be unpacked: {problem}.") from None


def _render_again(result: Result, form: str) -> str:
    """Return the report, whatever stands in a file that anybody may have changed."""
    with _explain_damage(), np.errstate(all="ignore"):
        return render(result, form).encode(errors="replace").decode()


def _make_result(made_of: Any) -> Result:
    with _explain_damage(), np.errstate(all="ignore"):
        result = load_value(made_of)
        if not isinstance(result, Result):
            raise BadInput("it is made of no result.")
        return result


@contextmanager
def _explain_damage() -> Iterator[None]:
    """Say in words what is wrong with values that are damaged, which may break any formula."""
    try:
        yield
    except UnknownMetric as problem:
        raise BadInput(f"{problem} A metric that you declared is loaded with --load.") from None
    except OrdinateError as problem:
        raise BadInput(str(problem)) from None
    except Exception as problem:  # noqa: BLE001 - whatever a formula makes of them
        raise BadInput(f"what it is made of is damaged ({type(problem).__name__}).") from None


# --- comparing -----------------------------------------------------------------------------------


def compare_reports(shown: str, recomputed: str, version: str = VERSION) -> list[DigitDifference]:
    """Return what two reports of one format differ in, but for what they say they are made of.

    The version is that which made the first.
    """
    return list(_read_report(shown).compare(recomputed, version))


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
    """Yield where two pages differ, token by token."""
    start, stop = _find_ends(shown, recomputed)
    mine, own = shown[start : len(shown) - stop], recomputed[start : len(recomputed) - stop]
    if len(mine) == len(own):
        pairs: Iterable[tuple[Token | None, Token | None]] = zip(mine, own, strict=True)
    elif len(mine) + len(own) > MOST_UNMATCHED:
        counts = (format_count(len(each), "part") for each in (shown, recomputed))
        yield DigitDifference("parts of the page", *counts)
        return
    else:
        pairs = _match_tokens(mine, own)
    for first, second in pairs:
        if first is None or second is None or first.text != second.text:
            where = next(x.where for x in (first, second) if x is not None)
            yield DigitDifference(where, *(None if x is None else x.text for x in (first, second)))


def _find_ends(shown: list[Token], recomputed: list[Token]) -> tuple[int, int]:
    """Return how many tokens two pages share at their beginnings and at their ends."""
    most = min(len(shown), len(recomputed))
    pairs = zip(shown, recomputed, strict=False)
    start = next((k for k, (x, y) in enumerate(pairs) if x.text != y.text), most)
    ends = zip(reversed(shown), reversed(recomputed), strict=False)
    stop = next((k for k, (x, y) in enumerate(ends) if x.text != y.text), most)
    return start, min(stop, most - start)


def _match_tokens(
    shown: list[Token], recomputed: list[Token]
) -> Iterator[tuple[Token | None, Token | None]]:
    """Yield the tokens that differ, side by side where one stands in place of another."""
    from difflib import SequenceMatcher

    texts = ([one.text for one in shown], [one.text for one in recomputed])
    for kind, *bounds in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if kind != "equal":
            first, last, low, high = bounds
            yield from zip_longest(shown[first:last], recomputed[low:high])


def _count_numbers(value: Any) -> int:
    """Return how many numbers plain values have, those within sentences among them."""
    if isinstance(value, dict):
        return sum(map(_count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(_count_numbers, value))
    if isinstance(value, str):
        return len(NUMBER.findall(value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def _shorten_shown(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
