"""Hostile labels of one report through every renderer: each shows them, and none obeys them."""

from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hostile_texts import HOSTILE_TEXTS

from ordinate.errors import replace_control_characters
from ordinate.render import RENDERERS, render, svg
from ordinate.results import Evaluation, Origin
from ordinate.summaries import ConfusionMatrix

SCRIPT = HOSTILE_TEXTS[0]


@pytest.fixture(scope="module")
def result():
    size = len(HOSTILE_TEXTS)
    weights = np.random.default_rng(0).integers(1, 9, (size, size))
    matrix = ConfusionMatrix.from_counts(weights, HOSTILE_TEXTS)
    origin = Origin(SCRIPT, HOSTILE_TEXTS[1], tuple(HOSTILE_TEXTS), None, (SCRIPT,))
    return Evaluation.from_summary(matrix, "mae,accuracy", origin=origin, interval=None)


class Texts(HTMLParser):
    """Collects tags and texts."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = set(), []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("form", [*RENDERERS, "piece"])
def test_a_report_holds_every_label_and_drives_no_terminal(result, form):
    shown = result._repr_html_() if form == "piece" else render(result, form)
    assert "\x1b" not in shown or form == "csv"  # which a terminal never gets as it is
    assert "\u202e" not in shown or form in {"json", "csv"}  # whose texts are those of the data
    if form in {"html", "piece"}:
        parsed = Texts(shown)
        assert "img" not in parsed.tags
        shown = "".join(parsed.texts)
    if form in {"text", "html", "piece"}:
        for label in HOSTILE_TEXTS[:-1]:
            assert replace_control_characters(label) in shown


@pytest.mark.filterwarnings("ignore:Glyph .* missing")  # says what to do: another font.family
def test_every_view_is_drawn_with_every_label_as_text(result, tmp_path):
    for name, chart in {chart.name: chart for chart in result.list_charts()}.items():
        result.plot(name, variant=chart.variant).save(tmp_path / "view.svg", force=True)
        for drawing in (svg.render(chart), (tmp_path / "view.svg").read_text("utf-8")):
            elements = [*ET.fromstring(drawing).iter()]  # noqa: S314 - of our own making
            assert not {"script", "img"} & {x.tag.rpartition("}")[2] for x in elements}
            assert all(len(x.text or "") < 500 for x in elements if x.tag.endswith("}text"))
            if {SCRIPT} & {*chart.x.levels, *chart.y.levels}:
                assert SCRIPT in {x.text for x in elements}
