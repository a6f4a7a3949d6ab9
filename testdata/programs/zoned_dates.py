import datetime as dt
from datetime import datetime, timezone, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

cals = calendar.list_calendars()
tz = ZoneInfo(next(c for c in cals if c["id"] == "primary")["timeZone"])

start = datetime(2026, 10, 20, tzinfo=timezone.utc)
events = calendar.list_events(timeMin=start.isoformat(), timeMax=(start + timedelta(weeks=3)).isoformat().replace("+00:00", "Z"))["items"]

def parse(e):
    return datetime.fromisoformat(e["start"]["dateTime"].replace("Z", "+00:00"))

timed = sorted((e for e in events if "dateTime" in e["start"]), key=parse)
weeks = {f"{y}-W{w:02d}": len(list(g)) for (y, w), g in groupby(timed, key=lambda e: parse(e).isocalendar()[:2])}
local = parse(timed[0]).astimezone(tz)
before = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc).astimezone(tz)
after = datetime(2026, 10, 25, 1, 30, tzinfo=timezone.utc).astimezone(tz)
print(local.strftime("%A %d %B %Y, %H:%M %Z"))
result = {"weeks": weeks, "dst": [before.isoformat(), after.isoformat()], "days": (dt.date(2026, 12, 24) - dt.date(2026, 11, 2)).days}
