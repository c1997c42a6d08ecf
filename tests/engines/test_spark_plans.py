"""What Spark plans for an evaluation: work on its workers, and a few rows back.

Labels are counted by its own operators; numbers are summed up by ours, on each partition.
"""

import re

import pytest
from narwhals.stable import v2 as narwhals

import ordinate
from engines.servers import start_spark

PYTHON = re.compile(r"Python|Pandas|MapInArrow", re.IGNORECASE)
NAMES = {"gold": "level", "predicted": "guess", "weights": "weight", "by": "language"}
PROBABILITIES = {"gold": "level", "probabilities": "p_", "by": "language"}

pytestmark = pytest.mark.slow


def read_plan(frame):
    """Return how Spark executes a frame."""
    return frame._jdf.queryExecution().executedPlan().toString()


@pytest.fixture
def plans(monkeypatch):
    """The plan and the number of rows of each answer that is collected."""
    collected = []
    collect = narwhals.LazyFrame.collect

    def record(frame):
        table = collect(frame)
        collected.append((read_plan(frame.to_native()), len(table)))
        return table

    monkeypatch.setattr(narwhals.LazyFrame, "collect", record)
    return collected


def make_rows(n):
    """Return rows that Spark makes itself: no Python is between it and them."""
    return (
        start_spark()
        .range(n)
        .selectExpr(
            "cast(id % 3 as string) as level",
            "cast(id % 7 % 3 as string) as guess",
            "cast(id % 5 % 3 as string) as rival",
            "cast(id % 4 as double) / 2 as weight",
            "cast(id % 2 as string) as language",
            "id % 11 as writer",
            "0.25 as p_0",
            "cast(id % 4 as double) / 8 as p_1",
            "0.75 - cast(id % 4 as double) / 8 as p_2",
            "cast(id % 13 as double) as target",
            "cast(id % 17 as double) as guessed",
        )
    )


def evaluate(rows):
    ordinate.evaluate(rows, scale="0..2", interval=None, **NAMES)


def evaluate_clusters(rows):
    ordinate.evaluate(rows, scale="0..2", interval=None, groups="writer", **NAMES)


def evaluate_probabilities(rows):
    ordinate.evaluate(rows, scale="0..2", interval=None, **PROBABILITIES)


def compare(rows):
    ordinate.compare(rows, ["guess", "rival"], "0..2", "accuracy", gold="level", resamples=100)


def evaluate_regression(rows):
    ordinate.evaluate_regression(rows, target="target", predicted="guessed", interval=None)


@pytest.mark.parametrize("ask", [evaluate, evaluate_clusters, compare])
def test_no_python_runs_on_the_workers_and_what_is_collected_does_not_grow(plans, ask):
    ask(make_rows(10_000))
    small, plans[:] = list(plans), []
    ask(make_rows(200_000))
    assert len(small) == len(plans) > 0
    for (_, few), (plan, rows) in zip(small, plans, strict=True):
        assert not PYTHON.search(plan), plan
        assert "HashAggregate" in plan or "Limit" in plan, plan
        assert rows == few
    assert sum(rows for _, rows in plans) < 2_000


@pytest.mark.parametrize(("ask", "passes"), [(evaluate_regression, 3), (evaluate_probabilities, 1)])
def test_each_partition_sends_a_row(monkeypatch, ask, passes):
    rows = make_rows(200_000).repartition(5)
    kind, sent = type(rows), []
    collect = kind.collect

    def record(frame):
        found = collect(frame)
        sent.append((read_plan(frame), len(found)))
        return found

    monkeypatch.setattr(kind, "collect", record)
    ask(rows)
    assert [count for plan, count in sent if PYTHON.search(plan)] == [5] * passes


def test_a_function_of_python_would_be_seen():
    from pyspark.sql.functions import udf

    rows = make_rows(100)
    assert not PYTHON.search(read_plan(rows.groupBy("guess").count()))
    ours = rows.withColumn("guess", udf(lambda x: x)("guess"))
    assert PYTHON.search(read_plan(ours.groupBy("guess").count()))
