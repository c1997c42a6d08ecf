"""Summary: the base of frozen values that merge with `+`, batch over leading axes and are stored.

A summary is a frozen dataclass in which the annotation of each field holds a `FieldRule`: how two
values of it become one. Merging, indexing, pooling, equality and dictionaries follow.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, OrdinateError, shorten
from ordinate.scale import Scale

Array = NDArray[Any]
SCALE_KEYS = ("scale", "positions", "names")  # of a dictionary that holds a scale


def to_plain_value(value: Any) -> Any:
    """Return the value of a field as JSON has it."""
    if isinstance(value, Summary):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): to_plain_value(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [to_plain_value(part) for part in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@dataclass(frozen=True)
class FieldRule:
    """How a field of a summary merges, batches and is stored.

    `merge` makes one array, or one plain value, of two. Without it the value has to be the `same`
    in both, or the class merges it. `pool` makes one array of a batch, over its leading axes; what
    has none holds for the batch as a whole. A `sparse` mapping has 0 for each key that it lacks;
    of other mappings the keys have to be the same. `dump` makes plain values, `load` takes them.
    """

    merge: Callable[[Any, Any], Any] | None = None
    pool: Callable[..., Any] | None = None
    same: bool = False
    sparse: bool = False
    dump: Callable[[Any], Any] = to_plain_value
    load: Callable[[Any], Any] = lambda value: value


SUM = FieldRule(operator.add, np.sum, load=np.array)
MAXIMUM = FieldRule(np.maximum, np.max, load=np.array)
SAME = FieldRule(same=True)
GATHERED = FieldRule(load=np.array)  # the class merges it

Sum = Annotated[Array, SUM]
Maximum = Annotated[Array, MAXIMUM]
Gathered = Annotated[Array, GATHERED]
Tally = Annotated[int, FieldRule(operator.add)]  # of all that a batch holds
Every = Annotated[bool, FieldRule(operator.and_)]


class Summary:
    """What is kept of items: fields that merge as the rules in their annotations say."""

    rules: ClassVar[dict[str, FieldRule]] = {}  # of its fields, in their order
    if TYPE_CHECKING:
        items: Array
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # a summary is a dataclass

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        annotated = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
        cls.rules = {name: found[-1] for name, found in annotated.items() if found}

    def __post_init__(self) -> None:
        for name in self.rules:
            _freeze_arrays(getattr(self, name))

    @property
    def n(self) -> int:
        """The number of items."""
        return int(np.sum(self.items))

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        self.require_alike(other)
        return replace(self, **self._merge(other))

    def require_alike(self, other: Self) -> None:
        """Refuse to merge what differs in more than its items."""
        for name, rule in self.rules.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if (mine is None) != (theirs is None):
                raise OrdinateError(f"A summary with {name} and one without cannot be added.")
            if isinstance(mine, Mapping) and not (rule.same or rule.sparse):
                mine, theirs = sorted(mine), sorted(theirs)
            elif not rule.same:
                continue
            if mine != theirs:
                raise OrdinateError(
                    f"Summaries that differ in {name} cannot be added: {shorten(mine)} and "
                    f"{shorten(theirs)}."
                )

    def _merge(self, other: Self) -> dict[str, Any]:
        """Return the fields that are made of both."""
        return {
            name: _map_arrays(rule.merge, getattr(self, name), getattr(other, name))
            for name, rule in self.rules.items()
            if rule.merge is not None
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_are_equal(getattr(self, name), getattr(other, name)) for name in self.rules)

    __hash__ = None  # type: ignore[assignment] # equal summaries may differ in memory

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, from which `from_dict` makes the same summary."""
        stored: dict[str, Any] = {}
        for name, rule in self.rules.items():
            value = getattr(self, name)
            stored |= _dump_scale(value) if name == "scale" else {name: rule.dump(value)}
        return stored

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the summary that `to_dict` described."""
        needed = {*cls.rules, *(SCALE_KEYS if "scale" in cls.rules else ())}
        if lacking := sorted(needed - data.keys()):
            raise BadInput(f"The dictionary of a {cls.__name__} lacks {', '.join(lacking)}.")
        values = {
            name: None if data[name] is None else rule.load(data[name])
            for name, rule in cls.rules.items()
        }
        if "scale" in cls.rules:
            values["scale"] = Scale(data["scale"], positions=data["positions"], names=data["names"])
        return cls(**values)


class BatchSummary(Summary):
    """A summary whose arrays may have leading axes, and then hold many summaries at once.

    The leading axes are those of `items`, without its last `cell_axes`.
    """

    cell_axes: ClassVar[int] = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes: () for one summary."""
        shape = np.shape(self.items)
        return shape[: len(shape) - self.cell_axes]

    def require_alike(self, other: Self) -> None:
        """Refuse to merge batches of different shapes, too."""
        super().require_alike(other)
        if self.shape != other.shape:
            raise OrdinateError(
                f"Batches of different shapes cannot be added: {self.shape} and {other.shape}. "
                "Pool them first."
            )

    def map(self, change: Callable[[Array], Any]) -> Self:
        """Return the summary with every array changed in the same way."""
        return self._map_by_rule(lambda _: change)

    def _map_by_rule(self, choose: Callable[[FieldRule], Callable[[Array], Any]]) -> Self:
        changed = {
            name: _map_arrays(choose(rule), getattr(self, name))
            for name, rule in self.rules.items()
            if rule.pool is not None
        }
        return replace(self, **changed)

    def __getitem__(self, index: Any) -> Self:
        if not self.shape:
            raise IndexError("This is one summary; only a batch of them can be indexed.")
        places = index if isinstance(index, tuple) else (index,)

        def select(array: Array) -> Any:
            own_axes = np.ndim(array) - len(self.shape)
            return array[(*places, *[slice(None)] * own_axes)]

        return self.map(select)

    @property
    def pooled(self) -> Self:
        """The one summary of all items of a batch."""
        axes = tuple(range(len(self.shape)))
        return self._map_by_rule(lambda rule: partial(rule.pool or np.sum, axis=axes))

    def sum_with_multiplicities(self, times: Array) -> Self:
        """Return a batch of sums of the summaries [G] of this batch, each counted so many times."""
        return self.map(lambda array: np.tensordot(times, array, axes=(-1, 0)))

    @classmethod
    def stack(cls, parts: Sequence[Self]) -> Self:
        """Return single summaries as one batch."""
        first, *rest = parts
        for part in rest:
            first.require_alike(part)
        stacked: dict[str, Any] = {}
        for name, rule in cls.rules.items():
            values = [getattr(part, name) for part in parts]
            if rule.pool is not None:
                stacked[name] = _map_arrays(_stack_arrays, *values)
            elif rule.merge is not None:
                stacked[name] = reduce(rule.merge, values)
        return replace(first, **stacked)


