"""Summary: the base of frozen values that merge with `+`, batch over leading axes and are stored.

A summary is a frozen dataclass in which the annotation of each field holds a `FieldRule`: how two
values of it become one. Merging, indexing, pooling, equality and dictionaries follow.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from functools import partial, reduce
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, OrdinateError, shorten
from ordinate.scale import Scale

Array = NDArray[Any]
SCALE_KEYS = ("scale", "positions", "names")  # of a dictionary that holds a scale
PLAIN_TYPES: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}


def to_plain_value(value: Any) -> Any:
    """Return the value of a field as JSON has it."""
    if isinstance(value, Summary):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): to_plain_value(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [to_plain_value(part) for part in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def load_numbers(value: Any) -> Array:
    """Return stored numbers as an array."""
    array = np.array(value)
    if array.dtype.kind not in "iuf":
        raise ValueError("must be numbers")
    return array


def load_counts(value: Any) -> Array:
    """Return stored counts or weights, which are finite and not negative."""
    array = load_numbers(value)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError("must be finite numbers of at least 0")
    return array


def load_codes(value: Any, dtype: type[np.signedinteger[Any]] = np.int64) -> Array:
    """Return stored places on a scale or in a list, which count from 0."""
    array = load_counts(value)
    if (array != np.floor(array)).any() or array.max(initial=0) > np.iinfo(dtype).max:
        raise ValueError(f"must be integers of at most {np.iinfo(dtype).max:,}")
    return array.astype(dtype)


@dataclass(frozen=True)
class FieldRule:
    """How a field of a summary merges, batches and is stored.

    `merge` makes one array, or one plain value, of two. Without it the value has to be the `same`
    in both, or the class merges it. `pool` makes one array of a batch, over its leading axes; what
    has none holds for the batch as a whole. A `sparse` mapping has 0 for each key that it lacks;
    of other mappings the keys have to be the same. `dump` makes plain values, `load` takes them and
    raises a ValueError that says what they must be.
    """

    merge: Callable[[Any, Any], Any] | None = None
    pool: Callable[..., Any] | None = None
    same: bool = False
    sparse: bool = False
    dump: Callable[[Any], Any] = to_plain_value
    load: Callable[[Any], Any] = lambda value: value


SUM = FieldRule(operator.add, np.sum, load=load_counts)
SIGNED_SUM = replace(SUM, load=load_numbers)
MAXIMUM = FieldRule(np.maximum, np.max, load=load_counts)
SAME = FieldRule(same=True)
GATHERED = FieldRule(load=load_counts)  # the class merges it
CODES = FieldRule(load=load_codes)  # the class merges it

Sum = Annotated[Array, SUM]
SignedSum = Annotated[Array, SIGNED_SUM]
Dropped = Annotated[Any, SUM]  # how many items were left out, of each summary of a batch
Maximum = Annotated[Array, MAXIMUM]
Gathered = Annotated[Array, GATHERED]
Codes = Annotated[Array, CODES]
Tally = Annotated[int, FieldRule(operator.add)]
Every = Annotated[bool, FieldRule(operator.and_)]


class Summary:
    """What is kept of items: fields that merge as the rules in their annotations say."""

    rules: ClassVar[dict[str, FieldRule]] = {}  # of its fields, in their order
    _types: ClassVar[dict[str, Any]] = {}  # of its fields
    if TYPE_CHECKING:
        items: Array
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # a summary is a dataclass

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        annotated = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
        cls.rules = {name: found[-1] for name, found in annotated.items() if found}
        cls._types = {name: hints[name].__origin__ for name in cls.rules}

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

    def __radd__(self, other: object) -> Self:
        return self if type(other) is int and other == 0 else NotImplemented  # what sum begins with

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
        """Return the summary that `to_dict` described; other dictionaries are refused."""
        if not isinstance(data, Mapping):
            raise BadInput(f"A {cls.__name__} is read from a dictionary, not {shorten(data)}.")
        needed = {*cls.rules, *(SCALE_KEYS if "scale" in cls.rules else ())}
        if lacking := sorted(needed - data.keys()):
            raise BadInput(f"The dictionary of a {cls.__name__} lacks {', '.join(lacking)}.")
        values = {name: cls._load_field(name, data[name]) for name in cls.rules if name != "scale"}
        if "scale" in cls.rules:
            values["scale"] = _load_scale(*(data[key] for key in SCALE_KEYS))
        try:
            summary = cls(**values)
        except (TypeError, ValueError) as problem:  # arrays that do not belong together
            raise BadInput(f"The dictionary of a {cls.__name__} is damaged: {problem}.") from None
        summary._require_shapes()
        return summary

    @classmethod
    def _load_field(cls, name: str, value: Any) -> Any:
        """Return the stored value of a field, or say what it must be."""
        expected = cls._types[name]
        if value is None and NoneType in get_args(expected):
            return None
        try:
            if expected in PLAIN_TYPES and type(value) not in PLAIN_TYPES[expected]:
                raise ValueError(f"must be of the type {expected.__name__}")
            return cls.rules[name].load(value)
        except BadInput:
            raise
        except (TypeError, ValueError, AttributeError, LookupError) as problem:
            raise BadInput(
                f"The dictionary of a {cls.__name__}: {name} cannot be {shorten(value, 80)}: "
                f"{problem}."
            ) from None

    def _require_shapes(self) -> None:
        """Refuse arrays that do not fit each other or the scale."""

    def _require(self, condition: Any, name: str) -> None:
        if not condition:
            raise BadInput(
                f"The dictionary of a {type(self).__name__}: {name} does not fit the rest."
            )


class BatchSummary(Summary):
    """A summary whose arrays may have leading axes, and then hold many summaries at once.

    The leading axes are those of `items`, without its last `cell_axes`.
    """

    cell_axes: ClassVar[int] = 0
    if TYPE_CHECKING:
        dropped: Any

    def __post_init__(self) -> None:
        dropped = np.broadcast_to(self.dropped, self.shape)
        object.__setattr__(self, "dropped", dropped if self.shape else dropped.item())
        super().__post_init__()

    def _get_cell_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the axes of arrays behind the leading ones, by field or by field and part."""
        return {}

    def _require_shapes(self) -> None:
        """Refuse arrays without the leading axes, or with other cells than the class has."""
        cells = self._get_cell_shapes()
        for name, rule in self.rules.items():
            if rule.pool is not None:
                for path, shape in _list_shapes(name, getattr(self, name)):
                    expected = cells.get(path, cells.get(path.rpartition(".")[0], ()))
                    self._require(shape == (*self.shape, *expected), path)

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
        """Return the summary with every array, all of them sums, changed in the same way."""
        for name, rule in self.rules.items():
            if rule.pool is not None and rule.merge is not operator.add:
                raise OrdinateError(
                    f"The {name} of {type(self).__name__} are no plain sums: merge with +, or pool."
                )
        return self._map(change)

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """Return a batch with more leading axes, along which nothing differs."""
        return self._map(lambda array: np.broadcast_to(array, (*shape, *np.shape(array))))

    def _map(self, change: Callable[[Array], Any]) -> Self:
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

        return self._map(select)

    @property
    def pooled(self) -> Self:
        """The one summary of all items of a batch."""
        axes = tuple(range(len(self.shape)))
        return self._map_by_rule(lambda rule: partial(rule.pool or np.sum, axis=axes))

    def compute_sums(self, index: Array, count: int) -> Self:
        """Return a batch of summaries, each the sum of those of this batch with its index."""

        def choose(rule: FieldRule) -> Callable[[Array], Any]:
            add_at = (np.maximum if rule == MAXIMUM else np.add).at
            return lambda array: _sum_by_index(array, index, count, add_at)

        return self._map_by_rule(choose)

    def sum_with_multiplicities(self, times: Array) -> Self:
        """Return a batch of sums of the summaries [G] of this batch, each counted so many times."""
        return self.map(lambda array: np.tensordot(times, array, axes=(-1, 0)))

    @classmethod
    def stack(cls, parts: Sequence[Self]) -> Self:
        """Return single summaries as one batch."""
        for part in parts[1:]:
            parts[0].require_alike(part)
        return cls._join("stack", parts)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return batches, one behind the other, as one."""
        for part in parts[1:]:
            Summary.require_alike(parts[0], part)  # their lengths may differ
        return cls._join("concatenate", parts)

    @classmethod
    def _join(cls, way: str, parts: Sequence[Self]) -> Self:
        """Return summaries as one batch, in a way that NumPy and summaries call alike."""
        joined: dict[str, Any] = {}
        for name, rule in cls.rules.items():
            values = [getattr(part, name) for part in parts]
            if rule.pool is not None:
                joined[name] = _map_arrays(partial(_join_arrays, way), *values)
            elif rule.merge is not None:
                joined[name] = reduce(partial(_map_arrays, rule.merge), values)
        return replace(parts[0], **joined)


def _map_arrays(change: Callable[..., Any], first: Any, *rest: Any) -> Any:
    """Return a value whose arrays are made of those of the first and of others built like it."""
    if first is None:
        return None
    if isinstance(first, BatchSummary) and not rest:
        return first._map(change)  # noqa: SLF001 - of the same base
    if isinstance(first, Mapping):
        keys = dict.fromkeys(key for each in (first, *rest) for key in each)
        parts = {key: [each.get(key, 0.0) for each in (first, *rest)] for key in keys}
        return {key: _map_arrays(change, *arrays) for key, arrays in parts.items()}
    if isinstance(first, tuple):
        columns = zip(first, *rest, strict=True)
        return type(first)(*(_map_arrays(change, *arrays) for arrays in columns))
    return change(first, *rest)


def _sum_by_index(array: Array, index: Array, count: int, add_at: Any) -> Array:
    total = np.zeros((count, *array.shape[1:]), array.dtype)
    add_at(total, index, array)
    return total


def _join_arrays(way: str, *parts: Any) -> Any:
    owner = type(parts[0]) if isinstance(parts[0], BatchSummary) else np
    return getattr(owner, way)(parts)


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


def _load_scale(labels: Any, positions: Any, names: Any) -> Scale:
    try:
        return Scale(labels, positions=positions, names=names)
    except OrdinateError:
        raise
    except (TypeError, ValueError) as problem:
        raise BadInput(f"The scale of a dictionary is damaged: {problem}.") from None


def _list_shapes(path: str, value: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the shape of each array of a field; the parts of a tuple have names."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _list_shapes(f"{path}[{key}]", part)
    elif isinstance(value, tuple):
        for name, part in zip(value._fields, value, strict=True):  # type: ignore[attr-defined] # named tuples
            yield from _list_shapes(f"{path}.{name}", part)
    elif value is not None:
        yield path, value.shape if isinstance(value, BatchSummary) else np.shape(value)
