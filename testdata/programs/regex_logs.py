import re
from collections import Counter

LINE = re.compile(r"^(?P<time>\S+)\s+(?P<level>INFO|WARN|ERROR)\s+(?P<msg>.*)$", re.MULTILINE)

paths = files.search_files("/srv/nordlys/logs/2024/11", "ingest-*.log")["paths"]
levels, kinds = Counter(), Counter()
slowest = 0
for path in paths:
    for m in LINE.finditer(files.read_file(path)):
        levels[m["level"]] += 1
        kinds[re.sub(r"\bg?\d+\b", "#", m.group("msg"))] += 1
        if took := re.search(r"took (\d+) ms", m["msg"]):
            slowest = max(slowest, int(took[1]))

for kind, n in kinds.most_common(3):
    print(f"{n:6d}  {kind}")
{"files": len(paths), "levels": dict(levels), "slowest_ms": slowest}
