import json
from servers import drive

QUERY = """minutes
of""".split("\n")[0]

def all_files(**query):
    token = None
    while True:
        page = drive.search_files(**query, **({"page_token": token} if token else {}))
        yield from page["files"]
        token = page.get("nextPageToken")
        if not token:
            return

files_ = list(all_files(query=QUERY, page_size=200))
biggest = max(files_, key=lambda f: f["size"])
print(json.dumps({"files": len(files_), "lines": len(QUERY.splitlines())}))
result = biggest["name"]
