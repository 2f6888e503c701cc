"""The first configuration, and the schemas that editors read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vaala.config import Config, default_agent, load_config
from vaala.config.init import starter, write_starter
from vaala.config.json_schema import json_schema, schema_name
from vaala.config.load import FILES
from vaala.config.schema import SCHEMAS
from vaala.tools.builtin import builtin_tools


def test_every_file_has_a_schema() -> None:
    assert tuple(SCHEMAS) == FILES


def test_the_starter_is_the_configuration_without_any(tmp_path: Path) -> None:
    assert all(written for _, written in write_starter(tmp_path))
    config = load_config(tmp_path, {})
    assert config == Config(directory=tmp_path, agents={"default": default_agent()})


def test_what_the_starter_shows_as_comments_is_good(tmp_path: Path) -> None:
    assert len(list(write_starter(tmp_path))) == len(FILES) + 1
    for name in FILES:
        text = starter(name).decode()
        head, _, rest = text.partition("\n\n")
        shown = re.sub(r"^( *)# ", r"\1", rest, flags=re.MULTILINE)
        assert shown != rest
        (tmp_path / name).write_text(f"{head}\n{shown}")
    config = load_config(tmp_path, {}, tools=builtin_tools().names)
    assert [provider.name for provider in config.providers] == ["team", "ollama"]
    assert (config.default_model, config.telemetry.enabled) == ("team/large", True)
    assert set(config.agents) == {"default", "reviewer"}


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("default: a/b\n")
    (tmp_path / "agents.yaml").symlink_to("nowhere.yaml")
    written = {file.name: done for file, done in write_starter(tmp_path)}
    assert (written["models.yaml"], written["agents.yaml"], written["server.yaml"]) == (
        False, False, True,
    )  # fmt: skip
    assert "default.md" not in written
    assert (tmp_path / "models.yaml").read_text() == "default: a/b\n"
    assert not any(done for _, done in write_starter(tmp_path))


def test_what_is_written_is_for_the_user_alone(tmp_path: Path) -> None:  # H7-3
    files = [file for file, _ in write_starter(tmp_path / "vaala")]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@pytest.mark.parametrize("name", FILES)
def test_editors_find_the_schema_beside_the_file(tmp_path: Path, name: str) -> None:
    list(write_starter(tmp_path))
    first = (tmp_path / name).read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={schema_name(name)}"
    assert json.loads((tmp_path / schema_name(name)).read_text()) == json_schema(name)


@pytest.mark.parametrize("name", FILES)
def test_every_key_is_described_in_the_schema(name: str) -> None:
    schema = json_schema(name)
    sections = [one for one in (schema, *schema.get("$defs", {}).values()) if "properties" in one]
    keys = [pair for section in sections for pair in section["properties"].items()]
    assert [key for key, one in keys if not one.get("description")] == []
    assert all(section["additionalProperties"] is False for section in sections)
