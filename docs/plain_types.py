"""Types on the API pages: names of types written out, so that choices are seen."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from griffe import (
    Attribute,
    Class,
    Expr,
    ExprBinOp,
    ExprName,
    ExprSubscript,
    ExprTuple,
    Extension,
    Function,
    GriffeLoader,
    Module,
)

TYPES = (ExprBinOp, ExprName, ExprSubscript)  # what the name of a type can stand for


class PlainTypes(Extension):
    """Writes out the types of parameters and attributes."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_: Any) -> None:
        """Write out the types of a package, when all of its modules are there."""
        for annotated in _list_annotated(pkg):
            annotated.annotation = _write_out(annotated.annotation, loader)


def _list_annotated(owner: Module | Class) -> Iterator[Any]:
    """Yield the parameters and attributes within a module or a class."""
    for member in owner.members.values():
        if isinstance(member, Function):
            yield from member.parameters
        elif isinstance(member, Attribute):
            yield member
        elif isinstance(member, Module | Class):
            yield from _list_annotated(member)


def _write_out(found: Any, loader: GriffeLoader) -> Any:
    """Return a type with names of our own written out, and without what is said of a setting."""
    if isinstance(found, ExprSubscript) and found.canonical_path == "typing.Annotated":
        return _write_out(found.slice.elements[0], loader)
    if isinstance(found, ExprName):
        meant = _find_type(found, loader)
        return found if meant is None else _write_out(meant, loader)
    if isinstance(found, ExprBinOp):
        left, right = (_write_out(side, loader) for side in (found.left, found.right))
        return replace(found, left=left, right=right)
    if isinstance(found, ExprSubscript):
        return replace(found, slice=_write_out(found.slice, loader))
    if isinstance(found, ExprTuple):
        return replace(found, elements=[_write_out(one, loader) for one in found.elements])
    return found


def _find_type(name: ExprName, loader: GriffeLoader) -> Expr | None:
    """Return what the name of a type stands for, if it is one of ours."""
    try:
        target = loader.modules_collection[name.canonical_path]
        value = target.final_target.value if target.is_alias else target.value
    except (KeyError, AttributeError):
        return None
    return value if isinstance(value, TYPES) else None
