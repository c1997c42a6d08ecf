"""What the report of a comparison says."""

import csv
import io
import json
import math
import re

import pytest
from command import read_values
from comparisons import (
    DRAWS,
    GOLD,
    SIZE,
    SYSTEMS,
    WAYS,
    board_of,
    compared,
)
from panels import panel_of, sampled
from rendered_reports import words

from ordinate.render import RENDERERS, render
from ordinate.results.comparison import Comparison
from ordinate.results.comparison_settings import ComparisonSettings


def test_the_conclusion_names_the_leader_and_whom_it_beats_and_whom_not():
    systems = {
        "best": SYSTEMS["s0"],
        "twin": SYSTEMS["s0"],
        "near": [min(3, p + 1) if k == 0 else p for k, p in enumerate(SYSTEMS["s0"])],
        "unsure": [*SYSTEMS["s0"][:132], *SYSTEMS["s1"][132:]],
        "poor": SYSTEMS["s1"],
        "poorer": SYSTEMS["s3"],
    }
    board = board_of(GOLD, systems)
    leader = board.get_standing("best")
    found = board.conclusion
    limits = f"{leader.estimate.low:.3f} to {leader.estimate.high:.3f}"
    assert found.startswith(f"best leads on mae with {leader.estimate.value:.3f} ({limits}).")
    assert "It is significantly better than poor and poorer." in found
    assert "It is not significantly different from unsure." in found
    assert "It differs from near in too few items for a verdict." in found
    assert "no difference from twin" in found


def test_the_differences_are_shown_of_every_metric_that_has_a_margin():
    metrics = "accuracy,mae,quadratic_kappa"
    shown = words(compared(GOLD, SYSTEMS, metrics, margins={"mae": 0.1}))
    assert "Differences in accuracy (" in shown
    assert "Differences in mae (" in shown
    assert "Differences in quadratic_kappa (" not in shown
    assert "inferior" in shown


def test_metrics_that_say_the_same_share_a_sentence_and_one_alone_has_its_value():
    result = compared(GOLD, SYSTEMS, "cem_ord,mae,quadratic_kappa,mse,bias")
    first, *others = (board.conclusion for board in result.leaderboards.values())
    verdicts = [conclusion.partition(").")[2] for conclusion in others]
    assert verdicts[0] == verdicts[1] == verdicts[2] != verdicts[3]
    shown = words(result)
    assert first in shown
    assert f"s0 leads on mae, quadratic_kappa and mse.{verdicts[0]}" in shown
    assert others[3] in shown
    assert "leads on mae with" not in shown


def test_the_conclusion_is_the_same_whoever_comes_first():
    turned = dict(reversed(SYSTEMS.items()))
    assert board_of(GOLD, SYSTEMS).conclusion.startswith("s0 leads on mae")
    found = board_of(GOLD, turned).conclusion
    assert found.startswith("s0 leads on mae")
    assert set(re.search(r"better than (s\d), (s\d) and (s\d)\.", found).groups()) == {
        "s1",
        "s2",
        "s3",
    }


def test_the_conclusion_counts_systems_that_are_too_many_to_name():
    gold, systems = sampled(SIZE, 200, 1, [0.1] + [2.0] * 7)
    assert "It is significantly better than 7 systems." in board_of(gold, systems).conclusion


def test_every_metric_has_its_conclusion_in_the_report():
    result = compared(GOLD, SYSTEMS, "mae,accuracy,bias")
    for board in result.leaderboards.values():
        assert board.conclusion in words(result)


