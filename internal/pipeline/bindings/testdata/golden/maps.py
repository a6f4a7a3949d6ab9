"""The tools of maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


Maps_Json: "TypeAlias" = "str | float | bool | None | list[Maps_Json] | dict[str, Maps_Json]"


class Maps_ObjectsValue(TypedDict):
    x: float
    # Why.
    note: NotRequired[str]


class Maps_Beside(TypedDict):
    """Other keys have values of type string."""
    id: int
    when: NotRequired[str]


class Maps_Complex(TypedDict):
    """Other keys have values of type boolean."""
    id: NotRequired[Maps_ComplexId]


class Maps_Both(TypedDict):
    """@patternProperties ^s_
    Other keys have values of type string.
    """
    a: NotRequired[bool]


class Maps_Unevaluated(TypedDict):
    a: NotRequired[str]


class Maps_ComplexId(TypedDict):
    # doc
    x: NotRequired[str]


def maps(any: dict[str, Any] = unset, strings: dict[str, str] = unset, objects: dict[str, Maps_ObjectsValue] = unset, sealed: dict[str, Any] = unset, beside: Maps_Beside = unset, complex: Maps_Complex = unset, patterns: dict[str, str | float] = unset, both: Maps_Both = unset, unevaluated: Maps_Unevaluated = unset, recursive: Maps_Json = unset) -> Any:
    """
    patterns: @patternProperties ^x- ^n
    both: @patternProperties ^s_
    """
    return call_mcp_tool("maps__maps", given({"any": any, "strings": strings, "objects": objects, "sealed": sealed, "beside": beside, "complex": complex, "patterns": patterns, "both": both, "unevaluated": unevaluated, "recursive": recursive}))


def root(q: str, **more: Any) -> Any:
    return call_mcp_tool("maps__root", given({"q": q, **more}))


class Dictionary_Entry(TypedDict):
    next: NotRequired[Dictionary_Entry]


def dictionary(**more: Any) -> Any:
    return call_mcp_tool("maps__dictionary", given({**more}))

