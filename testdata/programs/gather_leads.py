import asyncio
from servers import crm

IDS = ["00Q001000", "00Q001001", "missing", "00Q001002", "forbidden"]

async def fetch(record_id: str) -> dict:
    return await crm.get_record(object_type="Lead", record_id=record_id)

async def main():
    results = await asyncio.gather(*(fetch(i) for i in IDS), return_exceptions=True)
    ok = [r for r in results if not isinstance(r, Exception)]
    bad = {i: str(r) for i, r in zip(IDS, results) if isinstance(r, Exception)}
    for r in ok:
        print(f"{r['FirstName']} {r['LastName']}: {r['Score']}")
    return {"ok": len(ok), "bad": bad, "mean": round(sum(r["Score"] for r in ok) / len(ok), 2)}

if __name__ == "__main__":
    result = asyncio.run(main())
    print(result)
