"""Editing the configuration: only what is good is written, and nobody's changes are lost."""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vaala.config import Config, ConfigError, load_config
from vaala.config.edit import Edit, Editor
from vaala.config.limits import VALUE_DEPTH_MAX
from vaala.config.replace_file import Changed, locked
from vaala_protocol.errors import BadRequest, NotFound

MODELS = "# which one\ndefault: here/a   # for now\n"
PROVIDERS = "here:\n  base_url: http://127.0.0.1:1/v1\n"


def _editor(directory: Path) -> Editor:
    return Editor(directory, {})


def _mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_a_value_changes_and_comments_stay(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(MODELS)
    config = _editor(tmp_path).set("models", ("default",), "here/b")
    assert config.default_model == "here/b"
    assert file.read_text() == "# which one\ndefault: here/b   # for now\n"
    assert load_config(tmp_path, {}) == config


def test_what_would_be_wrong_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("port: 1\n")
    before = file.stat()
    with pytest.raises(ConfigError, match=r"server\.yaml:1: port: expected a whole number"):
        _editor(tmp_path).set("server.yaml", ("port",), "many")
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [one.name for one in tmp_path.iterdir()] == ["server.yaml"]


def test_a_change_here_that_makes_another_file_wrong_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "secrets.yaml").touch(0o600)
    (tmp_path / "secrets.yaml").write_text("team: k-1\n")
    (tmp_path / "providers.yaml").write_text(f"{PROVIDERS}  api_key_secret: team\n")
    with pytest.raises(ConfigError, match=r"providers\.yaml:3: here\.api_key_secret: .* add it"):
        _editor(tmp_path).set("secrets", ("team",), None)
    assert (tmp_path / "secrets.yaml").read_text() == "team: k-1\n"


def test_a_directory_and_a_file_that_are_not_there_are_made_for_the_user_alone(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "deep" / "vaala"
    _editor(directory).set("models", ("default",), "here/a")
    assert (directory / "models.yaml").read_text() == "default: here/a\n"
    assert (_mode(directory), _mode(directory / "models.yaml")) == (0o700, 0o600)


def _nested(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels, 0, -1):
        value = {"a": value} if level % 2 else [value]
    return value


def test_a_value_has_bounded_levels(tmp_path: Path) -> None:
    options = ("a", "options")
    _editor(tmp_path).set("agents", options, _nested(VALUE_DEPTH_MAX - len(options)))
    before = (tmp_path / "agents.yaml").read_text()
    for way, value in (
        (options, _nested(VALUE_DEPTH_MAX - len(options) + 1)),
        (options, _nested(400)),
        ((*options, *("b" for _ in range(2_000))), 1),
    ):
        with pytest.raises(BadRequest, match="has at most 64 levels"):
            _editor(tmp_path).set("agents", way, value)
    assert (tmp_path / "agents.yaml").read_text() == before


def test_a_file_has_bounded_levels(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text("a: {options: {b: " + "[" * 150 + "]" * 150 + "}}")
    with pytest.raises(ConfigError, match="is nested too deep"):
        load_config(tmp_path, {})


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o600])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(MODELS)
    file.chmod(mode)
    _editor(tmp_path).set("models", ("default",), "here/b")
    assert _mode(file) == mode


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("secrets.yaml", "team: k-1\n", ("other",)),
        ("providers.yaml", PROVIDERS, ("here", "api_key")),
        ("providers.yaml", PROVIDERS, ("here", "headers", "X-Key")),
        ("telemetry.yaml", "", ("headers", "X-Key")),
    ],
)
def test_a_file_that_holds_a_secret_is_for_its_owner_alone(
    tmp_path: Path, name: str, text: str, key: tuple[str, ...]
) -> None:  # H7-3
    file = tmp_path / name
    file.write_text(text)
    file.chmod(0o644)
    _editor(tmp_path).set(name, key, "k-2")
    assert _mode(file) == 0o600


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text(MODELS)
    link = tmp_path / "models.yaml"
    link.symlink_to(real.name)
    _editor(tmp_path).set("models", ("default",), "here/b")
    assert link.is_symlink()
    assert real.read_text() == MODELS.replace("here/a", "here/b")


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_bytes(b"\xef\xbb\xbfdefault: a/b\n")
    _editor(tmp_path).set("models", ("default",), "a/c")
    assert file.read_bytes() == b"\xef\xbb\xbfdefault: a/c\n"


class _Meanwhile(Editor, frozen=True):
    """Somebody writes to the file after it was read, once for each text."""

    texts: list[str] = []

    def check(self, contents: Mapping[Path, bytes]) -> Config:
        if self.texts:
            next(iter(contents)).write_text(self.texts.pop(0))
        return super().check(contents)


def test_what_the_user_writes_meanwhile_is_not_lost(tmp_path: Path) -> None:  # I3-4
    file = tmp_path / "server.yaml"
    file.write_text("# mine\nport: 1\n")
    texts = ["# mine\nport: 1\nhost: h1  # new\n", "# mine too\nport: 2\nhost: h2  # newer\n"]
    _Meanwhile(tmp_path, {}, None, texts).set("server", ("port",), 3)
    assert file.read_text() == "# mine too\nport: 3\nhost: h2  # newer\n"


def test_a_file_that_goes_meanwhile_is_not_brought_back(tmp_path: Path) -> None:
    class Gone(Editor, frozen=True):
        def check(self, contents: Mapping[Path, bytes]) -> Config:
            next(iter(contents)).unlink(missing_ok=True)
            return super().check(contents)

    file = tmp_path / "server.yaml"
    file.write_text("port: 1\nhost: h\n")
    Gone(tmp_path, {}).set("server", ("port",), 3)
    assert file.read_text() == "port: 3\n"


