"""`vaala run --json`: one JSON value a line, also when it fails; nothing private in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vaala_protocol.base import decode, encode
from vaala_protocol.calls import OtherDetails
from vaala_protocol.items import AssistantMessage, Item, Private, Reasoning, ToolCall
from vaala_protocol.public import public_item

Script = Callable[[str], str]
Vaala = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("way")


def test_a_run_is_a_snapshot_then_frames_then_the_result(vaala: Vaala, script: Script) -> None:
    done = vaala("run", "--json", "--model", script("  - say: hello\n"), "go")
    assert done.code == 0
    note, first, *later = done.lines
    assert note["note"].endswith(": --model")
    assert first["snapshot"]["sessions"][0]["info"]["agent"] == "default"
    frames = [line for line in later if "event" in line]
    assert [frame["seq"] for frame in frames] == sorted(frame["seq"] for frame in frames)
    assert all(frame["first"] <= frame["seq"] for frame in frames)
    (result,) = [line["result"] for line in later if "event" not in line]
    assert (result["text"], result["exitCode"]) == ("hello", 0)
    assert result["turn"]["state"] == "completed"


def test_frames_give_the_answer_as_it_grows(vaala: Vaala, script: Script) -> None:
    done = vaala("run", "--json", "--model", script("  - {say: abcdef, chunk: 2}\n"), "go")
    events = [line["event"] for line in done.lines if "event" in line]
    whole = [
        event["item"] for event in events
        if event["type"] == "item/changed" and event["item"]["kind"] == "assistant_message"
    ]  # fmt: skip
    assert whole[-1]["text"] == "abcdef"


def test_a_provider_that_refuses_is_valid_json(vaala: Vaala, script: Script) -> None:  # J4-1
    done = vaala("run", "--json", "--model", script("  - fail: {kind: auth, message: 401}\n"), "x")
    assert done.code == 1
    failed = [line for line in done.lines if "result" in line]
    assert failed[0]["result"]["turn"]["state"] == "failed"


def test_what_never_starts_is_valid_json_too(vaala: Vaala) -> None:
    done = vaala("run", "--json", "--agent", "nobody", "--model", "scripted", "x")
    assert done.code == 2
    assert done.lines == [
        {"error": {"message": "no agent 'nobody'; there are: default", "exitCode": 2}}
    ]
    assert done.err == "vaala: no agent 'nobody'; there are: default\n"


def test_nothing_private_is_shown(vaala: Vaala, script: Script) -> None:
    """The scripted model keeps its place in the script as private data of its answers."""
    done = vaala("run", "--json", "--model", script("  - say: one\n  - say: two\n"), "x")
    assert '"private"' not in done.out
    assert '"private"' not in vaala("run", "--json", "--continue", "y").out


def test_each_item_with_private_data_is_shown_without_it() -> None:
    private = Private(provider="p", api="a", model="m", data={"signature": "s"})
    base: dict[str, Any] = {"id": "i", "at": 1, "created_at": 1, "private": private}
    items: list[Item] = [
        AssistantMessage(text="t", **base),
        Reasoning(text="t", **base),
        ToolCall(name="n", arguments="{}", details=OtherDetails(title="t"), **base),
    ]
    for item in items:
        assert "private" in decode(encode(item))
        assert "private" not in decode(encode(public_item(item)))


def test_wrong_usage_is_told_in_json_too(vaala: Any) -> None:
    done = vaala("run", "--json", "--mode", "fast", "x")
    assert done.code == 2
    ((error,),) = [line.values() for line in done.lines]
    assert (error["exitCode"], "invalid choice: 'fast'" in error["message"]) == (2, True)
