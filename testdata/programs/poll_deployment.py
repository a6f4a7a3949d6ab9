import time

def wait_for(predicate, timeout=20.0, interval=0.05):
    start = time.monotonic()
    while time.monotonic() - start < timeout:
        value = predicate()
        if value is not None:
            return value
        time.sleep(interval)
    raise TimeoutError("deployment did not finish")

def complete():
    history = chat.get_channel_history(channel="deployments", limit=10)
    return next((m["text"] for m in history["messages"] if "deployment complete" in m["text"]), None)

text = wait_for(complete)
result = text.split(":")[0]
