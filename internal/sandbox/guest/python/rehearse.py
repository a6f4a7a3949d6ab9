"""Does what programs do, with nobody there, and leaves nothing behind: a machine that was
copied remembers its memory, and not what the emulator of its processor has translated."""

import builtins
import os
import sys

channel_part, ring_part, calls, values, rewriting = need("channel"), need("ring"), need("calls"), need("values"), need("rewrite")
CALLS = 30
ARENA, ARENAS = 1 << 20, 12  # bytes of the memory that Python takes from the kernel at a time
PROGRAM = """
import re
class Row:
    def __init__(self, id, **rest):
        self.id, self.rest = id, rest
    def __repr__(self):
        return f"{self.id:>3} {self.rest!r}"
rows = [Row(i, name="a", part=i / 2) for i in range(5)]
total, text, seen = 0, "", {}
for i in range(20):
    total += len(call_mcp_tool("t", {"n": i, "text": "a"})["rows"])
for row in sorted(rows, key=lambda r: -r.id):
    try:
        if row.id == 2:
            raise ValueError(row.rest["name"])
        seen[row.id] = row.rest["part"] + total
    except ValueError as e:
        text += str(e).upper() + repr(row) + ",".join(map(str, [n for n in seen if n]))
found = re.sub(r"\\d+", "", text)
{"total": total, "seen": sorted(seen.items()), "found": found, "on": True, "off": None}
"""
AT_ONCE = """
import asyncio
async def one(i):
    return (await call_mcp_tool("t", n=i))["rows"]
all = await asyncio.gather(*[one(i) for i in range(10)])
sum(map(len, all))
"""


def rehearse():
    """Gives what the two programs give."""
    wires = os.pipe()
    channel = channel_part.Channel(*wires, answers())
    channel.armed = True  # its frames go nowhere
    channel.own_threads = channel_part.current.own_threads if channel_part.current else 0
    caller = calls.Caller(channel)
    try:
        told = [performed(PROGRAM, caller, channel)]
        if "asyncio" in sys.modules:
            told.append(performed(AT_ONCE, caller, channel))
        channel.ring.watch()
        return told
    finally:
        for wire in wires:
            os.close(wire)


def take_memory():
    """Memory that the machine has written to once: what it takes from the kernel later costs
    a fault for each page. What is given keeps it from going back."""
    size = 450
    return [bytes(size) for i in range(ARENAS * ARENA // size)][:: ARENA // size]


def answers():
    """The memory of a ring in which all answers are."""
    memory = bytearray(ring_part.PAGE + 2 * ring_part.CAPACITY)
    memory[ring_part.PROVEN] = memory[ring_part.NONCE] = b"rehearse"
    at = ring_part.PAGE + ring_part.CAPACITY
    for i in range(CALLS):
        body = b'{"rows":[{"id":%d,"name":"a","part":0.5,"on":true,"off":null}]}' % i
        frame = channel_part.pack(9 + len(body), channel_part.RESULT, i + 1, 0) + body
        record = ring_part.pack(ring_part.MARKED | len(frame), i) + frame
        memory[at : at + len(record)] = record
        at += len(record) + 7 & ~7
    memoryview(memory).cast("I")[ring_part.TO_GUEST + ring_part.WRITTEN] = at - ring_part.PAGE - ring_part.CAPACITY
    return memory


def performed(source, caller, channel):
    name = "rehearsal.py"
    tree = rewriting.parse(source, name)
    rewriting.rewrite(tree, source, {"call_mcp_tool": "own.call_mcp_tool"})
    code = rewriting.finish(tree, name)
    scope = {"__name__": "__main__", "__builtins__": builtins, "call_mcp_tool": calls.ByName(caller), rewriting.LATER: calls.later}
    outcome = eval(code, scope)
    if outcome is not None:  # a coroutine
        waited(outcome, scope, channel)
    return values.render(scope[rewriting.VALUE])


def waited(coroutine, scope, channel):
    """Runs a coroutine in a loop of its own."""
    part = need("loop")
    scope[rewriting.AWAITED], scope[rewriting.ITERATED] = part.awaited, part.iterated
    loop = type("Loop", (part.Loop,), {"channel": channel})()
    try:
        loop.run_until_complete(coroutine)
    finally:
        os.close(loop.wake_in)
        os.close(loop.wake_out)
