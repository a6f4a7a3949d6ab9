rows = call_mcp_tool("database__query", {"sql": "SELECT id, at, kind FROM events ORDER BY id LIMIT 4"})["rows"]
ids = [r["id"] for r in rows]
gaps = [b - a for a, b in zip(ids, ids[1:])]
print(ids, gaps)
tools = search_tools("list issues of a repository")
print([t["name"] for t in tools][:1])
result = {"next": ids[0] + 1, "gaps": set(gaps), "kinds": tuple(r["kind"] for r in rows)}
