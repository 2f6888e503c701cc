"""`vaala config` and `vaala init`."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vaala.config.load import FILES

Vaala = Callable[..., Any]
PATIENCE_S = 30.0


@pytest.fixture
def config(isolated: Path) -> Path:
    directory = isolated / ".config" / "vaala"
    directory.mkdir(parents=True)
    return directory


def test_init_writes_what_is_missing_and_tells_the_next_command(
    vaala: Vaala, isolated: Path
) -> None:
    directory = isolated / ".config/vaala"
    first = vaala("init")
    assert first.code == 0
    assert first.out.splitlines()[0] == f"wrote {directory}/providers.yaml"
    assert "next: " in first.out
    assert vaala("config", "check").out == f"good: {len(FILES)} files in {directory}\n"
    (directory / "models.yaml").write_text("default: scripted\n")
    second = vaala("init")
    assert f"kept  {directory}/models.yaml\n" in second.out
    assert (directory / "models.yaml").read_text() == "default: scripted\n"


def test_check_tells_all_problems(vaala: Vaala, config: Path) -> None:
    (config / "models.yaml").write_text("defalt: x\n")
    (config / "agents.yaml").write_text("a:\n  tools: [reed_file]\n")
    result = vaala("config", "check")
    assert (result.code, result.err) == (2, "")
    assert result.out.splitlines() == [
        f"{config}/models.yaml:1: defalt: is an unknown key; did you mean 'default'?",
        f"{config}/agents.yaml:2: a.tools.0: no tool is called 'reed_file'; "
        "did you mean 'read_file'?",
    ]


def test_check_remarks_what_is_no_mistake(vaala: Vaala, config: Path) -> None:
    (config / "providers.yaml").write_text("a:\n  base_url: http://x\n  api_key_env: A_KEY\n")
    result = vaala("config", "check")
    assert result.code == 0
    assert "providers.yaml:3: a.api_key_env: the environment variable A_KEY is not" in result.err


def test_show_tells_where_each_value_comes_from(vaala: Vaala, config: Path) -> None:
    (config / "server.yaml").write_text("# mine\nport: 9000\n")
    shown = vaala("config", "show", "server").out
    assert shown.splitlines()[:3] == [
        "server.yaml",
        '  host               "127.0.0.1"  (default)',
        "  port               9000  (server.yaml:2)",
    ]
    (line,) = vaala("config", "show", "server.yaml", "port", "--json").lines
    assert line == {"file": "server.yaml", "key": ["port"], "value": 9000, "line": 2}
    assert vaala("config", "show", "server", "prot").code == 2
    assert len(vaala("config", "show", "--json").lines) > 20


def test_no_secret_is_shown_anywhere(vaala: Vaala, config: Path) -> None:  # H7-4
    (config / "providers.yaml").write_text("a:\n  base_url: http://x\n  api_key: key-1\n")
    (config / "secrets.yaml").touch(0o600)
    (config / "secrets.yaml").write_text("team: key-2\n")
    (config / "telemetry.yaml").write_text("headers: {X: key-3}\n")
    for words in (["show"], ["show", "--json"], ["show", "providers", "a.api_key"], ["check"]):
        result = vaala("config", *words)
        assert result.code == 0
        assert "key-" not in result.out + result.err


def test_set_changes_one_value(vaala: Vaala, config: Path) -> None:
    file = config / "agents.yaml"
    file.write_text("# mine\na:\n  mode: ask  # for now\n")
    assert vaala("config", "set", "agents", "a.mode", "full").code == 0
    assert vaala("config", "set", "agents", "a.tools", "[read_file, search]").code == 0
    assert vaala("config", "set", "agents", "a.tools.1", "list_dir").code == 0
    assert vaala("config", "set", "agents", 'a.options."x.y"', "0.5").code == 0
    result = vaala("config", "set", "agents", "a.budgets.steps_max", "5")
    assert (result.out, result.err) == ("", f"changed {file}\n")
    assert file.read_text() == (
        "# mine\na:\n  mode: full  # for now\n  tools: [read_file, list_dir]\n"
        "  options:\n    x.y: 0.5\n  budgets:\n    steps_max: 5\n"
    )
    assert vaala("config", "set", "agents", "a.mode", "--delete").code == 0
    assert "mode" not in file.read_text()


def test_set_does_not_write_what_would_be_wrong(vaala: Vaala, config: Path) -> None:
    result = vaala("config", "set", "server", "port", "99999")
    assert result.code == 2
    assert result.err.startswith("vaala: not changed; the configuration would have problems:\n")
    assert f"{config}/server.yaml:1: port: expected a number less than" in result.err
    assert list(config.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["set", "server", "port"], "write vaala config set FILE KEY VALUE"),
        (["set", "server", "port", "1", "--delete"], "write vaala config set FILE KEY VALUE"),
        (["set", "server", "port", "null"], "to take the key out write --delete"),
        (["set", "server", "port", "[1"], "is no value in YAML"),
        (["set", "server", "a..b", "1"], "is no key"),
        (["set", "sever", "port", "1"], "no file 'sever' in the configuration; there are"),
        (["set", "secrets", "team", "key-1"], "write - and give it on stdin"),
        (["edit", "server"], "an editor needs a terminal; without one: vaala config set"),
        (["check", "server"], "one word too many: 'server'"),
        (["path", "--delete"], "takes no --delete"),
        (["chekc"], "invalid choice: 'chekc'"),
    ],
)
def test_wrong_usage(vaala: Vaala, config: Path, words: list[str], told: str) -> None:
    result = vaala("config", *words)
    assert (result.code, result.out) == (2, "")
    assert told in result.err
    assert "key-1" not in result.err


def test_a_secret_comes_on_stdin(vaala: Vaala, config: Path) -> None:
    assert vaala("config", "set", "secrets", "team", "-", stdin=b"123456\n").code == 0
    file = config / "secrets.yaml"
    assert file.read_text() == 'team: "123456"\n'
    assert file.stat().st_mode & 0o777 == 0o600


def test_path_and_schema(vaala: Vaala, config: Path) -> None:
    assert vaala("config", "path").out == f"{config}\n"
    assert vaala("config", "path", "models").out == f"{config}/models.yaml\n"
    assert json.loads(vaala("config", "schema", "server").out)["properties"]["port"]["maximum"]
    assert tuple(json.loads(vaala("config", "schema").out)) == FILES


class _Person:
    """Runs a command on a terminal of its own and answers it."""

    def __init__(self, *words: str, editor: str) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vaala", *words], stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, "EDITOR": editor}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.shown = ""

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
            piece = self._read() if ready else b""
            assert piece, f"{text!r} did not come, but {self.shown!r}"
            self.shown += piece.decode()

    def _read(self) -> bytes:
        try:
            return os.read(self._master, 4096)
        except OSError:  # EIO is how a terminal tells its end on Linux
            return b""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        os.close(self._master)


People = Callable[..., _Person]


@pytest.fixture
def person() -> Iterator[People]:
    """Start people, each with the words of a command and an editor."""
    people: list[_Person] = []

    def start(*words: str, editor: str) -> _Person:
        people.append(_Person(*words, editor=editor))
        return people[-1]

    yield start
    for one in people:
        one.close()


def _editor(directory: Path, *actions: str) -> str:
    """Make an editor whose n-th run does the n-th action, a line of shell with the file as $1."""
    script = directory / "editor.sh"
    cases = "".join(f"{number}) {action};;\n" for number, action in enumerate(actions, 1))
    script.write_text(
        f"n=$(($(cat {directory}/count 2>/dev/null || echo 0) + 1)); echo $n > {directory}/count\n"
        f"case $n in\n{cases}esac\n"
    )
    return f"sh {script}"


def test_edit_tells_what_is_wrong_and_edits_again(
    config: Path, tmp_path: Path, person: People
) -> None:
    file = config / "server.yaml"
    file.write_text("port: 1 # mine\n")
    editor = _editor(
        tmp_path, 'sed -i s/1/many/ "$1"', f'grep -q "port: 1" {file} && sed -i s/many/2/ "$1"'
    )
    someone = person("config", "edit", "server", editor=editor)
    someone.wait_for("e: edit again, d: drop the change\r\n")
    assert f"{file}:1: port: expected a whole number" in someone.shown
    someone.type("what\n")
    someone.wait_for("what\r\ne: edit again")
    someone.type("e\n")
    someone.wait_for(f"changed {file}")
    assert someone.end() == 0
    assert file.read_text() == "port: 2 # mine\n"


def test_edit_drops_the_change(config: Path, tmp_path: Path, person: People) -> None:
    file = config / "server.yaml"
    file.write_text("port: 1\n")
    someone = person("config", "edit", "server", editor=_editor(tmp_path, 'echo "x: [" > "$1"'))
    someone.wait_for("d: drop")
    someone.type("d\n")
    someone.wait_for("the file is as it was")
    assert someone.end() == 0
    assert file.read_text() == "port: 1\n"


@pytest.mark.parametrize(
    ("action", "code", "told"),
    [
        (":", 0, "nothing was changed"),
        ("exit 3", 1, "the editor ended with 3; nothing was changed"),
    ],
)
def test_edit_without_a_change(
    config: Path, tmp_path: Path, person: People, action: str, code: int, told: str
) -> None:
    someone = person("config", "edit", "models", editor=_editor(tmp_path, action))
    someone.wait_for(told)
    assert someone.end() == code
    assert list(config.iterdir()) == []


def test_edit_keeps_both_texts_when_somebody_else_was_faster(
    config: Path, tmp_path: Path, person: People
) -> None:  # I3-4
    file = config / "server.yaml"
    file.write_text("port: 1\n")
    editor = _editor(tmp_path, f'echo "port: 2" > {file}; echo "port: 3" > "$1"')
    someone = person("config", "edit", "server", editor=editor)
    someone.wait_for("your text is in ")
    someone.wait_for(".yaml\r\n")
    assert someone.end() == 1
    assert file.read_text() == "port: 2\n"
    kept = Path(someone.shown.split("your text is in ")[1].split("\r\n")[0])
    assert kept.read_text() == "port: 3\n"
    kept.unlink()
