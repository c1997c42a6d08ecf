"""The views of a meta-evaluation have its coverages, agreements, ratios and verdicts."""

import math

import pytest
from meta_cases import NOISES
from panels import panel_of, sampled

from ordinate.meta.meta_evaluation import evaluate_metrics
from ordinate.meta.property_verdicts import PropertyVerdicts
from ordinate.metrics import find_metric

HOSTILE = "<script>alert(1)</script>"


def test_metrics_are_ranked_by_coverage_with_all_their_intervals(result):
    chart = result.get_chart("trust")
    assert chart.y.levels[: len(result.ranked)] == tuple(
        one.metric.expression for one in result.ranked if not math.isnan(one.coverage.value)
    )
    fields = ("coverage", "robustness", "stability")
    evaluations = {one.metric.expression: one for one in result.metrics}
    for name, panel in zip(fields, chart.panels, strict=False):
        for point in panel.marks:
            found = getattr(evaluations[point.y], name)
            assert (point.x, point.low, point.high) == (found.value, found.low, found.high)
    for point in chart.panels[3].marks:
        assert point.x == evaluations[point.y].discriminative_power


def test_agreement_is_that_of_each_two_metrics(result):
    names = [one.metric.expression for one in result.metrics]
    for cell in result.get_chart("agreement").list_marks():
        found = result.agreement[names.index(cell.y)][names.index(cell.x)]
        assert cell.shade == pytest.approx(found.value, nan_ok=True)


def test_unanimity_is_of_rows_over_columns(result):
    chart = result.get_chart("unanimity")
    systems = result.panel.systems
    cells = chart.list_marks()
    assert len(cells) == len(systems) * (len(systems) - 1)
    for cell in cells:
        row, column = systems.index(cell.y), systems.index(cell.x)
        assert cell.shade == result.unanimous_improvement[row, column]
    means = {name: result.unanimous_improvement[k].mean() for k, name in enumerate(systems)}
    assert [means[name] for name in chart.y.levels] == sorted(means.values(), reverse=True)


def test_hostile_names_are_levels_like_others():
    gold, systems = sampled(4, 60, 1, NOISES)
    named = dict(zip([HOSTILE, "x" * 10_000, "c", "d", "e"], systems.values(), strict=True))
    panel = panel_of(gold, named, 4, groups=[f"t{k // 10}" for k in range(60)])
    chart = evaluate_metrics(panel, "mae,accuracy", resamples=100).get_chart("unanimity")
    assert set(chart.y.levels) == set(named)


def test_properties_are_shaded_by_their_verdicts():
    found = PropertyVerdicts.of([find_metric(name) for name in ("cem_ord", "mae", "spearman")])
    signs = {"not_violated": "✓", "tie_only": "=", "violated": "✗", "undefined": "?"}
    shades = {"not_violated": 1.0, "tie_only": 0.4, "violated": -1.0, "undefined": 0.0}
    cells = {(cell.y, cell.x): cell for cell in found.get_chart("properties").list_marks()}
    assert len(cells) == sum(map(len, found.cells.values()))
    for metric, laws in found.cells.items():
        for law, record in laws.items():
            cell = cells[metric, law.replace("_", " ")]
            assert (cell.text, cell.shade) == (signs[record["verdict"]], shades[record["verdict"]])
