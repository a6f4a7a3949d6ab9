"""The wire: frames, and who reads them.

A thread that waits for an answer reads the wire itself, so that a call costs no
switch of threads. One thread at a time reads: the leader. It hands what is for
others to them, and the lead when it has got its own.
"""

import os
import select
import struct
import time
from _thread import _count as thread_count, RLock, allocate_lock, get_ident, start_new_thread, stack_size
from itertools import count

START, OUTPUT, CALL, RESULT, DONE, PARSE, PARSED, COMPILED = 2, 3, 4, 5, 6, 7, 8, 11

HEADER = struct.Struct(">IBII")  # length of what follows, kind, id, length of head
HIGH_WATER = 256 << 10  # bytes that are queued at most
SMALL, LARGE = 16 << 10, 256 << 10
PART = 64 << 10  # bytes of output in one frame
TICK = 0.005  # seconds that anything lies in the queue at most
OWN_STACK = 256 << 10

current = None  # the channel of this process

pack, unpack = HEADER.pack, HEADER.unpack_from
poll, read, write, sleep, quit_now, monotonic = select.poll, os.read, os.write, time.sleep, os._exit, time.monotonic


class Follower:
    """A thread that waits for the answer with an id."""

    __slots__ = ("lock", "frame")

    def __init__(self):
        self.lock = allocate_lock()
        self.lock.acquire()
        self.frame = None


