"""How log lines look: one line each, UTC, on stderr, and never a credential."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

from crsyncer.core.reports.text import redact

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(form: str, level: str, stream: TextIO = sys.stderr) -> None:
    """Send every record to `stream`, as `text` or `json`, from `level` on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(True)
    # Debug logs of libraries contain headers and bodies, which may hold secrets.
    for library in ("aiohttp", "asyncio", "kubernetes", "urllib3", "watchfiles"):
        logging.getLogger(library).setLevel(logging.WARNING)


class _Text(logging.Formatter):
    """`TIME LEVEL message key=value`; what does not fit one line is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {name}={_shown(value)}" for name, value in _extra(record).items())
        line = redact(f"{_time(record)} {record.levelname:<7} {_one_line(record.getMessage())}{extra}")
        return (
            f"{line} exception: {_one_line(redact(self.formatException(record.exc_info)))}" if record.exc_info else line
        )


class _Json(logging.Formatter):
    """One JSON object: time, level, logger, message, and whatever else the record carries."""

    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **{
                name: value if isinstance(value, int | float) else redact(str(value))
                for name, value in _extra(record).items()
            },
        }
        if record.exc_info:
            content["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(content)


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD and value is not None}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _shown(value: object) -> str:
    text = _one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if re.search(r'[\s"=]|^$', text) else text
