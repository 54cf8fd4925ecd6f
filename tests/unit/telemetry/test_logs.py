"""Lines of the log: their form, and the id that joins those of one call."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import re
import threading
import time
from contextlib import redirect_stderr

import pytest

from dra_driver.telemetry import logs

FORM = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (?P<level>[A-Z]+) (?P<where>[\w.]+) "
    r"\[(?P<call>[^ \]]+)\] (?P<message>.*)"
)


class StandardError(io.StringIO):
    """What a program prints after `configure`."""

    def configure(self, level: str) -> None:
        with redirect_stderr(self):
            logs.configure(level)

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


@pytest.fixture
def printed() -> StandardError:
    stream = StandardError()
    stream.configure("info")
    return stream


def formatted(message: str, *args: object, name: str = "dra_driver.node.preparer") -> str:
    record = logging.LogRecord(name, logging.INFO, __file__, 1, message, args, None)
    record.created, record.msecs = 1767268800.123, 123.0
    return logs.LineFormatter().format(record)


def test_a_line() -> None:
    assert formatted("claim %s prepared", "default/one") == (
        "2026-01-01T12:00:00.123Z INFO node.preparer [-] claim default/one prepared"
    )


def test_time_is_utc_wherever_the_node_is(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("TZ", "Asia/Shanghai")
            time.tzset()
            assert formatted("x").startswith("2026-01-01T12:00:00.123Z ")
    finally:
        time.tzset()


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("dra_driver.agent.cards.card_cache", "agent.cards.card_cache"),
        ("controller.reconcile.worker", "controller.reconcile.worker"),
    ],
)
def test_where(name: str, where: str) -> None:
    assert f" INFO {where} [" in formatted("x", name=name)


@pytest.mark.parametrize(
    "message", ["one\ntwo", "one\r\ntwo", "one\u2028two", "one\x85two", "one\n\ntwo\n"]
)
def test_what_is_logged_cannot_look_like_another_record(message: str) -> None:
    first, *others = formatted(message).splitlines()
    assert first.endswith(" one")
    assert others
    assert others[-1] == "    two"
    assert all(line.startswith("    ") for line in others)


@pytest.mark.parametrize(
    ("text", "logged"),
    [("\x1b[2Jgone", "\\x1b[2Jgone"), ("a\0b", "a\\x00b"), ("\ud800", "\\xd800"), ("a\tb", "a\tb")],
    ids=["a terminal's", "a zero", "half a character", "a tab"],
)
def test_what_a_terminal_would_act_upon_is_a_number(text: str, logged: str) -> None:
    assert formatted(text).endswith(f" {logged}")


def test_a_trace_belongs_to_its_record(printed: StandardError) -> None:
    try:
        raise ValueError("bad\n2026-01-01T12:00:00.123Z INFO forged [-] line")
    except ValueError:
        logging.getLogger("dra_driver.agent").exception("it failed")
    first, *trace = printed.lines()
    match = FORM.fullmatch(first)
    assert match is not None
    assert (match["level"], match["where"], match["message"]) == ("ERROR", "agent", "it failed")
    assert trace[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in trace)


def test_lines_below_the_level_are_left_out(printed: StandardError) -> None:
    logger = logging.getLogger("dra_driver.agent")
    logger.debug("a")
    logger.info("b")
    printed.configure("warning")
    logger.info("c")
    logger.warning("d")
    assert [line[-1] for line in printed.lines()] == ["b", "d"]


def test_configuring_twice_prints_once(printed: StandardError) -> None:
    printed.configure("debug")
    logging.getLogger("dra_driver.agent").debug("once")
    logging.getLogger("urllib3.connectionpool").info("every connection")
    assert len(printed.lines()) == 1


def test_a_call_has_an_id_of_its_own_in_all_its_lines(printed: StandardError) -> None:
    logger = logging.getLogger("dra_driver.agent")
    for _ in range(2):
        with logs.new_call("prepare") as call:
            assert re.fullmatch(r"prepare-[0-9a-f]+-\d+", call)
            logger.info("one")
            logging.getLogger("controller").info("two")
    logger.info("after")
    calls = [match["call"] for match in map(FORM.fullmatch, printed.lines()) if match]
    assert calls[0] == calls[1] != calls[2] == calls[3]
    assert calls[4] == "-"


def test_an_id_ends_with_its_call_even_after_an_error() -> None:
    def fails() -> None:
        with logs.new_call("outer") as outer:
            with pytest.raises(KeyError), logs.new_call("inner"):
                raise KeyError
            assert logs.call_id.get() == outer
            raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert logs.call_id.get() == "-"


def test_a_thread_that_works_for_a_call_can_keep_its_id() -> None:
    seen: list[str] = []

    def note() -> None:
        seen.append(logs.call_id.get())

    with logs.new_call("prepare") as call:
        copy = contextvars.copy_context()
        for target, arguments in ((note, ()), (copy.run, (note,))):
            thread = threading.Thread(target=target, args=arguments)
            thread.start()
            thread.join(timeout=60)
    assert seen == ["-", call]


def test_json_has_the_keys_of_kubernetes_and_is_one_line() -> None:
    stream = io.StringIO()
    with redirect_stderr(stream):
        logs.configure("debug", "json")
    logger = logging.getLogger("dra_driver.node.preparer")
    with logs.new_call("prepare") as call:
        logger.debug("claim %s\nprepared", "default/one")
    try:
        raise ValueError("bad")
    except ValueError:
        logger.exception("it failed")
    debug, error = map(json.loads, stream.getvalue().splitlines())
    assert debug.keys() == {"ts", "level", "caller", "logger", "msg", "call", "v"}
    assert debug["ts"] == pytest.approx(time.time() * 1000, abs=60_000)
    assert (debug["v"], debug["logger"], debug["call"]) == (4, "node.preparer", call)
    assert debug["msg"] == "claim default/one\nprepared"
    assert debug["caller"].startswith("test_logs.py:")
    assert error.keys() == {"ts", "level", "caller", "logger", "msg", "call", "err"}
    assert error["err"].endswith("ValueError: bad")
