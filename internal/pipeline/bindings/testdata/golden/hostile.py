"""The tools of hostile."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


class TextsOutput(TypedDict):
    """*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>redgnp.exe zero
    line
    para
    CRLFbelltag
    """
    x: NotRequired[str]


def texts(global_this_x_1_x_tick_script_31mred_0m_gnp_exe_zero_lin0719f0eb: str, a: str = unset, b: Literal["*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\U000e0041tag", "*/", "\"\"\"", "\\", "`${1}`"] = unset, c: Any = unset, d: Any = unset, e: Literal["*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\U000e0041tag"] = unset) -> TextsOutput:
    """*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>redgnp.exe zero
    line
    para
    CRLFbelltag

    global_this_x_1_x_tick_script_31mred_0m_gnp_exe_zero_lin0719f0eb: @ts-ignore
    a: */ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>redgnp.exe zero line para CRLFbelltag @default \"*/ } ; globalThis.x = 1; /* \\\"\\\"\\\" ''' \\\\ ${x} `tick` <script>\\u001b[31mred\\u001b[0m\\u202egnp.exe\\u2066 \\u200bzero\\u2028line\\u2029para\\u000d\\nCRLF\\u0007bell\\udb40\\udc41tag\" @pattern */ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>redgnp.exe zero line para CRLFbelltag @format */ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>redgnp.exe zero line para CRLFbelltag
    b: */ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>redgnp.exe zero line para CRLFbelltag
    """
    return call_mcp_tool("hostile__texts", given({"*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\U000e0041tag": global_this_x_1_x_tick_script_31mred_0m_gnp_exe_zero_lin0719f0eb, "a": a, "b": b, "c": c, "d": d, "e": e}))


def directives(a: float = unset, b: str = unset, c: str = unset) -> Any:
    """@ts-nocheck
    @ts-ignore

    a: x @ts-expect-error
    b: * @ts-ignore
    c: /// <reference path=\"/etc/passwd\" /> # coding: utf-7
    """
    return call_mcp_tool("hostile__directives", given({"a": a, "b": b, "c": c}))


def then(then: str = unset, constructor: str = unset) -> Any:
    return call_mcp_tool("hostile__then", given({"then": then, "constructor": constructor}))


def default(**more: Any) -> Any:
    return call_mcp_tool("hostile__default", given({**more}))


def proto(**more: Any) -> Any:
    return call_mcp_tool("hostile____proto__", given({**more}))


def to_string(**more: Any) -> Any:
    return call_mcp_tool("hostile__toString", given({**more}))


def delete(**more: Any) -> Any:
    return call_mcp_tool("hostile__delete", given({**more}))


def delete__e2d0a5(**more: Any) -> Any:
    return call_mcp_tool("hostile__Delete", given({**more}))


def list_issues__bc345f(**more: Any) -> Any:
    return call_mcp_tool("hostile__list-issues", given({**more}))


def list_issues(**more: Any) -> Any:
    return call_mcp_tool("hostile__list_issues", given({**more}))


def tool__e3b0c4(**more: Any) -> Any:
    return call_mcp_tool("hostile__", given({**more}))


def tool__f0443a(**more: Any) -> Any:
    return call_mcp_tool("hostile__😀", given({**more}))


def 検索(**more: Any) -> Any:
    return call_mcp_tool("hostile__検索", given({**more}))


def _3d(**more: Any) -> Any:
    return call_mcp_tool("hostile__3d", given({**more}))


def call_mcp_tool_(**more: Any) -> Any:
    return call_mcp_tool("hostile__call_mcp_tool", given({**more}))


def named(**more: Any) -> Any:
    return call_mcp_tool("hostile__named", given({**more}))


def index(**more: Any) -> Any:
    return call_mcp_tool("hostile__index", given({**more}))


def con_(**more: Any) -> Any:
    return call_mcp_tool("hostile__con", given({**more}))


def wrong1(**more: Any) -> Any:
    return call_mcp_tool("hostile__wrong1", given({**more}))


def wrong2(**more: Any) -> Any:
    return call_mcp_tool("hostile__wrong2", given({**more}))


def wrong3(**more: Any) -> Any:
    return call_mcp_tool("hostile__wrong3", given({**more}))


def wrong4(a: Any, b: Any = unset, c: Any = unset) -> Any:
    return call_mcp_tool("hostile__wrong4", given({"a": a, "b": b, "c": c}))


def bool_true(**more: Any) -> Any:
    return call_mcp_tool("hostile__boolTrue", given({**more}))


BoolFalseInput: "TypeAlias" = "NoReturn"


def bool_false(**arguments: Any) -> Any:
    return call_mcp_tool("hostile__boolFalse", arguments)


StringInputInput: "TypeAlias" = "str"


def string_input(**arguments: Any) -> Any:
    return call_mcp_tool("hostile__stringInput", arguments)


def null_input(**more: Any) -> Any:
    return call_mcp_tool("hostile__nullInput", given({**more}))


ListInputInput: "TypeAlias" = "list[str]"


def list_input(**arguments: Any) -> Any:
    return call_mcp_tool("hostile__listInput", arguments)

