"""A table is declared once: programs and people get what its columns say."""

import csv
import io
from dataclasses import dataclass, replace

import pytest
from result_examples import MAKERS

from ordinate.inference import Estimate
from ordinate.render.tables import (
    ESTIMATE,
    JOINED,
    NAME,
    P_VALUE,
    Column,
    Estimates,
    Table,
)

FOUND = Estimate(0.51234, 0.4, 0.6, "delta", note="few items")
RECORDS = [
    {"metric": metric, "system": system, "value": replace(FOUND, value=value), "p": 0.00001}
    for metric, system, value in [("mae", "a", 0.5), ("mae", "b", float("nan")), ("qwk", "a", 1.0)]
]
COLUMNS = (
    Column("metric", shown=False),
    Column("system", "who", NAME),
    Column("value", kind=ESTIMATE),
    Column("p", kind=P_VALUE, optional=True),
    Column("twice", get=lambda row: 2 * row["value"].value, stored=False),
)


def make_table(**changes):
    return replace(Table("values", "Values", COLUMNS, RECORDS, level=0.9), **changes)


def test_programs_get_flat_records_and_what_is_common_to_them():
    row = make_table(common={"n": 3}).rows()[0]
    bounds = {"low": 0.4, "high": 0.6, "method": "delta", "note": "few items"}
    assert row == {"metric": "mae", "system": "a", "value": 0.5} | bounds | {"p": 1e-05, "n": 3}
    assert make_table().to_list()[1]["value"] is None


def test_json_may_stand_under_the_values_of_columns():
    tree = make_table().nest("metric", "system")
    assert list(tree) == ["mae", "qwk"]
    assert tree["qwk"]["a"]["value"] == 1.0


def test_people_see_one_grid_for_each_value_of_a_column():
    grids = make_table(by="metric", title=lambda metric: f"Of {metric}").grids()
    assert [grid.title for grid in grids] == ["Of mae", "Of qwk"]
    assert grids[0].header == ("who", "value", "90 % CI", "p", "twice")
    assert grids[0].rows[0] == ("a", 0.5, "0.400 to 0.600", "<0.0001", 1.0)
    assert (grids[0].left, grids[0].optional) == (1, ("p",))


def test_intervals_join_values_or_are_left_out():
    assert make_table(level=None).grids()[0].header == ("who", "value", "p", "twice")
    joined = make_table(columns=(Column("system", kind=NAME), Column("value", kind=JOINED)))
    assert joined.grids()[0].rows[0] == ("a", "0.500 (0.40 to 0.60)")


def test_one_column_over_two_others():
    (grid,) = make_table(columns=[*COLUMNS[:2], Column("value", kind=JOINED)]).cross(
        "system", "metric", "value"
    )
    assert grid.header == ("who", "mae", "qwk")
    assert grid.rows[0][2] == "1.000 (0.40 to 0.60)"
    assert grid.rows[1][2] is None


@dataclass(frozen=True)
class Titled:
    name: str


def test_records_may_be_objects_and_few_are_shown_of_many():
    table = Table("names", "Names", [Column("name", kind=NAME)], [Titled(x) for x in "abc"], most=2)
    assert table.grids()[0].rows == (("a",), ("b",))
    assert len(table.rows()) == 3
    assert Table("none", "None", COLUMNS, []).grids() == []


def square(gap):
    return f"gained {gap.difference.value**2:.6f}"


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex", "html", "frame"])
def test_one_more_column_of_a_result_is_in_every_form(form, monkeypatch):
    result = MAKERS["decoding"]()
    declared = type(result).tables

    def add_column(self):
        for table in declared(self):
            more = [Column("squared", "gain²", get=square)] if table.name == "metrics" else []
            yield replace(table, columns=(*table.columns, *more))

    monkeypatch.setattr(type(result), "tables", add_column)
    gap = next(iter(result.differences.values()))
    wanted = square(gap)
    if form == "frame":
        assert wanted in list(result.to_frame()["squared"])
    elif form == "csv":
        assert wanted in [row["squared"] for row in csv.DictReader(io.StringIO(result.to_csv()))]
    else:
        from ordinate.render import render

        assert wanted in render(result, form)


def test_what_is_needed_least_goes_first_and_what_is_missing_is_said():
    value = Estimates(str, str, missing="none")
    columns = (Column("a", kind=value, optional=2), Column("b", optional=1))
    (grid,) = Table("t", "", columns, [{"a": None, "b": 1}], 0.95).grids()
    assert grid.optional == ("b", "a")
    assert grid.rows == (("none", None, 1),)
