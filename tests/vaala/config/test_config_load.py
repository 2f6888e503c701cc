"""Loading a configuration that is good: what each key becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vaala.agent.definition import Budgets
from vaala.agent.fitting import Compaction
from vaala.config import ConfigError, default_agent, load_config
from vaala.models.base import Deadlines
from vaala.models.secret import Secret
from vaala_protocol.base import decode, encode
from vaala_protocol.prices import ModelPrices
from vaala_protocol.settings import Settings

PROVIDERS = """
hosted:
  base_url: https://models.example/v1/
  api: chat
  api_key_env: HOSTED_KEY
  headers: {X-Team: blue}
  models: [large, small]
  windows: {large: 128000}
  prices: {large: {input: 0.075, output: 3, cache_read: 1.0e-3}, small: {input: 2.50, output: 0}}
  deadlines: {connect_s: 3, silence_s: 1.5}
here:
  base_url: http://127.0.0.1:8080/v1
  api_key: "12345678"
"""
AGENTS = """
reviewer:
  description: Reads changes.
  instructions: Review. Change nothing.
  model: hosted/large
  effort: high
  options: {temperature: 0.2}
  mode: read-only
  tools: [read_file, search]
  budgets: {steps_max: 20, tokens_max: 100000, seconds_max: 600, command_foreground_s: 30}
  compaction: {auto: false, at: 0.8, aim: 0.5}
plain: {}
"""


def _write(directory: Path, **files: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory


def test_no_directory_is_an_empty_configuration_with_the_shipped_agent(tmp_path: Path) -> None:
    config = load_config(tmp_path / "absent", {})
    assert config.agents == {"default": default_agent()}
    assert config.providers == ()
    assert config.default_model is None


def test_providers_become_dataclasses_in_the_order_of_the_file(tmp_path: Path) -> None:
    hosted, here = load_config(
        _write(tmp_path, providers=PROVIDERS), {"HOSTED_KEY": "k-1"}
    ).providers
    assert (hosted.name, hosted.base_url, hosted.key) == (
        "hosted", "https://models.example/v1", Secret("k-1"),
    )  # fmt: skip
    assert hosted.headers == {"X-Team": Secret("blue")}
    assert (hosted.models, hosted.windows) == (("large", "small"), {"large": 128000})
    assert hosted.prices == {
        "large": ModelPrices(input="0.075", output="3", cache_read="0.001", cache_write="0.075"),
        "small": ModelPrices(input="2.5", output="0", cache_read="2.5", cache_write="2.5"),
    }
    assert hosted.deadlines == Deadlines(connect_s=3.0, silence_s=1.5)
    assert (here.key, here.deadlines) == (Secret("12345678"), Deadlines())


def test_a_key_that_is_not_set_makes_its_provider_unusable_and_no_other(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, providers=PROVIDERS), {})
    assert config.unusable == {"hosted": "the environment variable HOSTED_KEY is not set"}
    assert config.key_variables == ("HOSTED_KEY",)


def test_an_agent_takes_what_its_section_says(tmp_path: Path) -> None:
    agent = load_config(_write(tmp_path, agents=AGENTS), {}).agents["reviewer"]
    assert agent.instructions == "Review. Change nothing."
    assert agent.settings == Settings(
        model="hosted/large", effort="high", mode="read-only", options={"temperature": 0.2}
    )
    assert agent.tools == ("read_file", "search")
    assert agent.budgets == Budgets(20, 100_000, 600.0, 30.0)
    assert agent.compaction == Compaction(auto=False, at=0.8, aim=0.5)


def test_an_agent_without_instructions_has_the_shipped_ones(tmp_path: Path) -> None:
    agents = load_config(_write(tmp_path, agents=AGENTS), {}).agents
    assert agents["plain"].instructions == default_agent().instructions
    assert agents["default"] == default_agent()


def test_the_default_agent_can_be_replaced(tmp_path: Path) -> None:
    text = "default: {instructions: Say yes., mode: full}"
    agent = load_config(_write(tmp_path, agents=text), {}).agents["default"]
    assert (agent.instructions, agent.settings.mode) == ("Say yes.", "full")


def test_instructions_come_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "review.md").write_text("\ufeffReview it.\n", "utf-8")
    agents = load_config(
        _write(tmp_path, agents="reviewer: {instructions_file: review.md}"), {}
    ).agents
    assert agents["reviewer"].instructions == "Review it."


def test_the_default_model(tmp_path: Path) -> None:
    assert load_config(_write(tmp_path, models="default: here/m"), {}).default_model == "here/m"


def test_empty_files_and_comments_are_fine(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, models="# nothing yet\n", agents="", providers="{}"), {})
    assert (config.providers, list(config.agents)) == ((), ["default"])


def test_without_files_no_heavy_library_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from vaala.config import load_config\n"
        "load_config(pathlib.Path(sys.argv[1]), {})\n"
        "heavy = {'pydantic', 'ruamel', 'httpx', 'trio'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_shipped_instructions_are_short() -> None:
    """With the tools they stay under 8 KB; the tools need most of it."""
    assert len(default_agent().instructions.encode()) < 2600


def test_values_are_plain_whatever_yaml_made_of_them(tmp_path: Path) -> None:
    text = """
a:
  options: {float: 0.2, exponent: 1e3, hex: 0x1F, grouped: 1_000, on: &on true, off: *on,
            anchored: &text foo, again: *text, list: [0.5, {deep: 0o17}], none: null}
  budgets: {seconds_max: 1.5}
"""
    (tmp_path / "agents.yaml").write_text(text)
    options = load_config(tmp_path, {}).agents["a"].settings.options
    assert type(options["float"]) is float
    assert decode(encode(options)) == {
        "float": 0.2, "exponent": 1000.0, "hex": 31, "grouped": 1000, "on": True, "off": True,
        "anchored": "foo", "again": "foo", "list": [0.5, {"deep": 15}], "none": None,
    }  # fmt: skip


def test_aliases_cannot_make_a_small_file_huge(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))]
    (tmp_path / "agents.yaml").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="more than 100000 values"):
        load_config(tmp_path, {})
