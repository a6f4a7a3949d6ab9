import asyncio, json

async def unread(label):
    res = await mail.search_messages(query=f"is:unread {label}".strip(), max_results=5)
    return label or "all", res["resultSizeEstimate"]

async def main():
    done = {}
    for fut in asyncio.as_completed([unread("subject:renewal"), unread("has:attachment"), unread("")]):
        label, n = await fut
        done[label] = n
    try:
        await asyncio.wait_for(asyncio.sleep(5), timeout=0.02)
    except asyncio.TimeoutError:
        done["timeout"] = True
    print(json.dumps(done, indent=2, sort_keys=True))
    return dict(sorted(done.items()))

asyncio.run(main())
