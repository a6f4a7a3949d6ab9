import asyncio

from servers.crm import crm, ToolError
from servers import mail, ToolError as Failure, call_mcp_tool

found = await asyncio.gather(*[crm.search_records(objectType="Account", fields=["Name"], limit=n) for n in (1, 2, 3)])
try:
    crm.get_record(objectType="Account", recordId="nothing")
except ToolError as e:
    caught = [e.kind, ToolError is Failure]
raw = call_mcp_tool("crm__search_records", {"objectType": "Account", "fields": ["Name"], "limit": 1})
result = {
    "found": [len(f["records"]) for f in found],
    "caught": caught,
    "same": raw["records"][0]["Name"] == found[0]["records"][0]["Name"],
    "messages": len(mail.search_messages(query="has:attachment", maxResults=1)["messages"]),
}
