#!/usr/bin/env python3
import re
import sys
import collections
from typing import NamedTuple

class Turn(NamedTuple):
    at: int
    who: str
    text: str

def parse(text):
    for h, m, s, who, said in re.findall(r"^\[(\d\d):(\d\d):(\d\d)\] ([^:\n]+): (.*)$", text, flags=re.M):
        yield Turn(int(h) * 3600 + int(m) * 60 + int(s), who, said)

def main():
    doc = drive.get_document(documentId="abc123")
    turns = list(parse(doc["content"]))
    talk = collections.Counter()
    for a, b in zip(turns, turns[1:]):
        talk[a.who] += b.at - a.at
    money = [int(x.replace(",", "")) for x in re.findall(r"\b(\d{1,3}(?:,\d{3})+) euros\b", doc["content"])]
    (who, seconds), = talk.most_common(1)
    print(f"{len(turns)} turns", file=sys.stderr)
    return {"title": doc["title"], "who": who, "time": "%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60), "largest": max(money)}

if __name__ == "__main__":
    print(main())
