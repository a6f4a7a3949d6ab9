"""The tools of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


class Lists_ObjectsItem(TypedDict):
    # The id.
    id: int


def lists(plain: list[Any] = unset, strings: list[str] = unset, nested: list[list[float | None]] = unset, objects: list[Lists_ObjectsItem] = unset, none: tuple[()] = unset, never: list[NoReturn] = unset, inferred: list[str] = unset, enums: list[Literal["a", "b"]] = unset) -> Any:
    """
    none: @maxItems 0
    """
    return call_mcp_tool("arrays__lists", given({"plain": plain, "strings": strings, "nested": nested, "objects": objects, "none": none, "never": never, "inferred": inferred, "enums": enums}))


def tuples(point: tuple[float, float] = unset, open: list[str | float | bool | Any] = unset, rest: list[str | float] = unset, closed: list[str | float] = unset, documented: tuple[float, float] = unset) -> Any:
    """
    point: @minItems 2 @maxItems 2
    open: @minItems 1
    rest: @minItems 1
    documented: @minItems 2
    """
    return call_mcp_tool("arrays__tuples", given({"point": point, "open": open, "rest": rest, "closed": closed, "documented": documented}))


def draft4(pair: list[str | int] = unset, more_: list[str | bool] = unset, min: float = unset) -> Any:
    """
    min: @minimum 0 @exclusiveMinimum
    """
    return call_mcp_tool("arrays__draft4", given({"pair": pair, "more": more_, "min": min}))


class Deep_A(TypedDict):
    x: NotRequired[Deep_AX]


class Deep_AX(TypedDict):
    x: NotRequired[Deep_AXX]


class Deep_AXX(TypedDict):
    x: NotRequired[Deep_AXXX]


class Deep_AXXX(TypedDict):
    x: NotRequired[Deep_AXXXX]


class Deep_AXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXX]


class Deep_AXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXX]


class Deep_AXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXX]


class Deep_AXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXX]


class Deep_AXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXX]


class Deep_AXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXX]


class Deep_AXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXX]


class Deep_AXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    x: NotRequired[Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX]


class Deep_AXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX(TypedDict):
    # nested too deeply
    x: NotRequired[Any]


def deep(a: Deep_A = unset) -> Any:
    return call_mcp_tool("arrays__deep", given({"a": a}))

