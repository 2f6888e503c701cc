"""Random but lawful lives of a session, as the batches of entries that it would append."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from vaala.dao.entries import Entry, input_entry, item_entry, step_entry, turn_entry
from vaala.dao.state import SessionState
from vaala_protocol.calls import AgentDetails, CallDetails, CommandDetails, OtherDetails
from vaala_protocol.content import TextContent
from vaala_protocol.items import (
    Approval,
    ApprovalAnswer,
    ApprovalOption,
    AssistantMessage,
    CommandEnd,
    ContextCut,
    Interruption,
    Item,
    Notice,
    PeerMessage,
    Plan,
    PlanStep,
    Private,
    Question,
    Reasoning,
    SettingsChange,
    ToolCall,
    UserMessage,
)
from vaala_protocol.settings import Settings, Usage
from vaala_protocol.state import InputInfo, StepInfo, TurnInfo, UserInput

replace = msgspec.structs.replace
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "你好", "世界", "café")


class Story:
    """Yields batches; ``items`` is what a transcript of them must show, by id."""

    def __init__(self, seed: int, session_id: str, *, text_repeat: int = 1) -> None:
        self.random = Random(seed)
        self.session_id = session_id
        self.state = SessionState(session_id)
        self.items: dict[str, Item] = {}
        self._text_repeat = text_repeat
        self._count = 0
        self._at = 0
        self._now = 1_000_000
        self._place = 0

    @property
    def in_order(self) -> list[Item]:
        return sorted(self.items.values(), key=lambda item: item.at)

    def batches(self, turns: int, *, checkpoints: float = 0.3) -> Iterator[list[Entry]]:
        for _ in range(turns):
            yield from self._queue()
            yield from self._turn(checkpoints)

    def _told(self, batch: list[Entry]) -> list[Entry]:
        for entry in batch:
            self.state.apply(entry)
        return batch

    def _queue(self) -> Iterator[list[Entry]]:
        for _ in range(self.random.randrange(3)):
            yield self._told([input_entry(self._input())])
        waiting = list(self.state.queue.values())
        if waiting and self.random.random() < 0.3:
            old = self.random.choice(waiting)
            kind = self.random.choice(["held", "withdrawn", "edit"])
            new = (
                replace(old, source=UserInput(content=(self._text(),)))
                if kind == "edit"
                else replace(old, state=kind)
            )
            yield self._told([input_entry(new, old)])

    def _turn(self, checkpoints: float) -> Iterator[list[Entry]]:
        turn = TurnInfo(
            id=self.name("turn"),
            state="running",
            started_at=self.now(),
            settings=Settings(model="m"),
            instance="i",
        )
        batch = [turn_entry(turn)]
        steps = self.random.randint(1, 4)
        for number in range(1, steps + 1):
            step = StepInfo(turn_id=turn.id, number=number, model="m", started_at=self.now())
            batch.append(step_entry(step))
            batch += self._taken(turn, number)
            yield self._told(batch)
            if self.random.random() < 0.1:
                yield self._told(self._crash(turn, step))
                return
            yield from self._step_items(turn, number)
            ended = replace(step, ended_at=self.now(), usage=Usage(input=5, output=2))
            batch = [step_entry(ended, step)]
            if number < steps:
                yield self._told(batch)
                batch = []
            if not batch and self.random.random() < checkpoints:
                yield self._told([self.state.checkpoint()])
        done = replace(
            turn, state="completed", ended_at=self.now(), steps=steps, usage={"m": Usage(input=5)}
        )
        yield self._told([*batch, turn_entry(done, turn)])
        if self.random.random() < checkpoints:
            yield self._told([self.state.checkpoint()])

    def _taken(self, turn: TurnInfo, number: int) -> list[Entry]:
        """What waits becomes items, in one append with its step."""
        batch: list[Entry] = []
        for waiting in self.state.pending[: self.random.randrange(3)]:
            batch.append(input_entry(replace(waiting, state="consumed"), waiting))
            batch += self._new(
                UserMessage, turn, number,
                content=(self._text(),), input_id=waiting.id, client_id=waiting.client_id,
            )  # fmt: skip
        if number == 1:
            batch += self._new(UserMessage, turn, number, content=(self._text(),))
        return batch

    def _step_items(self, turn: TurnInfo, number: int) -> Iterator[list[Entry]]:
        """Items get their places when they become visible, and are logged in another order."""
        made = [self._make(turn, number) for _ in range(self.random.randint(0, 5))]
        self.random.shuffle(made)
        for start in range(0, len(made), 2):
            batch = []
            for item in made[start : start + 2]:
                self.items[item.id] = item
                batch.append(item_entry(item))
            yield self._told(batch)
        for item in made:
            if (new := self._settle(item)) is not None:
                new = replace(new, rev=item.rev + 1, completed_at=self.now())
                self.items[item.id] = new
                yield self._told([item_entry(new, item)])

    def _make(self, turn: TurnInfo, number: int) -> Item:
        common: dict[str, Any] = {"turn_id": turn.id, "step": number}
        pick = self.random.randrange(10)
        text = self._text().text
        match pick:
            case 0:
                return self._item(Reasoning, **common, text=text)
            case 1:
                private = Private(provider="p", api="a", model="m", data={"signature": text})
                return self._item(AssistantMessage, **common, text=text, private=private)
            case 2:
                return self._item(Plan, **common, steps=(PlanStep(text=text),))
            case 3:
                settings = Settings(model=self.random.choice("ab"), mode="ask")
                return self._item(SettingsChange, **common, settings=settings)
            case 4:
                option = ApprovalOption(
                    id="yes", kind="allow_always", label="l", scope="session", rule=text[:9]
                )
                return self._item(
                    Approval, **common, tool_call_id="c", digest="d", options=(option,)
                )
            case 5:
                return self._item(Question, **common, text=text)
            case 6:
                return self._item(ContextCut, **common, covers=self.random.randrange(self._at + 1))
            case 7:
                return self._item(Notice, **common, level="info", text=text)
            case _:
                return self._item(
                    ToolCall, **common, name="tool", arguments="{}", details=self._details(text)
                )

    def _details(self, text: str) -> CallDetails:
        match self.random.randrange(3):
            case 0:
                return CommandDetails(command=text, cwd="/", background=True, command_id=text[:5])
            case 1:
                return AgentDetails(action="spawn", session_id=self.name("child"))
            case _:
                return OtherDetails(title=text)

    def _settle(self, item: Item) -> Item | None:
        match item:
            case ToolCall():
                state = self.random.choice(["done", "error", "denied", "cancelled"])
                return replace(item, state=state, result=(self._text(),))
            case Approval():
                return replace(item, state="answered", answer=ApprovalAnswer(option="yes", by="me"))
            case Question():
                return replace(item, state="answered", answer="yes")
            case AssistantMessage():
                return replace(item, text=item.text + " more", partial=True)
            case _:
                return None

    def _crash(self, turn: TurnInfo, step: StepInfo) -> list[Entry]:
        """The runtime died; the next one settles the turn."""
        end = replace(turn, state="interrupted", interrupted_by="crash", ended_at=self.now())
        note = self._new(Interruption, turn, None, by="crash")
        lost = [
            entry
            for command in self.state.head.commands
            for entry in self._new(
                CommandEnd,
                turn,
                None,
                command_id=command.id,
                tool_call_id="c",
                command="x",
                lost=True,
            )
        ]
        results = [
            entry
            for child in self.state.head.children
            for entry in self._new(
                PeerMessage, turn, None, from_session=child, content=(), turn_state="completed"
            )
        ]
        ended = step_entry(replace(step, ended_at=self.now()), step)
        return [*note, ended, turn_entry(end, turn), *lost, *results]

    def _new(self, kind: Any, turn: TurnInfo, number: int | None, **fields: Any) -> list[Entry]:
        item = self._item(kind, turn_id=turn.id, step=number, **fields)
        self.items[item.id] = item
        return [item_entry(item)]

    def _item(self, kind: Any, **fields: Any) -> Item:
        self._at += self.random.randint(1, 3)
        item: Item = kind(
            id=self.name("item"), at=self._at, created_at=self.now(),
            session_id=self.session_id, **fields,
        )  # fmt: skip
        return item

    def _input(self) -> InputInfo:
        self._place += 1
        return InputInfo(
            id=self.name("input"), client_id=self.name("client"), created_at=self.now(),
            source=UserInput(content=(self._text(),)), place=self._place,
        )  # fmt: skip

    def _text(self) -> TextContent:
        words = self.random.choices(WORDS, k=self.random.randint(1, 6))
        return TextContent(text=" ".join(words * self._text_repeat))

    def name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}-{self.session_id[-4:]}"

    def now(self) -> int:
        self._now += self.random.randrange(1000)
        return self._now
