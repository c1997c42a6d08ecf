"""Ranking: every saved model and every external file on every test set, beside baselines."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ordinate.errors import BadOption
from ordinate.inference import Estimate
from ordinate.inference.resampling import ProgressCallback, scale_progress
from ordinate.metrics import Metric, find_metric, split_expressions
from ordinate.render import Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.document import Cell, format_cell
from ordinate.render.estimates import format_count, format_with_interval, join_names
from ordinate.results.arguments import (
    MetricSelection,
    needs_probabilities,
    select_metrics,
    split_metrics_by_summary,
)
from ordinate.results.base import SCHEMA, Origin, Result, align_columns, to_json_label
from ordinate.results.comparison import Comparison
from ordinate.results.comparison_settings import AGAINST_ALL, ComparisonSettings
from ordinate.results.leaderboard import Leaderboard, PanelLeaderboardBuilder
from ordinate.scale import Scale
from ordinate.summaries.tabulation import MissingPolicy
from ordinate.tuning.classify.external_systems import PredictionColumns, read_external_systems
from ordinate.tuning.classify.model_evaluation import (
    DatasetEvaluation,
    build_model_grids,
    describe_coverage,
)
from ordinate.tuning.classify.scoring import KAPPA, NO_BETTER_THAN_CHANCE
from ordinate.tuning.classify.system_predictions import (
    PredictionCollector,
    SystemPredictions,
    format_chance_flag,
    require_one_scale,
    select_test_sets,
)
from ordinate.tuning.classify.trained_model import load_models
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.model_names import shorten_names_in_chart, use_short_names
from ordinate.tuning.search.saved_models import list_model_names
from ordinate.tuning.search.tuning_result import TuningResult

SHOWN_METRICS = ("cem_ord", KAPPA, "accuracy", "mae")  # of the default metrics; JSON has all
CHANCE_NOTE = (
    f"'{NO_BETTER_THAN_CHANCE}' stands beside a system whose interval of quadratic_kappa, on the "
    "items that it predicts, is not above 0."
)
BIAS_NOTE = (
    "Test sets that helped to choose a model are optimistically biased: choose by cross-validation."
)


@dataclass(frozen=True)
class DatasetRanking:
    """One test set: its systems compared, their quadratic kappas, and its models evaluated."""

    test_set: SystemPredictions
    comparison: Comparison
    kappas: dict[str, Estimate]
    evaluation: DatasetEvaluation

    @classmethod
    def of(
        cls,
        test_set: SystemPredictions,
        metric: Metric,
        metrics: list[Metric],
        settings: ComparisonSettings,
        unanswered: MissingPolicy,
        progress: ProgressCallback | None,
    ) -> "DatasetRanking":
        """Compare the systems on a test set; one alone gets its value and no more.

        `metrics` are those by which models are evaluated, beside the one of the ranking.
        """
        panel = test_set.count_panel(unanswered)
        origin = Origin(gold="its levels", files=(test_set.file,), notes=test_set.report_sentences)
        if len(panel.systems) > 1:
            comparison = Comparison.from_panel(
                panel, [metric], settings, origin=origin, progress=progress
            )
        else:
            alone = replace(settings, against=AGAINST_ALL)
            boards = PanelLeaderboardBuilder(panel, [metric], alone, progress).all()
            comparison = Comparison(panel, boards, (), alone, origin)
        intervals = settings.intervals
        kappas = {name: test_set.estimate_kappa(name, intervals) for name in panel.systems}
        evaluation = DatasetEvaluation.of(test_set, metrics, intervals)
        return cls(test_set, comparison, kappas, evaluation)

    @property
    def leaderboard(self) -> Leaderboard:
        """The leaderboard."""
        (board,) = self.comparison.leaderboards.values()
        return board

    def flag(self, system: str) -> str | None:
        """Return the warning for a system that is no better than chance."""
        return format_chance_flag(self.kappas[system])

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each system and baseline, then those of the models."""
        rows = [
            {"test": self.test_set.name, "role": "system", **row}
            for row in self._build_system_rows()
        ]
        metric, n = self.leaderboard.metric.expression, self.comparison.panel.n
        blank = dict.fromkeys(rows[0])
        for name, value in self._list_baselines():
            baseline = {
                "role": "baseline",
                "metric": metric,
                "system": name,
                "value": value,
                "n": n,
            }
            rows.append(blank | {"test": self.test_set.name} | baseline)
        return rows + [{"test": self.test_set.name} | row for row in self.evaluation.rows()]

    def _build_system_rows(self) -> list[dict[str, Any]]:
        return [
            row
            | {
                "predicted": self._share(row["system"]),
                "kappa": self.kappas[row["system"]].value,
                "kappa_low": self.kappas[row["system"]].low,
                "kappa_high": self.kappas[row["system"]].high,
                "flag": self.flag(row["system"]),
            }
            for row in self.comparison.rows()
        ]

    def _share(self, system: str) -> float:
        coverage = self.test_set.coverage.get(system)
        return 1.0 if coverage is None else coverage.share

    def _list_baselines(self) -> list[tuple[str, float]]:
        against = self.leaderboard.baselines
        if against is None:
            return []
        return [
            (f"best constant ({against.best_constant.level})", against.best_constant.value),
            (f"majority ({against.majority.level})", against.majority.value),
            ("chance", against.chance.value),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        found = self.comparison.to_dict()
        systems = found["metrics"][self.leaderboard.metric.expression]["systems"]
        for name, kappa in self.kappas.items():
            coverage = self.test_set.coverage.get(name)
            systems[name]["quadratic_kappa"] = kappa.to_dict()
            systems[name]["flag"] = format_chance_flag(kappa)
            systems[name]["coverage"] = None if coverage is None else coverage.to_dict()
        given = self.test_set
        further = {"test": given.name, "file": given.file, "unlabelled": given.unlabelled}
        return found | further | self.evaluation.to_dict()

    def document(self) -> Document:
        """Return the report: that of a comparison, with shares and flags in the leaderboard."""
        document = self.comparison.document()
        board, *differences = (block for block in document.list_body() if isinstance(block, Grid))
        blocks = (self._mark_leaderboard(board), *differences)
        if len(self.kappas) > 1:
            return replace(document, blocks=blocks)
        (only,) = self.leaderboard.standings
        value = format_cell(format_with_interval(only.estimate))
        verdict = f"{only.system} has {self.leaderboard.metric.expression} {value}."
        return replace(document, blocks=blocks[:1], verdict=verdict)

    def _mark_leaderboard(self, board: Grid) -> Grid:
        """Return the leaderboard with the share that each system predicts, and the flags."""
        shares, flags = bool(self.test_set.coverage), any(map(self.flag, self.kappas))
        header = (*board.header, *(("predicted",) if shares else ()), *(("flag",) if flags else ()))
        names = [one.system for one in self.leaderboard.standings]  # baselines come after them
        rows: list[tuple[Cell, ...]] = []
        for place, row in enumerate(board.rows):
            name = names[place] if place < len(names) else None
            share = None if name is None else f"{100 * self._share(name):.1f} %"
            flag = None if name is None else self.flag(name)
            rows.append((*row, *((share,) if shares else ()), *((flag,) if flags else ())))
        return replace(
            board, title=f"{self.test_set.name}: {board.title}", header=header, rows=tuple(rows)
        )


@dataclass(frozen=True, repr=False, eq=False)
class ModelRanking(Result):
    """The leaderboard of every test set."""

    metric: Metric
    metrics: tuple[Metric, ...]  # by which models are evaluated
    shown: tuple[Metric, ...]  # those of them in the tables
    tests: tuple[DatasetRanking, ...]
    unanswered: MissingPolicy
    level: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        test_sets: Sequence[SystemPredictions],
        metric: str | Metric = "cem_ord",
        metrics: MetricSelection = None,
        settings: ComparisonSettings | None = None,
        *,
        unanswered: MissingPolicy = "worst",
        notes: Sequence[str] = (),
        progress: ProgressCallback | None = None,
    ) -> "ModelRanking":
        """Rank the systems on each test set; an unanswered item counts as the worst prediction."""
        settings, ranked_by = settings or ComparisonSettings(), find_metric(metric)
        selected = select_metrics(metrics)
        count = len(test_sets)
        tests = tuple(
            DatasetRanking.of(
                one,
                ranked_by,
                selected,
                settings,
                unanswered,
                scale_progress(progress, k / count, (k + 1) / count),
            )
            for k, one in enumerate(test_sets)
        )
        shown = [one for one in selected if metrics is not None or one.expression in SHOWN_METRICS]
        level = settings.level
        return cls(ranked_by, (*selected,), (*shown,), tests, unanswered, level, tuple(notes))

    def make_charts(self) -> Iterable[Chart]:
        """Return the leaderboard and the pairs of each test set."""
        return [
            replace(
                shorten_names_in_chart(chart, one.kappas),
                title=f"{one.test_set.name}: {chart.title}",
                variant=one.test_set.name,
                varies_by="test set",
            )
            for one in self.tests
            for chart in one.comparison.list_charts()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each test set and system, or model and metric."""
        return align_columns([row for one in self.tests for row in one.rows()])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        first = self.tests[0]
        return {
            "schema": SCHEMA,
            "task": "rank",
            "metric": self.metric.expression,
            "direction": self.metric.direction,
            "unanswered": self.unanswered,
            "interval": self.level,
            "scale": [to_json_label(label) for label in first.test_set.scale.labels],
            "tests": {one.test_set.name: one.to_dict() for one in self.tests},
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Return the report for people."""
        sections = [one.document() for one in self.tests]
        flagged = any(one.flag(name) for one in self.tests for name in one.kappas)
        evaluations = [one.evaluation for one in self.tests if one.evaluation.models]
        notes = (
            *((CHANCE_NOTE,) if flagged else ()),
            *self._describe_unanswered(),
            *describe_coverage(evaluations),
            BIAS_NOTE,
            *self.notes,
        )
        title = f"Ranking by {self.metric.expression} on {format_count(len(sections), 'test set')}"
        verdict = sections[0].verdict if len(sections) == 1 else self._state_leaders()
        sections = [replace(sections[0], verdict="")] if len(sections) == 1 else sections
        grids = build_model_grids(evaluations, self.shown, self.level) if evaluations else []
        names = dict.fromkeys(name for one in self.tests for name in one.kappas)
        return use_short_names(Document(title, (*sections, *grids), verdict, notes), names)

    def _state_leaders(self) -> str:
        """Say which system leads on which test sets."""
        leads: dict[str, list[str]] = {}
        for one in self.tests:
            leads.setdefault(one.leaderboard.standings[0].system, []).append(one.test_set.name)
        if len(leads) == 1:
            return f"{next(iter(leads))} leads on all {len(self.tests)} test sets."
        return f"{'; '.join(f'{name} leads on {join_names(on)}' for name, on in leads.items())}."

    def _describe_unanswered(self) -> list[str]:
        """Say what became of unanswered items, where there were any."""
        if not any(one.test_set.has_unanswered for one in self.tests):
            return []
        if self.unanswered == "drop":
            return ["An item that any system leaves unanswered is left out for all of them."]
        values = [one.estimate.value for test in self.tests for one in test.leaderboard.standings]
        lost = any(map(math.isnan, values))
        more = " Where a metric has no value then, --unanswered drop takes the items out for all."
        return ["Unanswered items count as the worst prediction." + (more if lost else "")]


# --- of an experiment ----------------------------------------------------------------------------


def rank(
    folder: Path | str | Experiment | TuningResult,
    *,
    metric: str | Metric = "cem_ord",
    metrics: MetricSelection = None,
    models: Sequence[str] = (),
    test_sets: Sequence[str] = (),
    external: Sequence[str] = (),
    id_column: str | None = None,
    predicted: str | None = None,
    renormalize: bool = False,
    unanswered: MissingPolicy = "worst",
    scale: Any = None,
    settings: ComparisonSettings | None = None,
    progress: ProgressCallback | None = None,
) -> ModelRanking:
    """Rank the saved models of an experiment, and predictions of others, on its test sets.

    `models` and `test_sets` are all, or those of some names; `external` are files of predictions by
    id, or patterns, whose columns are recognised, or named by `id_column` and `predicted`. Models
    are evaluated by further `metrics`; `settings` are those of a comparison.

    >>> from ordinate.tuning.classify import tune
    >>> from ordinate.examples import locate_example
    >>> tuned = tune(locate_example("texts"), preset="minimal", trials=1)
    >>> (test,) = rank(tuned, metric="quadratic_kappa").tests
    >>> [one.system[:10] for one in test.leaderboard.standings]
    ['lexical-lo', 'tfidf-char', 'tfidf-word']
    """
    ranked_by, further = _select_one_metric(metric), _select_label_metrics(metrics)
    home = folder.folder if isinstance(folder, TuningResult) else folder
    given = DataColumns(id=id_column)
    experiment = home if isinstance(home, Experiment) else Experiment.open(home, columns=given)
    stems = select_test_sets(experiment, test_sets)
    externals_only = external and not models and not list_model_names(experiment.root)
    loaded = [] if externals_only else load_models(experiment, models)
    declared = None if scale is None else Scale.of(scale)
    common = require_one_scale(loaded, declared) or experiment.scale()
    columns = PredictionColumns(id_column, predicted)
    others = read_external_systems(external, common, columns, renormalize=renormalize)
    collector = PredictionCollector(experiment, common, loaded, others)
    return ModelRanking.of(
        collector.collect_predictions(stems),
        ranked_by,
        further,
        settings,
        unanswered=unanswered,
        notes=collector.notes,
        progress=progress,
    )


def _select_one_metric(given: str | Metric) -> Metric:
    if isinstance(given, str) and len(split_expressions(given)) != 1:
        raise BadOption(f"--metric takes one metric, not {given!r}: name others with --metrics.")
    return find_metric(given)


def _select_label_metrics(given: MetricSelection) -> list[Metric] | None:
    """Return the metrics by which models are evaluated, None for the usual ones."""
    of_labels, of_probabilities = split_metrics_by_summary(given)
    if needs_probabilities(of_probabilities):
        raise BadOption(
            "Models are ranked by their levels. For metrics of probabilities, write predictions "
            "(ordinate predict) and evaluate that file with --probabilities p_."
        )
    return None if given is None else select_metrics(of_labels)
