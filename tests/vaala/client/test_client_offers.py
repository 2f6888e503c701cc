"""What a client does for a conversation, also after its connection was another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.client.meeting import MemoryFinder, client_of
from tests.vaala.server.api.serving import server
from vaala.client import ClientTool
from vaala.client.offers import OwnOffer, OwnOffers
from vaala_protocol.errors import NotFound
from vaala_protocol.ids import new_id
from vaala_protocol.methods.base import Done
from vaala_protocol.methods.client import (
    ElicitParams,
    ElicitResult,
    FileReadParams,
    FileReadResult,
    FileWriteParams,
    OfferedTool,
    TerminalEndParams,
    TerminalExit,
    TerminalOutputParams,
    TerminalOutputResult,
    TerminalStartParams,
    ToolRunParams,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
OFFERED = OfferedTool(name="weather", description="The weather.", parameters=SCHEMA)


async def _weather(arguments: dict[str, Any]) -> str:
    return f"{arguments['city']}: clear"


async def _fails(arguments: dict[str, Any]) -> str:
    raise ValueError("no such city")


class _Files:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def read(self, path: str) -> str:
        if path not in self.texts:
            raise NotFound(path)
        return self.texts[path]

    async def write(self, path: str, text: str) -> None:
        self.texts[path] = text


class _Terminals:
    async def start(
        self,
        command: str,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
    ) -> str:
        return "t1"

    async def output(self, terminal_id: str) -> TerminalOutputResult:
        return TerminalOutputResult(text=f"{terminal_id} says hi")

    async def end(self, terminal_id: str) -> TerminalExit:
        return TerminalExit(code=0)


async def test_an_offer_is_served_over_all_connections(autojump_clock: object) -> None:
    async def elicit(asked: ElicitParams) -> str | None:
        return f"{asked.text} Yes."

    async with server() as srv:
        finder = MemoryFinder(srv)
        async with client_of(finder) as client:
            talk = await client.create_conversation(directory="/w")
            services = (await srv.runtime.conversation(talk.id)).services
            tools = [ClientTool(OFFERED, _weather)]
            async with client.offer(talk.id, tools=tools, elicitation=elicit):
                for connections in (1, 2, 3):
                    assert [tool.spec.name for tool in services.tools] == ["weather"]
                    assert (await services.elicit("q", "Sure?", ())).answer == "Sure? Yes."
                    assert len(finder.channels) == connections
                    finder.drop()
                    await client.status()
                    await trio.testing.wait_all_tasks_blocked()
            assert services.tools == ()
            assert services.clients == ()


async def test_an_offer_can_be_made_once_at_a_time(autojump_clock: object) -> None:
    async with server() as srv, client_of(MemoryFinder(srv)) as client:
        talk = await client.create_conversation(directory="/w")
        for _ in range(2):
            async with client.offer(talk.id, tools=[ClientTool(OFFERED, _weather)]):
                with pytest.raises(ValueError, match="already"):
                    async with client.offer(talk.id):
                        pass
        with pytest.raises(NotFound):
            async with client.offer(new_id()):
                pass


async def test_each_request_goes_to_whoever_offered_it() -> None:
    async def elicit(asked: ElicitParams) -> str | None:
        return asked.text.upper()

    files = _Files()
    offers = OwnOffers()
    offer = OwnOffer("c", files, _Terminals(), (ClientTool(OFFERED, _fails),), elicit)
    offers.add(offer)
    written = await offers.serve(FileWriteParams(conversation_id="c", path="/p", text="hi"))
    assert written == Done()
    read = await offers.serve(FileReadParams(conversation_id="c", path="/p"))
    assert read == FileReadResult(text="hi")
    asked = ElicitParams(conversation_id="c", question_id="q", text="why")
    assert await offers.serve(asked) == ElicitResult(answer="WHY")
    run = ToolRunParams(conversation_id="c", call_id="1", name="weather", arguments={})
    result = await offers.serve(run)
    assert "no such city" in str(result)
    assert getattr(result, "is_error", False)
    start = TerminalStartParams(conversation_id="c", command="ls", directory="/")
    terminal_id = getattr(await offers.serve(start), "terminal_id", "")
    output = await offers.serve(TerminalOutputParams(terminal_id=terminal_id))
    assert output == TerminalOutputResult(text="t1 says hi")
    end = TerminalEndParams(terminal_id=terminal_id)
    assert await offers.serve(end) == TerminalExit(code=0)
    with pytest.raises(NotFound):
        await offers.serve(end)
    offers.remove(offer)
    with pytest.raises(NotFound):
        await offers.serve(FileReadParams(conversation_id="c", path="/p"))


async def test_what_was_not_offered_is_not_found() -> None:
    offers = OwnOffers()
    offers.add(OwnOffer("c"))
    for params in (
        FileReadParams(conversation_id="c", path="/p"),
        ElicitParams(conversation_id="c", question_id="q", text="why"),
        ToolRunParams(conversation_id="c", call_id="1", name="weather", arguments={}),
        TerminalStartParams(conversation_id="c", command="ls", directory="/"),
    ):
        with pytest.raises(NotFound):
            await offers.serve(params)
