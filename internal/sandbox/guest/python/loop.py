"""The event loop of programs: asyncio's own, which waits for the wire instead of
sockets; and asyncio made to take what programs give it."""

import asyncio
import os
import select
import sys
from _thread import get_ident
from asyncio import base_events, events, futures, tasks
from asyncio.tasks import Task
from contextvars import copy_context
from types import CoroutineType
from weakref import ref

calls = need("calls")
values = need("values")
LINGER = 1.0  # seconds
LEAST = 1000


class Deadlock(BaseException):
    """Nothing is left that could wake the program."""


class Call(asyncio.Future):
    """A call under way. A program awaits it like any future."""

    __slots__ = ("_caller", "_of", "_site", "_thread")

    def __init__(self, caller, head, body, server, tool):
        loop = current_loop()
        super().__init__(loop=loop)
        self._caller, self._of = caller, (server, tool)
        self._thread = get_ident()
        frame = sys._getframe(2)
        self._site = frame.f_code, frame.f_lasti
        caller.under_way += 1
        channel = caller.channel
        number = channel.number()
        channel.pending[number] = self._arrive
        channel.post(calls.CALL_KIND, number, head, body)
        if not channel.armed:
            channel.arm()

    def _arrive(self, head, body, counted=False):
        """Takes the answer, in the thread that made the call."""
        if not counted:
            self._caller.under_way -= 1
            if get_ident() != self._thread:
                self.get_loop().call_soon_threadsafe(self._arrive, head, body, True)
                return
        if self.done():
            return
        try:
            self.set_result(calls.value_of(head, body, *self._of))
        except Exception as error:
            error._site = self._site
            self.get_loop().started.append(ref(self))
            self.set_exception(error)


calls.CALL_KIND, calls.Call = 4, Call


class Soon(events.Handle):
    """A callback, without what is kept of it for debugging. call_soon makes it."""

    __slots__ = ()
    _repr = _source_traceback = None


new_handle = object.__new__


class Loop(base_events.BaseEventLoop):
    """An event loop that waits for answers of the host, timers and threads."""

    channel = None  # given by install
    get_debug = bool  # which is False, and asked for with every task and call

    def __init__(self):
        super().__init__()
        self._selector = self
        self.wake_out, self.wake_in = os.pipe()
        os.set_blocking(self.wake_in, False)
        os.set_blocking(self.wake_out, False)
        self.alone, self.leading = select.poll(), select.poll()
        for waiting in (self.alone, self.leading):
            waiting.register(self.wake_out, select.POLLIN)
        self.leading.register(self.channel.wire_in, select.POLLIN)
        self.started, self.most = [], LEAST  # weakly, tasks and calls whose end nobody may have seen; how many until those that are gone are left out
        self.fatal = None  # what a callback raised
        self.unseen = []  # what tasks raised that are gone

    def select(self, timeout):
        """Waits until something happens; what arrives is settled at once."""
        channel = self.channel
        channel.flush()
        if self.fatal is not None:
            fatal, self.fatal = self.fatal, None
            raise fatal
        if timeout is None and not channel.pending and channel.only_own_threads():
            raise Deadlock
        if not channel.pending:
            self.wait(self.alone, timeout)
        elif channel.lead():
            try:
                self.receive(channel, timeout)
            finally:
                channel.yield_lead()
        else:
            self.follow(channel, timeout)
        return ()

    def wait(self, poll, timeout):
        ready = poll.poll(None if timeout is None else max(0, timeout) * 1000)
        for fd, _ in ready:
            if fd == self.wake_out:
                try:
                    os.read(self.wake_out, 4096)
                except BlockingIOError:
                    pass
        return [fd for fd, _ in ready]

    def wait_leading(self, timeout):
        return self.wait(self.leading, timeout)

    def receive(self, channel, timeout):
        if not channel.has_frame():
            if not channel.await_with(self.wait_leading, timeout):
                return
            _, number, head, body = channel.read()
            channel.dispatch(number, head, body)
        channel.dispatch_arrived()

    def follow(self, channel, timeout):
        """Waits while another thread reads."""
        with channel.mutex:
            if not channel.leader:
                return  # it is free now: the next turn takes it
            channel.loops.append(self)
        try:
            self.wait(self.alone, timeout)
        finally:
            with channel.mutex:
                channel.loops.remove(self)

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        try:
            os.write(self.wake_in, b"\0")
        except (BlockingIOError, OSError):
            pass

    def close(self):
        """Keeps the loop: what a program began goes on until the program ends."""

    def set_debug(self, enabled):
        super().set_debug(enabled)
        self.get_debug = lambda: enabled

    def call_soon(self, callback, *args, context=None):
        """As asyncio's own, without what it does for debugging."""
        handle = new_handle(Soon)
        handle._callback, handle._args, handle._loop, handle._cancelled = callback, args, self, False
        handle._context = copy_context() if context is None else context
        self._ready.append(handle)
        return handle

    def create_task(self, coro, **options):
        if type(coro) is not CoroutineType and not asyncio.iscoroutine(coro):
            coro = completed(coro)
        task = super().create_task(coro, **options) if self._task_factory else Task(coro, loop=self, **options)
        self.started.append(ref(task))
        if len(self.started) > self.most:
            self.forget()
        return task

    def forget(self):
        """Leaves out those that are gone: they have told of what they raised."""
        self.started = [one for one in self.started if one() is not None]
        self.most = 2 * len(self.started) + LEAST

    def run_in_executor(self, executor, func, *args):
        started = calls.later(func)
        if started is not func:
            return started(*args)
        return super().run_in_executor(executor, func, *args)

    def run_until_complete(self, future):
        if not values.is_awaitable(future):
            return future
        if self.is_running():
            return self.nested(future)
        if not asyncio.isfuture(future):
            future = self.create_task(future)
        return super().run_until_complete(future)

    def nested(self, awaitable):
        """Runs something to its end inside of a task that cannot wait for it."""
        future = tasks.ensure_future(awaitable, loop=self)
        task = asyncio.current_task(self)
        if task is not None:
            tasks._leave_task(self, task)
        try:
            while not future.done():
                self._run_once()
        finally:
            if task is not None:
                tasks._enter_task(self, task)
            events._set_running_loop(self)
        return future.result()

    def call_exception_handler(self, context):
        error = context.get("exception")
        if error is None:
            return
        if "future" in context or "task" in context:
            self.unseen.append(error)
        elif self.fatal is None:
            self.fatal = error

    def default_exception_handler(self, context):
        self.call_exception_handler(context)

    def linger(self, caller):
        """Lets calls that nobody awaits come to their end, with what awaits them."""
        until = self.time() + LINGER
        events._set_running_loop(self)
        try:
            while (self._ready or caller.under_way > 0) and self.time() < until:
                late = self.call_later(until - self.time(), int)
                self._run_once()
                late.cancel()
        finally:
            events._set_running_loop(None)

    def unhandled(self):
        """What a task or call raised that nobody has looked at; None if nothing."""
        for one in self.started:
            task = one()
            if task is not None and task.done() and not task.cancelled() and getattr(task, "_log_traceback", False):
                return task.exception()
        return self.unseen[0] if self.unseen else None


