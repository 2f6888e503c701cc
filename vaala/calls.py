"""Running the tool calls of a step: prepared, permitted, run side by side, each with one result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

from vaala import limits
from vaala.agent.answer import Answer
from vaala.changes import Change, item_change, now_ms, replace, step_change
from vaala.children import CallAgents
from vaala.observer import ToolWork
from vaala.permissions.base import Allow, Ask, Decision, Deny, PermissionRequest
from vaala.permissions.policy import call_digest
from vaala.services.workspace import serviced
from vaala.text import cut, scrub
from vaala.tools.base import PreparedCall, ToolContext, ToolFailure, ToolResult
from vaala_executors.errors import ExecutorError
from vaala_protocol.content import Content, TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import Approval, Item, ToolCall
from vaala_protocol.state import StepInfo

if TYPE_CHECKING:
    from vaala.turn import Turn

log = logging.getLogger(__name__)


class Plan(Struct, frozen=True):
    """A call that is going to run, or waits for a decision."""

    item: ToolCall
    prepared: PreparedCall
    approval: Approval | None = None


class _Decision:
    """A place where a call waits until its approval is answered."""

    __slots__ = ("answered", "call")

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.call: ToolCall | None = None


class CallRunner:
    """The calls of one turn, step by step. Its turn holds the items."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._session = turn.session
        self._decisions: dict[str, _Decision] = {}
        self._left = 0

    def decided(self, approval_id: str, call: ToolCall) -> None:
        """Take an answer that is written down already."""
        self._turn.items[call.id] = call
        self._turn.items[approval_id] = self._session.state.open[approval_id]
        # Nobody waits any more when the turn was interrupted while the answer was written down.
        if (decision := self._decisions.get(approval_id)) is not None:
            decision.call = call
            decision.answered.set()

    async def plan(self, answer: Answer) -> tuple[list[Plan], list[Item]]:
        """Check every call and ask the gate. Returns what runs, and the items of all calls.

        Nothing is logged or started yet. A call that is no good has its result already.
        """
        truncated = answer.finish is not None and answer.finish.reason == "length"
        plans: list[Plan] = []
        items: list[Item] = []
        for number, call in enumerate(answer.calls):
            if number >= limits.CALLS_PER_STEP_MAX:
                text = f"At most {limits.CALLS_PER_STEP_MAX} calls at once; make this one again."
                items.append(_ended(call, "error", text))
                continue
            plan = await self._plan(call, truncated=truncated)
            if isinstance(plan, ToolCall):
                items.append(plan)
                continue
            plans.append(plan)
            items.append(plan.item)
            if plan.approval is not None:
                items.append(plan.approval)
                self._decisions[plan.approval.id] = _Decision()
        return plans, items

    async def _plan(self, call: ToolCall, *, truncated: bool) -> Plan | ToolCall:
        try:
            workspace = await self._session.around.workspace()
            prepared = await self._turn.tools.prepare(
                call.name, call.arguments, workspace, truncated=truncated
            )
        except (ToolFailure, ExecutorError) as failure:
            return _ended(call, "error", str(failure))
        call = replace(call, details=prepared.details, title=prepared.title)
        match await self._decide(call, prepared):
            case Allow():
                return Plan(replace(call, state="running", started_at=now_ms()), prepared)
            case Deny(reason=reason):
                return replace(call, state="denied", reason=reason, completed_at=now_ms())
            case Ask() as ask:
                return Plan(call, prepared, self._approval(call, ask))

    async def _decide(self, call: ToolCall, prepared: PreparedCall) -> Decision:
        state = self._session.state
        request = PermissionRequest(
            tool=call.name,
            access=prepared.access,
            details=prepared.details,
            mode=self._turn.mode,
            session_id=self._session.id,
            grants=state.head.grants,
            can_keep=self._turn.definitions.keep_rule is not None,
        )
        try:
            # A gate is the embedder's code, and that need not be typed.
            decision: Any = await self._turn.definitions.gate.decide(request)
            if not isinstance(decision, Allow | Deny | Ask):
                raise TypeError(f"decide returned {decision!r}, not Allow, Deny or Ask")
            return decision
        except Exception as error:
            log.exception("the permission gate failed on %s", call.name)
            return Deny(f"The permission gate failed, so nothing is allowed: {error!r}")

    def _approval(self, call: ToolCall, ask: Ask) -> Approval:
        return Approval(
            id=new_id(), at=self._session.next_at(), created_at=now_ms(),
            turn_id=call.turn_id, step=call.step, session_id=self._session.id,
            tool_call_id=call.id, digest=call_digest(call.name, call.arguments),
            options=ask.options, reason=ask.reason,
        )  # fmt: skip

    async def run(self, plans: Sequence[Plan], step: StepInfo) -> None:
        """Run the calls side by side; the last one to end closes the step in the same append."""
        self._left = len(plans)
        async with trio.open_nursery() as nursery:
            for plan in plans:
                nursery.start_soon(self._run, plan, step)

    async def _run(self, plan: Plan, step: StepInfo) -> None:
        call = plan.item
        changes: list[Change] = []
        if plan.approval is not None:
            call = await self._decision(plan.approval, call)
        if call.state == "running":
            done = await self._result(call, plan.prepared)
            before = self._turn.items[call.id]
            self._turn.items[call.id] = replace(done, rev=before.rev + 1)
            changes.append(item_change(done, before))
        self._left -= 1
        if not self._left:
            ended = replace(step, ended_at=now_ms())
            changes.append(step_change(self._session.id, ended, step))
        if changes:
            await self._turn.record(changes)

    async def _decision(self, approval: Approval, call: ToolCall) -> ToolCall:
        decision = self._decisions[approval.id]
        try:
            with self._session.waits.on("you", f"approve {call.title}"):
                await decision.answered.wait()
        finally:
            del self._decisions[approval.id]
        assert decision.call is not None
        return decision.call

    async def _result(self, call: ToolCall, prepared: PreparedCall) -> ToolCall:
        """Run a call. Whatever goes wrong in the tool becomes its result."""
        clients: dict[str, None] = {}
        work = ToolWork(call.id, call.name)
        try:
            with self._session.waits.on(call.name, call.title):
                context = await self._context(call, clients.setdefault)
                with self._turn.definitions.observer.tool_call(work) as seen:
                    try:
                        result = await prepared.run(context)
                    except ToolFailure:
                        seen.ended("error")
                        raise
                    seen.ended("error" if result.is_error else "done")
        except ToolFailure as failure:
            noted = self._turn.items[call.id]
            assert isinstance(noted, ToolCall)
            details = failure.details or noted.details
            call = replace(call, details=details, served_by=", ".join(clients) or None)
            return _ended(call, "error", str(failure))
        return replace(
            call,
            state="error" if result.is_error else "done",
            result=_bounded(result),
            details=result.details or call.details,
            served_by=", ".join(clients) or None,
            completed_at=now_ms(),
        )

    async def _context(self, call: ToolCall, served: Callable[[str], None]) -> ToolContext:
        session = self._session
        around = session.around
        return ToolContext(
            call_id=call.id,
            workspace=serviced(
                await around.workspace(), around.services, around.environment, served
            ),
            served=served,
            commands=session.commands,
            agents=CallAgents(self._turn, call.id),
            reads=session.files.reads,
            publish=_OutputShower(self._turn, call).publish,
            save=session.files.save,
            load=session.files.load,
            ask=partial(self._turn.questions.ask, call.id),
            command_foreground_s=self._turn.agent.budgets.command_foreground_s,
        )


class _OutputShower:
    """Shows a call as live from its first output on."""

    def __init__(self, turn: Turn, call: ToolCall) -> None:
        self._live = turn.session.live
        self._call = call
        self._shown = False

    def publish(self, text: str) -> None:
        if not self._shown:
            self._shown = True
            self._live.show(self._call, "output")
        self._live.add(self._call.id, scrub(text))


def _ended(call: ToolCall, state: str, text: str) -> ToolCall:
    text = cut(scrub(text), limits.RESULT_BYTES_MAX)
    return replace(call, state=state, result=(TextContent(text=text),), completed_at=now_ms())


def _bounded(result: ToolResult) -> tuple[Content, ...]:
    """Return the content, all its texts together bounded; see `vaala.tools.containment`."""
    blocks: list[Content] = []
    left = limits.RESULT_BYTES_MAX
    for block in result.content:
        if isinstance(block, TextContent):
            text = cut(scrub(block.text), left)
            left = max(0, left - len(text.encode()))
            blocks.append(TextContent(text=text))
        else:
            blocks.append(block)
    return tuple(blocks)