def test_a_file_that_changes_all_the_time_is_given_up(tmp_path: Path) -> None:
    texts = [f"port: {number}\n" for number in range(1, 100)]
    with pytest.raises(ConfigError, match="changed all the time"):
        _Meanwhile(tmp_path, {}, None, texts).set("server", ("host",), "h")


def test_a_whole_file_is_replaced_only_when_it_is_what_was_read(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text("default: x/y\n")
    with pytest.raises(Changed):
        _editor(tmp_path).replace("models", MODELS.encode(), b"default: x/z\n")
    with pytest.raises(Changed):
        _editor(tmp_path).replace("models", None, b"default: x/z\n")
    _editor(tmp_path).replace("models", b"default: x/y\n", b"default: x/z\n")
    assert file.read_text() == "default: x/z\n"


_MANY = (
    Edit("secrets.yaml", ("new",), "the-key"),
    Edit("providers.yaml", ("here", "base_url"), "http://127.0.0.1:2/v1"),
    Edit("providers.yaml", ("here", "api_key_secret"), "new"),
    Edit("models.yaml", ("default",), "here/b"),
)


def test_several_edits_are_made_together(tmp_path: Path) -> None:
    (tmp_path / "providers.yaml").write_text(f"# mine\n{PROVIDERS}")
    (tmp_path / "models.yaml").write_text(MODELS)
    preview = _editor(tmp_path).preview(_MANY)
    assert (tmp_path / "models.yaml").read_text() == MODELS
    assert _editor(tmp_path).apply(_MANY) == preview == load_config(tmp_path, {})
    assert (tmp_path / "providers.yaml").read_text() == (
        "# mine\nhere:\n  base_url: http://127.0.0.1:2/v1\n  api_key_secret: new\n"
    )
    assert _mode(tmp_path / "secrets.yaml") == 0o600


def test_of_several_edits_none_is_made_when_one_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(MODELS)
    wrong = (*_MANY, Edit("server.yaml", ("port",), "many"))
    for edits in (wrong, (_MANY[0], Edit("server.yaml", ("allowed_hosts",), ["", 1]))):
        with pytest.raises(ConfigError, match=r"server\.yaml"):
            _editor(tmp_path).apply(edits)
    assert [file.name for file in tmp_path.iterdir()] == ["models.yaml"]


def test_files_are_put_back_when_a_later_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "providers.yaml").write_text(PROVIDERS)
    # Nobody can make a file there, not even root.
    (tmp_path / "models.yaml").symlink_to("/proc/models.yaml")
    with pytest.raises(ConfigError, match=r"models\.yaml"):
        _editor(tmp_path).apply(_MANY)
    assert not (tmp_path / "secrets.yaml").exists()
    assert (tmp_path / "providers.yaml").read_text() == PROVIDERS


def test_edits_of_many_at_once_all_stand(tmp_path: Path) -> None:
    names = [f"k{number}" for number in range(12)]
    threads = [
        threading.Thread(target=_editor(tmp_path).set, args=("secrets", (name,), "value-1"))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted((tmp_path / "secrets.yaml").read_text().split()[::2]) == sorted(
        f"{name}:" for name in names
    )


def test_the_lock_is_given_back(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(BlockingIOError):
        _take(tmp_path)
    _take(tmp_path)


def _take(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def test_a_file_with_problems_is_told_before_it_is_changed(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("default: [\n")
    with pytest.raises(ConfigError, match=r"models\.yaml:2: is not YAML"):
        _editor(tmp_path).set("models", ("default",), "a/b")


def test_wrong_names_and_places(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(MODELS)
    with pytest.raises(NotFound, match="no file 'model' in the configuration; there are prov"):
        _editor(tmp_path).set("model", ("default",), "a/b")
    with pytest.raises(NotFound):
        _editor(tmp_path).set("../models.yaml", ("default",), "a/b")
    with pytest.raises(BadRequest, match=r"models\.yaml: default\.x: 'x' cannot stand there"):
        _editor(tmp_path).set("models", ("default", "x"), "a/b")


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        _editor(tmp_path / "file" / "vaala").set("models", ("default",), "a/b")


@pytest.mark.parametrize(
    ("way", "value", "place"),
    [
        (("a", "api_key"), "***", "a.api_key"),
        (("a",), {"base_url": "http://x/v1", "api_key": "***"}, "a.api_key"),
        (("a",), {"base_url": "http://x/v1", "headers": {"X-Key": "***"}}, "a.headers.X-Key"),
        (("a", "base_url"), "https://***@models.example/v1", "a.base_url"),
    ],
)
def test_the_mark_of_a_secret_is_not_taken_for_it(
    tmp_path: Path, way: tuple[str, ...], value: Any, place: str
) -> None:
    """Whoever reads a provider, changes a field and sets the whole would lose its key."""
    (tmp_path / "providers.yaml").write_text(text := "a: {base_url: http://x/v1, api_key: k}\n")
    (tmp_path / "providers.yaml").chmod(0o600)
    with pytest.raises(BadRequest, match=rf"^providers\.yaml: {re.escape(place)}: \*\*\* stands"):
        Editor(tmp_path, {}).set("providers", way, value)
    assert (tmp_path / "providers.yaml").read_text() == text


def test_stars_that_are_no_secret_are_a_value(tmp_path: Path) -> None:
    Editor(tmp_path, {}).set("agents", ("a", "description"), "***")
    assert load_config(tmp_path, {}).agents["a"].description == "***"
