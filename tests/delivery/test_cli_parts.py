"""What commands are made of: how errors are said, how log lines look, and waiting for an agent that is starting."""

import json
import logging
from io import StringIO

import click
import pytest

from crsyncer.adapters.store.statedir import Lock
from crsyncer.cli import logs
from crsyncer.cli.shared import report_error
from crsyncer.cli.status import read_status
from crsyncer.core.reports.text import redact
from crsyncer.errors import ConfigError, Locked, Never, Unsure, first_error
from crsyncer.sandbox.binaries import Binaries


def test_a_kubectl_of_the_path_is_not_built_anew(tmp_path, monkeypatch):
    installed = tmp_path / "kubectl"
    installed.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    programs = Binaries(tmp_path / "k8s/kube-apiserver", tmp_path / "k8s/etcd", None)
    assert programs.kubectl(progress=pytest.fail) == installed
    ours = tmp_path / "k8s/kubectl"
    ours.parent.mkdir()
    ours.touch()
    assert programs.kubectl() == ours


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("a\nb"), 2, "crsyncer: a b\n"),
        (ConfigError("a", hint="b"), 2, "crsyncer: a (b)\n"),
        (Never("a"), 1, "crsyncer: a\n"),
        (Unsure("a\x1b[2J", hint="b\nc"), 1, "crsyncer: a [2J\nhint: b c\n"),
        (Locked("in use", pid=7, hint="stop it"), 1, "crsyncer: in use\nhint: stop it\n"),
        (click.UsageError("No such thing."), 2, "crsyncer: No such thing (see crsyncer --help)\n"),
        (click.ClickException("broken"), 1, "crsyncer: broken\n"),
    ],
)
def test_errors_are_said_in_short_lines(capsys, error, code, said):
    assert report_error(error) == code
    assert capsys.readouterr().err == said


def test_an_error_that_nobody_foresaw_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        report_error(ZeroDivisionError())


def test_of_errors_that_ended_tasks_together_a_known_one_is_told():
    known, other = Never("a"), ZeroDivisionError()
    group = BaseExceptionGroup("g", [BaseExceptionGroup("h", [known])])
    assert first_error(group) is first_error(known) is known
    assert first_error(BaseExceptionGroup("g", [known, OSError()])) is known
    mixed = BaseExceptionGroup("g", [known, other])
    assert first_error(mixed) is mixed
    assert first_error(BaseExceptionGroup("g", [BaseExceptionGroup("h", [other])])) is other


def test_an_agent_that_holds_the_state_but_does_not_answer_is_said_to(tmp_path, monkeypatch):
    monkeypatch.setattr("crsyncer.cli.shared._START_TIMEOUT_SECONDS", 0.3)
    (tmp_path / "state.db").touch()
    lock = Lock(tmp_path)
    lock.acquire()
    try:
        with pytest.raises(Unsure, match=r"\(pid \d+\) is running, but does not answer"):
            read_status(tmp_path)
    finally:
        lock.release()


@pytest.fixture
def written():
    """The logging of a running agent, into a text; put back afterwards."""
    root, stream = logging.getLogger(), StringIO()
    before = root.handlers[:], root.level

    def write(form, level="info"):
        logs.set_up(form, level, stream)
        return stream

    yield write
    logging.captureWarnings(False)
    root.handlers[:], level = before
    root.setLevel(level)


def test_text_lines_are_one_line_with_their_values(written):
    stream = written("text")
    logging.getLogger("x").info("a write was\nrefused", extra={"side": "cloud", "key": "a b", "no": None})
    time_, _, rest = stream.getvalue().partition(" ")
    assert time_.endswith("Z")
    assert len(time_) == len("2026-11-21T08:00:00.000Z")
    assert rest == 'INFO    a write was\\nrefused side=cloud key="a b"\n'


def test_json_lines_are_objects(written):
    stream = written("json")
    try:
        raise Never("no")
    except Never:
        logging.getLogger("x").exception("failed", extra={"tries": 3, "key": "a"})
    content = json.loads(stream.getvalue())
    assert content.pop("time").endswith("Z")
    assert "Never: no" in content.pop("exception")
    assert content == {"level": "error", "logger": "x", "message": "failed", "tries": 3, "key": "a"}


def test_a_traceback_stays_on_its_text_line_whatever_is_in_it(written):
    stream = written("text")
    try:
        raise Never("token: abcdef\n2026-11-21T08:00:00.000Z INFO all is well\x1b[2J")
    except Never:
        logging.getLogger("x").exception("failed")
    assert "Traceback" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue()[:-1].isprintable()
    assert "abcdef" not in stream.getvalue()


def test_the_level_is_obeyed_and_libraries_are_kept_from_showing_bodies(written):
    stream = written("text", "debug")
    logging.getLogger("crsyncer.x").debug("ours")
    logging.getLogger("kubernetes.client.rest").debug("a body")
    assert "ours" in stream.getvalue()
    assert "a body" not in stream.getvalue()


SECRET = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"got {SECRET} here", "got [redacted] here"),
        (f"Authorization: Bearer {SECRET}", "Authorization: Bearer [redacted]"),
        ("authorization: bearer opaque-1234", "authorization: bearer [redacted]"),
        ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
        ('{"access_token": "abc123"}', '{"access_token": "[redacted]"}'),
        ("?token=abc&x=1", "?token=[redacted]&x=1"),
        ("the token file has changed", "the token file has changed"),
        ("goal a: key eyJ", "goal a: key eyJ"),
    ],
    ids=["a JWT", "a bearer's JWT", "a bearer's opaque token", "basic", "JSON", "a query", "a word", "no JWT"],
)
def test_what_looks_like_a_credential_is_not_written(text, redacted):
    assert redact(text) == redacted
