import asyncio
from servers import issues

async def count_prs(repo, sem):
    async with sem:
        page, total = 1, 0
        while True:
            prs = await issues.list_pull_requests(owner="nordlys", repo=repo, state="all", page=page, per_page=100)
            total += len(prs)
            if len(prs) < 100:
                return total
            page += 1

async def main():
    sem = asyncio.Semaphore(3)
    repos = [r["name"] for r in await issues.list_repositories(per_page=100)]
    tasks = {}
    async with asyncio.TaskGroup() as tg:
        for r in repos:
            tasks[r] = tg.create_task(count_prs(r, sem))
    return {r: t.result() for r, t in tasks.items()}

counts = await main()
for name, n in sorted(counts.items(), key=lambda x: (-x[1], x[0])):
    print(f"{name:20} {n:>4} {'#' * (n // 20)}")
return {"total": sum(counts.values()), "most": max(counts, key=counts.get)}
