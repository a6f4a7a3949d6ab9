import csv
import json
import os
from pathlib import Path

found = mail.search_messages(query="has:attachment after:2026-10-01", maxResults=1)
message = mail.get_message(id=found["messages"][0]["id"])
att = mail.get_attachment(message_id=message["id"], attachment_id=message["attachment"]["attachmentId"])
with open(att["path"], "rb") as f:
    data = f.read()
print(att["mimeType"], len(data) == att["bytes"], os.path.exists(att["path"]), Path(att["path"]).stat().st_size == len(data))

with open("out.csv", "w", newline="") as f:
    writer = csv.DictWriter(f, fieldnames=["name", "size"])
    writer.writeheader()
    writer.writerow({"name": message["attachment"]["filename"], "size": len(data)})
os.makedirs("reports", exist_ok=True)
Path("reports/october.json").write_text(json.dumps(list(csv.DictReader(open("./out.csv")))))
os.replace("out.csv", "reports/october.csv")
same = read_file("reports/october.csv") == open(Path("workspace") / "reports" / "october.csv", newline="").read()

refused = []
for to in ["/out.csv", "../out.csv", "reports/../../out.csv", "servers/out.csv", "skills/out.csv", "workspace/../out.csv"]:
    try:
        open(to, "w")
    except OSError as e:
        refused.append(type(e).__name__)
result = {"same": same, "there": os.path.exists("out.csv"), "reports": sorted(p.name for p in Path("reports").iterdir()), "tree": sorted(os.listdir()), "refused": refused}
