"""Items of a data frame of any library that narwhals knows, summed up by its own engine."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.readers.batches import (
    ROWS_PER_BATCH,
    Batches,
    S,
    Summarizer,
    ValueBatches,
    encode_keys,
    join_batches,
    make_cells,
    read_arrow,
    read_columns,
)
from ordinate.readers.expressions import ALWAYS, Expression
from ordinate.readers.items import Row, Sums, Table, name_places
from ordinate.scale.encoding import Groups


@dataclass(frozen=True)
class FrameItems:
    """Items of a lazy frame, whose columns have been named by their roles; rows have no numbers."""

    frame: Any  # narwhals.LazyFrame
    name: str
    keyed: bool = False
    ordered: bool = False

    def add_columns(self, columns: Mapping[str, Expression]) -> "FrameItems":
        """Return the items with more columns."""
        more = {name: each.to_narwhals() for name, each in columns.items()}
        with explain_failure(self.name):
            return replace(self, frame=self._join_blocks().with_columns(**more))

    def _join_blocks(self) -> Any:
        """Return the frame; pandas in Dask warns of many columns that came one by one."""
        if not self.frame.implementation.is_dask():
            return self.frame
        from narwhals.stable import v2 as narwhals

        return narwhals.from_native(self.frame.to_native().map_partitions(methodcaller("copy")))

    def sum_by(self, keys: Sequence[str], sums: Sums, where: Expression | None = None) -> Table:
        """Return the sums over the items that share all keys, as the engine finds them."""
        with explain_failure(self.name):
            rows = self._filter(where)
            # What is summed up is a column first: some engines take no more than that.
            rows = rows.select(*keys, **{x: each.of.to_narwhals() for x, each in sums.items()})
            taken = (_take(name, each.kind) for name, each in sums.items())
            table = rows.group_by(*keys, drop_null_keys=False).agg(*taken).collect()
            return {key: make_cells(table[key]) for key in keys} | {
                name: np.array(table[name].to_list(), float) for name in sums
            }

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return some places where a condition holds, and what stands there."""
        cells = {f"shown{k}": x.to_narwhals() for k, x in enumerate(shown)}
        with explain_failure(self.name):
            table = self._filter(where).select(**cells).head(limit).collect()
            rows = zip(*(table[name].to_list() for name in cells), strict=True)
        return name_places(rows)

    def open_batches(
        self, numbers: Sequence[str], keys: Mapping[str, Groups], where: Expression
    ) -> Batches:
        """Return columns of numbers, and the numbers of keys, where a condition holds."""
        with explain_failure(self.name):
            frame = self._filter(where).select(*numbers, *keys)
        if frame.implementation.is_dask() or frame.implementation.is_spark_like():
            return PartitionBatches(frame, self.name, keys)
        read = partial(self._read_batches, frame, set(keys))
        return ValueBatches(read, (*numbers, *keys), keys)

    def _read_batches(
        self, frame: Any, keys: Collection[str], names: Sequence[str]
    ) -> Iterator[Table]:
        """Yield some rows at a time, or all, from an engine that has no other way."""
        with explain_failure(self.name):
            rows = frame.select(*names).to_native()
            if hasattr(rows, "collect_batches"):  # of Polars
                parts = rows.collect_batches(chunk_size=ROWS_PER_BATCH, maintain_order=True)
            elif hasattr(rows, "__arrow_c_stream__"):
                yield from read_arrow(rows, keys)
                return
            else:
                parts = iter([frame.collect()])
            for part in parts:
                yield read_columns(part, keys)

    def _filter(self, where: Expression | None) -> Any:
        # A filter that asks no column is none that engines take.
        if where is None or where is ALWAYS:
            return self.frame
        return self.frame.filter(where.to_narwhals())


@dataclass(frozen=True)
class PartitionBatches:
    """Partitions of Dask and Spark, which their machines sum up."""

    frame: Any  # narwhals.LazyFrame
    name: str
    keys: Mapping[str, Groups]

    def sum_up(self, summarizer: Summarizer[S]) -> S | None:
        """Return the sum of the summaries of all partitions, None where there are no items."""
        work = _PartitionWork(summarizer, self.keys)
        with explain_failure(self.name):
            chosen = summarizer.columns
            rows = (self.frame.select(*chosen) if chosen else self.frame).to_native()
            if self.frame.implementation.is_dask():
                meta = ("summary", object)
                answers = rows.map_partitions(work.sum_up_pandas, meta=meta).compute().tolist()
            else:
                found = rows.mapInArrow(work.sum_up_arrow, "summary string").collect()
                answers = [answer for (answer,) in found]
        return summarizer.collect(answers)


@dataclass(frozen=True)
class _PartitionWork:
    """What another machine does with a partition: it needs this package, and the one of arrays."""

    summarizer: Summarizer[Any]
    keys: Mapping[str, Groups]

    def sum_up_pandas(self, rows: Any) -> Any:
        """Return a series with the summary of a frame of pandas."""
        starts = range(0, len(rows), ROWS_PER_BATCH)
        parts = (rows.iloc[start : start + ROWS_PER_BATCH] for start in starts)
        batches = (read_columns(part, self.keys) for part in parts)
        found = self.summarizer.sum_up_remotely(encode_keys(batches, self.keys))
        return type(rows.iloc[:, 0])(found, dtype=object, name="summary")

    def sum_up_arrow(self, parts: Iterator[Any]) -> Iterator[Any]:
        """Yield a batch of Arrow with the summary of such batches."""
        import pyarrow as pa

        batches = (read_columns(part, self.keys) for part in join_batches(parts))
        found = self.summarizer.sum_up_remotely(encode_keys(batches, self.keys))
        yield pa.RecordBatch.from_pydict({"summary": pa.array(found, pa.string())})


@contextmanager
def explain_failure(name: str) -> Iterator[None]:
    """Say whose data cannot be read, whatever their engine raises."""
    try:
        yield
    except Exception as problem:
        reason = shorten(" ".join(str(problem).split())[:300])
        raise BadInput(f"{name} cannot be read: {type(problem).__name__}: {reason}.") from problem


def _take(name: str, kind: str) -> Any:
    from narwhals.stable import v2 as narwhals

    values = narwhals.col(name)
    return {"min": values.min, "max": values.max}.get(kind, values.sum)()