async def completed(awaitable):
    """A coroutine of anything that a program gives to be run."""
    return await awaited(awaitable)


class Ready:
    """Makes a plain value awaitable."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __await__(self):
        return self.value
        yield


def awaited(value):
    return value if hasattr(type(value), "__await__") or values.is_awaitable(value) else Ready(value)


def iterated(value):
    """What async for goes over."""
    return value if hasattr(type(value), "__aiter__") else plainly(value)


async def plainly(items):
    for item in items:
        yield item


def current_loop():
    loop = Loop.main
    if loop is not None and loop._thread_id == get_ident():
        return loop  # it runs, and to ask asyncio takes a system call
    loop = events._get_running_loop()
    if loop is None:
        loop = main_loop() if get_ident() == Loop.main_thread else events.get_event_loop()
    return loop


def main_loop():
    """The loop of the main thread, made when it is needed."""
    if Loop.main is None:
        Loop.main = Loop()
        events.set_event_loop(Loop.main)
    return Loop.main


def future_of(value):
    """A future of anything: a plain value is there already."""
    if type(value) is CoroutineType:
        return current_loop().create_task(value)
    if asyncio.isfuture(value):
        return value
    loop = current_loop()
    if values.is_awaitable(value):
        return loop.create_task(value if asyncio.iscoroutine(value) else completed(value))
    future = loop.create_future()
    future.set_result(value)
    return future


def checked(item):
    if isinstance(item, (list, tuple)) and any(values.is_awaitable(i) for i in item):
        raise TypeError("gather takes what it waits for one by one: asyncio.gather(*calls)")
    return item


def install(channel):
    """Puts the loop into asyncio, and makes asyncio take plain values where it
    would wait for something."""
    Loop.channel, Loop.main, Loop.main_thread = channel, None, get_ident()
    events.new_event_loop = asyncio.new_event_loop = Loop
    real = {name: getattr(asyncio, name) for name in ("gather", "wait", "as_completed", "to_thread", "run_coroutine_threadsafe")}

    def gather(*items, **options):
        loop = current_loop() if CoroutineType in map(type, items) else None
        return real["gather"](*[loop.create_task(item) if type(item) is CoroutineType else future_of(checked(item)) for item in items], **options)

    def wait_for(item, timeout=None, **options):
        return real_wait_for(future_of(item), timeout, **options)

    def shield(item, **options):
        return real_shield(future_of(item))

    def create_task(coro, **options):
        options = {name: value for name, value in options.items() if value is not None}
        return current_loop().create_task(coro, **options)

    def ensure_future(item, *, loop=None):
        return future_of(item)

    async def wait(items, **options):
        done, pending = await real["wait"]([future_of(item) for item in items], **options)
        for future in done:
            if not future.cancelled():
                future.exception()  # it is the program's now
        return done, pending

    def as_completed(items, **options):
        return real["as_completed"]([future_of(item) for item in items], **options)

    def to_thread(function, /, *args, **kwargs):
        started = calls.later(function)
        return started(*args, **kwargs) if started is not function else real["to_thread"](function, *args, **kwargs)

    def run_coroutine_threadsafe(coro, loop):
        return real["run_coroutine_threadsafe"](coro if asyncio.iscoroutine(coro) else completed(coro), loop)

    def run(main, *, debug=None, loop_factory=None):
        if not values.is_awaitable(main):
            return main
        loop = events._get_running_loop() or (main_loop() if get_ident() == Loop.main_thread else Loop())
        return loop.run_until_complete(main)

    def get_event_loop():
        return current_loop()

    real_wait_for, real_shield = asyncio.wait_for, asyncio.shield
    own = dict(locals())
    names = ["gather", "wait_for", "shield", "create_task", "ensure_future", "wait", "as_completed", "to_thread", "run_coroutine_threadsafe", "run"]
    for name in names:
        setattr(asyncio, name, own[name])
    asyncio.get_event_loop = get_event_loop
    patch_groups(create_task)


def patch_groups(create_task):
    """TaskGroup takes calls as it takes coroutines."""
    group = getattr(asyncio, "TaskGroup", None)
    if group is None:
        return
    real = group.create_task

    def create(self, coro, **options):
        return real(self, coro if asyncio.iscoroutine(coro) else completed(coro), **options)

    group.create_task = create


install(need("channel").current)
