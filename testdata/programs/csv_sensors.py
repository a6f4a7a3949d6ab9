import csv
import io
import statistics
from collections import namedtuple
from pathlib import Path

import servers.files as files

Reading = namedtuple("Reading", "sensor hour celsius")

paths = [p for p in files.search_files(path="/srv/nordlys/readings", pattern="*.csv")["paths"] if "/2024/11/" in p]
readings = []
for p in sorted(paths):
    text = files.read_file(path=p)
    for row in csv.DictReader(io.StringIO(text)):
        readings.append(Reading(row["sensor"], int(row["hour"]), float(row["celsius"])))

by_sensor = {}
for r in readings:
    by_sensor.setdefault(r.sensor, []).append(r.celsius)

out_dir = Path("workspace") / "reports"
out_dir.mkdir(parents=True, exist_ok=True)
target = out_dir / "sensors.csv"
with target.open("w", newline="", encoding="utf-8") as fh:
    writer = csv.writer(fh)
    writer.writerow(["sensor", "n", "mean", "stdev"])
    for sensor in sorted(by_sensor):
        values = by_sensor[sensor]
        writer.writerow([sensor, len(values), f"{statistics.mean(values):.3f}", f"{statistics.stdev(values):.3f}"])

with open("workspace/reports/sensors.csv", newline="") as fh:
    rows = list(csv.reader(fh))
print(*rows[:3], sep="\n")
print(target.name, target.exists(), target.stat().st_size > 100, [p.name for p in out_dir.glob("*.csv")])
result = {"files": len(paths), "readings": len(readings), "sensors": len(rows) - 1, "median": statistics.median(r.celsius for r in readings)}
