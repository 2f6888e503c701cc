"""The set of tools: names, what a model sees, and the border around each call."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest
import trio

from tests.vaala.tools.calling import Caller
from tests.vaala.tools.scripted import ScriptedWorkspace
from vaala.models.base import ToolSpec
from vaala.permissions.base import Access
from vaala.tools import limits
from vaala.tools.base import PreparedCall, Tool, ToolContext, ToolFailure, ToolResult
from vaala.tools.builtin import builtin_tools
from vaala.tools.registry import ToolSet
from vaala_executors import Workspace
from vaala_protocol.calls import AgentDetails, OtherDetails
from vaala_protocol.content import Content, ImageContent, TextContent
from vaala_protocol.errors import BadRequest

SPECS_BYTES_MAX = 5_500


class Fake(Tool):
    def __init__(
        self,
        name: str = "fake",
        *,
        raises: BaseException | None = None,
        prepare_raises: Exception | None = None,
        result: ToolResult | None = None,
    ) -> None:
        self._spec = ToolSpec(name, "A fake.", {"type": "object", "properties": {}})
        self._raises = raises
        self._prepare_raises = prepare_raises
        self._result = result or ToolResult(())

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def prepare(self, arguments: str, workspace: Workspace) -> PreparedCall:
        if self._prepare_raises is not None:
            raise self._prepare_raises
        return PreparedCall(OtherDetails(title="t"), "a\ntitle\x1b" * 50, Access("none"), self._run)

    async def _run(self, context: ToolContext) -> ToolResult:
        if self._raises is not None:
            raise self._raises
        return self._result


def caller_of(nursery: trio.Nursery, *tools: Tool) -> Caller:
    return Caller(ScriptedWorkspace(), nursery, ToolSet(tools))


def test_the_built_in_tools_are_small_and_stable() -> None:
    tools = builtin_tools()
    assert tools.names == (
        "read_file", "write_file", "edit_file", "list_dir", "search", "exec_command",
        "write_stdin", "spawn_agent", "wait_agent", "ask_user",
    )  # fmt: skip
    sent = json.dumps(
        [
            {"type": "function", "function": {
                "name": spec.name, "description": spec.description, "parameters": spec.parameters,
            }}
            for spec in tools.specs
        ]
    )  # fmt: skip
    assert len(sent.encode()) < SPECS_BYTES_MAX
    assert tools.specs == builtin_tools().specs


def test_the_specs_need_no_pydantic() -> None:
    code = (
        "import sys; from vaala.tools.builtin import builtin_tools; "
        "assert builtin_tools().specs; assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a/b", "名", "x" * 65])
def test_a_name_that_is_not_legal(name: str) -> None:
    with pytest.raises(BadRequest, match="not a name for a tool"):
        ToolSet([Fake(name)])


def test_a_name_that_stands_twice() -> None:
    with pytest.raises(BadRequest, match="two tools are called 'fake'"):
        ToolSet([Fake(), Fake()])


def test_a_subset_keeps_the_order() -> None:
    tools = builtin_tools()
    assert tools.only(["search", "read_file"]).names == ("read_file", "search")
    assert tools.only(None) is tools
    assert tools.only([]).specs == ()
    with pytest.raises(BadRequest, match=r"no tool 'serach' .did you mean search"):
        tools.only(["serach"])


async def test_an_unknown_tool_is_answered_with_the_agents_own(nursery: trio.Nursery) -> None:
    tools = builtin_tools().only(["read_file", "search"])  # A6-1
    caller = Caller(ScriptedWorkspace(), nursery, tools)
    text = await caller.failure("read")
    assert text == (
        "there is no tool 'read' (did you mean read_file?). Your tools: read_file, search"
    )
    # What the agent may not use does not exist for it.
    text = await caller.failure("exec_command")
    assert "exec_command" not in text.removeprefix("there is no tool 'exec_command'")


async def test_a_cut_call_never_runs(nursery: trio.Nursery) -> None:  # A2-2
    caller = Caller(ScriptedWorkspace(), nursery)
    for arguments in ('{"path": "x.py"}', '{"path": "x.py", "content": "whole"}', '{"pa'):
        with pytest.raises(ToolFailure, match="output-token limit"):
            await caller.tools.prepare("write_file", arguments, caller.workspace, truncated=True)


async def test_a_bug_in_a_tool_stays_in_its_call(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:  # A5-1
    caller = caller_of(nursery, Fake(raises=KeyError("the bug\x1b")), Fake("sound"))
    text = await caller.failure("fake")
    assert text.startswith("fake failed with KeyError: ")
    assert "the bug" in text
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[1] is not None
    assert record.exc_info[1].__traceback__ is not None
    await caller.call("sound")


async def test_a_bug_in_preparing(nursery: trio.Nursery) -> None:
    caller = caller_of(nursery, Fake(prepare_raises=ZeroDivisionError("by 0")))
    assert await caller.failure("fake") == "fake failed with ZeroDivisionError: by 0"


async def test_failures_in_groups(nursery: trio.Nursery, caplog: pytest.LogCaptureFixture) -> None:
    meant = ExceptionGroup("g", [ToolFailure("not there", OtherDetails(title="x"))])
    caller = caller_of(nursery, Fake(raises=meant))
    call = await caller.prepare("fake")
    with pytest.raises(ToolFailure, match=r"^not there$") as caught:
        await call.run(caller.context())
    assert caught.value.details == OtherDetails(title="x")
    assert not caplog.records
    mixed = ExceptionGroup("g", [ToolFailure("meant"), ExceptionGroup("h", [OSError("disk")])])
    caller = caller_of(nursery, Fake(raises=mixed))
    assert await caller.failure("fake") == "fake failed with OSError: disk"


async def test_cancel_passes(nursery: trio.Nursery, caplog: pytest.LogCaptureFixture) -> None:
    class FailsOnTheWayOut(Fake):
        async def _run(self, context: ToolContext) -> ToolResult:
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                raise BaseExceptionGroup("g", [cancelled, ValueError("closing")]) from None
            raise AssertionError

    caller = caller_of(nursery, FailsOnTheWayOut())
    with trio.CancelScope() as scope:
        scope.cancel()
        await caller.call("fake")
    assert scope.cancelled_caught
    assert "closing" in caplog.text  # a failure beside the cancel is logged and not lost


async def test_what_a_tool_returns_comes_out_clean(nursery: trio.Nursery) -> None:  # D5-1
    image = ImageContent(blob="b", media_type="image/png", size_bytes=1)
    result = ToolResult((TextContent(text="a\x00\ud800\x1b[2J"), image))
    caller = caller_of(nursery, Fake(result=result))
    made = await caller.call("fake")
    assert made.content == (TextContent(text="a␀\ufffd␛[2J"), image)
    call = await caller.prepare("fake")
    assert len(call.title) == limits.TITLE_CHARS_MAX
    assert call.title.isprintable()


@pytest.mark.parametrize(
    ("texts", "begins", "ends", "saved"),
    [
        (["y" * 70_000] * 20, "y", "y", 1),
        (["a\n"] * 100_000, "a\n", "a\n", 1),
        (["one"] * 200, "one\none", "one\none", 0),
        (["\u202e" * 5_000_000], "\ufffd", "\ufffd", 1),
        (["\x00" * 65_000], "\u2400", "\u2400", 1),
        (["\x00" * 20_000] * 3, "\u2400", "\u2400", 1),
    ],
)
async def test_many_texts_and_odd_ones_are_bounded_together(
    nursery: trio.Nursery, texts: list[str], begins: str, ends: str, saved: int
) -> None:
    image = ImageContent(blob="b", media_type="image/png", size_bytes=1)
    content: list[Content] = [TextContent(text=text) for text in texts]
    content += [image] * 100
    caller = caller_of(nursery, Fake(result=ToolResult(tuple(content))))
    shown, *images = (await caller.call("fake")).content
    assert isinstance(shown, TextContent)
    assert len(shown.text.encode()) <= limits.RESULT_BYTES_MAX
    assert shown.text.startswith(begins)
    assert shown.text.removesuffix("\n(36 files left out)").endswith(ends)
    assert images == [image] * limits.RESULT_BLOCKS_MAX
    assert len(caller.blobs.kept) == saved


async def test_what_a_tool_returns_is_bounded(nursery: trio.Nursery) -> None:
    text = "".join(f"{n:07}\n" for n in range(50_000))
    caller = caller_of(nursery, Fake(result=ToolResult((TextContent(text=text),))))
    shown = await caller.text("fake")
    assert len(shown.encode()) < limits.RESULT_BYTES_MAX + 200
    assert shown.startswith("0000000\n")
    assert shown.endswith("0049999\n")
    ((key, saved),) = caller.blobs.kept.items()
    assert saved == text.encode()
    assert f"read_file blob:{key}" in shown
    caller.blobs.fails = True  # the tool has run: what it gave must not be lost
    cut = await caller.text("fake")
    assert "left out; it could not be saved: no space left on the device)" in cut
    assert (cut.startswith("0000000\n"), cut.endswith("0049999\n")) == (True, True)
    failing = caller_of(nursery, Fake(raises=ToolFailure("x" * 100_000)))
    assert len(await failing.failure("fake")) < limits.FAILURE_BYTES_MAX + 100


async def test_agents(nursery: trio.Nursery) -> None:
    caller = Caller(ScriptedWorkspace(), nursery)
    call = await caller.prepare("spawn_agent", task="look\nat it", agent="scout")
    assert call.access.kind == "none"
    assert call.details == AgentDetails(action="spawn", task="look\nat it")
    result = await call.run(caller.context())
    assert caller.agents.spawned == [("look\nat it", "scout")]
    assert result.details == AgentDetails(action="spawn", task="look\nat it", session_id="s1")
    assert result.content == (TextContent(text="Started session s1."),)
    assert "no result after 5 s" in await caller.failure("wait_agent", session_id="s1", timeout_s=5)
    caller.agents.results["s1"] = "found\x00"
    assert await caller.text("wait_agent", session_id="s1") == "found␀"
    assert "the task is empty" in await caller.failure("spawn_agent", task=" ")
