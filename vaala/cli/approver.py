"""Answers approvals for the person who runs the command, or rejects when there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio
from msgspec import Struct

from vaala.cli.progress import Progress
from vaala.cli.terminal import Terminal
from vaala.tools.text import clean, clean_line
from vaala_protocol.calls import CommandDetails
from vaala_protocol.errors import NotFound, NotPending
from vaala_protocol.items import Approval, ApprovalOption, ToolCall

ANSWERED_BY = "vaala run"
SHOWN_LINES_MAX = 40
SHOWN_CHARS_MAX = 4000
_SPARE_KEYS = "asdfgh"


class Answerer(Protocol):
    async def answer_approval(
        self, approval_id: str, option: str, *, by: str = "user", reason: str = ""
    ) -> None: ...


class Approver(Struct):
    """Takes approvals one after the other, oldest first, as they wait in ``progress``."""

    conversation: Answerer
    progress: Progress
    terminal: Terminal | None
    say: Callable[[str], None]
    """Puts text on stderr as it is."""
    refused: list[str] = []
    """The calls that were rejected because there was nobody to ask."""

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            if not self.progress.approvals:
                await self.progress.wait_change()
                continue
            approval = next(iter(self.progress.approvals.values()))
            option, reason = await self._decide(approval)
            if option is not None:
                await self._answer(approval, option, reason)
            self.progress.approvals.pop(approval.id, None)

    async def _answer(self, approval: Approval, option: str, reason: str) -> None:
        try:
            await self.conversation.answer_approval(
                approval.id, option, by=ANSWERED_BY, reason=reason
            )
        except (NotPending, NotFound):
            self.say("(it was settled meanwhile)\n")

    async def _decide(self, approval: Approval) -> tuple[str | None, str]:
        """Return the chosen option and the reason; None: it was settled without an answer."""
        call = self.progress.calls.get(approval.tool_call_id)
        title = clean_line(call.title or call.name, 200) if call else approval.tool_call_id
        if self.terminal is None or not self.terminal.in_foreground():
            self.refused.append(title)
            return _rejection(approval), "nobody can be asked: there is no terminal"
        self.say(_question(approval, call, title))
        return await self._ask(self.terminal, approval)

    async def _ask(self, terminal: Terminal, approval: Approval) -> tuple[str | None, str]:
        keys = _keys(approval.options)
        answer: tuple[str | None, str] = (None, "")

        async def until_settled(scope: trio.CancelScope) -> None:
            while approval.id in self.progress.approvals:
                await self.progress.wait_change()
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_settled, nursery.cancel_scope)
            answer = await self._read_choice(terminal, approval, keys)
            nursery.cancel_scope.cancel()
        return answer

    async def _read_choice(
        self, terminal: Terminal, approval: Approval, keys: dict[str, ApprovalOption]
    ) -> tuple[str, str]:
        while True:
            self.say(f"[{'/'.join(keys)}] ")
            line = await terminal.read_line()
            if line is None:
                self.say("\n")
                return _rejection(approval), "the terminal was closed"
            key, _, reason = line.strip().partition(" ")
            if (option := keys.get(key.lower())) is not None:
                return option.id, reason.strip()
            self.say("Type one of the letters; a reason may follow: n use the other file\n")


def _rejection(approval: Approval) -> str:
    """Return the option that rejects the call, the narrowest there is."""
    wide = {"reject_once": 0, "reject_always": 1}
    rejecting = [option for option in approval.options if option.kind in wide]
    return min(rejecting, key=lambda option: wide[option.kind]).id


def _keys(options: tuple[ApprovalOption, ...]) -> dict[str, ApprovalOption]:
    """Give each option its letter: y and n for this call, a and its neighbours for more."""
    spare = iter(_SPARE_KEYS)
    fixed = {"allow_once": "y", "reject_once": "n"}
    return {fixed.get(option.kind) or next(spare): option for option in options}


def _question(approval: Approval, call: ToolCall | None, title: str) -> str:
    lines = [f"? {title}", *(_content(call) if call else [])]
    if approval.reason:
        lines.append(f"  needs your approval {clean_line(approval.reason, 200)}")
    lines += [f"  {key}  {option.label}" for key, option in _keys(approval.options).items()]
    return "\n".join(lines) + "\n"


def _content(call: ToolCall) -> list[str]:
    """Show all that would be run or written, so that nobody approves what they have not seen."""
    details = call.details
    text = details.command if isinstance(details, CommandDetails) else call.arguments
    lines = clean(text[:SHOWN_CHARS_MAX]).split("\n")[:SHOWN_LINES_MAX]
    shown = "\n".join(lines)
    if len(shown) < len(clean(text)):
        lines.append(f"… {len(text) - len(shown):,} more characters are not shown")
    return [f"    {line}" for line in lines]
