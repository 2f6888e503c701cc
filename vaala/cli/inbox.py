"""`vaala inbox`, `vaala approve` and `vaala answer`: what waits for a person, anywhere."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from vaala.cli.connecting import find_server
from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.people import short_ids
from vaala.cli.questions import meant
from vaala.cli.standard import aside, say
from vaala.client import Client
from vaala.tools.text import clean_line
from vaala_protocol.base import encode
from vaala_protocol.items import Approval, Question
from vaala_protocol.methods.runtime import PendingDecision, RuntimeSnapshot

ANSWERED_BY = "vaala inbox"
_NOTHING = "nothing waits for you"


def main(arguments: Namespace) -> int:
    return run_program(partial(_inbox, arguments))


def approve(arguments: Namespace) -> int:
    return run_program(partial(_approve, arguments))


def answer(arguments: Namespace) -> int:
    return run_program(partial(_answer, arguments))


async def _inbox(arguments: Namespace) -> int:
    async with find_server(arguments) as client:
        pending = () if client is None else await _pending(client)
    if arguments.json:
        for one in pending:
            say(encode(one).decode())
    elif pending:
        say("\n".join(_lines(pending)))
    else:
        say(_NOTHING)
    return DONE


async def _approve(arguments: Namespace) -> int:
    if arguments.reject and arguments.option:
        raise CommandFailed("give --reject or --option, not both", USAGE)
    async with find_server(arguments) as client:
        found = await _find(client, arguments.id)
        approval = found.decision
        if client is None or not isinstance(approval, Approval):
            raise CommandFailed("that is a question: vaala answer ID TEXT", USAGE)
        kind = "reject_once" if arguments.reject else "allow_once"
        option = arguments.option or next(
            (one.id for one in approval.options if one.kind == kind), None
        )
        if option not in {one.id for one in approval.options}:
            known = ", ".join(one.id for one in approval.options)
            raise CommandFailed(f"no option {option!r}; there are: {known}", USAGE)
        await client.conversation(found.conversation_id).answer_approval(
            approval.id, option, by=ANSWERED_BY, reason=arguments.reason or ""
        )
    aside(f"answered: {option}")
    return DONE


async def _answer(arguments: Namespace) -> int:
    text = " ".join(arguments.text)
    if bool(text) == arguments.none:
        raise CommandFailed("give the answer, or --none to give none", USAGE)
    async with find_server(arguments) as client:
        found = await _find(client, arguments.id)
        if client is None or not isinstance(found.decision, Question):
            raise CommandFailed("that is an approval: vaala approve ID", USAGE)
        answer = None if arguments.none else meant(found.decision, text)
        await client.conversation(found.conversation_id).answer_question(
            found.decision.id, answer, by=ANSWERED_BY
        )
    aside(f"answered: {_shown_answer(found.decision, answer)}")
    return DONE


def _shown_answer(question: Question, answer: str | None) -> str:
    """Return what the agent hears, and what may have been meant otherwise."""
    if answer is None:
        return "no answer"
    shown = clean_line(answer, 200)
    if question.choices and answer.strip().isdigit() and answer not in question.choices:
        return f"{shown} (as words: the choices are 1 to {len(question.choices)})"
    return shown


async def _pending(client: Client) -> tuple[PendingDecision, ...]:
    async with client.subscribe() as updates:
        first = await updates.__anext__()
    assert isinstance(first, RuntimeSnapshot), "a subscription begins with a snapshot"
    return first.pending


async def _find(client: Client | None, text: str) -> PendingDecision:
    """Return what waits under an id or the only beginning of one; raises `CommandFailed`."""
    pending = () if client is None else await _pending(client)
    wanted = text.strip().lower()
    found = [one for one in pending if wanted and one.decision.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed(f"{text!r} is the beginning of several ids; see `vaala inbox`", USAGE)
    raise CommandFailed(f"nothing waits under {text!r}; see `vaala inbox`", USAGE)


def _lines(pending: tuple[PendingDecision, ...]) -> list[str]:
    short = short_ids([one.decision.id for one in pending])
    lines: list[str] = []
    for one in pending:
        decision = one.decision
        where = clean_line(one.conversation_title or one.conversation_id, 60)
        if isinstance(decision, Approval):
            options = ", ".join(option.id for option in decision.options)
            what = f"{clean_line(one.title, 120)} ({options})"
        else:
            choices = f" ({', '.join(decision.choices)})" if decision.choices else ""
            what = clean_line(f"? {decision.text}{choices}", 160)
        lines += [f"{short[decision.id]}  {what}", f"    in {where}"]
    return lines
