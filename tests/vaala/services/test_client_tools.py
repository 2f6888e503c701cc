"""Tools that clients offer: refused when no model could use them, gone with their client."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.services.fakes import Connection, FakeTools, a_tool
from tests.vaala.tools.calling import Caller
from tests.vaala.tools.scripted import ScriptedWorkspace
from vaala.permissions.base import Allow, Ask, Decision, Deny, PermissionRequest
from vaala.permissions.policy import ModeGate
from vaala.permissions.rules import parse_rules
from vaala.services import limits
from vaala.services.base import Offer
from vaala.services.registry import Services
from vaala.tools import limits as tools_limits
from vaala.tools.base import PreparedCall
from vaala.tools.builtin import builtin_tools
from vaala.tools.registry import ToolSet
from vaala_protocol.base import Malformed
from vaala_protocol.content import FileContent, ImageContent, TextContent, text_of
from vaala_protocol.errors import BadRequest, Refused
from vaala_protocol.methods.client import OfferedTool, ToolRunResult
from vaala_protocol.settings import Mode

OWN = builtin_tools()


def offered(services: Services, *tools: OfferedTool, client: str = "Zed") -> FakeTools:
    fake = FakeTools(*tools)
    fake.connection = Connection(services, Offer(client, tools=fake))
    return fake


def a_caller(services: Services, nursery: trio.Nursery) -> Caller:
    return Caller(ScriptedWorkspace(), nursery, services.with_tools(OWN))


async def test_a_call_of_an_offered_tool(nursery: trio.Nursery) -> None:
    services = Services(lambda: OWN.names)
    fake = offered(services, a_tool("deploy it", read_only=True))
    caller = a_caller(services, nursery)
    spec = caller.tools.specs[-1]
    assert (spec.name, spec.description) == ("deploy_it", "deploy it it.")
    assert spec.parameters["required"] == ["target"]
    call = await caller.prepare("deploy_it", target="x", times=2)
    assert call.title == 'deploy_it {"target":"x","times":2}'
    assert text_of((await call.run(caller.context("c7"))).content) == "done"
    assert fake.calls == [("c7", "deploy it", {"target": "x", "times": 2})], "its own name for it"


async def test_who_served_the_call_is_told(nursery: trio.Nursery) -> None:
    services = Services()
    offered(services, a_tool())
    caller = a_caller(services, nursery)
    told: list[str] = []
    call = await caller.prepare("deploy", target="x")
    await call.run(replace(caller.context(), served=told.append))
    assert told == ["Zed"]


BAD_OFFERS: list[tuple[dict[str, Any], str]] = [
    ({"name": "exec_command"}, "'exec_command' cannot be offered: exec_command is a tool of the"),
    ({"name": "read file"}, "'read file' cannot be offered: read_file is a tool of the runtime"),
    ({"name": " "}, "without a name"),
    ({"description": " \n"}, "'deploy' has no description"),
    ({"parameters": {"type": "string"}}, "must be a schema of type object"),
    ({"parameters": {"properties": {"a": {"type": "text"}}}}, 'there is no type "text"'),
    ({"parameters": {"required": "a"}}, 'required is "a", not a list'),
    ({"parameters": {"x": "y" * limits.SCHEMA_BYTES_MAX}}, "at most 65,536 can be sent"),
]


@pytest.mark.parametrize(("fields", "text"), BAD_OFFERS)
def test_an_offer_that_no_model_could_use_is_refused(fields: dict[str, Any], text: str) -> None:
    services = Services(lambda: OWN.names)
    with pytest.raises(BadRequest, match=text):
        offered(services, a_tool("fine"), a_tool(**fields))
    assert len(services) == 0
    assert services.tools == ()


def test_names_clash_within_an_offer_and_their_number_is_bounded() -> None:
    services = Services()
    with pytest.raises(BadRequest, match="two tools were offered under the name a_b"):
        offered(services, a_tool("a b"), a_tool("a.b"))
    with pytest.raises(BadRequest, match="129 tools were offered; at most 128"):
        offered(services, *(a_tool(f"t{n}") for n in range(129)))
    offered(services, a_tool("x" * 99))
    assert services.tools[0].spec.name == "x" * 64


def test_what_is_too_large_is_refused_before_it_is_looked_into() -> None:
    services = Services()
    many = {"type": "object", "anyOf": [{}] * 2_700_000}
    name, description = "\0" * 1_000_000, "\0" * 1_000_000
    began = time.process_time()
    with pytest.raises(BadRequest, match="have 8,100,027 bytes; at most 65,536"):
        offered(services, a_tool("deploy", parameters=many))
    offered(services, a_tool(f"a{name}", description=description))
    assert time.process_time() - began < 1, "to look at each of them would take seconds"
    assert len(services.tools[0].spec.description.encode()) <= limits.DESCRIPTION_BYTES_MAX


def test_the_schemas_of_an_offer_are_bounded_together() -> None:
    services = Services()
    large = {"x": "y" * 60_000}
    with pytest.raises(BadRequest, match="5 tools have more than 262,144 bytes together"):
        offered(services, *(a_tool(f"t{n}", parameters=large) for n in range(5)))
    offered(services, *(a_tool(f"t{n}", parameters=large) for n in range(4)))


def test_the_newest_tool_of_a_name_wins_and_the_set_follows() -> None:
    services = Services(lambda: OWN.names)
    assert services.with_tools(OWN) is OWN
    one = Connection(services, Offer("one", tools=FakeTools(a_tool("a"), a_tool("b"))))
    two = Connection(services, Offer("two", tools=FakeTools(a_tool("b", description="newer"))))
    mixed = services.with_tools(OWN)
    assert mixed.names == (*OWN.names, "a", "b")
    assert mixed.specs[-1].description == "newer"
    assert services.with_tools(OWN) is mixed, "asked for before each call of a model"
    two.close()
    assert services.with_tools(OWN).specs[-1].description == "b it."
    one.close()
    assert services.with_tools(OWN) is OWN


def test_a_name_that_the_runtime_takes_later_is_the_runtime_s() -> None:
    services = Services()
    offered(services, a_tool("search"), a_tool("other"))
    assert services.with_tools(OWN).names == (*OWN.names, "other")
    alone = ToolSet(())
    assert services.with_tools(alone).names == ("search", "other")


async def test_a_tool_vanishes_with_its_client_and_its_call_fails(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    services = Services()
    fake = FakeTools(a_tool())
    connection = Connection(services, Offer("Zed", tools=fake))
    caller = a_caller(services, nursery)
    fake.manner.silent = True
    failures: list[str] = []

    async def call() -> None:
        failures.append(await caller.failure("deploy", target="x"))

    nursery.start_soon(call)
    await fake.manner.news.wait()
    began = trio.current_time()
    connection.close()
    await wait_all_tasks_blocked()
    assert trio.current_time() == began
    (text,) = failures
    assert "the client Zed went away when asked to run deploy; whether it was done" in text
    # The answer of the model that named it came before the client went.
    assert "was not asked to run deploy" in await caller.failure("deploy", target="x")
    assert "there is no tool 'deploy'" in await a_caller(services, nursery).failure("deploy")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "gave no answer within 600 s; whether it was done is not known"),
        (Malformed("expected `array` at `$.content`"), "its answer cannot be read"),
        (Refused("not in this project"), "the client Zed did not run deploy: not in this project"),
    ],
)
async def test_a_tool_that_fails(
    error: Exception | None, text: str, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    services = Services()
    fake = offered(services, a_tool())
    fake.manner.error, fake.manner.silent = error, error is None
    assert text in await a_caller(services, nursery).failure("deploy", target="x")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"target": "a", "target": "b"}', "its arguments cannot be read"),
        ('{"target": NaN}', "its arguments cannot be read"),
        ("[]", "must be a JSON object"),
        ("{}", "`target` is missing"),
        ('{"target": 1}', "`target` must be string, not 1"),
        ('{"target": "a", "times": "2", "more": 1}', '`times` must be integer, not "2"; there'),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_client(
    arguments: str, text: str, nursery: trio.Nursery
) -> None:
    services = Services()
    fake = offered(services, a_tool())
    caller = a_caller(services, nursery)
    with pytest.raises(Exception, match="deploy was not run") as caught:
        await caller.tools.prepare("deploy", arguments, caller.workspace)
    assert text in str(caught.value)
    assert "Expected: {target: string, times?: integer}" in str(caught.value)
    assert fake.manner.asked == []


async def test_a_tool_without_parameters(nursery: trio.Nursery) -> None:
    services = Services()
    fake = offered(services, a_tool(parameters={}))
    caller = a_caller(services, nursery)
    assert caller.tools.specs[-1].parameters == {"type": "object", "properties": {}}
    call = await caller.tools.prepare("deploy", "", caller.workspace)
    assert call.title == "deploy"
    await call.run(caller.context())
    assert fake.calls == [("call", "deploy", {})]


async def test_a_result_is_cleaned_bounded_and_has_its_own_blobs_alone(
    nursery: trio.Nursery,
) -> None:
    services = Services()
    fake = offered(services, a_tool())
    caller = a_caller(services, nursery)
    key = await caller.blobs.save(b"png")
    mine = ImageContent(blob=key, media_type="image/png", size_bytes=3)
    fake.result = ToolRunResult(
        content=(
            TextContent(text="a\x1b[31mb\u202ec"),
            mine,
            FileContent(name="f", blob="elsewhere", media_type="text/plain", size_bytes=1),
            TextContent(text="x" * 100_000),
        ),
        is_error=True,
    )
    result = await caller.call("deploy", target="x")
    assert result.is_error
    # Texts that are too much together become one, and stand before the rest.
    cut, image = result.content
    assert image == mine
    text = text_of([cut])
    assert text.startswith("a␛[31mb\ufffdc\n"), "the first of them are at its head"
    assert "text/plain was left out" in text
    assert "left out; read_file blob:" in text
    assert len(text.encode()) <= tools_limits.RESULT_BYTES_MAX
    (kept,) = caller.blobs.kept.keys() - {key}
    whole = caller.blobs.kept[kept].decode()
    assert whole.startswith("a\x1b[31mb\u202ec\n"), "as it came"
    assert whole.endswith("\n" + "x" * 100_000)


async def decided(call: PreparedCall, mode: Mode, *grants: str) -> Decision:
    request = PermissionRequest("deploy", call.access, call.details, mode, "s", grants)
    return await ModeGate(parse_rules(deny=["other"])).decide(request)


async def test_permission(nursery: trio.Nursery) -> None:
    services = Services()
    offered(services, a_tool(), a_tool("look", read_only=True))
    caller = a_caller(services, nursery)
    look = await caller.prepare("look", target="x")
    assert isinstance(await decided(look, "read-only"), Allow)
    call = await caller.prepare("deploy", target="x", times=1)
    assert isinstance(await decided(call, "auto-edit"), Ask)
    asked = await decided(call, "ask")
    assert isinstance(asked, Ask)
    assert asked.reason == "to run a tool whose effect is not known"
    exact_rule = 'deploy({"target":"x","times":1})'
    assert [option.rule for option in asked.options] == [
        None, exact_rule, "deploy", None, f"!{exact_rule}",
    ]  # fmt: skip
    assert isinstance(await decided(call, "read-only"), Deny)
    assert isinstance(await decided(call, "full"), Allow)
    exact = asked.options[1].rule
    assert exact is not None
    # The same call, however the model writes it; and no other.
    text = '{ "times": 1, "target": "x" }'
    again = await caller.tools.prepare("deploy", text, caller.workspace)
    assert isinstance(await decided(again, "ask", exact), Allow)
    other = await caller.prepare("deploy", target="y", times=1)
    assert isinstance(await decided(other, "ask", exact), Ask)
    assert isinstance(await decided(other, "ask", "deploy"), Allow)
    long = await caller.prepare("deploy", target="y" * limits.SUBJECT_BYTES_MAX)
    assert long.access.subject == "", "no rule names so much"


async def test_the_arguments_of_the_title_are_cut(nursery: trio.Nursery) -> None:
    services = Services()
    offered(services, a_tool())
    call = await a_caller(services, nursery).prepare("deploy", target="y" * 500)
    assert len(call.title) < 100
    assert json.loads(json.dumps(call.title)) == call.title
