"""Tools that a client offers, as tools of the conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from vaala.models.base import ToolSpec
from vaala.permissions.base import Access
from vaala.services import limits
from vaala.services.base import ClientTools
from vaala.services.errors import ServiceFailure
from vaala.services.live import LiveOffer
from vaala.services.schema import schema_fault
from vaala.services.schema_check import argument_problems
from vaala.tools.base import PreparedCall, Tool, ToolContext, ToolFailure, ToolResult
from vaala.tools.explain import schema_text
from vaala.tools.strict_json import NotStrict, parse_object
from vaala.tools.text import clean, clean_line, head_and_tail
from vaala_executors.workspace import Workspace
from vaala_protocol.base import encode
from vaala_protocol.calls import OtherDetails
from vaala_protocol.content import Content, TextContent
from vaala_protocol.errors import BadRequest

if TYPE_CHECKING:
    from vaala_protocol.methods.client import OfferedTool, ToolRunResult

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS_MAX = 64
"""What every provider accepts as the name of a function."""


def client_tools(live: LiveOffer, taken: Collection[str]) -> tuple[Tool, ...]:
    """Return the tools of an offer; raises `BadRequest` that names the tool and what is wrong.

    A name is made legal by writing ``_`` for what no provider takes. ``taken`` are the names of
    the runtime's own tools, which no client can replace.
    """
    tools = live.offer.tools
    if tools is None:
        return ()
    offered = tools.offered
    if len(offered) > limits.TOOLS_PER_OFFER_MAX:
        raise BadRequest(
            f"{len(offered)} tools were offered; at most {limits.TOOLS_PER_OFFER_MAX} can be"
        )
    _check_size(offered)
    made: dict[str, OfferedTool] = {}
    for one in offered:
        name = _ILLEGAL.sub("_", one.name.strip()[:_NAME_CHARS_MAX])
        shown = _shown(one)
        if not name:
            raise BadRequest("a tool was offered without a name")
        if name in taken:
            raise BadRequest(
                f"the tool {shown} cannot be offered: {name} is a tool of the runtime itself; "
                "give it another name"
            )
        if name in made:
            raise BadRequest(f"two tools were offered under the name {name}; rename one of them")
        _check(one, shown)
        made[name] = one
    return tuple(ClientTool(live, tools, name, one) for name, one in made.items())


def _check_size(offered: Sequence[OfferedTool]) -> None:
    """Raise `BadRequest` for schemas that are too large; before anything looks into them."""
    whole = 0
    for tool in offered:
        size = len(encode(tool.parameters))
        if size > limits.SCHEMA_BYTES_MAX:
            raise BadRequest(
                f"the parameters of the tool {_shown(tool)} have {size:,} bytes; at most "
                f"{limits.SCHEMA_BYTES_MAX:,} can be sent to a model"
            )
        whole += size
        if whole > limits.OFFER_SCHEMA_BYTES_MAX:
            raise BadRequest(
                f"the parameters of the {len(offered)} tools have more than "
                f"{limits.OFFER_SCHEMA_BYTES_MAX:,} bytes together, which go to a model each time: "
                "offer fewer of them"
            )


def _shown(tool: OfferedTool) -> str:
    return repr(clean_line(tool.name, limits.VALUE_CHARS_MAX))


def _check(tool: OfferedTool, shown: str) -> None:
    if not tool.description.strip():
        raise BadRequest(f"the tool {shown} has no description: a model would not know its use")
    if tool.parameters.get("type", "object") != "object":
        raise BadRequest(f"the parameters of the tool {shown} must be a schema of type object")
    if fault := schema_fault(tool.parameters):
        raise BadRequest(f"the parameters of the tool {shown} are no JSON Schema: {fault}")


class ClientTool(Tool):
    """Run by its client; a call fails at once when the client goes."""

    def __init__(self, live: LiveOffer, tools: ClientTools, name: str, tool: OfferedTool) -> None:
        self._live = live
        self._tools = tools
        self._tool = tool
        schema = {"properties": {}, **tool.parameters, "type": "object"}
        # Cut before it is cleaned, which costs more for each character, and after: it has grown.
        description = head_and_tail(tool.description, limits.DESCRIPTION_BYTES_MAX)[0]
        description = head_and_tail(clean(description), limits.DESCRIPTION_BYTES_MAX)[0]
        self._spec = ToolSpec(name, description, schema)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def prepare(self, arguments: str, workspace: Workspace) -> PreparedCall:
        values = self._read(arguments)
        subject = _canonical(values) if values else ""
        title = f"{self._spec.name} {clean_line(subject, 80)}".rstrip()
        if len(subject.encode()) > limits.SUBJECT_BYTES_MAX:
            subject = ""
        return PreparedCall(
            details=OtherDetails(title=title),
            title=title,
            access=Access("none") if self._tool.read_only else Access("other", subject),
            run=partial(self._run, values),
        )

    def _read(self, arguments: str) -> dict[str, Any]:
        name, schema = self._spec.name, self._spec.parameters
        try:
            values = parse_object(arguments)
        except NotStrict as error:
            raise ToolFailure(
                f"{name} was not run: its arguments cannot be read, {error}. "
                f"Expected: {schema_text(schema)}"
            ) from error
        problems = argument_problems(values, schema)
        if problems:
            more = len(problems) - limits.PROBLEMS_MAX
            rest = f"; and {more} more" if more > 0 else ""
            raise ToolFailure(
                f"{name} was not run, its arguments are wrong: "
                f"{'; '.join(problems[: limits.PROBLEMS_MAX])}{rest}. "
                f"Expected: {schema_text(schema)}"
            )
        return values

    async def _run(self, values: dict[str, Any], context: ToolContext) -> ToolResult:
        context.served(self._live.client)
        work = partial(self._tools.run, context.call_id, self._tool.name, values)
        changes = not self._tool.read_only
        try:
            result: ToolRunResult = await self._live.ask(
                f"run {self._spec.name}", limits.TOOL_S, work, changes=changes
            )
        except ServiceFailure as failure:
            raise ToolFailure(str(failure)) from failure
        return ToolResult(await _content(result.content, context), is_error=result.is_error)


def _canonical(values: dict[str, Any]) -> str:
    """Return the same text for the same arguments, however the model wrote them."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


async def _content(content: Sequence[Content], context: ToolContext) -> tuple[Content, ...]:
    """Return the blocks; text is cleaned and bounded where every tool's is.

    An image or a file is named by its blob, which has to be one of this conversation.
    """
    blocks: list[Content] = []
    for block in content:
        if not isinstance(block, TextContent):
            try:
                await context.load(block.blob, 0, 1)
            except ToolFailure:
                shown = clean_line(block.media_type, limits.VALUE_CHARS_MAX)
                text = f"(a block of type {shown} was left out: this conversation has no such blob)"
                blocks.append(TextContent(text=text))
                continue
        blocks.append(block)
    return tuple(blocks)
