"""Logs as no runtime would write them, drawn from a seed: every kind of item, whole or broken."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from vaala_protocol.calls import CallState, OtherDetails
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent
from vaala_protocol.items import (
    Approval,
    AssistantMessage,
    CommandEnd,
    ContextCut,
    ContextSummary,
    ExecutorChange,
    HookRun,
    Instructions,
    Interruption,
    Item,
    ModelError,
    Notice,
    PeerMessage,
    Plan,
    PlanStep,
    Private,
    Question,
    Reasoning,
    SettingsChange,
    Skill,
    ToolCall,
    UnknownItem,
    UserMessage,
)
from vaala_protocol.settings import Settings

TEXTS = (
    "", " ", "\n\n", "\t", "\u200b", "\ufeff", "\u200b \u200b \ufeff", "\0", "a\0b", "\ud800",
    "half \udc00 a pair", "hello", "line\none more", "\u2028\u0085", "\U0001f600", "</s>[INST]",
    "x" * 3_000,
)  # fmt: skip
ARGUMENTS = (
    "", " ", "{}", '{"a":1}', ' {"a" : [1, {"b": null}]} ', '{"path":"a.txt","content":"hel',
    "{'a': None}", '{"a":None}', '{"a":1,}', '{"a":1,"a":2}', '{"x":{"a":1,"a":2}}', "NaN",
    '{"a":NaN}', '{"a":-Infinity}', '{"a":1e999}', '{"a":' + "9" * 5_000 + "}", "[1]", '"text"',
    "null", "true", "\ufeff{}", '{"a":"\0"}', '{"a":"\\u0000"}', '{"a":"\\\\u0000"}',
    '{"\\u0000":1}', '{"a":"\\ud800"}', '{"\\udc00":1}', "\ud800", '{"a":"\U0001f600"}',
    "[" * 50_000, '{"a":' * 90 + "1" + "}" * 90, '{"a":' * 2_000 + "1" + "}" * 2_000,
    "{}{}", '{"a":1} trailing', "x" * 5_000,
)  # fmt: skip
NAMES = (
    "read_file", "write_file", "", " ", "a b", "caf\u00e9", "x" * 100, "mcp:server/tool", "a.b",
    "\ud800", "\0", "functions.read", "read\nfile", "-", "_",
)  # fmt: skip
STATES: tuple[CallState, ...] = (
    "waiting",
    "running",
    "done",
    "error",
    "denied",
    "cancelled",
    "unknown",
)


class RandomLog:
    """``steps`` of items; ``ids`` may repeat, as in a log that was damaged or pasted together."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 0
        self._at = 0
        self._used: list[str] = []
        self.steps = [self._step(number) for number in range(random.randint(0, 6))]
        if self.steps and random.random() < 0.2:
            self.steps.append(list(random.choice(self.steps[:-1] or self.steps)))

    def _step(self, number: int) -> list[Item]:
        random = self._random
        turn = None if random.random() < 0.1 else f"turn-{number // 2}"
        step = None if turn is None or random.random() < 0.1 else number
        base = self._at
        items: list[Item] = []
        for _ in range(random.choice((0, 1, 1, 2, 3, 4, 8))):
            self._at += 1
            at = random.randint(base, self._at)
            items.append(self._item(at, turn, step))
        return items

    def _id(self) -> str:
        self._number += 1
        if self._used and self._random.random() < 0.1:
            return self._random.choice(self._used)
        form = self._random.choice(("{:08x}-0000-7000-8000-000000000000", "call_{}", "id {}"))
        self._used.append(form.format(self._number))
        return self._used[-1]

    def _text(self) -> str:
        random = self._random
        return "".join(random.choices(TEXTS, k=random.choice((1, 1, 1, 2, 3))))

    def _content(self) -> tuple[Content, ...]:
        return tuple(self._block() for _ in range(self._random.choice((0, 1, 1, 2, 3))))

    def _block(self) -> Content:
        match self._random.randrange(6):
            case 0:
                return ImageContent(blob="b", media_type=self._text(), size_bytes=3)
            case 1:
                return FileContent(name=self._text(), blob="b", media_type="a/b", size_bytes=3)
            case _:
                return TextContent(text=self._text())

    def _private(self) -> Private | None:
        if self._random.random() < 0.7:
            return None
        return Private(provider="p", api="chat", model="m", data={"signature": self._text()})

    def _item(self, at: int, turn: str | None, step: int | None) -> Item:
        random = self._random
        head: dict[str, Any] = {
            "id": self._id(),
            "at": at,
            "created_at": 1,
            "turn_id": turn,
            "step": step,
        }
        kind = random.randrange(24)
        if kind < 6:
            return ToolCall(
                **head, name=random.choice(NAMES), arguments=random.choice(ARGUMENTS),
                details=OtherDetails(title="t"), state=random.choice(STATES),
                result=self._content(), reason=random.choice((None, self._text())),
                private=self._private(),
            )  # fmt: skip
        if kind < 9:
            return AssistantMessage(
                **head, text=self._text(), partial=random.random() < 0.3, private=self._private()
            )
        if kind < 11:
            return Reasoning(**head, text=self._text(), private=self._private())
        if kind < 14:
            return UserMessage(**head, content=self._content())
        return self._other(head)

    def _other(self, head: dict[str, Any]) -> Item:
        text = self._text()
        makers: tuple[Callable[[], Item], ...] = (
            lambda: PeerMessage(**head, from_session=text, content=self._content()),
            lambda: ContextSummary(**self._change(head), text=text),
            lambda: Instructions(**head, source=text, text=text),
            lambda: Skill(**head, name=text, text=text),
            lambda: self._command_end(head, text),
            lambda: UnknownItem(**head, unknown_kind="hologram", fields={"text": text}),
            lambda: Approval(**head, tool_call_id="c", digest="d", options=()),
            lambda: Question(**head, text=text),
            lambda: Notice(**head, level="info", text=text),
            lambda: Interruption(**head, by="crash", reason=text),
            lambda: Plan(**head, steps=(PlanStep(text=text),)),
            lambda: ModelError(**head, error="network", message=text),
            lambda: self._cut(head),
            lambda: ExecutorChange(**head, executor=text, directory=text),
            lambda: HookRun(**head, hook=text, event=text, outcome=text),
            lambda: SettingsChange(**head, settings=Settings()),
        )
        return self._random.choice(makers)()

    def _change(self, head: dict[str, Any]) -> dict[str, Any]:
        """Return what a change of the context may say, true or not."""
        random = self._random
        return {
            **head,
            "covers": random.choice((0, random.randint(0, self._at + 2), self._at)),
            "keeps": tuple(random.randint(0, self._at + 1) for _ in range(random.randrange(4))),
            "kept_bytes": random.choice((0, 0, 1, 70, 1_000)),
        }

    def _cut(self, head: dict[str, Any]) -> Item:
        random = self._random
        return ContextCut(
            **self._change(head), shortens=random.choice((0, random.randint(0, self._at + 2))),
            result_bytes=random.choice((0, 1, 70, 1_000)),
        )  # fmt: skip

    def _command_end(self, head: dict[str, Any], text: str) -> Item:
        random = self._random
        return CommandEnd(
            **head, command_id=text, tool_call_id="c", command=text, output=text,
            exit_code=random.choice((None, 0, 1)), signal=random.choice((None, 9)),
            lost=random.random() < 0.3,
        )  # fmt: skip
