"""The end of the agent's process: in time, whatever hangs. For the store it is like a power cut, and loses nothing."""

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any, NoReturn

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LAST_SECONDS = 9.0
_OUT_OF_MEMORY = (
    b"crsyncer: out of memory; nothing is lost, the next start continues from here\n"
    b"hint: raise the limit (MemoryMax= of the unit, the pod's memory limit, ulimit -v)\n"
)


class Ending:
    """Ends the process at most `seconds` after SIGTERM, SIGINT or a failure, and at once where memory runs out.

    A thread does it that is there from the beginning and needs neither the event loop nor new memory. It waits for the
    signals, and all other threads block them: Python would run a handler in the main thread only, and no signal wakes
    that from a read of a dead file system.

    Where a task, a callback or a thread dies of a MemoryError, others may wait for ever for what it would have woken.
    So nobody is asked to clean up: the process ends as the kernel would end it at a limit of its own.

    Made once per process, in the main thread while its event loop runs.
    """

    def __init__(self, *, seconds: float = _LAST_SECONDS) -> None:
        self.asked = asyncio.Event()
        """Set at SIGTERM or SIGINT."""
        self._seconds = seconds
        self._code = 0
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="crsyncer-end", daemon=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._thread.start()
        for number in _SIGNALS:
            signal.signal(number, lambda *_: self._begin())  # for a signal that a thread from before took
        self._loop.set_task_factory(self._create_task)
        self._loop.set_exception_handler(self._handle_loop_error)
        threading.excepthook = self._handle_thread_error

    def failed(self) -> None:
        """The agent ends by itself, with exit code 1 at the latest."""
        self._code = 1
        self._begin()

    def _begin(self) -> None:
        signal.pthread_kill(self._thread.ident or 0, _SIGNALS[0])

    def _run(self) -> None:
        try:
            signal.sigwait(_SIGNALS)
            if not self._code:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self.asked.set)
            time.sleep(self._seconds)
        finally:  # also where there is no memory left for that
            os._exit(self._code)

    def _create_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **options)
        # By exception() asyncio would believe that somebody has taken care of it.
        task.add_done_callback(lambda done: self._judge(done._exception))
        return task

    def _handle_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._judge(context.get("exception"))
        loop.default_exception_handler(context)

    def _handle_thread_error(self, given: threading.ExceptHookArgs) -> None:
        self._judge(given.exc_value)
        threading.__excepthook__(given)

    def _judge(self, error: BaseException | None) -> None:
        if lacks_memory(error):
            self.failed()  # whoever reads the log may have stopped, and the line then never gets out
            end_out_of_memory()


def lacks_memory(error: BaseException | None) -> bool:
    """Whether a MemoryError is the root cause of the error."""
    while error is not None and not isinstance(error, MemoryError | BaseExceptionGroup):
        error = error.__cause__ or error.__context__
    if isinstance(error, BaseExceptionGroup):
        return any(map(lacks_memory, error.exceptions))
    return error is not None


def end_out_of_memory() -> NoReturn:
    """End the process here and now, with a line and a hint."""
    try:
        os.write(2, _OUT_OF_MEMORY)
    finally:
        os._exit(1)