class Channel:
    def __init__(self, wire_in, wire_out, ring=None):
        self.wire_in, self.wire_out = wire_in, wire_out
        self.ring = None
        if ring is not None:
            self.ring = need("ring").Ring(wire_in, wire_out, ring, quit_now, lambda: self.own_threads)
        self.own_threads, self.begun = 0, []
        # Reading.
        self.buffer, self.at = b"", 0
        self.portion = SMALL  # bytes that are read at once
        self.mutex = RLock()  # a finalizer may need it in the same thread
        self.leader = 0
        self.followers = {}
        self.pending = {}  # id → what takes the result of a call that no thread waits for
        self.early = {}  # id → answers that came to a finalizer's call
        self.loops = []  # event loops that wait for the lead
        self.number = count(1).__next__  # gives a new id
        # Writing.
        self.queue, self.queued = [], 0
        self.text, self.text_size = [], 0
        self.sent = 0.0  # when anything last left
        self.out_lock = RLock()
        self.armed = False
        self.ticker = None

    # Writing

    def post(self, kind, number, head, body):
        """Queues a frame."""
        with self.out_lock:
            if self.text:
                self.seal()
            size = len(head) + len(body)
            self.queue += (pack(9 + size, kind, number, len(head)), head, body)
            self.queued += size + 13
            if self.queued > HIGH_WATER:
                self.flush()

    def seal(self):
        """Makes frames of the text so far."""
        text = b"".join(self.text)
        self.text.clear()
        self.text_size = 0
        for i in range(0, len(text), PART):
            part = text[i : i + PART]
            self.queue.append(pack(9 + len(part), OUTPUT, 0, 0))
            self.queue.append(part)
            self.queued += len(part) + 13

    def flush(self):
        with self.out_lock:
            if self.text:
                self.seal()
            if self.queued:
                data = b"".join(self.queue)
                self.queue.clear()
                self.queued = 0
                self.deliver(data)

    def transmit(self, kind, number, head, body):
        """Sends a frame at once, behind what is queued."""
        with self.out_lock:
            if self.text or self.queue:
                self.post(kind, number, head, body)
                self.flush()
            else:
                self.deliver(pack(9 + len(head) + len(body), kind, number, len(head)) + head + body)

    def deliver(self, data):
        self.sent = monotonic()
        try:
            self.send(data)
        except OSError:  # nobody is there
            quit_now(0)

    def send(self, data):
        if self.ring is not None:
            self.ring.send(data)
            return
        data = memoryview(data)
        while data:
            data = data[write(self.wire_out, data) :]

    def print(self, data):
        """Queues output, as bytes. A line goes out at once if nothing was sent for
        a tick: what the program does next may not let any other thread run."""
        with self.out_lock:
            self.text.append(bytes(data))
            self.text_size += len(data)
            if self.text_size > HIGH_WATER or data[-1:] == b"\n" and monotonic() - self.sent > TICK:
                self.flush()
                return
        if not self.armed:
            self.arm()

    def arm(self):
        """Has the queue flushed after a tick, whatever the program does."""
        self.armed = True
        if self.ticker is None:
            self.ticker = allocate_lock()
            self.ticker.acquire()
            self.start_thread(self.tick)
        try:
            self.ticker.release()
        except RuntimeError:  # two threads at once
            pass

    def tick(self):
        while True:
            self.ticker.acquire()
            sleep(TICK)
            self.armed = False
            self.flush()

    def start_thread(self, function):
        self.own_threads += 1
        before = stack_size(OWN_STACK)
        try:
            start_new_thread(self.begin, (function,))
        finally:
            stack_size(before)

    def begin(self, function):
        self.begun.append(function)
        function()

    def only_own_threads(self):
        """Whether the program has no threads but the main one. A thread is counted
        when it begins to run, so those of the channel are waited for."""
        while len(self.begun) < self.own_threads:
            sleep(0.0002)
        return thread_count() <= self.own_threads

    def watch(self):
        """Ends the process when the other side is gone, whatever it does then."""
        ended = poll()
        ended.register(self.wire_in, getattr(select, "POLLRDHUP", 0))
        while not ended.poll():
            pass
        quit_now(0)

    # Reading

    def readable(self):
        """Whether something has arrived."""
        if len(self.buffer) > self.at:
            return True
        if self.ring is not None:
            return self.ring.arrived()
        waiting = poll()
        waiting.register(self.wire_in, select.POLLIN)
        return bool(waiting.poll(0))

    def await_with(self, wait, timeout):
        """Waits for a frame, and for what else wait waits for, so many seconds at most:
        whether one has begun to arrive. wait gives the descriptors that are ready."""
        ring = self.ring
        if ring is None:
            return self.wire_in in wait(timeout)
        if ring.arrived():
            return True
        if timeout is None or timeout > ring.patience:
            if ring.watch() or ring.sleep():
                return ring.ready()
        heard = self.wire_in in wait(timeout)
        ring.wake()
        return heard and ring.arrived()

    def read(self):
        """Waits for a frame: its kind, id, head and body."""
        while len(self.buffer) - self.at < 13:
            self.fill()
        length, kind, number, head_length = unpack(self.buffer, self.at)
        start, end = self.at + 13, self.at + 4 + length
        if end > len(self.buffer):
            buffer, start, end = self.complete(4 + length), 13, 4 + length
        else:
            buffer = self.buffer
            self.at = end
        middle = start + head_length
        return kind, number, buffer[start:middle], buffer[middle:end]

    def fill(self):
        data = self.receive(self.portion)
        # A large buffer is memory that comes from the system and goes back with
        # each read, so it is for those who send much.
        self.portion = LARGE if len(data) == self.portion else SMALL
        self.buffer, self.at = self.buffer[self.at :] + data if len(self.buffer) > self.at else data, 0

    def receive(self, size):
        if self.ring is not None:
            return self.ring.receive(size)
        data = read(self.wire_in, size)
        if not data:
            quit_now(0)
        return data

    def receive_into(self, target):
        if self.ring is not None:
            return self.ring.into(target)
        n = os.readv(self.wire_in, [target])
        if n == 0:
            quit_now(0)
        return n

    def complete(self, size):
        """Reads a frame of which the buffer has only the beginning."""
        have = len(self.buffer) - self.at
        frame = memoryview(bytearray(size))
        frame[:have] = self.buffer[self.at :]
        self.buffer, self.at = b"", 0
        while have < size:
            have += self.receive_into(frame[have:])
        return frame

    def dispatch_arrived(self):
        """Hands out the frames that are whole in the buffer. Who gets one may read more."""
        while len(self.buffer) - self.at >= 13:
            buffer, at = self.buffer, self.at
            length, _, number, head_length = unpack(buffer, at)
            end = at + 4 + length
            if end > len(buffer):
                return
            self.at = end
            middle = at + 13 + head_length
            take = self.pending.pop(number, None)
            if take is not None:
                take(buffer[at + 13 : middle], buffer[middle:end])
            else:
                self.hand_over(number, buffer[at + 13 : middle], buffer[middle:end])

    def has_frame(self):
        """Whether a whole frame is in the buffer."""
        have = len(self.buffer) - self.at
        return have >= 13 and have >= 4 + unpack(self.buffer, self.at)[0]

    def call(self, head, body):
        """Makes a call and waits for its answer: head and body."""
        me = get_ident()
        with self.mutex:
            number = self.number()
            again = self.leader == me
            if not self.leader:
                self.leader = me
            leads = self.leader == me
            if not leads:
                follower = self.followers[number] = Follower()
        try:
            self.transmit(CALL, number, head, body)
            if not leads:
                follower.lock.acquire()
                if follower.frame is not None:
                    return follower.frame
                leads, self.leader = True, me  # it has been handed over
            while number not in self.early:
                _, got, answer_head, answer_body = self.read()
                if got == number:
                    return answer_head, answer_body
                self.dispatch(got, answer_head, answer_body)
            return self.early.pop(number)
        finally:
            if leads and not again:
                self.yield_lead(number)

    def lead(self):
        """Takes the lead if nobody has it."""
        with self.mutex:
            if self.leader:
                return False
            self.leader = get_ident()
            return True

    def yield_lead(self, number=0):
        with self.mutex:
            self.leader = 0
            self.followers.pop(number, None)
            for number, follower in self.followers.items():
                if follower.frame is None:
                    del self.followers[number]
                    self.leader = -1  # until it runs
                    follower.lock.release()
                    return
            for loop in self.loops:
                loop._write_to_self()

    def dispatch(self, number, head, body):
        take = self.pending.pop(number, None)
        if take is not None:
            take(head, body)
        else:
            self.hand_over(number, head, body)

    def hand_over(self, number, head, body):
        """Gives an answer to the thread that waits for it."""
        with self.mutex:
            follower = self.followers.pop(number, None)
            if follower is None:
                self.early[number] = head, body
                return
            follower.frame = head, body
            follower.lock.release()
