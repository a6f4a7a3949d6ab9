"""The tools of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


def scalars(text: str, integer: int, number: float = unset, flag: bool = unset, nothing: None = unset, anything: Any = unset, yes: Any = unset, no: NoReturn = unset, odd: Any = unset) -> Any:
    """
    integer: @format int64
    """
    return call_mcp_tool("values__scalars", given({"text": text, "integer": integer, "number": number, "flag": flag, "nothing": nothing, "anything": anything, "yes": yes, "no": no, "odd": odd}))


def documented(limit: int = unset, when: str = unset, code: str = unset, old: str = unset, share: float = unset, tags: list[str] = unset, blob: str = unset) -> Any:
    """Does things. Then more.
    @readonly

    limit: How many. @default 30 @minimum 1 @maximum 100
    when: First line. Second paragraph. @format date-time
    code: @pattern ^[A-Z]{2,}$ @minLength 2 @maxLength 8 @example \"AB\"
    old: Old name @deprecated @default \"\"
    share: @exclusiveMinimum 0 @exclusiveMaximum 1 @multipleOf 0.01
    tags: @minItems 1 @uniqueItems @items A tag. @maxLength 20
    blob: @contentEncoding base64 @contentMediaType image/png
    """
    return call_mcp_tool("values__documented", given({"limit": limit, "when": when, "code": code, "old": old, "share": share, "tags": tags, "blob": blob}))


class Literals_Mixed6(TypedDict):
    k: tuple[Literal[1], Literal["x"]]


def literals(mode: Literal["fast", "slow"], mixed: Literal["a", 1, True] | float | None | Literals_Mixed6 | tuple[()] = unset, version: Literal[2] = unset, none: None = unset, big: float = unset, huge: float = unset, repeated: Literal["a", "b"] = unset, choice: Literal["a", "b"] = unset) -> Any:
    return call_mcp_tool("values__literals", given({"mode": mode, "mixed": mixed, "version": version, "none": none, "big": big, "huge": huge, "repeated": repeated, "choice": choice}))


class Nullables_Object1(TypedDict):
    x: NotRequired[int]


def nullables(list: str | None = unset, flag: str | None = unset, either: float | None = unset, enum: Literal["a"] | None = unset, object: Nullables_Object1 | None = unset, many: str | int | list[str] | dict[str, Any] = unset) -> Any:
    """
    either: A number or nothing. @default null
    """
    return call_mcp_tool("values__nullables", given({"list": list, "flag": flag, "either": either, "enum": enum, "object": object, "many": many}))


def names(with_dash: str, proto: str, class_: str, plain: str = unset, with_space: str = unset, _1st: str = unset, dollar: str = unset, constructor: str = unset, from_: str = unset, self: str = unset, argument: str = unset, naïve: str = unset, emoji: str = unset, quote: str = unset, new_line: str = unset, given_: str = unset, __x: str = unset, more_: str = unset) -> Any:
    return call_mcp_tool("values__names", given({"with-dash": with_dash, "__proto__": proto, "class": class_, "plain": plain, "with space": with_space, "1st": _1st, "$dollar": dollar, "constructor": constructor, "from": from_, "self": self, "": argument, "naïve": naïve, "emoji😀": emoji, "quote\"'`\\": quote, "new\nline\u2028": new_line, "given": given_, "__x": __x, "more": more_}))


def empty() -> Any:
    return call_mcp_tool("values__empty", given({}))


def free(**more: Any) -> Any:
    return call_mcp_tool("values__free", given({**more}))


def open(a: str = unset, **more: Any) -> Any:
    return call_mcp_tool("values__open", given({"a": a, **more}))


def closed(a: str = unset) -> Any:
    return call_mcp_tool("values__closed", given({"a": a}))


def undeclared(a: str, b: Any) -> Any:
    return call_mcp_tool("values__undeclared", given({"a": a, "b": b}))


class Draft3_B2(TypedDict):
    c: NotRequired[float]


def draft3(a: str, b: str | Draft3_B2 = unset) -> Any:
    return call_mcp_tool("values__draft3", given({"a": a, "b": b}))

