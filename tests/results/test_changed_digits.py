"""Each number that a report shows or carries is compared: a changed digit is found, in all of them.

Many numbers are changed at once, at most one in each text, attribute or value, and each of these
has to be among the differences: then none is found because of another one.
"""

import json
import random
import re

import pytest
from law_examples import examples
from verified_reports import MAKERS, change_digit, compare_reports, make

from ordinate.errors import BadInput
from ordinate.render import render
from ordinate.render.html_tokens import PACKED, read_page, unpack_variants
from ordinate.render.packed_text import pack_text, unpack_text
from ordinate.results.provenance import compute_checksum
from ordinate.results.verification import read_json, verify

RANDOM = random.Random(1)  # noqa: S311 - which digits are changed
CODE = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)
# Texts between tags, and attributes; the coordinates of paths are redrawn.
SHOWN = re.compile(r'(?<=>)[^<>]+(?=<)|(?<!\bd)="[^"]*"')
PIECE = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*')  # of JSON: a string, key or number
NUMBER = re.compile(r"\d+")
CHOSEN = ((0, 0), (1, 1), (-1, 2))  # which number, and of how many there have to be more
DATA = re.compile(r'(<script type="application/json" id="ordinate-summary">)(.*?)(</script>)')


@pytest.fixture(params=MAKERS)
def kind(request):
    return request.param


def choose_numbers(text, pieces):
    """Return three lists of digits to change: of the first, second and last number of each piece.

    A piece is compared as a whole, so that any other of its numbers is found as these are.
    """
    found = [
        [place.end() - 1 for place in NUMBER.finditer(text, *piece.span())] for piece in pieces
    ]
    first, second, last = ([ends[k] for ends in found if len(ends) > least] for k, least in CHOSEN)
    return [places for places in (first, second, last) if places]


def list_values(text, *bounds):
    return [x for x in PIECE.finditer(text, *bounds) if x[1] is None]


def change_digits(text, places):
    letters = list(text)
    for place in places:
        letters[place] = str((int(letters[place]) + 1) % 10)
    return "".join(letters)


def is_found(after, before):
    """Tell whether a change is seen: as a difference, or as a key that stands twice now."""
    try:
        return bool(compare_reports(after, before))
    except BadInput as problem:
        return "stands twice" in str(problem)


def test_every_number_that_a_page_shows_is_compared(kind):
    page = unpack_variants(render(make(kind), "html"))
    shown = CODE.sub(lambda code: "~" * len(code[0]), page)
    changed = 0
    for places in choose_numbers(page, [*SHOWN.finditer(shown)]):
        differences = compare_reports(change_digits(page, places), page)
        assert len(differences) == len(places)
        assert all(one.shown != one.recomputed for one in differences)
        changed += len(places)
    assert changed > 50


def test_every_number_of_json_is_compared(kind):
    """Of a report as JSON, and of that which a page carries."""
    report = json.dumps(make(kind).to_dict(), indent=1)
    text = '{"provenance": {}, "report": ' + report + "}"
    changed = 0
    for places in choose_numbers(text, list_values(text)):
        assert len(compare_reports(change_digits(text, places), text)) == len(places)
        changed += len(places)
    assert changed > 20
    for key in {x[0]: x for x in PIECE.finditer(text) if x[1]}.values():
        for place in (key.start() + x.end() - 1 for x in re.finditer(r"\d+", key[0])):
            assert is_found(change_digit(text, place), text)


def test_numbers_of_the_data_and_of_the_variants_of_a_page_are_compared(kind):
    page = render(make(kind), "html")
    assert read_page(page) == read_page(unpack_variants(page))
    (data,) = DATA.finditer(page)
    for places in choose_numbers(page, list_values(page, *data.span(2))):
        assert len(compare_reports(change_digits(page, places), page)) == len(places)
    for packed in PACKED.finditer(page):
        text = unpack_text(packed[1])
        (places, *_) = choose_numbers(text, [re.search(r">[^<>]*\d[^<>]*<", text)])
        changed = pack_text(change_digits(text, places))
        pages = page[: packed.start(1)] + changed + page[packed.end(1) :], page
        assert len(compare_reports(*pages)) == 1


def test_every_number_that_is_carried_is_read_and_has_a_part_in_the_checksum(kind):
    provenance = make(kind).describe_provenance()
    text = json.dumps(provenance.get("made_of") or read_json(unpack_text(provenance["packed"])))
    known = read_json(text)
    assert compute_checksum(provenance, known) == provenance["sha256"]
    pieces = list_values(text)
    for places in choose_numbers(text, pieces):
        texts = (change_digits(text, places), text)
        after, before = ('{"carried": ' + x + "}" for x in texts)
        assert len(compare_reports(after, before)) == len(places)
    numbers = [x for x in pieces if NUMBER.search(x[0])]
    for piece in RANDOM.sample(numbers, min(len(numbers), examples(20).max_examples)):
        place = piece.start() + NUMBER.search(piece[0]).end() - 1
        changed = read_json(change_digit(text, place))
        assert compute_checksum(provenance, changed) != provenance["sha256"]
    for name in ("ordinate", "numpy", "schema"):
        assert compute_checksum(provenance | {name: "9"}, known) != provenance["sha256"]


@pytest.mark.parametrize("suffix", ["html", "json"])
def test_verifying_a_file_finds_what_comparing_finds(suffix, tmp_path):
    path = tmp_path / f"report.{suffix}"
    make("clusters").save(path)
    text = path.read_text()
    shown = text.replace("0.", "1.", 40)
    path.write_text(shown)
    found = verify(path)
    assert found.differences
    assert found.differences == tuple(compare_reports(shown, text))