KEYS = {
    "schema", "task", "n", "weight", "scale", "systems", "groups", "dropped", "level", "resamples",
    "seed", "against", "correction", "metrics", "average_over", "tests", "source",
}  # fmt: skip
OF_BOARD = {"direction", "conclusion", "notes", "test", "systems", "pairs", "baselines"}
OF_SYSTEM = {
    "value", "low", "high", "method", "undefined_share", "undefined", "rank", "rank_low",
    "rank_high", "rank_frequencies", "compact_letter_display",
}  # fmt: skip
OF_PAIR = {
    "first", "second", "difference", "low", "high", "method", "note", "p", "p_adjusted", "verdict",
    "margin_verdict",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_json_is_strict_and_has_the_keys_that_it_promises(way):
    systems = {"a": SYSTEMS["s0"], "flat": [1] * 150, "b": SYSTEMS["s1"]}
    chosen = "mae,kendall_tau_b,quadratic_kappa,min_sensitivity,purity,bias,gwet_ac2,oci"
    result = compared(GOLD, systems, chosen, resamples=100, pairs=[("a", "flat")], **WAYS[way])
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain.keys() == KEYS
    assert "predicted" not in plain["source"]
    assert (plain["task"], plain["n"]) == ("compare", 150)
    assert plain["systems"] == ["a", "flat", "b"]
    for board in plain["metrics"].values():
        assert board.keys() == OF_BOARD
        assert set(board["systems"]) == set(systems)
        for one in board["systems"].values():
            assert one.keys() >= OF_SYSTEM
            assert (one["value"] is None) == (one["undefined"] is not None)
        assert all(pair.keys() == OF_PAIR for pair in board["pairs"])
    assert read_values(render(result, "json")) == plain
    (tests,) = plain["tests"]
    assert tests.keys() == {
        "first", "second", "permutation", "mcnemar", "sign", "bowker", "stuart_maxwell",
    }  # fmt: skip


def test_all_metrics_can_be_compared():
    systems = {"s0": SYSTEMS["s0"], "s3": SYSTEMS["s3"], "flat": [1] * 150, "silent": [None] * 150}
    result = compared(GOLD, systems, "all", resamples=100, missing="worst")
    json.dumps(result.to_dict(), allow_nan=False)
    for board in result.leaderboards.values():
        for one in board.standings:
            assert not math.isnan(one.estimate.value) or one.estimate.note


def test_rank_frequencies_in_the_json_add_up_to_1():
    plain = compared(GOLD, SYSTEMS).to_dict()["metrics"]["mae"]["systems"]
    for one in plain.values():
        assert sum(one["rank_frequencies"].values()) == pytest.approx(1)
        assert set(one["rank_frequencies"]) <= {"1", "2", "3", "4"}


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("case", ["plain", "undefined", "groups", "margins", "two", "many"])
def test_every_form_can_be_rendered(form, case):
    options = {
        "groups": {"groups": [k % 7 for k in range(150)]},
        "margins": {"margins": {"mae": 0.1}, "against": "leader"},
        "two": {"systems": {"a": SYSTEMS["s0"], "b": SYSTEMS["s1"]}},
        "undefined": {"systems": SYSTEMS | {"flat": [1] * 150}, "metrics": "kendall_tau_b"},
        "many": {"systems": {f"x{k}": SYSTEMS[f"s{k % 4}"] for k in range(55)}, "resamples": 100},
    }.get(case, {})
    systems = options.pop("systems", SYSTEMS)
    result = compared(GOLD, systems, options.pop("metrics", "mae,accuracy"), **options)
    shown = render(result, form)
    assert all(name in shown for name in systems if form in {"json", "csv"} or case != "many")


def test_the_csv_has_a_record_for_each_metric_and_system():
    result = compared(GOLD, SYSTEMS, "mae,accuracy")
    records = list(csv.DictReader(io.StringIO(render(result, "csv"))))
    assert len(records) == 8
    for record in records:
        one = result.leaderboards[record["metric"]].get_standing(record["system"])
        assert float(record["value"]) == one.estimate.value
        assert int(record["rank"]) == one.rank
        assert record["compact_letter_display"] == one.compact_letter_display


def test_the_text_report_shows_what_the_board_knows():
    result = compared(GOLD, SYSTEMS)
    shown = words(result)
    board = result.leaderboards["mae"]
    for one in board.standings:
        found = one.estimate
        row = (
            f"{one.rank} {one.system} {found.value:.3f} {found.low:.3f} to {found.high:.3f} "
            f"{one.rank_low} to {one.rank_high} {100 * one.rank_shares[0]:.1f} % "
            f"{one.compact_letter_display}"
        )
        assert row in shown
    for pair in board.pairs:
        row = (
            f"{pair.first} {pair.second} {pair.difference.value:z.3f} {pair.difference.low:z.3f} to"
        )
        assert row in shown
    assert "all pairs, max-T" in shown


def test_values_of_all_metrics_have_their_limits_and_letters_in_one_cell():
    result = compared(GOLD, SYSTEMS, "mae,accuracy,bias,cem_ord")
    shown = words(result)
    assert shown.count("Values with their compact letter display") == 2
    for system in SYSTEMS:
        cells = []
        for board in list(result.leaderboards.values())[:3]:
            one = board.get_standing(system)
            found = one.estimate
            limits = f"({found.low:z.2f} to {found.high:z.2f})"
            cells.append(f"{found.value:z.3f} {limits} {one.compact_letter_display}")
        assert f"{system} {' '.join(cells)}" in shown


def test_very_small_p_values_are_not_shown_as_0():
    gold = [0, 1] * 40
    result = compared(gold, {"a": gold, "b": [1 - g for g in gold]}, "accuracy", resamples=20_000)
    (pair,) = result.leaderboards["accuracy"].pairs
    assert 0 < pair.p < 0.0001
    shown = words(result)
    assert "<0.0001 <0.0001 better" in shown
    assert "0.0000" not in shown
    assert "nan" not in shown


def test_the_report_says_by_which_methods_the_intervals_were_found():
    shown = words(compared(GOLD, SYSTEMS, "accuracy,macro_mae"))
    assert "Intervals by Wilson: accuracy; by MOVER over the levels: macro_mae." in shown


NASTY = ["\x1b[31mred\x1b[0m", "\x9b31m", "new\nline", "\u202eback"]


@pytest.mark.parametrize("nasty", NASTY)
@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
@pytest.mark.parametrize("against", ["all", "nasty"])
def test_no_name_of_a_system_can_drive_the_terminal(nasty, form, against):
    systems = {nasty: SYSTEMS["s0"], "plain": SYSTEMS["s1"]}
    named = nasty if against == "nasty" else against
    shown = render(compared(GOLD, systems, against=named), form)
    assert not [x for x in shown if not x.isprintable() and x != "\n"]
    assert "new\nline" not in shown


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "<b>"])
def test_html_has_no_tag_of_a_system(name):
    shown = render(compared(GOLD, {name: SYSTEMS["s0"], "b": SYSTEMS["s1"]}), "html")
    assert name not in shown


def test_progress_goes_from_nothing_to_the_end():
    said = []
    panel = panel_of(GOLD, SYSTEMS, SIZE)
    Comparison.from_panel(panel, "mae", ComparisonSettings(resamples=DRAWS), progress=said.append)
    assert said == sorted(said)
    assert 0 < said[0] < said[-1] <= 1


def test_tables_of_several_metrics_have_titles_of_their_own():
    found = compared(GOLD, SYSTEMS, metrics="mae,accuracy,bias,mse")
    body = found.document().list_body()
    titles = [x.title for x in body if not isinstance(x, str) and x.title.startswith("Values")]
    assert len(titles) == 2
    assert len({*titles}) == 2
