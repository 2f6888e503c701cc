"""What of an answer goes back to the server that gave it: its reasoning, and the order of it all.

Private data, kept with the answer: ``{"output": [entry, ...]}`` in the order of the output.

    {"type": "reasoning", ...}                          the item as the server gave it
    {"type": "message", "id", "phase", "start", "end"}  a slice of the answer's text
    {"type": "function_call", "index"}                  a call of the answer
    {"type": "other"}                                   what is never sent back

Requests say ``store: false``, so the server keeps nothing. What that means for ids:

- Reasoning goes back with its id, which its encrypted content is bound to, and only when it has a
  content of its own: an id without is looked up and not found ("Items are not persisted when
  `store` is set to false"). Recorded as accepted, with calls that have no id:
  github.com/simonw/llm, tests/cassettes, test_responses_interleaved_reasoning_between_tool_calls;
  DeepSeek's, with plain content: github.com/pydantic/pydantic-ai, test_deepseek_responses.
- It goes back only in front of the very item that followed it: else OpenAI answers "was provided
  without its required following item", also when some other message follows (recorded: pydantic-ai,
  test_openai_responses_thinking_with_modified_history). A message that follows it has its id.
- Calls have none: their ``call_id`` is ours, and pairs them with their results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vaala.models.base import AssistantSaid
from vaala.models.responses.item import OutputItem
from vaala.text import is_blank

_OPAQUE = ("id", "encrypted_content", "signature", "format")
"""Fields of reasoning that go back as they came; OpenRouter has a signature and its format."""
_PHASES = ("commentary", "final_answer")
"""OpenAI: "preserve and resend phase on all assistant messages"."""


def private_data(items: Iterable[OutputItem]) -> dict[str, Any] | None:
    """Return what is to be kept with an answer, None when nothing has to be."""
    entries = [_entry(item) for item in items]
    kept = (e for e in entries if e["type"] == "reasoning" or "phase" in e)
    return {"output": entries} if any(kept) else None


def replayed(said: AssistantSaid, data: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the parts of an answer in the order in which they came, reasoning among them.

    A part is an input item, but for a call: ``{"index": N}``. None: the answer is no more what
    ``data`` tells of.
    """
    entries = data.get("output")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return None
    slices = _slices(said.text, entries)
    if slices is None or not _has_each(entries, len(said.calls)):
        return None
    parts: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for number, entry in enumerate(entries):
        if entry.get("type") == "reasoning":
            # What cannot go back is a gap: what came before it has lost what followed.
            item = _reasoning(entry)
            waiting = [*waiting, item] if item is not None else []
            continue
        part = _part(entry, slices.get(number, ""))
        if part is not None:
            parts += [*(waiting if "index" in part or "id" in part else ()), part]
        waiting = []
    return parts


def message_item(text: str, *, id_: str = "", phase: Any = None) -> dict[str, Any]:
    """Return a message of the assistant; with ``id_`` as the output that it was."""
    item: dict[str, Any] = {"role": "assistant", "content": text}
    if id_:
        part = {"type": "output_text", "text": text, "annotations": list[Any]()}
        item = {"type": "message", "id": id_, "role": "assistant", "status": "completed"}
        item["content"] = [part]
    if phase in _PHASES:
        item["phase"] = phase
    return item


def _entry(item: OutputItem) -> dict[str, Any]:
    value = item.value
    if item.kind == "reasoning" and item.done and (entry := _reasoning(value)) is not None:
        return entry
    if item.kind == "message" and item.start >= 0:
        entry = {"type": "message", "start": item.start, "end": item.end}
        if isinstance(value.get("id"), str):
            entry["id"] = value["id"]
        if value.get("phase") in _PHASES:
            entry["phase"] = value["phase"]
        return entry
    if item.call >= 0:
        return {"type": "function_call", "index": item.call}
    return {"type": "other"}


def _reasoning(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return a piece of reasoning as it may be sent, None when it holds nothing of its own, or has
    no id: the API demands one."""
    item: dict[str, Any] = {"type": "reasoning"}
    item |= {key: value[key] for key in _OPAQUE if isinstance(value.get(key), str) and value[key]}
    item["summary"] = _texts(value.get("summary"), "summary_text")
    if content := _texts(value.get("content"), "reasoning_text"):
        item["content"] = content
    return item if "id" in item and ("encrypted_content" in item or content) else None


def _texts(parts: Any, kind: str) -> list[dict[str, str]]:
    return [
        {"type": kind, "text": part["text"]}
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and part.get("type") == kind and isinstance(part.get("text"), str)
    ]


def _has_each(entries: list[dict[str, Any]], calls: int) -> bool:
    """Tell whether each call of the answer stands among the entries, once."""
    found = [entry.get("index") for entry in entries if entry.get("type") == "function_call"]
    numbers = [index for index in found if type(index) is int]
    return len(numbers) == len(found) and sorted(numbers) == list(range(calls))


def _slices(text: str, entries: list[dict[str, Any]]) -> dict[int, str] | None:
    """Return the text of each message by its place; None when they do not make up ``text``."""
    slices: dict[int, str] = {}
    if is_blank(text):
        return slices
    at = 0
    for number, entry in enumerate(entries):
        if entry.get("type") != "message":
            continue
        start, end = entry.get("start"), entry.get("end")
        if not isinstance(start, int) or not isinstance(end, int) or not at <= start <= end:
            return None
        if end > len(text) or not is_blank(text[at:start]):
            return None
        slices[number] = text[start:end]
        at = end
    return slices if is_blank(text[at:]) else None


def _part(entry: dict[str, Any], text: str) -> dict[str, Any] | None:
    match entry.get("type"):
        case "function_call":
            return {"index": entry["index"]}
        case "message" if not is_blank(text):
            id_ = entry.get("id")
            return message_item(
                text, id_=id_ if isinstance(id_, str) else "", phase=entry.get("phase")
            )
        case _:
            return None
