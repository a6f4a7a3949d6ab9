"""The tools of billing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias


class ListInvoicesOutput(TypedDict):
    items: list[ListInvoices_Invoice]
    next_cursor: NotRequired[str | None]


class ListInvoices_Invoice(TypedDict):
    id: str
    amount: NotRequired[float]


# paged: cursor → next_cursor
def list_invoices(status: Literal["open", "overdue"] = unset, cursor: str = unset) -> ListInvoicesOutput:
    """Lists invoices."""
    return call_mcp_tool("billing__list_invoices", given({"status": status, "cursor": cursor}))


class ListChargesOutput(TypedDict):
    data: NotRequired[list[ListCharges_OutputData1Item] | None]
    has_more: NotRequired[bool]


class ListCharges_OutputData1Item(TypedDict):
    id: NotRequired[str]


# paged: starting_after → last id
def list_charges(limit: int = unset, starting_after: str = unset) -> ListChargesOutput:
    """Lists charges."""
    return call_mcp_tool("billing__list_charges", given({"limit": limit, "starting_after": starting_after}))


class ListRowsOutput(TypedDict):
    rows: NotRequired[list[str]]
    pages: NotRequired[int]


# paged: page → pages
def list_rows(page: int = unset) -> ListRowsOutput:
    """Lists rows."""
    return call_mcp_tool("billing__list_rows", given({"page": page}))


class ListOrdersOutput(TypedDict):
    result: NotRequired[ListOrders_OutputResult]


class ListOrders_OutputResult(TypedDict):
    orders: NotRequired[list[ListOrders_OutputResultOrdersItem]]
    total: NotRequired[int]


class ListOrders_OutputResultOrdersItem(TypedDict):
    n: NotRequired[int]


# paged: offset → result.total
def list_orders(offset: int = unset) -> ListOrdersOutput:
    """Lists orders."""
    return call_mcp_tool("billing__list_orders", given({"offset": offset}))


class ListLinksOutput(TypedDict):
    results: NotRequired[list[Any]]
    # @format uri
    next: NotRequired[str | None]


# paged: page → next (link)
def list_links(page: int = unset) -> ListLinksOutput:
    """Lists links."""
    return call_mcp_tool("billing__list_links", given({"page": page}))


# paged: page
def list_unknown(page: int = unset, per_page: int = unset) -> Any:
    """Lists what nobody knows."""
    return call_mcp_tool("billing__list_unknown", given({"page": page, "per_page": per_page}))


GetOneOutput: "TypeAlias" = "GetOne_Output1 | GetOne_Output2"


class GetOne_Output1(TypedDict):
    a: NotRequired[list[Any]]


class GetOne_Output2(TypedDict):
    b: NotRequired[list[Any]]


def get_one(page: str = unset) -> GetOneOutput:
    """Gets one."""
    return call_mcp_tool("billing__get_one", given({"page": page}))


class HostileOutput(TypedDict):
    items: NotRequired[list[Any]]
    meta: NotRequired[Hostile_OutputMeta]


Hostile_OutputMeta = TypedDict("Hostile_OutputMeta", {
    "Next-\nCursor": "NotRequired[str]",
    "next_cursor": "NotRequired[str]",
})


# paged: cursor → meta.next_cursor
def hostile(cursor: str = unset) -> HostileOutput:
    """Has names that end a comment."""
    return call_mcp_tool("billing__hostile", given({"cursor": cursor}))

