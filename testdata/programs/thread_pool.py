from concurrent.futures import ThreadPoolExecutor, as_completed
from servers import chat

def profile(user_id):
    p = chat.get_user_profile(user=user_id)
    return p["city"], p["real_name"]

members, cursor = [], None
while True:
    kwargs = {"limit": 20}
    if cursor:
        kwargs["cursor"] = cursor
    page = chat.list_users(**kwargs)
    members.extend(page["members"])
    cursor = page["response_metadata"]["next_cursor"]
    if not cursor:
        break

cities = {}
with ThreadPoolExecutor(max_workers=8) as pool:
    futures = {pool.submit(profile, m["id"]): m for m in members[:24]}
    for future in as_completed(futures):
        city, name = future.result()
        cities.setdefault(city, []).append(name)

names = list(ThreadPoolExecutor(4).map(lambda m: chat.get_user_profile(m["id"])["real_name"], members[:3]))
result = {"members": len(members), "cities": {c: sorted(n) for c, n in sorted(cities.items())}, "names": names}
