"""Memory that the host sees, too, beside the stream: what package ring of the engine
describes. The host says nothing in it before this side has."""

import os
import select
from _thread import _count as thread_count, allocate_lock
from os import read, sched_yield as yield_now, write
from struct import Struct
from time import monotonic

PAGE, CAPACITY = 4096, 64 << 10
LARGE, LARGEST = CAPACITY // 4, 1 << 30
MARKED, BELL = 1 << 31, 0xFFFFFFFF
MASK = 0xFFFFFFFF
NONCE, PROVEN, ANSWER, SEEN = slice(8, 16), slice(16, 24), slice(64, 72), slice(72, 80)
TO_HOST, TO_GUEST = 1024 // 4, 2048 // 4  # words of a direction
WRITTEN, STREAMED, TAKEN, SLEEPS = 0, 1, 128 // 4, 256 // 4
PATIENCE, SOON = 400e-6, 200e-6  # seconds
HOPES, OFTEN, SELDOM = 6, 8, 256
PORTION = 16 << 10
HEADER = Struct(">II")
pack, unpack = HEADER.pack, HEADER.unpack_from


class Ring:
    patience = PATIENCE

    def __init__(self, wire_in, wire_out, memory, quit_now, own_threads):
        self.wire_in, self.wire_out = wire_in, wire_out
        self.quit_now, self.own_threads = quit_now, own_threads
        self.bytes = memoryview(memory)
        self.words = self.bytes.cast("I")
        self.nonce = bytes(self.bytes[NONCE])
        self.bytes[ANSWER] = bytes(255 - b for b in self.nonce)
        self.proven = False
        self.fence = allocate_lock()
        self.incoming = select.poll()
        self.incoming.register(wire_in, select.POLLIN)
        # Reading.
        self.taken = self.told = self.sleeps = self.next = self.parts = 0
        self.records, self.at = b"", 0
        self.stream, self.pos = b"", 0
        self.held, self.rest = b"", 0
        self.hope, self.idle, self.interval, self.urged, self.slept = HOPES, 0, OFTEN, 0, False
        self.rehearsal = None  # called once when there is time, after the host has rung for nothing
        # Writing. The first part is what said that this side is ready.
        self.written, self.streamed, self.number, self.rung = 0, 1, 1, 0
        self.words[TO_HOST + STREAMED] = 1

    # Writing

    def send(self, data):
        if (self.proven or self.usable()) and len(data) <= LARGE and self.put(data):
            return
        for i in range(0, len(data), LARGEST):
            part = data[i : i + LARGEST]
            self.streamed = self.streamed + 1 & MASK
            self.words[TO_HOST + STREAMED] = self.streamed
            header = pack(MARKED | len(part), self.number)
            self.number = self.number + 1 & MASK
            if len(part) <= LARGE:
                self.write(header + part)
            else:
                self.write(header)
                self.write(part)

    def write(self, data):
        data = memoryview(data)
        while data:
            data = data[write(self.wire_out, data) :]

    def usable(self):
        if not self.proven and self.bytes[PROVEN] == self.nonce:
            self.bytes[SEEN] = self.nonce
            self.proven = True
        return self.proven

    def put(self, data):
        """Writes a part into the ring, if there is room."""
        words, end = self.words, len(data) + 8
        size = end + 7 & ~7
        if CAPACITY - (self.written - words[TO_HOST + TAKEN] & MASK) < size:
            return False
        record = pack(MARKED | len(data), self.number) + data
        at = self.written % CAPACITY
        first = min(end, CAPACITY - at)
        at += PAGE
        self.bytes[at : at + first] = record[:first]
        if first < end:
            self.bytes[PAGE : PAGE + end - first] = record[first:]
        self.number = self.number + 1 & MASK
        self.written = self.written + size & MASK
        words[TO_HOST + WRITTEN] = self.written
        with self.fence:  # what follows looks after that can be seen
            pass
        state = words[TO_HOST + SLEEPS]
        if self.slept and not state & 1:
            self.urged = 2
        self.slept = bool(state & 1)
        if state & 1 and state != self.rung:
            self.rung = state
            self.write(pack(MARKED, BELL))
        return True

    # Reading

    def receive(self, size):
        """Waits for bytes, at most so many."""
        while True:
            if self.held:
                data = self.held
                if len(data) > size:
                    data, self.held = data[:size], data[size:]
                else:
                    self.held = b""
                return data
            if self.rest:
                data = read(self.wire_in, min(size, self.rest))
                if not data:
                    self.quit_now(0)
                self.rest -= len(data)
                return data
            if not self.ready():
                self.wait()

    def into(self, target):
        """receive, into memory; gives how many bytes."""
        if self.rest and not self.held:
            n = os.readv(self.wire_in, [target[: self.rest]])
            if n == 0:
                self.quit_now(0)
            self.rest -= n
            return n
        data = self.receive(len(target))
        target[: len(data)] = data
        return len(data)

    def ready(self):
        """Whether receive has something, apart from the rest of a part that is on its
        way. It does not look at the stream."""
        if self.held or self.rest:
            return True
        if not self.records:
            if self.words[TO_GUEST + WRITTEN] == self.taken and self.pos == len(self.stream):
                return False
            self.look()
        return self.record() or self.part()

    def look(self):
        """Takes what is in the ring."""
        end = self.words[TO_GUEST + WRITTEN]
        n = end - self.taken & MASK
        if not n:
            return
        at, base = self.taken % CAPACITY, PAGE + CAPACITY
        first = min(n, CAPACITY - at)
        self.records, self.at = bytes(self.bytes[base + at : base + at + first]), 0
        if first < n:
            self.records += bytes(self.bytes[base : base + n - first])
        self.taken = end
        if end - self.told & MASK > CAPACITY // 4:
            self.told = self.words[TO_GUEST + TAKEN] = end

    def record(self):
        """Takes the next parts out of the ring, if they are there."""
        records, at, parts = self.records, self.at, []
        while at < len(records):
            n, number = unpack(records, at)
            if number != self.next:
                break
            n ^= MARKED
            parts.append(records[at + 8 : at + 8 + n])
            at += n + 15 & ~7
            self.next = self.next + 1 & MASK
        if not parts:
            return False
        self.held = parts[0] if len(parts) == 1 else b"".join(parts)
        if at < len(records):
            self.at = at
        else:
            self.records, self.at = b"", 0
        return True

    def part(self):
        """Takes the next parts over the stream, if they are there, or one that has begun
        to arrive."""
        stream, at, parts = self.stream, self.pos, []
        while len(stream) - at >= 8 and not self.rest:
            n, number = unpack(stream, at)
            if number == BELL and n == MARKED:
                at += 8
                continue
            if number != self.next:
                break
            at += 8
            part = stream[at : at + (n ^ MARKED)]
            at += len(part)
            self.rest = (n ^ MARKED) - len(part)
            parts.append(part)
            self.next = self.next + 1 & MASK
            self.parts = self.parts + 1 & MASK
        self.pos = at
        self.held = parts[0] if len(parts) == 1 else b"".join(parts)
        return bool(parts)

    def arrived(self):
        """Whether something has arrived, also over the stream."""
        while not self.ready():
            if not self.incoming.poll(0):
                return False
            self.listen()
        return True

    def wait(self):
        """Waits until there may be something."""
        came = self.watch()
        if came or came is None and self.sleep():
            return
        self.listen()
        self.wake()
        if self.rehearsal is not None and not self.arrived():
            rehearsal, self.rehearsal = self.rehearsal, None
            rehearsal()

    def listen(self):
        """Reads what there is from the stream."""
        data = read(self.wire_in, PORTION)
        if not data:
            self.quit_now(0)
        self.stream, self.pos = self.stream[self.pos :] + data, 0

    def watch(self):
        """Waits awake for a little, if that has been worth it and no other thread could
        run: True if something came, False if something comes over the stream."""
        if self.records or not self.proven or (self.urged or not self.hope) and not self.worthwhile() or thread_count() > self.own_threads():
            return None
        words, taken, parts = self.words, self.taken, self.parts
        began = now = monotonic()
        while now - began < PATIENCE:
            for _ in range(64):
                if words[TO_GUEST + WRITTEN] != taken:
                    took = monotonic() - began
                    if took > SOON or self.hope < HOPES:
                        self.judge(took)
                    return True
            now = monotonic()
            if words[TO_GUEST + STREAMED] != parts:
                self.judge(now - began)
                return False
            yield_now()  # another process may want to run
        self.judge(PATIENCE)
        return None

    def worthwhile(self):
        """Whether to wait awake this time: see patience.go."""
        if self.urged:
            self.urged -= 1
            return True
        if self.hope:
            return True
        self.idle += 1
        if self.idle < self.interval:
            return False
        self.idle, self.urged = 0, 1
        return True

    def judge(self, took):
        if took <= SOON:
            self.hope, self.idle, self.interval = HOPES, 0, OFTEN
        elif self.hope:
            self.hope -= 1
        else:
            self.interval = min(2 * self.interval, SELDOM)

    def sleep(self):
        """Says that this side hears bells only. Gives True if something came before."""
        if self.records:
            return False
        self.sleeps |= 1
        self.words[TO_GUEST + SLEEPS] = self.sleeps
        with self.fence:
            pass
        if self.words[TO_GUEST + WRITTEN] == self.taken:
            return False
        self.wake()
        return True

    def wake(self):
        if self.sleeps & 1:
            self.sleeps = self.sleeps + 1 & MASK
            self.words[TO_GUEST + SLEEPS] = self.sleeps
