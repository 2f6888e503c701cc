"""Offers: the server asks the client, over the client's connection, for as long as it lives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import Client, machine, server, settled
from vaala.server import limits
from vaala.server.wire import PeerInfo
from vaala.services.base import TerminalCommand
from vaala.services.errors import ServiceGone
from vaala.services.live import LiveOffer
from vaala_protocol.base import Malformed
from vaala_protocol.content import TextContent
from vaala_protocol.errors import BadRequest, NotFound, Overloaded, Stopping
from vaala_protocol.limits import REQUESTS_MAX
from vaala_protocol.methods import client as wire
from vaala_protocol.methods.base import Done
from vaala_protocol.methods.conversation import ResyncNotification

ECHO = wire.OfferedTool(
    name="echo", description="Says it again.", parameters={"type": "object", "properties": {}}
)


def everything(talk: str) -> wire.ClientOfferParams:
    return wire.ClientOfferParams(
        conversation_id=talk,
        files=wire.OfferedFiles(),
        terminal=True,
        tools=(ECHO,),
        elicitation=True,
    )


def answers(client: Client, kind: type[Any], answer: Callable[[Any], Any]) -> list[Any]:
    """Let a client answer the server's requests of a kind; they are noted in the list."""
    asked: list[Any] = []

    async def serve(params: Any) -> Any:
        asked.append(params)
        return answer(params)

    client.serves[kind] = serve
    return asked


async def hang(client: Client, kind: type[Any]) -> Callable[[], Awaitable[None]]:
    """Let a client never answer the requests of a kind; return what waits for the first."""
    came = trio.Event()

    async def serve(_: Any) -> Any:
        came.set()
        await trio.sleep_forever()

    client.serves[kind] = serve
    return came.wait


async def test_a_client_does_all_that_it_offers(autojump_clock: object) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client("editor") as client,
    ):
        talk = await client.create()
        await client.call(everything(talk))
        services = (await served.runtime.conversation(talk)).services
        assert services.clients == ("editor",)
        assert [one.spec.name for one in services.tools] == ["echo"]
        live = services.reader
        assert isinstance(live, LiveOffer)
        offer = live.offer
        assert offer.files is not None
        assert offer.tools is not None
        assert offer.terminals is not None

        answers(client, wire.FileReadParams, lambda p: wire.FileReadResult(text=p.path))
        assert await offer.files.read("/w/a") == "/w/a"
        written = answers(client, wire.FileWriteParams, lambda p: Done())
        await offer.files.write("/w/a", "text")
        assert written == [wire.FileWriteParams(conversation_id=talk, path="/w/a", text="text")]
        said = wire.ToolRunResult(content=(TextContent(text="again"),))
        answers(client, wire.ToolRunParams, lambda p: said)
        assert await offer.tools.run("call", "echo", {"a": 1}) == said
        answers(client, wire.ElicitParams, lambda p: wire.ElicitResult(answer=p.choices[1]))
        elicited = await services.elicit("q", "which?", ("a", "b"))
        assert (elicited.answer, elicited.client) == ("b", "editor")

        started = answers(
            client, wire.TerminalStartParams, lambda p: wire.TerminalStartResult(terminal_id="t")
        )
        command = TerminalCommand("ls", ("-l",), "/w", {"A": "b"})
        assert await offer.terminals.start(command) == "t"
        assert started[0].environment == {"A": "b"}
        output = wire.TerminalOutputResult(text="x", exit=wire.TerminalExit(code=0))
        answers(client, wire.TerminalOutputParams, lambda p: output)
        assert await offer.terminals.output("t") == output
        answers(client, wire.TerminalEndParams, lambda p: wire.TerminalExit(signal=9))
        assert (await offer.terminals.end("t")).signal == 9


async def test_a_client_elsewhere_serves_nothing_of_this_machine(autojump_clock: object) -> None:
    far = PeerInfo("10.0.0.7:1", local=False)
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client(peer=far) as client,
    ):
        talk = await client.create()
        for params in (
            wire.ClientOfferParams(conversation_id=talk, files=wire.OfferedFiles()),
            wire.ClientOfferParams(conversation_id=talk, terminal=True),
        ):
            with pytest.raises(BadRequest, match="own machine only"):
                await client.call(params)
        await client.call(
            wire.ClientOfferParams(conversation_id=talk, tools=(ECHO,), elicitation=True)
        )


