"""Answers approvals and questions for the person who runs the command, or without one."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Protocol

import trio
from msgspec import Struct

from vaala.cli.allowing import RunRules
from vaala.cli.preview import preview
from vaala.cli.progress import Progress, View
from vaala.cli.questions import ask_question
from vaala.cli.terminal import Terminal
from vaala.tools.text import clean_line
from vaala_protocol.errors import NotFound, NotPending
from vaala_protocol.items import Approval, ApprovalOption, Question

RULE_CHARS_MAX = 1000
"""A longer command is not shown to be pasted."""
_SPARE_KEYS = "asdfgh"
_WORDS = {"yes": "y", "no": "n", "always": "a"}


class Answerer(Protocol):
    async def answer_approval(
        self, approval_id: str, option: str, *, by: str = "user", reason: str = ""
    ) -> None: ...

    async def answer_question(
        self, question_id: str, answer: str | None, *, by: str = "user"
    ) -> None: ...


class Approver(Struct):
    """Takes approvals, then questions, one after the other, as they wait in ``progress``.

    What waits in other people's turns is left to them, and to the inbox.
    """

    conversation: Answerer
    progress: Progress
    terminal: Terminal | None
    view: View
    directory: str
    """Where the conversation works."""
    name: str = "vaala run"
    """Who answers, for all who watch and for the log."""
    rules: RunRules = RunRules()
    """What is answered for the person; see `vaala.cli.allowing`."""
    refused: list[str] = []
    """What was rejected because there was nobody to ask, each with what would allow it."""

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            if (approval := self.progress.next_approval()) is not None:
                await self._settle(approval)
                self.progress.approvals.pop(approval.id, None)
            elif (question := self.progress.next_question()) is not None:
                await self._settle_question(question)
                self.progress.questions.pop(question.id, None)
            else:
                await self.progress.wait_change()

    async def _settle(self, approval: Approval) -> None:
        call = self.progress.calls.get(approval.tool_call_id)
        title = clean_line(call.title or call.name, 200) if call else approval.tool_call_id
        if (rule := self.rules.covering(approval, call)) is not None:
            await self._answer(approval, _allowance(approval), f"--allow {rule}")
            return
        if self.rules.only:
            reason = "the mode read-only allows nothing but what a rule names"
            await self._refuse(approval, title, reason)
            return
        if self.terminal is None or not self.terminal.in_foreground():
            await self._refuse(approval, title, "nobody can be asked: there is no terminal")
            return
        content = await preview(call, self.directory) if call else []
        with self.view.asking() as say:
            say(_question(approval, content, title))
            given = await self._ask(self.terminal, approval, say)
            if given is None or not await self._answer(approval, *given):
                say("\n(it was settled meanwhile)\n" if given is None else "(too late)\n")

    async def _refuse(self, approval: Approval, title: str, reason: str) -> None:
        """Reject, and remember it unless somebody else was faster."""
        way_out = _way_out(approval, title)
        # Before the answer: the turn may end before we hear that it was taken.
        self.refused.append(way_out)
        if not await self._answer(approval, _rejection(approval), reason):
            self.refused.remove(way_out)

    async def _answer(self, approval: Approval, option: str, reason: str) -> bool:
        """Answer; False when it was settled before."""
        try:
            await self.conversation.answer_approval(
                approval.id, option, by=self.name, reason=reason
            )
        except (NotPending, NotFound):
            return False
        return True

    async def _settle_question(self, question: Question) -> None:
        """Put a question to the person; with nobody to ask, the agent goes on without an answer."""
        if self.terminal is None or not self.terminal.in_foreground():
            text = clean_line(question.text, 200)
            self.view.note(f"vaala: the agent asked, and there was nobody to answer: {text}")
            await self._answer_question(question, None)
            return
        with self.view.asking() as say:
            answer: str | None = None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_settled, question.id, nursery.cancel_scope)
                answer = await ask_question(self.terminal, question, say)
                nursery.cancel_scope.cancel()
            settled = question.id not in self.progress.questions
            if settled or not await self._answer_question(question, answer):
                say("\n(it was settled meanwhile)\n")

    async def _answer_question(self, question: Question, answer: str | None) -> bool:
        """Answer; False when it was settled before."""
        try:
            await self.conversation.answer_question(question.id, answer, by=self.name)
        except (NotPending, NotFound):
            return False
        return True

    async def _until_settled(self, decision_id: str, scope: trio.CancelScope) -> None:
        """Cancel ``scope`` when somebody else has decided, or nothing waits any more."""
        while decision_id in self.progress.approvals or decision_id in self.progress.questions:
            await self.progress.wait_change()
        scope.cancel()

    async def _ask(
        self, terminal: Terminal, approval: Approval, say: Callable[[str], None]
    ) -> tuple[str, str] | None:
        """Return the chosen option and the reason; None: it was settled without an answer."""
        answer: tuple[str, str] | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_settled, approval.id, nursery.cancel_scope)
            answer = await _read_choice(terminal, approval, say)
            nursery.cancel_scope.cancel()
        return answer


async def _read_choice(
    terminal: Terminal, approval: Approval, say: Callable[[str], None]
) -> tuple[str, str]:
    keys = _keys(approval.options)
    while True:
        line = await terminal.read_line(f"[{'/'.join(keys)}] ", say)
        if line is None:
            say("\n")
            return _rejection(approval), "the terminal was closed"
        word, _, reason = line.strip().partition(" ")
        key = _WORDS.get(word.lower(), word.lower())
        if (option := keys.get(key)) is not None:
            return option.id, reason.strip()
        letters = ", ".join(f"{key} ({option.label})" for key, option in keys.items())
        say(f"Type one of {letters}; a reason may follow, as in: n use the other file\n")


def _way_out(approval: Approval, title: str) -> str:
    """Say what would allow this call and no more than that, to be pasted, and which modes."""
    rules = [option.rule for option in approval.options if option.rule]
    exact = next((rule for rule in rules if "(" in rule), next(iter(rules), None))
    # A whole tool is offered for what stays inside the directory; commands never are.
    inside = any("(" not in rule for rule in rules) and approval.reason == "to change a file"
    modes = "--mode auto-edit or --mode full" if inside else "--mode full"
    allow = f"--allow {shlex.quote(exact)} or " if exact and len(exact) <= RULE_CHARS_MAX else ""
    return f"{title} (needs {allow}{modes})"


def _rejection(approval: Approval) -> str:
    """Return the option that rejects the call, the narrowest there is."""
    wide = {"reject_once": 0, "reject_always": 1}
    rejecting = [option for option in approval.options if option.kind in wide]
    return min(rejecting, key=lambda option: wide[option.kind]).id


def _allowance(approval: Approval) -> str:
    """Return the option that allows the call and nothing more."""
    return next(option.id for option in approval.options if option.kind == "allow_once")


def _keys(options: tuple[ApprovalOption, ...]) -> dict[str, ApprovalOption]:
    """Give each option its letter: y and n for this call, a and its neighbours for more."""
    spare = iter(_SPARE_KEYS)
    fixed = {"allow_once": "y", "reject_once": "n"}
    return {fixed.get(option.kind) or next(spare): option for option in options}


def _question(approval: Approval, content: list[str], title: str) -> str:
    lines = [f"? {title}", *(f"    {line}" for line in content)]
    if approval.reason:
        lines.append(f"  needs your approval {clean_line(approval.reason, 200)}")
    lines += [f"  {key}  {option.label}" for key, option in _keys(approval.options).items()]
    return "\n".join(lines) + "\n"
