"""The Unix socket by which the CLI asks a running agent: one line of JSON each way.

It is in systemd's runtime directory of the agent where there is one, whose group may read, else in the state directory.
File modes decide who may connect; the kernel tells each end who the other is, and only the agent's own user, root and
a group of the settings may change something. Where the disk refuses to take the socket, it is in the abstract name
space (unix(7)), which has no owners.
"""

import contextlib
import grp
import json
import logging
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

from crsyncer.core.model import Json
from crsyncer.errors import DISK_ERRORS, ConfigError, SyncError, Unsure

_log = logging.getLogger(__name__)

NAME = "crsyncer.sock"
RUNTIME_DIR = Path("/run/crsyncer")
"""Where the package's unit has its agent put the socket."""
_STATE = "crsyncer.state"
"""The link beside a socket in a runtime directory: it leads to the state directory of the agent."""
LARGEST_REQUEST = 64 * 1024
LARGEST_ANSWER = 32 * 1024 * 1024
MOST_CLIENTS = 16
_LONGEST_ADDRESS = 107
"""Bytes that fit into sockaddr_un beside its final zero (unix(7))."""
_WHO = "run this as the agent's user, or as root"
_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid
_SO_PEERGROUPS = 59
"""Linux 4.13: the supplementary groups of the other end (socket(7) does not name it; asm-generic/socket.h)."""
_MOST_BYTES_OF_GROUPS = 1024
"""As much as Python's getsockopt() takes: 256 groups."""