async def test_one_client_serves_a_bounded_number_of_conversations(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OFFERS_PER_CLIENT_MAX", 2)
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
    ):
        talks = [await client.create() for _ in range(3)]
        made = [
            await client.begin(wire.ClientOfferParams(conversation_id=talk, elicitation=True))
            for talk in talks
        ]
        outcomes: list[object] = []
        refused: list[str] = []
        for id in made:
            try:
                outcomes.append(await client.answer_of(id))
            except Overloaded as error:
                refused.append(str(error))
        assert len(outcomes) == 2
        assert "let it withdraw one" in refused[0]
        first = outcomes[0]
        assert isinstance(first, wire.ClientOfferResult)
        await client.call(wire.ClientWithdrawParams(offer_id=first.offer_id))
        await client.call(wire.ClientOfferParams(conversation_id=talks[2], elicitation=True))
        await client.call(wire.ClientOfferParams(conversation_id=talks[2], elicitation=True))


async def test_what_a_client_refuses_or_garbles_is_told(autojump_clock: object) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.call(everything(talk))
        live = (await served.runtime.conversation(talk)).services.reader
        assert live is not None
        assert live.offer.files is not None

        def missing(_: Any) -> Any:
            raise NotFound("no such file")

        answers(client, wire.FileReadParams, missing)
        with pytest.raises(NotFound, match="no such file"):
            await live.offer.files.read("/w/a")
        answers(client, wire.FileReadParams, lambda p: wire.ElicitResult(answer="?"))
        with pytest.raises(Malformed):
            await live.offer.files.read("/w/a")


async def test_an_offer_dies_with_its_connection(autojump_clock: object) -> None:
    async with server(script({"say": "ok"}), executors=machine()) as served:
        failures: list[Exception] = []

        async def read(live: LiveOffer) -> None:
            files = live.offer.files
            assert files is not None
            try:
                await live.ask("read", 60, lambda: files.read("/w/a"))
            except ServiceGone as gone:
                failures.append(gone)

        async with trio.open_nursery() as nursery:
            async with served.client() as client:
                talk = await client.create()
                await client.call(everything(talk))
                conversation = await served.runtime.conversation(talk)
                live = conversation.services.reader
                assert live is not None
                came = await hang(client, wire.FileReadParams)
                nursery.start_soon(read, live)
                await came()
            await settled()
            assert len(failures) == 1
            assert len(conversation.services) == 0
        assert live.offer.files is not None
        with pytest.raises(Stopping):
            await live.offer.files.read("/w/b")


async def test_an_answer_that_is_not_wanted_any_more_is_called_off(
    autojump_clock: object,
) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.call(everything(talk))
        live = (await served.runtime.conversation(talk)).services.reader
        assert live is not None
        assert live.offer.files is not None
        await hang(client, wire.FileReadParams)
        with trio.move_on_after(5) as scope:
            await live.offer.files.read("/w/a")
        assert scope.cancelled_caught
        await settled()
        assert client.cancelled == [1]
        answers(client, wire.FileReadParams, lambda p: wire.FileReadResult(text="later"))
        assert await live.offer.files.read("/w/a") == "later"


async def test_no_more_is_asked_of_a_client_than_it_can_take(autojump_clock: object) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
        trio.open_nursery() as nursery,
    ):
        talk = await client.create()
        await client.call(everything(talk))
        live = (await served.runtime.conversation(talk)).services.reader
        assert live is not None
        assert live.offer.files is not None
        await hang(client, wire.FileReadParams)
        for _ in range(REQUESTS_MAX):
            nursery.start_soon(live.offer.files.read, "/w/a")
        await settled()
        with pytest.raises(Overloaded):
            await live.offer.files.read("/w/b")
        nursery.cancel_scope.cancel()


async def test_a_later_offer_replaces_the_one_before(autojump_clock: object) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
        served.client() as other,
    ):
        talk = await client.create()
        first = await client.call(everything(talk))
        services = (await served.runtime.conversation(talk)).services
        bad = wire.OfferedTool(name="x", description="", parameters={})
        with pytest.raises(BadRequest):
            await client.call(wire.ClientOfferParams(conversation_id=talk, tools=(bad,)))
        assert len(services) == 1
        second = await client.call(wire.ClientOfferParams(conversation_id=talk, elicitation=True))
        assert len(services) == 1
        assert services.reader is None
        for client_, offer_id in ((client, first.offer_id), (other, second.offer_id)):
            with pytest.raises(NotFound):
                await client_.call(wire.ClientWithdrawParams(offer_id=offer_id))
        await client.call(wire.ClientWithdrawParams(offer_id=second.offer_id))
        assert len(services) == 0


async def test_an_offer_is_made_again_to_a_conversation_that_crashed(
    autojump_clock: object, errors_logged: list[str]
) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.watch(talk)
        await client.call(everything(talk))
        await client.send(talk, "go")
        conversation = await served.runtime.conversation(talk)
        conversation.report(object())  # type: ignore[arg-type] # nothing it knows: it dies of it
        await client.hear(lambda note: isinstance(note, ResyncNotification))
        await client.send(talk, "again")
        again = await served.runtime.conversation(talk)
        assert again is not conversation
        assert len(again.services) == 1
    assert len(errors_logged) == 1
