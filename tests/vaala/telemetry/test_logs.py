"""The log: JSON lines without secrets, which cost whoever logs next to nothing."""

from __future__ import annotations

import json
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vaala.models.secret import Secret
from vaala.telemetry.limits import LOG_RECORDS_WAITING_MAX
from vaala.telemetry.log_file import LogFile
from vaala.telemetry.logs import Logs, open_logs
from vaala.telemetry.redact import Redactor
from vaala.telemetry.settings import LogSettings

log = logging.getLogger("vaala.tests")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    with open_logs(tmp_path / "state" / "vaala.log") as opened:
        yield opened


def test_a_record_is_one_line_of_json(logs: Logs) -> None:
    log.warning("the index of %s\nis damaged", "c-1", extra={"conversation": "c-1", "entries": 3})
    assert logs.complete()
    (line,) = _lines(logs.path)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning", "logger": "vaala.tests", "process": os.getpid(),
        "message": "the index of c-1\nis damaged",
        "fields": {"conversation": "c-1", "entries": 3},
    }  # fmt: skip


def test_the_file_is_for_its_owner_alone_and_made_at_the_first_record(logs: Logs) -> None:  # H7-3
    assert not logs.path.parent.exists()
    before = os.umask(0)
    try:
        log.warning("here")
        assert logs.complete()
    finally:
        os.umask(before)
    assert logs.path.stat().st_mode & 0o777 == 0o600
    assert logs.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_traceback_is_part_of_the_line(logs: Logs) -> None:
    try:
        raise ValueError("no good")
    except ValueError:
        log.exception("it failed")
    assert logs.complete()
    (line,) = _lines(logs.path)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: no good\n")


def test_a_trace_is_named(tmp_path: Path) -> None:
    with open_logs(tmp_path / "vaala.log") as logs:
        logs.trace_id = lambda: "t-1"
        log.warning("one")
        log.warning("two", extra={"trace": "t-2"})
        assert logs.complete()
    assert [line["trace"] for line in _lines(tmp_path / "vaala.log")] == ["t-1", "t-2"]


def test_secrets_are_taken_out_of_messages_fields_and_tracebacks(tmp_path: Path) -> None:  # H7-4
    redactor = Redactor([Secret("known-key-1")])
    with open_logs(tmp_path / "vaala.log", redactor=redactor) as logs:
        redactor.know([Secret("known-key-2")])
        log.warning("%s", "known-key-1", extra={"url": "http://h/?token=known-key-3"})
        try:
            raise ValueError("known-key-2")
        except ValueError:
            log.exception("Authorization: Bearer known-key-4")
        assert logs.complete()
    assert "known-key" not in (tmp_path / "vaala.log").read_text()
    assert [line["message"] for line in _lines(tmp_path / "vaala.log")] == [
        "***", "Authorization: ***",
    ]  # fmt: skip


def test_the_level_is_for_our_own_records_and_can_change(tmp_path: Path) -> None:
    other = logging.getLogger("httpx")
    with open_logs(tmp_path / "vaala.log") as logs:
        log.info("a")
        logs.configure(LogSettings(level="debug"))
        log.debug("b")
        other.info("c")
        other.warning("d")
        logs.configure(LogSettings(level="error"))
        log.warning("e")
        assert logs.complete()
    assert [line["message"] for line in _lines(tmp_path / "vaala.log")] == ["b", "d"]
    assert logging.getLogger("vaala").level == logging.NOTSET


