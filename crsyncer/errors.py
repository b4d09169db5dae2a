"""The error tree. Each error answers "did it happen?" and carries what the operator can do.

SyncError                 hint: what the operator can do
├── Conflict              it did not happen: look again at both sides, decide anew    409, 404, failed uid test
│   ├── NotServed         nothing is served at this path                              404 without a Status object
│   ├── Expired           a resourceVersion or continue token that is no longer there 410
│   └── NoStatus          a copy, or its subresource for the status, is not there     404, 405
├── Unsure                it may have happened: back off, look again, assume nothing  timeout, reset, 5xx
│   ├── Throttled         with retry_after, seconds                                   429, 503 with Retry-After
│   ├── NotTrusted        one of the certificates, so nothing was sent                TLS
│   └── TooLarge          an answer that is not read to its end                       more bytes than were allowed
├── Never                 it did not happen, and asking again will not help           400, 413, 422
│   └── StatusRejected    of a copy's status
├── NotAllowed            the credential                                              401, 403
│   └── NotGranted        a right that is tried by one write for all that need it     again, event loop time
├── NotReturned           no object of the robot's own takes a status now             F10.3; retry_after, seconds
├── NotLeading            it did not happen: this process leads no more, and ends     the fleet's Lease
├── ConfigError           a flag, variable, key or kubeconfig: what, where, what is allowed
├── StoreError            the disk: full, read-only, broken
└── Locked                another process owns the state directory
"""

import errno

DISK_ERRORS = frozenset((errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT))
"""With these a disk fails every operation, and may recover; other errors are about the one operation, such
as a directory that is missing (ENOENT, ENOTDIR) or another user's (EACCES), and waiting does not help.
"""


class SyncError(Exception):
    """Something went wrong that an operator may have to know about."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Conflict(SyncError):
    """It did not happen: the objects are not as the request assumes."""


class NotServed(Conflict):
    """It did not happen: the server serves nothing at this path."""


class Expired(Conflict):
    """It did not happen: the server no longer has that resourceVersion or continue token."""


class NameTaken(Conflict):
    """It did not happen: another object has the name of the copy."""


class NoStatus(Conflict):
    """It did not happen: there is no such copy, or none of its kind has the subresource for the status."""


class Unsure(SyncError):
    """It may have happened: the answer is missing or a 5xx."""


class Throttled(Unsure):
    """The server asks for a pause. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class NotTrusted(Unsure):
    """A certificate of the server or of ours is refused, which does not heal by itself."""


class TooLarge(Unsure):
    """The answer has more bytes than the request allowed; a list may be asked for in smaller pages."""


class Never(SyncError):
    """It did not happen, and the same request will not succeed later."""


class StatusRejected(Never):
    """A copy's status is rejected; its content may be accepted."""


class NotAllowed(SyncError):
    """The credential is not accepted (`status` 401) or lacks a right (403)."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class NotGranted(NotAllowed):
    """The credential lacks a right (403), which one write tries for all that need it: this one may be it at `again`.

    `again` is in event loop time.
    """

    def __init__(self, message: str, *, again: float) -> None:
        super().__init__(message, status=403)
        self.again = again


class NotReturned(SyncError):
    """It did not happen: nothing takes the statuses of shared objects now. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotLeading(SyncError):
    """It did not happen: another process may hold the Lease now, and this one has to end."""


class ConfigError(SyncError):
    """A setting that cannot be used; the message names it and what is allowed. Ends the command with exit 2."""


class StoreError(SyncError):
    """The state directory cannot be read or written."""


class Locked(SyncError):
    """Another process owns the state directory; `pid` is the holder's, 0 when it could not be read."""

    def __init__(self, message: str, *, pid: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.pid = pid


def first_error(error: BaseException) -> BaseException:
    """What ended works that ran together: of a group the first error; the group itself if one was not foreseen.

    One that nobody foresaw beside others is a defect, whose traceback is wanted.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [first_error(each) for each in error.exceptions]
    return found[0] if len(found) == 1 or all(isinstance(each, SyncError | OSError) for each in found) else error
