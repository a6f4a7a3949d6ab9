"""The tools of combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


RootUnionInput: "TypeAlias" = "RootUnion_Input1 | RootUnion_Input2"


class RootUnion_Input1(TypedDict):
    id: str


class RootUnion_Input2(TypedDict):
    name: str
    exact: NotRequired[bool]


def root_union(id: str = unset, name: str = unset, exact: bool = unset) -> Any:
    return call_mcp_tool("combinations__rootUnion", given({"id": id, "name": name, "exact": exact}))


RootAllInput: "TypeAlias" = "RootAll_Input"


class RootAll_Input(TypedDict):
    a: str
    b: NotRequired[float]


def root_all(a: str, b: float = unset) -> Any:
    return call_mcp_tool("combinations__rootAll", given({"a": a, "b": b}))


# all of: EitherKey_Input1, EitherKey_Input21 | EitherKey_Input22
EitherKeyInput: "TypeAlias" = "Any"


class EitherKey_Input1(TypedDict):
    # The id.
    id: NotRequired[str]
    name: NotRequired[str]
    verbose: NotRequired[bool]


class EitherKey_Input21(TypedDict):
    id: str


class EitherKey_Input22(TypedDict):
    name: str


def either_key(id: str = unset, name: str = unset, verbose: bool = unset) -> Any:
    """
    id: The id.
    """
    return call_mcp_tool("combinations__eitherKey", given({"id": id, "name": name, "verbose": verbose}))


class Discriminated_Shape1(TypedDict):
    kind: Literal["circle"]
    r: float


class Discriminated_Shape2(TypedDict):
    kind: Literal["box"]
    w: float
    h: NotRequired[float]


class Discriminated_ListItem2(TypedDict):
    x: NotRequired[float]


def discriminated(shape: Discriminated_Shape1 | Discriminated_Shape2, list: list[str | Discriminated_ListItem2] = unset) -> Any:
    """
    shape: What to draw.
    """
    return call_mcp_tool("combinations__discriminated", given({"shape": shape, "list": list}))


class Narrowed_E(TypedDict):
    k: NotRequired[str]


def narrowed(a: str = unset, b: Literal["p", "q"] = unset, c: str = unset, d: Literal["a", "b"] = unset, e: Narrowed_E = unset) -> Any:
    """
    c: @minLength 1
    """
    return call_mcp_tool("combinations__narrowed", given({"a": a, "b": b, "c": c, "d": d, "e": e}))


def conditions(a: str = unset, b: str = unset) -> Any:
    """@not {\"required\":[\"a\",\"b\"]}
    @if {\"properties\":{\"a\":{\"const\":\"x\"}}}
    @then {\"required\":[\"b\"]}
    @else {\"required\":[\"a\"]}
    @dependentRequired {\"a\":[\"b\"]}
    @dependencies {\"b\":[\"a\"]}
    @propertyNames {\"pattern\":\"^[a-z]\"}
    """
    return call_mcp_tool("combinations__conditions", given({"a": a, "b": b}))


class Crossed_X11(TypedDict):
    p00: NotRequired[str]


class Crossed_X12(TypedDict):
    p01: NotRequired[str]


class Crossed_X13(TypedDict):
    p02: NotRequired[str]


class Crossed_X14(TypedDict):
    p03: NotRequired[str]


class Crossed_X15(TypedDict):
    p04: NotRequired[str]


class Crossed_X16(TypedDict):
    p05: NotRequired[str]


class Crossed_X17(TypedDict):
    p06: NotRequired[str]


class Crossed_X18(TypedDict):
    p07: NotRequired[str]


class Crossed_X19(TypedDict):
    p08: NotRequired[str]


class Crossed_X110(TypedDict):
    p09: NotRequired[str]


class Crossed_X111(TypedDict):
    p010: NotRequired[str]


class Crossed_X112(TypedDict):
    p011: NotRequired[str]


class Crossed_X21(TypedDict):
    p10: NotRequired[str]


class Crossed_X22(TypedDict):
    p11: NotRequired[str]


class Crossed_X23(TypedDict):
    p12: NotRequired[str]


class Crossed_X24(TypedDict):
    p13: NotRequired[str]


class Crossed_X25(TypedDict):
    p14: NotRequired[str]


class Crossed_X26(TypedDict):
    p15: NotRequired[str]


class Crossed_X27(TypedDict):
    p16: NotRequired[str]


class Crossed_X28(TypedDict):
    p17: NotRequired[str]


class Crossed_X29(TypedDict):
    p18: NotRequired[str]


class Crossed_X210(TypedDict):
    p19: NotRequired[str]


class Crossed_X211(TypedDict):
    p110: NotRequired[str]


class Crossed_X212(TypedDict):
    p111: NotRequired[str]


class Crossed_X31(TypedDict):
    p20: NotRequired[str]


class Crossed_X32(TypedDict):
    p21: NotRequired[str]


class Crossed_X33(TypedDict):
    p22: NotRequired[str]


class Crossed_X34(TypedDict):
    p23: NotRequired[str]


class Crossed_X35(TypedDict):
    p24: NotRequired[str]


class Crossed_X36(TypedDict):
    p25: NotRequired[str]


class Crossed_X37(TypedDict):
    p26: NotRequired[str]


class Crossed_X38(TypedDict):
    p27: NotRequired[str]


class Crossed_X39(TypedDict):
    p28: NotRequired[str]


class Crossed_X310(TypedDict):
    p29: NotRequired[str]


class Crossed_X311(TypedDict):
    p210: NotRequired[str]


class Crossed_X312(TypedDict):
    p211: NotRequired[str]


def crossed(x: Any = unset) -> Any:
    return call_mcp_tool("combinations__crossed", given({"x": x}))


def empty_branches(a: Any = unset, b: Any = unset, c: Any = unset, d: str = unset, e: Any = unset, f: NoReturn = unset) -> Any:
    return call_mcp_tool("combinations__emptyBranches", given({"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}))

