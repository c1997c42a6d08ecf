"""The replication study and the search of readings: results, reports, the page."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ordinate.errors import BadOption
from ordinate.meta.replication.option_search import (
    ReadingFit,
    ReadingSearch,
    descend_readings,
    search_readings,
)
from ordinate.meta.replication.published_figures import (
    EXCHANGED_ROWS,
    TABLE_3,
    TABLE_3_COLUMNS,
)
from ordinate.meta.replication.study import (
    POST_HOC_NOTE,
    READINGS,
    ReadingOutcome,
    ReplicationStudy,
    run_replication,
)
from ordinate.meta.replication.synthetic_experiment import (
    CHOICES,
    FITTED,
    LITERAL,
    METRICS,
    SEARCH_SEEDS,
)
from ordinate.render import RENDERERS, render

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "cem-replication.md"


@pytest.fixture(scope="module")
def result():
    return run_replication(seeds=[0, 1])


# --- results -------------------------------------------------------------------------------------


def test_the_json_has_every_number_beside_the_published_one(result):
    plain = json.loads(render(result, "json"))
    assert (plain["schema"], plain["study"], plain["seeds"]) == (1, "synthetic", [0, 1])
    assert list(plain["readings"]) == ["literal", "fitted"]
    for name, reading in READINGS.items():
        found = plain["readings"][name]
        assert found["options"] == reading.options
        assert {*found["coverage"]} == {*TABLE_3}
        cells = {(m, c): cell for m, row in found["coverage"].items() for c, cell in row.items()}
        assert {c for _, c in cells} == {*TABLE_3_COLUMNS}
        for (metric, column), cell in cells.items():
            assert cell["published"] == TABLE_3[metric][TABLE_3_COLUMNS.index(column)]
            assert cell["mean"] == pytest.approx(np.mean(cell["values"]))
            assert cell["sd"] == pytest.approx(np.std(cell["values"], ddof=1))
        far = [abs(cell["mean"] - cell["published"]) for cell in cells.values()]
        assert found["deviation"] == pytest.approx(np.mean(far))
        assert np.mean([*found["deviation_by_column"].values()]) == pytest.approx(np.mean(far))
        assert np.mean([*found["deviation_by_metric"].values()]) == pytest.approx(np.mean(far))


def test_the_headline_is_what_the_table_says(result):
    for outcome in result.outcomes.values():
        for c, (column, lead) in enumerate(outcome.compute_leads().items()):
            assert column == TABLE_3_COLUMNS[c]
            by_name = dict(zip(METRICS, outcome.mean[:, c], strict=True))
            mine, flat = by_name.pop("cem_ord"), by_name["cem_ord_flat"]
            best = max(by_name, key=by_name.__getitem__)
            assert lead.best_other == best
            assert lead.margin == pytest.approx(mine - by_name[best])
            assert lead.margin_over_flat == pytest.approx(mine - flat)
            by_seed = [dict(zip(METRICS, seed[:, c], strict=True)) for seed in outcome.values]
            assert lead.seeds_first == sum(max(v, key=v.get) == "cem_ord" for v in by_seed)
            ahead = sum(v["cem_ord"] > v["cem_ord_flat"] for v in by_seed)
            assert lead.seeds_ahead_of_flat == ahead


def test_exchanging_the_two_rows_lowers_the_deviation_more_than_any_other_exchange(result):
    for outcome in result.outcomes.values():
        exchanges = outcome.rank_exchanges()
        assert len(exchanges) == 105
        assert next(iter(exchanges)) == EXCHANGED_ROWS
        plain = outcome.compute_deviations().mean()
        assert exchanges[EXCHANGED_ROWS] == pytest.approx(
            outcome.compute_deviations(EXCHANGED_ROWS).mean()
        )
        assert exchanges[EXCHANGED_ROWS] < plain - 0.01


def test_the_fitted_reading_fits_seeds_that_it_was_not_chosen_by(result):
    assert not {*SEARCH_SEEDS} & {*result.seeds}
    literal, fitted = (result.outcomes[name].compute_deviations().mean() for name in READINGS)
    assert fitted < literal - 0.01


def test_the_report_says_that_a_fit_is_post_hoc(result):
    text = " ".join(render(result).split())
    assert POST_HOC_NOTE in text
    assert "Under the literal reading it is first in" in text
    assert POST_HOC_NOTE not in " ".join(str(run_replication([0], {"literal": LITERAL})).split())


@pytest.mark.parametrize("form", RENDERERS)
def test_every_format_can_be_written(result, form):
    assert "cem_ord" in render(result, form).replace("\\", "")


def test_the_records_are_one_for_each_number(result):
    rows = result.rows()
    assert len(rows) == len(READINGS) * len(METRICS) * len(TABLE_3_COLUMNS)
    assert rows[0]["published"] == 0.81


def test_one_seed_has_no_spread():
    alone = run_replication(seeds=[0], readings={"literal": LITERAL})
    cell = alone.to_dict()["readings"]["literal"]["coverage"]["mae"]["all"]
    assert (cell["sd"], len(cell["values"])) == (None, 1)


def test_progress_is_told():
    told = []
    run_replication(seeds=[0, 1], readings={}, progress=told.append)
    assert told == [0.5, 1.0]


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ((), "1 to 1,000, not 0"),
        ((-1,), "at least 0, not -1"),
        ((0.5,), "at least 0, not 0.5"),
        ((True,), "at least 0, not True"),
        (range(1_001), "1 to 1,000, not 1001"),
    ],
)
def test_bad_seeds_are_refused(seeds, message):
    with pytest.raises(BadOption, match=message):
        run_replication(seeds)


# --- the search ----------------------------------------------------------------------------------


def fit_to(target):
    """A fit that is better the nearer a reading is to a target; two options help only together."""

    def fit(reading):
        missed = len(reading.changes(target))
        half_way = (reading.errors == target.errors) != (reading.values == target.values)
        return ReadingFit(missed + 1.5 * half_way, 0.0, 0, 0)

    return fit


def test_the_search_takes_two_steps_at_once_where_one_does_not_help():
    target = replace(FITTED, pairs="unordered")
    best, tried = descend_readings(LITERAL, fit_to(target))
    assert best == target
    assert tried[best].deviation == min(fit.deviation for fit in tried.values())


def test_the_search_tries_every_reading_within_two_options_once():
    asked = []

    def fit(reading):
        asked.append(reading)
        return ReadingFit(float(reading != LITERAL), 0.0, 0, 0)

    best, tried = descend_readings(LITERAL, fit)
    assert best == LITERAL
    assert len(asked) == len(set(asked)) == len(tried)
    sizes = [len(choices) - 1 for choices in CHOICES.values()]
    two = sum(a * b for a, b in itertools.combinations(sizes, 2))
    assert len(tried) == 1 + sum(sizes) + two


def test_equal_fits_are_no_reason_to_leave_the_literal_reading():
    assert descend_readings(LITERAL, lambda _: ReadingFit(0.5, 0.0, 0, 0))[0] == LITERAL


def test_a_search_reports_what_was_tried():
    best, tried = descend_readings(LITERAL, fit_to(FITTED))
    found = ReadingSearch((100,), best, tried)
    plain = json.loads(render(found, "json"))
    assert plain["tried"] == len(tried)
    assert plain["best"]["options"] == FITTED.options
    assert (plain["best"]["deviation"], plain["first_in_every_column"]) == (0.0, 0)
    deviations = [row["deviation"] for row in found.rows()]
    assert deviations == sorted(deviations)
    text = " ".join(str(found).split())
    assert f"{len(tried):,} of 124,416 readings were tried" in text
    assert POST_HOC_NOTE in text


def test_a_fit_counts_the_columns_that_the_claim_holds_in(result):
    outcome = result.outcomes["literal"]
    leads = outcome.compute_leads().values()
    fit = ReadingFit.of(outcome)
    assert fit.columns_first == sum(lead.margin > 0 for lead in leads)
    assert fit.columns_ahead == sum(lead.margin_over_flat > 0 for lead in leads)
    assert fit[:2] == pytest.approx(
        (outcome.compute_deviations().mean(), outcome.compute_deviations(EXCHANGED_ROWS).mean())
    )


def test_the_page_says_how_far_coverages_are_and_how_they_vary():
    page = " ".join(PAGE.read_text("utf-8").split())
    literal, fitted = run_replication().outcomes.values()
    spread = np.array([literal.spread, fitted.spread])
    far = [f"{outcome.compute_deviations().mean():.3f}" for outcome in (literal, fitted)]
    assert f"over seeds is {spread.min():.4f} to {spread.max():.4f}," in page
    assert f"is {far[0]} under the literal reading and {far[1]} under the fitted one" in page


@pytest.mark.slow
def test_the_fitted_reading_is_what_the_search_finds():
    found = search_readings()
    assert found.best == FITTED
    assert " ".join(str(found).split()) in " ".join(PAGE.read_text("utf-8").split())


def test_a_study_of_ones_own_readings_has_their_names():
    own = replace(LITERAL, ordinal_end="wrap")
    alone = run_replication([0], {"mine": own})
    assert isinstance(alone, ReplicationStudy)
    assert isinstance(alone.outcomes["mine"], ReadingOutcome)
    assert "ordinal_end=wrap" in str(alone)
    assert "<table" in alone._repr_html_()
