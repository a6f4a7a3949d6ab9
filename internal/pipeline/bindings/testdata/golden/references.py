"""The tools of references."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


class RecursiveOutput(TypedDict):
    node: NotRequired[RecursiveOutput]
    items: NotRequired[list[Recursive_Pair]]


class Recursive_Tree(TypedDict):
    value: str
    children: NotRequired[list[Recursive_Tree]]


Recursive_Pair: "TypeAlias" = "list[RecursiveOutput | Recursive_Pair | Any]"


def recursive(root: Recursive_Tree, again: Recursive_Tree = unset) -> RecursiveOutput:
    """
    again: The same.
    """
    return call_mcp_tool("references__recursive", given({"root": root, "again": again}))


class Pointers_WithSlash(TypedDict):
    s: NotRequired[str]


class Pointers_WithTilde(TypedDict):
    t: NotRequired[str]


class Pointers_PerCent(TypedDict):
    p: NotRequired[str]


class Pointers_E(TypedDict):
    deep: NotRequired[Pointers_EDeep]


class Pointers_Deep(TypedDict):
    x: NotRequired[float]


class Pointers_List(TypedDict):
    second: NotRequired[bool]


class Pointers_EItem(TypedDict):
    deep: NotRequired[Pointers_EItemDeep]


class Pointers_EDeep(TypedDict):
    x: NotRequired[float]


class Pointers_EItemDeep(TypedDict):
    x: NotRequired[float]


def pointers(a: Pointers_WithSlash = unset, b: Pointers_WithTilde = unset, c: Pointers_PerCent = unset, d: Pointers_E = unset, e: list[Pointers_EItem] = unset, f: Pointers_Deep = unset, g: Pointers_List = unset) -> Any:
    return call_mcp_tool("references__pointers", given({"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g}))


class Identified_Address(TypedDict):
    street: NotRequired[str]
    country: NotRequired[Identified_Country]


class Identified_PersonJson(TypedDict):
    name: NotRequired[Identified_Name]


class Identified_Spot(TypedDict):
    x: NotRequired[float]
    y: NotRequired[float]


class Identified_Name(TypedDict):
    first: NotRequired[str]
    last: NotRequired[str]


class Identified_Country(TypedDict):
    code: NotRequired[str]


def identified(address: Identified_Address = unset, relative: Identified_PersonJson = unset, anchored: Identified_Spot = unset, inside: Identified_Name = unset) -> Any:
    return call_mcp_tool("references__identified", given({"address": address, "relative": relative, "anchored": anchored, "inside": inside}))


def unresolved(remote: Any, missing: Any = unset, noSchema: Any = unset, itself: Any = unset, evil: Any = unset) -> Any:
    return call_mcp_tool("references__unresolved", given({"remote": remote, "missing": missing, "noSchema": noSchema, "itself": itself, "evil": evil}))


Aliases_A: "TypeAlias" = "str | Aliases_B"


# a type that refers to itself
Aliases_B: "TypeAlias" = "Any"


def aliases(u: Aliases_A = unset) -> Any:
    return call_mcp_tool("references__aliases", given({"u": u}))


class Siblings_Base(TypedDict):
    id: int


class Siblings_A(TypedDict):
    """With more."""
    id: int
    extra: NotRequired[str]


def siblings(a: Siblings_A = unset, b: str = unset, c: Siblings_Base = unset) -> Any:
    """
    a: With more.
    b: @minLength 3
    c: @default {\"id\":1}
    """
    return call_mcp_tool("references__siblings", given({"a": a, "b": b, "c": c}))


class Siblings7_Base(TypedDict):
    id: int


def siblings7(a: Siblings7_Base = unset) -> Any:
    return call_mcp_tool("references__siblings7", given({"a": a}))


class SameNameOutput(TypedDict):
    a: NotRequired[SameName_Thing3]


class SameName_Thing(TypedDict):
    a: NotRequired[str]


class SameName_Thing2(TypedDict):
    b: NotRequired[str]


class SameName_Input(TypedDict):
    x: NotRequired[str]


class SameName_Thing3(TypedDict):
    other: NotRequired[float]


def same_name(a: SameName_Thing = unset, b: SameName_Thing2 = unset, c: SameName_Input = unset) -> SameNameOutput:
    return call_mcp_tool("references__sameName", given({"a": a, "b": b, "c": c}))