@contextlib.asynccontextmanager
async def serve(
    state_dir: Path,
    handler: Callable[[Json], Awaitable[Json]],
    *,
    runtime_dir: Path | None = None,
    changes: Callable[[Json], bool] = lambda _: True,
    group: str = "",
    patience: float = 5.0,
) -> AsyncIterator[None]:
    """Answer requests on `crsyncer.sock` (mode 0660) in the runtime directory, else the state directory.

    Who can connect may make requests that are no `changes`; the others are for our own user, root and members of
    `group`. Where the disk refuses the socket, only these are answered at all, on a socket without a file.
    A SyncError of the handler becomes the client's error. A client has `patience` seconds to send its line; at most
    16 are served at a time, and more are turned away. The caller owns the state directory, so a socket that is
    already there is a dead agent's and is replaced. Raises ConfigError where the socket cannot be made.
    """
    import asyncio  # not at the top: the CLI imports this file for `ask`

    owner = os.geteuid()
    tasks: set[asyncio.Task[None]] = set()

    async def answer(line: bytes, *, may_change: bool) -> bytes:
        try:
            request = _request(line)
            if not may_change and changes(request):
                return _failure("you may look, but not change anything", _who_may_change(group))
            return _line(await handler(request))
        except SyncError as error:
            return _failure(str(error), error.hint)
        except Exception:
            # A question must not be able to end the agent.
            _log.exception("a question on the control socket could not be answered")
            return _failure("the agent failed to answer", "its log says why")

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that goes away or never asks is no trouble of ours.
        with contextlib.closing(writer), contextlib.suppress(OSError, EOFError, TimeoutError):
            may_change = _may_change(writer.get_extra_info("socket"), owner, group)
            if open_to_all and not may_change:
                writer.write(_failure("you may not use the agent's control socket", _WHO))
                return
            try:
                async with asyncio.timeout(patience):
                    line = await reader.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                reply = _failure(f"the request is longer than {LARGEST_REQUEST} bytes")
            else:
                reply = await answer(line, may_change=may_change)
            writer.write(reply)
            async with asyncio.timeout(patience):
                await writer.drain()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(tasks) >= MOST_CLIENTS:
            writer.write(_failure("the agent answers too many clients already", "ask again in a moment"))
            writer.close()
            return
        task = conversations.create_task(converse(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    with _bound((runtime_dir or state_dir) / NAME, state_dir) as listener:
        open_to_all = isinstance(listener.getsockname(), bytes)
        async with asyncio.TaskGroup() as conversations:
            server = await asyncio.start_unix_server(accept, sock=listener, limit=LARGEST_REQUEST)
            try:
                yield
            finally:
                server.close()
                for task in tasks:
                    task.cancel()


def ask(state_dir: Path, request: Json, *, timeout: float = 5.0) -> Json | None:
    """Put one request to the agent of a state directory; None when no agent is running there.

    Raises Unsure when it does not answer within `timeout` seconds, SyncError when it refuses or may not be asked.
    """
    closed = runtime_dir = None
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(timeout)
            try:
                runtime_dir = _runtime_dir(state_dir)
            except PermissionError as error:
                closed = Path(error.filename).parent
            _connect(client, state_dir, runtime_dir)
            # An agent that turns us away has said why before it closed.
            with contextlib.suppress(BrokenPipeError):
                client.sendall(_line(request))
            answer = _read_line(client)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        return None
    except PermissionError:
        if runtime_dir is not None:  # the state directory is closed to the group
            message = f"the agent does not answer in {runtime_dir}"
            raise Unsure(message, hint="it may be starting: ask again; systemctl status crsyncer shows it") from None
        who = f"{_WHO}; a member of the group of {closed} may look" if closed else f"{_WHO}, if an agent runs there"
        raise SyncError(f"you may not use the agent's control socket in {closed or state_dir}", hint=who) from None
    except (TimeoutError, BlockingIOError):
        raise Unsure(
            f"the agent did not answer within {timeout:g} s",
            hint="it is stuck or overloaded, and may still do what was asked: see its log; restart it if this lasts",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise Unsure(f"the agent closed the connection ({error})", hint="ask again; see its log") from None
    if failure := answer.get("error"):
        raise SyncError(str(failure.get("message")), hint=str(failure.get("hint") or ""))
    return answer


def _runtime_dir(state_dir: Path) -> Path | None:
    """The runtime directory of the agent of a state directory; None: not known here. Raises PermissionError."""
    home = os.path.realpath(state_dir)
    closed = None
    for folder in (Path(os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0] or RUNTIME_DIR), RUNTIME_DIR):
        try:
            if os.readlink(folder / _STATE) == home:
                return folder
        except PermissionError as error:
            closed = error
        except OSError:  # no agent runs there
            continue
    if closed is not None:
        raise closed
    return None


def _connect(client: socket.socket, state_dir: Path, runtime_dir: Path | None) -> None:
    """Connect to the agent of a state directory; raises OSError, of those ConnectionRefusedError where none runs."""
    if runtime_dir is not None:
        with contextlib.suppress(
            FileNotFoundError, ConnectionRefusedError
        ):  # the agent is being stopped, or was killed
            client.connect(str(runtime_dir / NAME))
            return
    try:
        with _address(state_dir / NAME) as address:
            client.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        client.connect(nameless(state_dir))
        # Anybody may have taken the name while no agent had it.
        if _peer(client) not in (0, os.geteuid(), state_dir.stat().st_uid):
            raise ConnectionRefusedError from None


def nameless(state_dir: Path) -> bytes:
    """The address without a file: the same from wherever the directory is looked at; raises OSError."""
    found = state_dir.stat()
    return b"\0crsyncer/%x-%x" % (found.st_dev, found.st_ino)


def _peer(connection: socket.socket) -> int:
    """The uid of the other end, be it client or server."""
    return _credentials(connection)[0]


def _credentials(connection: socket.socket) -> tuple[int, int]:
    """The uid and gid of the other end."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, gid = _CREDENTIALS.unpack(packed)
    return uid, gid


def _may_change(connection: socket.socket, owner: int, group: str) -> bool:
    """Whether the other end was our own user, root, or a member of the group when it connected."""
    uid, gid = _credentials(connection)
    if uid in (0, owner):
        return True
    if not group:
        return False
    try:
        wanted = grp.getgrnam(group).gr_gid
        packed = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_BYTES_OF_GROUPS)
    except KeyError:
        _log.warning("control.group is %s: this machine has no such group", group)
        return False
    except OSError:  # more groups than that
        packed = b""
    return wanted == gid or wanted in memoryview(packed).cast("I")


def _who_may_change(group: str) -> str:
    other = f" or of the group {group} (control.group)" if group else "; the setting control.group names who else may"
    return f"{_WHO}{other}"


def _read_line(client: socket.socket) -> Json:
    with client.makefile("rb") as stream:
        data = stream.readline(LARGEST_ANSWER + 1)
    if not data.endswith(b"\n"):
        raise ValueError("an endless answer" if len(data) > LARGEST_ANSWER else "an incomplete answer")
    answer = json.loads(data)
    if not isinstance(answer, dict):
        raise ValueError("an answer that is not a JSON object")  # noqa: TRY004 - it is about the content
    return answer


def _request(line: bytes) -> Json:
    """The JSON object of a request; raises SyncError where it is none, or one nested too deeply for a parser."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise SyncError("the request is not a JSON object")
    return request


def _line(content: Json) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _failure(message: str, hint: str = "") -> bytes:
    return _line({"error": {"message": message, "hint": hint}})


@contextlib.contextmanager
def _bound(path: Path, state_dir: Path) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_UNIX)
    try:
        with _address(path) as address:
            if path.is_socket():
                path.unlink()
            # The file gets the socket's own mode at birth, so there is no moment at which others may connect.
            os.fchmod(listener.fileno(), stat.S_IRUSR | stat.S_IWUSR)
            listener.bind(address)
            path.chmod(0o660)
        if path.parent != state_dir:
            _link(path.with_name(_STATE), os.path.realpath(state_dir))
    except OSError as error:
        listener.close()
        if error.errno in DISK_ERRORS:
            with socket.socket(socket.AF_UNIX) as listener:
                _bind_without_a_file(listener, state_dir / NAME)
                yield listener
            return
        place = "--state-dir" if path.parent == state_dir else "RUNTIME_DIRECTORY"
        raise ConfigError(
            f"{place}: the socket {path} cannot be made ({error.strerror}); allowed: a directory of the agent's own"
        ) from None
    inode = path.stat().st_ino
    try:
        yield listener
    finally:
        listener.close()
        # Only our own: a successor may have put its socket there.
        with contextlib.suppress(OSError):
            if path.stat().st_ino == inode:
                path.unlink()


def _link(path: Path, target: str) -> None:
    """Have a link lead there, whatever it led to before."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(path)


def _bind_without_a_file(listener: socket.socket, path: Path) -> None:
    try:
        listener.bind(nameless(path.parent))
    except OSError as error:
        # Another process that took the name keeps operators from asking, but not the robot from syncing.
        _log.error("crsyncer status cannot ask this agent: %s cannot be made, nor done without (%s)", path, error)
        listener.bind("")  # a name of the kernel's choice


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """What to bind or connect to. A path too long for a socket address is reached through its open directory."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
