"""A configuration that is wrong: every problem is told with file, line, key and the way out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vaala.config import ConfigError, load_config


def _problems(directory: Path, name: str, text: str | bytes) -> list[str]:
    """Load a directory with this one file and return its problems, without the directory."""
    content = text.encode() if isinstance(text, str) else text
    (directory / f"{name}.yaml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(directory, {})
    return [str(problem).removeprefix(f"{directory}/") for problem in caught.value.problems]


CASES = [
    (
        "providers", "a:\n  base_ur: http://x/v1\n  base_url: http://x/v1\n",
        "providers.yaml:2: a.base_ur: is an unknown key; did you mean 'base_url'?",
    ),
    (
        "providers", "a:\n  base_url: http://x/v1\n  zzz: 1\n",
        "providers.yaml:3: a.zzz: is an unknown key: expected one of base_url, api, api_key, "
        "api_key_env, api_key_secret, api_key_file, api_key_command, api_key_keyring, headers, "
        "query, proxy, ca_file, trust, models, windows, prices, effort, options, model_settings, "
        "deadlines, requests_max",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  api_key_command: pass 'x\n",
        "providers.yaml:3: a.api_key_command: expected a command, with all quotes closed, found "
        "the text \"pass 'x\"",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  api_key_keyring: vaala\n",
        "providers.yaml:3: a.api_key_keyring: expected SERVICE/USER, found the text 'vaala'",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  api_key_file: a\n  api_key_command: [b]\n",
        "providers.yaml:3: a.api_key_file: stands beside api_key_command; keep one of the two",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  proxy: ftp://me:hunter2@proxy\n",
        "providers.yaml:3: a.proxy: expected none, or a URL that begins with http:// or https://, "
        "found the text 'ftp://***@proxy'",
    ),
    ("providers", "a:\n  api: chat\n", "providers.yaml:1: a.base_url: is missing"),
    (
        "providers", "a:\n  base_url: ftp://x\n",
        "providers.yaml:2: a.base_url: expected a URL that begins with http:// or https://, "
        "found the text 'ftp://x'",
    ),
    (
        "providers", "a b:\n  base_url: http://x\n",
        "providers.yaml:1: a b: 'a b' is no name; expected a name of letters, digits, dot, dash "
        "and underscore, at most 64 characters",
    ),
    ("providers", "a: 3\n", "providers.yaml:1: a: expected a mapping of keys to values, "
     "found the number 3"),
    (
        "providers", "a:\n  base_url: http://x\n  api_key: k\n  api_key_env: K\n",
        "providers.yaml:3: a.api_key: stands beside api_key_env; keep one of the two",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  prices:\n    m: {input: -1, output: 1}\n",
        "providers.yaml:4: a.prices.m.input: expected a number greater than or equal to 0, found "
        "the number -1",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  prices:\n    m: {input: 1}\n",
        "providers.yaml:4: a.prices.m.output: is missing",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  windows:\n    m: 0\n",
        "providers.yaml:4: a.windows.m: expected a number greater than or equal to 1, found the "
        "number 0",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  models: [m, 7]\n",
        "providers.yaml:3: a.models.1: expected text, found the number 7",
    ),
    (
        "agents", "a:\n  options:\n    x: [1, 2001-01-01]\n",
        "agents.yaml:3: a.options.x.1: expected text, a number, true, false, null, a list or a "
        "mapping, found date 2001-01-01",
    ),
    (
        "agents", "a:\n  options:\n    y: .nan\n",
        "agents.yaml:3: a.options.y: expected text, a number, true, false, null, a list or a "
        "mapping, found the number nan",
    ),
    (
        "agents", "a:\n  options: {temperature: 1, stream: false}\n",
        "agents.yaml:2: a.options.stream: the option stream is a part of the request that vaala "
        "makes itself: remove it",
    ),
    (
        "providers", "a:\n  base_url: http://x\n  options:\n    systemInstruction: x\n",
        "providers.yaml:4: a.options.systemInstruction: the option systemInstruction is a part of "
        "the request that vaala makes itself: remove it",
    ),
    (
        "providers",
        "a:\n  base_url: http://x\n  model_settings:\n    m:\n      options:\n"
        "        max_output_tokens: many\n",
        "providers.yaml:6: a.model_settings.m.options.max_output_tokens: the option "
        "max_output_tokens is a whole number of tokens from 1 on, not 'many'",
    ),
    (
        "providers",
        "a:\n  base_url: http://x\n  models: [large]\n  model_settings: {larg: {effort: low}}\n",
        "providers.yaml:4: a.model_settings.larg: a has no model 'larg' in models; did you mean "
        "'large'?",
    ),
    ("models", "- a\n", "models.yaml: expected a mapping of keys to values, found a list"),
    ("models", "default:\n  x: 1\n", "models.yaml:1: default: expected text, found a mapping"),
    (
        "agents", "a:\n  mode: ful\n",
        "agents.yaml:2: a.mode: expected one of 'read-only', 'ask', 'auto-edit' or 'full', "
        "found the text 'ful'; did you mean 'full'?",
    ),
    (
        "agents", "a:\n  budgets:\n    step_max: 3\n",
        "agents.yaml:3: a.budgets.step_max: is an unknown key; did you mean 'steps_max'?",
    ),
    (
        "agents", "a:\n  compaction: {at: 0.5}\n",
        "agents.yaml:2: a.compaction.aim: expected a number less than at, which is 0.5, found 0.6",
    ),
    ("agents", "a:\n  tools: all\n", "agents.yaml:2: a.tools: expected a list, "
     "found the text 'all'"),
    (
        "agents", "a:\n  instructions: x\n  instructions_file: y\n",
        "agents.yaml:3: a.instructions_file: stands beside instructions; keep one",
    ),
    ("agents", "a: {}\na: {}\n", "agents.yaml:2: found duplicate key \"a\": keep one of the two"),
    (
        "agents", "a: [1\n",
        "agents.yaml:2: is not YAML: while parsing a flow sequence, expected ',' or ']', "
        "but got '<stream end>'",
    ),
    ("agents", b"a: {}\n# \xff\n", "agents.yaml:2: is not UTF-8 from byte 8 on"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "problem"), CASES)
def test_a_problem_is_told(tmp_path: Path, name: str, text: str | bytes, problem: str) -> None:
    assert _problems(tmp_path, name, text) == [problem]


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("defalt: x\n")
    (tmp_path / "agents.yaml").write_text("a:\n  mode: no\nb:\n  instructions_file: gone.md\n")
    assert _problems(tmp_path, "providers", "a:\n  api: chat\n") == [
        "providers.yaml:1: a.base_url: is missing",
        "models.yaml:1: defalt: is an unknown key; did you mean 'default'?",
        "agents.yaml:2: a.mode: expected one of 'read-only', 'ask', 'auto-edit' or 'full', "
        "found the text 'no'",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file or directory"),
        (b"", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (64 * 1024 + 1), "is larger than 65536 bytes"),
    ],
)
def test_an_instructions_file_that_cannot_be_used(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / "a.md").write_bytes(content)
    (problem,) = _problems(tmp_path, "agents", "a:\n  instructions_file: a.md\n")
    assert problem.startswith(f"agents.yaml:2: a.instructions_file: {tmp_path}/a.md")
    assert complaint in problem


@pytest.mark.parametrize(
    "text",
    [
        "a:\n  base_url: http://x\n  api_key: 314159265358\n",
        "a:\n  base_url: http://x\n  headers: {Authorization: 314159265358}\n",
    ],
)
def test_a_key_is_never_quoted(tmp_path: Path, text: str) -> None:
    (problem,) = _problems(tmp_path, "providers", text)
    assert problem.endswith("expected text, found a number")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    content = b"# " + b"x" * (1024 * 1024)
    assert _problems(tmp_path, "models", content) == ["models.yaml: is larger than 1048576 bytes"]


def test_a_file_that_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"models\.yaml: cannot be read: is not a regular file"):
        load_config(tmp_path, {})


def test_nesting_without_end_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    text = "default: " + "[" * 1_000
    assert _problems(tmp_path, "models", text) == ["models.yaml: is nested too deep"]


def test_a_pipe_in_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    """To open one for reading would wait for a writer, for ever."""
    os.mkfifo(tmp_path / "a.md")
    (problem,) = _problems(tmp_path, "agents", "a:\n  instructions_file: a.md\n")
    assert problem.endswith("a.md: is not a regular file")
    os.mkfifo(tmp_path / "models.yaml")
    assert "models.yaml: cannot be read: is not a regular file" in "\n".join(
        _problems(tmp_path, "agents", "a: {}\n")
    )


def test_a_path_that_is_none_is_told(tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path, "agents", 'a:\n  instructions_file: "a\\0b"\n')
    assert problem.endswith("a\\x00b' is no path")
