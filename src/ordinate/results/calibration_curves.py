"""Calibration curves of a report: the events "gold is at most level k" by isotonic regression."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.calibration_curves import (
    MOST_CURVES,
    CalibrationCurve,
    fit_calibration_curves,
    is_outside_band,
)
from ordinate.inference.probability_scores import PerfectCalibration
from ordinate.metrics.corp import CORP_TERMS
from ordinate.render import Grid
from ordinate.render.charts import MISSING, Axis, Bar, Chart, Line, Mark, Panel
from ordinate.render.document import Cell, format_cell
from ordinate.render.estimates import format_count, format_p_value, format_percent
from ordinate.render.tables import to_plain
from ordinate.results.base import Record, to_json_label
from ordinate.summaries.reliability import CURVE_BINS, Reliability

OBSERVED, CALIBRATED, ITEMS = "observed frequency", "calibrated", "share of items"
BAND = "consistency band of a calibrated system"
MOST_EVENTS = 12  # whose curves can be seen at once
READ_AT = (0.1, 0.25, 0.5, 0.75, 0.9)  # forecasts at which a table shows the curves
ABBREVIATIONS = ("MCB", "DSC", "UNC")
SIGNIFICANT = 0.05  # a smaller p, adjusted for the number of tests, is called miscalibration
DIGITS = 4  # miscalibration is a small part of a score
ROUNDING = 1e-12
TERMS_NOTE = (
    "MCB, miscalibration, is what recalibration by isotonic regression takes off a score; DSC, "
    "discrimination, is what the recalibrated probabilities gain on the gold share; UNC, "
    "uncertainty, is the score of the gold share: the score is MCB - DSC + UNC."
)
CLUSTERED_NOTE = (
    "Calibration curves have no bands and no p here: those take items as independent, and the "
    "items come in clusters."
)


@dataclass(frozen=True, eq=False)
class CalibrationCurves:
    """The calibration curve of each event "gold is at most level k", lowest first, and their RPS.

    Bands and p need `intervals`, and items that are independent.
    """

    summary: Reliability
    intervals: ConfidenceIntervals | None = None
    clustered: bool = False

    @cached_property
    def events(self) -> tuple[CalibrationCurve, ...]:
        """The curve of each event."""
        settings = None if self.clustered else self.intervals
        if self.summary.curves is None:
            raise KeyError("curves")
        return fit_calibration_curves(self.summary.curves, settings)

    @property
    def names(self) -> list[str]:
        """The name of each event."""
        return [f"at most {name}" for name in self.summary.scale.names[:-1]]

    @property
    def terms(self) -> dict[str, float]:
        """The terms of the RPS, which is the mean score of the events."""
        parts = [curve.terms for curve in self.events]
        return {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}

    @property
    def tests(self) -> list[PerfectCalibration]:
        """The miscalibration of each event among those of calibrated systems."""
        return [curve.perfect_calibration for curve in self.events if curve.perfect_calibration]

    @property
    def perfect_calibration(self) -> PerfectCalibration | None:
        """The mean miscalibration of the RPS of calibrated systems: its events hang together."""
        means = [test.mean for test in self.tests]
        return PerfectCalibration(float(np.mean(means)), math.nan, math.nan) if means else None

    @property
    def resamples(self) -> int | None:
        """How many calibrated systems were simulated for the bands."""
        settings = None if self.clustered else self.intervals
        return None if settings is None else min(settings.resamples, MOST_CURVES)

    # --- plain values --------------------------------------------------------------------------

    def to_dict(self) -> Record:
        """Return plain values, nan as None: the terms of the RPS, and each event with its curve."""
        return {
            "resamples": self.resamples,
            "approximate": self._is_approximate(),
            "rps": to_plain(self.terms | {"if_calibrated": self.perfect_calibration}),
            "events": [
                row | {"points": points}
                for row, points in zip(self.list_events(), self._list_points(), strict=True)
            ],
        }

    def list_events(self) -> list[Record]:
        """Return the terms of each event, and its p."""
        labels = self.summary.scale.labels[:-1]
        return [
            {"at_most": to_json_label(label)}
            | to_plain(curve.terms)
            | {"if_calibrated": to_plain(curve.perfect_calibration)}
            for label, curve in zip(labels, self.events, strict=True)
        ]

    def list_points(self) -> list[Record]:
        """Return the points of all curves: forecast, observed frequency, band and items."""
        labels = self.summary.scale.labels[:-1]
        return [
            {"at_most": to_json_label(label)} | point
            for label, points in zip(labels, self._list_points(), strict=True)
            for point in points
        ]

    def _list_points(self) -> list[list[Record]]:
        names = ("forecast", "frequency", "low", "high", "count")
        return [
            [
                dict(zip(names, to_plain(list(point)), strict=True))
                for point in zip(*(getattr(curve, name).tolist() for name in names), strict=True)
            ]
            for curve in self.events
        ]

    # --- for people ----------------------------------------------------------------------------

    def make_grids(self) -> tuple[Grid, ...]:
        """Return where the score of each event comes from, and its curve."""
        return (self._make_term_grid(), self._make_curve_grid())

    def _make_term_grid(self) -> Grid:
        rows = [
            (name, *_format_terms(curve.terms, curve.perfect_calibration))
            for name, curve in zip(self.names, self.events, strict=True)
        ]
        rows.append(("all: rps", *_format_terms(self.terms, self.perfect_calibration)))
        header = ("event", *ABBREVIATIONS, "score", "MCB if calibrated", "p")
        return Grid("Calibration of the events", header, tuple(rows)).drop_empty_columns()

    def _make_curve_grid(self) -> Grid:
        rows = tuple(
            (name, *(_format_reading(*curve.read_at(forecast)) for forecast in READ_AT))
            for name, curve in zip(self.names, self.events, strict=True)
        )
        header = ("event", *(f"{forecast:.2f}" for forecast in READ_AT))
        return Grid("Observed frequency at predicted probabilities", header, rows)

    def list_notes(self) -> list[str]:
        """Say what the terms are, and what bands and p stand on."""
        notes = [TERMS_NOTE]
        if self.clustered and self.intervals is not None:
            notes.append(CLUSTERED_NOTE)
        if self.tests and self.intervals is not None:
            level = format_percent(self.intervals.level, digits=0)
            band = f"* is outside their {level} consistency band"
            drawn = f"{self.resamples} simulations of calibrated systems"
            notes.append(
                f"'MCB if calibrated' and p are from {drawn}; {band}. Items count as independent."
            )
            notes += [*self._describe_weights(), *self._describe_power()]
        if self._is_approximate():
            within = self.terms["within_variance"] - self.terms["within_covariance"]
            notes.append(
                f"Calibration curves are approximate: probabilities are taken in {CURVE_BINS:,} "
                f"bins, and what differs within them adds {within:.1g} to the RPS."
            )
        return notes

    def _describe_weights(self) -> list[str]:
        items = float(self.summary.weight**2 / self.summary.squares)
        if math.isclose(items, self.summary.n, rel_tol=ROUNDING):
            return []
        note = (
            f"Weights are not equal: bands and p take the {self.summary.n:,} items for "
            f"{items:,.0f} of equal weight, which is approximate."
        )
        return [note]

    def _describe_power(self) -> list[str]:
        """Say where so many events are tested that none can be significant."""
        if self.resamples is None or len(self.events) <= SIGNIFICANT * (self.resamples + 1):
            return []
        note = (
            f"With {len(self.events)} events, no p from so few simulations is below "
            f"{SIGNIFICANT:g} after Holm's correction: the verdict cannot find a single event."
        )
        return [note]

    def _is_approximate(self) -> bool:
        return self.terms["within_variance"] > ROUNDING

    # --- the reliability diagram ---------------------------------------------------------------

    def make_chart(self, bins: int) -> Chart:
        """Return the reliability diagram of each event, over so many bins of probabilities.

        The band lies where the curve of a calibrated system would: it belongs to the diagonal.
        """
        count = len(self.events)
        step = -(-count // MOST_EVENTS)
        panels = tuple(
            Panel(
                (
                    *self._make_histogram(event, bins),
                    *_make_curves(self.events[event]),
                ),
                self.names[event],
            )
            for event in range(0, count, step)
        )
        band = ""
        if self.tests and self.intervals is not None:
            level = format_percent(self.intervals.level, digits=0)
            band = f" The band is the {level} consistency band of a calibrated system."
        left_out = f" {len(panels)} of {count} events are shown." if step > 1 else ""
        return Chart(
            "reliability",
            "Reliability of the cumulative probabilities",
            "Of the items with about the same predicted probability to be at most a level, the "
            "share that is, by isotonic regression; bars are the share of items with such "
            "probabilities."
            f"{band}{left_out}",
            Axis("predicted probability", low=0.0, high=1.0),
            Axis("observed frequency", low=0.0, high=1.0),
            panels,
            series=(OBSERVED, CALIBRATED, ITEMS),
            columns=min(3, len(panels)),
        )

    def _make_histogram(self, event: int, bins: int) -> list[Mark]:
        """Return the share of items by their probability of an event."""
        items = self.summary.bins["cumulative", bins].items[event]
        edges = np.linspace(0.0, 1.0, bins + 1).tolist()
        total = items.sum()
        return [
            Bar(
                (low + high) / 2.0,
                float(count / total),
                width=high - low,
                series=ITEMS,
                detail=f"{low:.2f} to {high:.2f}: {format_count(int(count))}, "
                f"{format_percent(float(count / total))}",
            )
            for low, high, count in zip(edges, edges[1:], items.tolist(), strict=False)
            if count
        ]


def _format_terms(terms: dict[str, float], perfect: PerfectCalibration | None) -> tuple[Cell, ...]:
    names = (*CORP_TERMS[: len(ABBREVIATIONS)], "score")
    shown = [format_cell(terms[name], DIGITS) for name in names]
    if perfect is None:
        return (*shown, None, None)
    p = None if math.isnan(perfect.p) else format_p_value(perfect.p)
    return (*shown, format_cell(perfect.mean, DIGITS), p)


def _format_reading(frequency: float, low: float, high: float) -> str | None:
    """Return a frequency, with a mark outside the band; none where there are no forecasts."""
    if math.isnan(frequency):
        return None
    return f"{frequency:.3f}{'*' * bool(is_outside_band(frequency, low, high))}"


def _make_curves(curve: CalibrationCurve) -> list[Mark]:
    """Return the curve over the diagonal, whose band ends with the forecasts."""
    forecast, observed = tuple(curve.forecast.tolist()), tuple(curve.frequency.tolist())
    bands = [(MISSING, *x.tolist(), MISSING) for x in (curve.low, curve.high)]
    has_band = not np.isnan(curve.low).all()
    low, high = bands if has_band else ((), ())
    perfect = curve.perfect_calibration
    p = "" if perfect is None else f", p {format_p_value(perfect.p)}"
    whole = (0.0, *forecast, 1.0)
    return [
        Line(whole, whole, low, high, series=CALIBRATED, detail=BAND if has_band else CALIBRATED),
        Line(
            forecast,
            observed,
            series=OBSERVED,
            detail=f"miscalibration {curve.terms['miscalibration']:.4f}{p}",
        ),
    ]
