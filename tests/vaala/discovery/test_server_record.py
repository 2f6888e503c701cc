"""The discovery file: written for its owner alone, removed by its owner, never believed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace
from ruamel.yaml import YAML

from vaala.discovery import (
    NoRecord,
    ServerRecord,
    place_of,
    read_record,
    remove_record,
    write_record,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def path(data: Path) -> Path:
    return data / "runtime-server.yaml"


@pytest.fixture
def record(data: Path) -> ServerRecord:
    return ServerRecord(
        token="t0ken", pid=12, instance="one", version="1", data_directory=str(data),
        started_at=5, host="127.0.0.1", port=8790,
    )  # fmt: skip


def _reason(found: ServerRecord | NoRecord) -> str:
    assert isinstance(found, NoRecord)
    return found.reason


def test_a_record_is_found_again(path: Path, data: Path, record: ServerRecord) -> None:
    write_record(path, record)
    assert read_record(path, data) == record
    assert YAML(typ="safe").load(path.read_text()) == json.loads(path.read_text())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_it_is_for_its_owner_alone_whatever_the_umask(
    path: Path, data: Path, record: ServerRecord, umask: int
) -> None:
    data.mkdir()
    before = os.umask(umask)
    try:
        write_record(path, record)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(data.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_record(
    path: Path, data: Path, record: ServerRecord
) -> None:
    write_record(path, record)
    (data / ".runtime-server.yaml.two").mkdir()
    with pytest.raises(FileExistsError):
        write_record(path, replace(record, instance="two"))
    assert read_record(path, data) == record


def test_only_its_own_run_removes_it(path: Path, data: Path, record: ServerRecord) -> None:
    write_record(path, replace(record, instance="two"))
    assert not remove_record(path, "one")
    assert path.exists()
    assert remove_record(path, "two")
    assert not path.exists()
    assert not remove_record(path, "two")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_may_use_is_refused(
    path: Path, data: Path, record: ServerRecord, mode: int
) -> None:
    write_record(path, record)
    path.chmod(mode)
    found = read_record(path, data)
    assert f"mode {mode:o}" in _reason(found)
    assert isinstance(found, NoRecord)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(path: Path, data: Path, record: ServerRecord) -> None:
    write_record(path, record)
    os.chown(path, 12345, -1)
    found = read_record(path, data)
    assert "belongs to user 12345" in _reason(found)
    assert isinstance(found, NoRecord)


def test_what_is_no_file_is_refused_without_waiting(path: Path, data: Path) -> None:
    data.mkdir()
    os.mkfifo(path, 0o600)
    assert "it is no file" in _reason(read_record(path, data))
    path.unlink()
    path.mkdir(0o700)
    assert "it is no file" in _reason(read_record(path, data))
    path.rmdir()
    path.symlink_to(data / "elsewhere")
    assert "could not read" in _reason(read_record(path, data))


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 300, b"{", b"[]", b'{"token": 1}', b"\xff\xfe", b"[" * 60_000]
)
def test_garbage_is_no_record(path: Path, data: Path, content: bytes) -> None:
    data.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    assert "is no record of a server" in _reason(read_record(path, data))


def test_a_huge_file_is_not_read(path: Path, data: Path) -> None:
    data.mkdir()
    path.touch(0o600)
    os.truncate(path, 1 << 40)
    assert "bytes" in _reason(read_record(path, data))


def test_the_record_of_other_data_is_none(
    path: Path, data: Path, record: ServerRecord, tmp_path: Path
) -> None:
    write_record(path, record)
    assert str(data) in _reason(read_record(path, tmp_path / "copy"))


def test_the_same_directory_by_another_name_is_the_same(
    path: Path, data: Path, record: ServerRecord, tmp_path: Path
) -> None:
    write_record(path, record)
    (tmp_path / "link").symlink_to(data)
    assert read_record(tmp_path / "link" / path.name, tmp_path / "link") == record


def test_without_an_address_it_is_none(path: Path, data: Path, record: ServerRecord) -> None:
    write_record(path, replace(record, host=None))
    assert "names no address" in _reason(read_record(path, data))


def test_a_missing_file_is_none(path: Path, data: Path) -> None:
    assert "there is no" in _reason(read_record(path, data))


def test_the_token_is_not_shown(record: ServerRecord) -> None:
    assert record.token not in repr(record)
    assert "127.0.0.1:8790" in repr(record)


def test_addresses_name_the_socket_first(record: ServerRecord) -> None:
    both = replace(record, socket="/run/v.sock", host="::1")
    assert both.addresses == ("unix:/run/v.sock", "[::1]:8790")


def test_the_user_s_own_data_has_its_record_with_the_state(isolated: Path) -> None:
    usual = isolated / ".local/share/vaala"
    state = isolated / ".local/state/vaala"
    assert place_of(usual, os.environ).record == state / "runtime-server.yaml"
    assert place_of(usual, {**os.environ, "VAALA_DATA_DIR": "/other"}).directory == state
    other = isolated / "other"
    assert place_of(other, {**os.environ, "VAALA_DATA_DIR": str(other)}).directory == other
