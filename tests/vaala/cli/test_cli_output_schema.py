"""`vaala run --output-schema`: stdout is exactly the document, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vaala.cli.output_schema import one_line
from vaala.limits import OUTPUT_SCHEMA_BYTES_MAX

Script = Callable[[str], str]
Vaala = Callable[..., Any]
SCHEMA = {
    "type": "object",
    "properties": {"lines": {"type": "integer"}},
    "required": ["lines"],
}


@pytest.fixture
def schema() -> str:
    Path("schema.json").write_text(json.dumps(SCHEMA))
    return "schema.json"


@pytest.mark.usefixtures("way")
def test_the_document_is_one_line_behind_what_tools_do(
    vaala: Vaala, script: Script, schema: str
) -> None:
    Path("notes.txt").write_text("one\n")
    model = script(
        "  - say: I look.\n"
        "    call: {tool: read_file, arguments: {path: notes.txt}, as: notes}\n"
        '  - say: "{\\n  \\"lines\\": {{ results.notes | lines }}\\n}"\n'
    )
    done = vaala("run", "--model", model, "--output-schema", schema, "count")
    assert (done.code, done.out) == (0, '{"lines":1}\n')
    assert "> Read notes.txt\n" in done.err


@pytest.mark.usefixtures("way")
def test_a_model_that_says_something_else_fails_the_run(
    vaala: Vaala, script: Script, schema: str
) -> None:
    model = script('  - say: "One line."\n' + '  - say: \'{"lines": "one"}\'\n' * 2)
    done = vaala("run", "--model", model, "--output-schema", schema, "count")
    assert (done.code, done.out) == (1, "")
    assert "model: The answer does not match the output schema: it is no JSON" in done.err
    last = 'vaala: The answer does not match the output schema: `lines` must be integer, not "one"'
    assert done.err.splitlines()[-1] == last


def test_each_prompt_has_its_document(vaala: Vaala, script: Script, schema: str) -> None:
    Path("prompts").write_text("first\nsecond\n")
    model = script("  - say: '{\"lines\": 1}'\n  - say: '{\"lines\": 2}'\n")
    run = ("run", "--in-process", "--model", model, "--output-schema", schema)
    done = vaala(*run, "--prompts", "prompts")
    assert (done.code, done.lines) == (0, [{"lines": 1}, {"lines": 2}])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type": "object"', "schema.json: it is no JSON: Expecting ',' delimiter: line 1"),
        ("[]", "schema.json: at the top: a schema is [], not an object"),
        ('{"items": {"type": "int"}}', 'schema.json: at items.type: there is no type "int"'),
        ('{"x": "' + "x" * OUTPUT_SCHEMA_BYTES_MAX + '"}', "it has more than 65,536 bytes"),
        ("\udcff", "schema.json: it is not UTF-8 (byte 0)"),
    ],
)
def test_a_schema_that_is_none(vaala: Vaala, text: str, words: str) -> None:
    Path("schema.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = vaala("run", "--output-schema", "schema.json", "x")
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_schema_that_is_not_there(vaala: Vaala) -> None:
    done = vaala("run", "--output-schema", "nowhere.json", "x")
    assert (done.code, done.err) == (
        4,
        "vaala: --output-schema nowhere.json: No such file or directory\n",
    )


@pytest.mark.parametrize(
    "text", ['{ "a b" : [ 1.0 ,\n "c \\" \\\\" ] , "d":1e5 }', '"  "', " null\n", "[]"]
)
def test_one_line_says_the_same(text: str) -> None:
    line = one_line(text)
    assert "\n" not in line
    assert json.loads(line) == json.loads(text)
    assert one_line(line) == line
    assert len(line) <= len(text)
