import functools
import time
import random

from servers import drive


def retry(times=4, base=0.01, on=("429",)):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return fn(*args, **kwargs)
                except ToolError as exc:
                    if attempt == times or not any(code in str(exc) for code in on):
                        raise
                    wait = base * 2 ** (attempt - 1) + random.uniform(0, base)
                    print(f"{fn.__name__}: attempt {attempt} failed ({exc.kind}), retrying")
                    time.sleep(wait)
        return wrapper
    return decorate


@retry()
def load(document_id):
    return drive.get_document(document_id)


out = {}
for doc_id in ("rate-limited", "forbidden", "nope"):
    try:
        doc = load(doc_id)
        out[doc_id] = doc["title"]
    except ToolError as e:
        out[doc_id] = f"{e.server}.{e.tool}: {e.message}"
out
