from servers import sheets
data = sheets.read_rows(spreadsheet_id="orders-2026", sheet="Orders", limit=10000)
result = [{"id": r["Order ID"], "amount": r["Amount"], "status": r["Status"]} for r in data["rows"]]
