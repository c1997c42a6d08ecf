"""The report of a search is the card of its winner: all metrics of the tests, and front matter."""

from dataclasses import replace

import pytest
import yaml
from rendered_reports import drop_code

from ordinate.render import RENDERERS, Grid, render
from ordinate.tuning.search.tuning_result import PLACEHOLDER, WEIGHT_NOTE

HOSTILE = "<script>alert(1)</script> --- \\input{x}: \" =cmd|' /C calc'!A0 \x1b[31m \u202e עברית 😀"


def tell(result):
    """Return the whole report, as files have it."""
    return " ".join(render(result).split())


def read_front_matter(result):
    before, front_matter, card = result.to_markdown().split("---\n", maxsplit=2)
    assert (before, card[:3]) == ("", "\n# ")
    return yaml.safe_load(front_matter)


def test_the_evaluation_is_that_of_the_search(finished):
    _, result = finished
    (test,) = result.tests
    metric = result.report.metric.lower()
    found = result.evaluations[test.name].metrics[metric]
    found = getattr(found, "estimate", found)
    expected = result.report.get_estimate(test.evaluation)
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    front_matter = read_front_matter(result)
    assert front_matter["metrics"] == [result.report.metric]
    ((tested,),) = (model["results"] for model in front_matter["model-index"])
    assert tested["dataset"]["name"] == test.name
    assert {"type": metric, "value": found.value} in tested["metrics"]


def test_the_card_has_what_users_need(finished, case):
    root, result = finished
    said = tell(result)
    assert PLACEHOLDER in said
    assert "On test, by which nothing was selected: " in said
    assert f"--model {result.winner.name}" in said
    assert (root / "models" / result.winner.name / "manifest.json").is_file()
    titles = {x.title for x in result.document().list_body() if isinstance(x, Grid)}
    shown = {"classification": "Confusion matrix", "regression": "Prediction intervals"}
    assert any(title.startswith(shown[case.name]) for title in titles)
    assert (root / "results/summary.md").read_text("utf-8") == result.to_markdown()


def test_a_test_that_was_learned_from_is_called_so(finished, monkeypatch):
    _, result = finished
    monkeypatch.setattr(type(result.report), "count_seen_items", lambda *_: 2)
    assert "On test, optimistically biased: it has learned from 2 of its" in tell(result)


def test_a_weighted_search_says_that_tests_are_not(finished, case):
    _, result = finished
    assert WEIGHT_NOTE not in tell(result)
    if case.name == "classification":
        settings = replace(result.settings, weight_metric=True, weight_strategy="inverse")
        assert WEIGHT_NOTE in tell(replace(result, settings=settings))


def test_without_test_data_cross_validation_speaks(finished):
    untested = replace(finished[1], tests=())
    assert untested.evaluations == {}
    assert PLACEHOLDER in tell(untested)
    assert read_front_matter(untested)["model-index"][0]["results"] == []


def test_two_tests_are_told_apart(finished):
    _, result = finished
    doubled = replace(result, tests=(*result.tests, replace(result.tests[0], name="second")))
    assert "On second, by which nothing was selected" in tell(doubled)
    views = [(chart.name, chart.variant) for chart in doubled.list_charts()]
    assert len(set(views)) == len(views)


@pytest.mark.parametrize("form", RENDERERS)
def test_names_are_text_in_every_form(finished, form):
    _, result = finished
    renamed = replace(result, tests=(replace(result.tests[0], name=HOSTILE),))
    text = render(renamed, form)
    if form == "markdown":
        (tested,) = read_front_matter(renamed)["model-index"][0]["results"]
        assert '<script>alert(1)</script> --- \\input{x}: " =cmd|' in tested["dataset"]["name"]
        text = text.split("\n---\n")[1]
    if form == "html":
        text = drop_code(text)
    if form in {"html", "markdown"}:
        assert "&lt;script&gt;alert" in text
        assert "<script>alert" not in text
    elif form == "latex":
        lines = [line for line in text.splitlines() if not line.startswith("%")]
        assert "textless{}script" in text
        assert "\\input{x}" not in "\n".join(lines)
    else:
        assert "<script>alert(1)</script>" in text
    assert "\x1b" not in text or form == "csv"  # whose cells are data
