from __future__ import annotations

from dataclasses import dataclass, field, asdict
from datetime import date, timedelta
from decimal import Decimal, ROUND_HALF_UP
from typing import Iterator

from servers.sheets import read_rows

CENT = Decimal("0.01")


@dataclass(frozen=True)
class Order:
    id: str
    day: date
    region: str
    amount: Decimal
    status: str

    @classmethod
    def from_row(cls, row: dict) -> Order:
        return cls(
            id=row["Order ID"],
            day=date.fromisoformat(row["Date"]),
            region=row["Region"],
            amount=Decimal(str(row["Amount"])).quantize(CENT, ROUND_HALF_UP),
            status=row["Status"],
        )


@dataclass
class Summary:
    orders: int = 0
    total: Decimal = Decimal("0")
    largest: Order | None = None
    regions: dict[str, Decimal] = field(default_factory=dict)

    def add(self, order: Order) -> None:
        self.orders += 1
        self.total += order.amount
        self.regions[order.region] = self.regions.get(order.region, Decimal(0)) + order.amount
        if self.largest is None or order.amount > self.largest.amount:
            self.largest = order


def orders(spreadsheet_id: str) -> Iterator[Order]:
    offset = 0
    while True:
        page = read_rows(spreadsheetId=spreadsheet_id, sheet="Orders", offset=offset, limit=5000)
        for row in page["rows"]:
            yield Order.from_row(row)
        offset += len(page["rows"])
        if not page["has_more"]:
            break


def main() -> dict:
    summary = Summary()
    last = date(2026, 11, 1)
    for order in orders("orders-2026"):
        if last - timedelta(days=30) < order.day <= last and order.status == "pending":
            summary.add(order)
    print(f"{summary.orders} pending orders, {summary.total:,} in all")
    return asdict(summary)


result = main()