def test_what_cannot_be_shown_loses_itself_alone(logs: Logs) -> None:
    logs.handle(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
    fields = {"thing": object(), "gone": float("nan")}
    logs.handle(logging.makeLogRecord({"msg": "\udcff is no character", **fields}))
    assert not logs.complete()
    assert logs.lost == 1
    (line,) = _lines(logs.path)
    assert line["message"] == "? is no character"
    assert line["fields"]["gone"] is None


def test_long_texts_are_cut(logs: Logs) -> None:
    log.warning("x" * 10**6, extra={"field": "y" * 10**6})
    assert logs.complete()
    assert logs.path.stat().st_size < 40_000


def test_files_are_rotated_by_size_and_number(tmp_path: Path) -> None:
    path = tmp_path / "vaala.log"
    file = LogFile(path, bytes_max=100, files_max=3)
    for number in range(10):
        file.write(f"{number:039}\n".encode())
    file.close()
    found = {
        one.name: [int(line) for line in one.read_text().split()] for one in tmp_path.iterdir()
    }
    assert found == {"vaala.log": [8, 9], "vaala.log.1": [6, 7], "vaala.log.2": [4, 5]}


def test_one_file_is_begun_anew(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "vaala.log", bytes_max=10, files_max=1)
    for number in range(3):
        file.write(f"{number:07}\n".encode())
    file.close()
    assert [one.read_text() for one in tmp_path.iterdir()] == ["0000002\n"]


def test_two_processes_write_to_one_file(tmp_path: Path) -> None:
    """Two open files stand for two processes: the lock and the look at the path are of files."""
    path = tmp_path / "vaala.log"
    one, two = (LogFile(path, bytes_max=1_000, files_max=100) for _ in range(2))
    for number in range(200):
        (one if number % 2 else two).write(f"{number:039}\n".encode())
    one.close()
    two.close()
    files = list(tmp_path.iterdir())
    assert sorted(int(line) for file in files for line in file.read_text().split()) == [*range(200)]
    assert max(file.stat().st_size for file in files) <= 1_000


def test_a_file_that_is_taken_away_is_made_again(logs: Logs) -> None:
    log.warning("one")
    assert logs.complete()
    logs.path.unlink()
    logs.path.parent.rmdir()
    log.warning("two")
    assert logs.complete()
    assert [line["message"] for line in _lines(logs.path)] == ["two"]


def test_a_full_disk_costs_records_and_nothing_else() -> None:
    with open_logs(Path("/dev/full")) as logs:
        log.warning("one")
        log.warning("two")
        assert not logs.complete()
        assert logs.lost == 2


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with open_logs(tmp_path / "state" / "vaala.log") as logs:
        log.warning("one")
        assert not logs.complete()
    assert logs.lost == 1


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    class Half(LogFile):
        def write(self, lines: bytes) -> None:
            super().write(lines)
            self._torn = lines.startswith(b"half")

    file = Half(tmp_path / "vaala.log", bytes_max=1_000, files_max=2)
    file.write(b"half")
    file.write(b"whole\n")
    file.close()
    assert (tmp_path / "vaala.log").read_bytes() == b"half\nwhole\n"


def test_a_disk_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    """A pipe without a reader hangs the thread as a dead disk would."""
    pipe = tmp_path / "vaala.log"
    os.mkfifo(pipe)
    more = 100
    with open_logs(pipe) as logs:
        for number in range(LOG_RECORDS_WAITING_MAX + more + 300):
            log.warning("record %d", number)
        assert not logs.complete(0.01)
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.append(_read_until(pipe, "dropped")))
        reader.start()
        reader.join(30)
        logs.complete()
    assert "records were dropped before this one" in read[0]
    assert logs.lost >= more


def _read_until(pipe: Path, word: str) -> str:
    seen = ""
    with pipe.open() as opened:
        for line in opened:
            seen += line
            if word in line:
                return seen
    return seen


def test_a_child_of_a_fork_writes_with_a_thread_of_its_own(logs: Logs) -> None:
    log.warning("parent")
    assert logs.complete()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that other threads do not come along
        child = os.fork()
    if child == 0:
        log.warning("child")
        os._exit(0 if logs.complete() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    processes = {line["message"]: line["process"] for line in _lines(logs.path)}
    assert processes == {"parent": os.getpid(), "child": child}


def test_logs_that_close_in_any_order_leave_no_level_behind(tmp_path: Path) -> None:
    first, second = open_logs(tmp_path / "a.log"), open_logs(tmp_path / "b.log")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert logging.getLogger("vaala").level == logging.NOTSET
