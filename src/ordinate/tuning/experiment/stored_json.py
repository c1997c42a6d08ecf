"""Stored JSON as declared types: decoded by annotations, refused in one line, encoded again.

Whatever lies on a disk may be cut off, damaged or forged, so nothing is used before it has the type
that it should have. Forms are str, int, float (finite), bool, None, Any, list, tuple, dict with
keys that are strings, Literal, unions, Annotated with a `Check`, dataclasses and TypedDicts. A
dataclass is all that is stored, and further keys are refused; a TypedDict is the part that is read,
and further keys stay as they are.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from ordinate.errors import BadStore, OrdinateError, shorten

T = TypeVar("T")
LONGEST_QUOTE = 80  # characters of a value that a refusal repeats
NOUNS = {  # of one value, and of several
    str: ("a string", "strings"),
    int: ("an integer", "integers"),
    float: ("a finite number", "finite numbers"),
    bool: ("a boolean", "booleans"),
    NoneType: ("null", "nulls"),
    list: ("a list", "lists"),
    tuple: ("a list", "lists"),
    dict: ("an object", "objects"),
}


@dataclass(frozen=True)
class Check:
    """What a value must be beyond its type: `Annotated[int, at_least(1)]`."""

    description: str  # follows the noun of the type
    holds: Callable[[Any], bool]


def at_least(least: float) -> Check:
    """Check that a number is not below a bound."""
    return Check(f"of at least {least:g}", lambda value: value >= least)


def at_most(most: float) -> Check:
    """Check that a number is not above a bound."""
    return Check(f"of at most {most:g}", lambda value: value <= most)


def _is_distinct(values: Any) -> bool:
    try:
        return 0 < len(values) == len(set(values))
    except TypeError:  # of lists and objects within
        return False


DISTINCT = Check("that has one value or more, each once", _is_distinct)


def read_json(path: Path, form: type[T], *, advice: str = "") -> T:
    """Read a file of JSON as a declared type; `advice` ends the error that refuses another one."""
    return decode(read_plain_json(path, advice=advice), form, path, advice=advice)


def read_plain_json(path: Path, *, advice: str = "") -> Any:
    """Read a file of JSON whose type is not known yet."""
    try:
        return parse_json(path.read_bytes())
    except OSError as problem:
        said = f"cannot be read: {problem.strerror}"
    except (ValueError, RecursionError) as problem:
        said = f"is no JSON: {str(problem).rstrip('.')}"
    raise BadStore(f"{path} {said}. {advice}".rstrip())


def parse_json(content: str | bytes) -> Any:
    """Return plain values: numbers are finite, and no key has two values (readers differ there)."""
    return json.loads(
        content,
        parse_float=_parse_finite,
        parse_constant=_refuse_constant,
        object_pairs_hook=refuse_duplicate_keys,
    )


def decode(value: Any, form: type[T], where: object, *, advice: str = "", **given: Any) -> T:
    """Return plain values as a declared type, or say what is wrong `where`.

    `given` are fields of a dataclass that are not stored.

    >>> decode([1, 2], tuple[int, ...], "seeds.json")
    (1, 2)
    >>> decode({"trials": "x"}, dict[str, list[int]], "study.json")
    Traceback (most recent call last):
    ordinate.errors.BadStore: study.json: 'trials' must be a list of integers, got 'x'.
    """
    try:
        return cast("T", _decode_object(form, value, given) if given else _decode(form, value))
    except _Mismatch as wrong:
        path = "".join(reversed(wrong.keys)).removeprefix(".")
        said = f"{where}: {shorten(path) if path else 'it'} {wrong.problem}."
        raise BadStore(f"{said} {advice}".rstrip()) from None


def encode(value: Any) -> Any:
    """Return what JSON gives back for a value: objects for dataclasses, lists for tuples.

    >>> encode({"seeds": (1, 2)})
    {'seeds': [1, 2]}
    """
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: encode(each) for name, each in value.items()}
    return [encode(each) for each in value] if isinstance(value, list | tuple) else value


# --- decoding ------------------------------------------------------------------------------------


class _Mismatch(Exception):
    """What is wrong, and under which keys, the innermost first."""

    def __init__(self, problem: str, *keys: str) -> None:
        super().__init__(problem)
        self.problem, self.keys = problem, [*keys]


def _refuse(form: Any, value: Any) -> NoReturn:
    raise _Mismatch(f"must be {_describe(form)}, got {shorten(value, LONGEST_QUOTE)}")


def _decode(form: Any, value: Any) -> Any:
    origin, arguments = get_origin(form) or form, get_args(form)
    if is_dataclass(form) or is_typeddict(form):
        return _decode_object(form, value, {})
    if origin in {Union, UnionType}:
        return _decode_union(form, value)
    if origin in {list, tuple}:
        return _decode_items(form, value)
    if origin is dict and isinstance(value, dict):
        inner = (arguments or (str, Any))[1]
        return {name: _decode_at(f".{name}", inner, each) for name, each in value.items()}
    if origin is float and type(value) in {int, float} and abs(value) <= sys.float_info.max:
        return float(value)
    if origin is Annotated:
        value = _decode(arguments[0], value)
    return value if _is_plain(origin, arguments, value) else _refuse(form, value)


def _is_plain(origin: Any, arguments: tuple[Any, ...], value: Any) -> bool:
    """Tell whether a value is of a form in which nothing is converted."""
    if origin is Annotated:  # a setting says other things, too
        return all(one.holds(value) for one in arguments[1:] if isinstance(one, Check))
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in arguments)
    if origin not in {*NOUNS, Any}:
        raise TypeError(f"{origin} is no form of stored JSON")
    return origin is Any or (origin in EXACT_TYPES and type(value) is origin)


def _decode_at(key: str, form: Any, value: Any) -> Any:
    try:
        return _decode(form, value)
    except _Mismatch as wrong:
        wrong.keys.append(key)
        raise


def _decode_union(form: Any, value: Any) -> Any:
    forms = [each for each in get_args(form) if each is not NoneType]
    if value is None and len(forms) < len(get_args(form)):
        return None
    for each in forms:
        try:
            return _decode(each, value)
        except _Mismatch:
            if len(forms) == 1 and value is not None:
                raise  # it says more: what is wrong within
    _refuse(form, value)


def _decode_items(form: Any, value: Any) -> list[Any] | tuple[Any, ...]:
    container, forms = get_origin(form) or form, get_args(form) or (Any,)
    if not isinstance(value, list):
        _refuse(form, value)
    if container is list or forms[-1] is Ellipsis:
        forms = forms[:1] * len(value)
    if len(value) != len(forms):
        _refuse(form, value)
    found = [_decode_at(f"[{k}]", *pair) for k, pair in enumerate(zip(forms, value, strict=True))]
    return found if container is list else tuple(found)


def _decode_object(form: Any, value: Any, given: dict[str, Any]) -> Any:
    """Return a dataclass, or the object of a TypedDict with whatever else is in it."""
    if not isinstance(value, dict):
        _refuse(form, value)
    forms, required = _list_fields(form)
    stored = {name: inner for name, inner in forms.items() if name not in given}
    for name in required:
        if name in stored and name not in value:
            raise _Mismatch("is missing", f".{name}")
    known = {
        name: _decode_at(f".{name}", stored[name], each)
        for name, each in value.items()
        if name in stored
    }
    if is_typeddict(form):
        return value | known
    if further := [name for name in value if name not in stored]:
        raise _Mismatch("is not known", f".{further[0]}")
    try:
        return form(**known, **{name: each for name, each in given.items() if name in forms})
    except OrdinateError as problem:  # of its own checks
        raise _Mismatch(f"is refused: {str(problem).rstrip('.')}") from None


@cache
def _list_fields(form: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the form of each field, and the names of those that cannot be left out."""
    hints = get_type_hints(form, include_extras=True)
    if is_typeddict(form):
        wrapped = {Required, NotRequired}
        bare = {
            name: get_args(hint)[0] if get_origin(hint) in wrapped else hint
            for name, hint in hints.items()
        }
        return bare, sorted(form.__required_keys__)
    own = [field for field in fields(form) if field.init]
    needed = [x.name for x in own if x.default is MISSING and x.default_factory is MISSING]
    return {field.name: hints[field.name] for field in own}, needed


EXACT_TYPES = frozenset({str, int, bool, NoneType})


# --- words ---------------------------------------------------------------------------------------


def _describe(form: Any, *, several: bool = False) -> str:
    """Return what a form is called, as in "must be a list of integers"."""
    origin, arguments = get_origin(form) or form, get_args(form)
    if origin is Annotated:
        inner, *checks = arguments
        bounds = " and ".join(check.description for check in checks)
        return f"{_describe(inner, several=several)} {bounds}"
    if origin is Literal:
        return " or ".join(map(shorten, arguments))
    if origin in {Union, UnionType}:
        return " or ".join(_describe(each, several=several) for each in arguments)
    noun = NOUNS.get(origin, NOUNS[dict])[several]
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"{noun} of {len(arguments)} values"
    if origin in {list, tuple} and arguments and arguments[0] is not Any:
        return f"{noun} of {_describe(arguments[0], several=True)}"
    return noun


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:LONGEST_QUOTE]} is too large a number")
    return number


def refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, of which two readers may take two values for one key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadStore("it gives one key two values")
    return found