def _map_arrays(change: Callable[..., Any], first: Any, *rest: Any) -> Any:
    """Return a value whose arrays are made of those of the first and of others built like it."""
    if first is None:
        return None
    if isinstance(first, BatchSummary) and not rest:
        return first.map(change)
    if isinstance(first, Mapping):
        keys = dict.fromkeys(key for each in (first, *rest) for key in each)
        parts = {key: [each.get(key, 0.0) for each in (first, *rest)] for key in keys}
        return {key: _map_arrays(change, *arrays) for key, arrays in parts.items()}
    if isinstance(first, tuple):
        columns = zip(first, *rest, strict=True)
        return type(first)(*(_map_arrays(change, *arrays) for arrays in columns))
    return change(first, *rest)


def _stack_arrays(*parts: Any) -> Any:
    first = parts[0]
    return type(first).stack(parts) if isinstance(first, BatchSummary) else np.stack(parts)


def _are_equal(first: Any, second: Any) -> bool:
    """Tell whether two values of a field are equal; an array may hold nan."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return all(_are_equal(first.get(k, 0.0), second.get(k, 0.0)) for k in {*first, *second})
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_are_equal, first, second))
    if isinstance(first, (np.ndarray, np.generic)):
        return np.array_equal(first, second, equal_nan=True)
    return bool(first == second)


def freeze_array(array: Array) -> Array:
    """Return an array that nobody writes to any more."""
    array.setflags(write=False)
    return array


def _freeze_arrays(value: Any) -> None:
    if isinstance(value, np.ndarray):
        freeze_array(value)
    elif isinstance(value, (Mapping, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            _freeze_arrays(part)


def _dump_scale(scale: Scale) -> dict[str, Any]:
    return dict(zip(SCALE_KEYS, map(list, (scale.labels, scale.at, scale.names)), strict=True))
