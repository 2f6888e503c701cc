"""What must be true of the logs on a disk, read without the runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.simulation.ledger import Ledger
from vaala.dao.entries import METADATA_STREAM, ROOT_STREAM, merged
from vaala.dao.state import SessionState
from vaala_protocol.base import to_json
from vaala_protocol.calls import TERMINAL_CALL_STATES
from vaala_storage.log import LogStorage

_MAY_HAVE_RUN = {"running", "done", "error", "cancelled", "unknown"}


class Stream:
    """The entries of one session's stream, and what they add up to."""

    def __init__(self, path: str, name: str, entries: list[dict[str, Any]]) -> None:
        self.path = path
        self.session_id = path if name == ROOT_STREAM else name
        self.entries = entries
        self.items: dict[str, dict[str, Any]] = {}
        self.inputs: dict[str, dict[str, Any]] = {}
        self.turns: dict[str, dict[str, Any]] = {}
        for entry in entries:
            match entry["t"]:
                case "item":
                    self._item(entry)
                case "input":
                    self._input(entry)
                case "turn":
                    self.turns[entry["id"]] = merged(self.turns.get(entry["id"], {}), entry)
                case _:
                    pass

    def _item(self, entry: Mapping[str, Any]) -> None:
        before = self.items.get(entry["id"], {})
        if "kind" in entry:
            assert not before, f"item {entry['id']} was made twice"
        if before.get("kind") == "tool_call" and "state" in entry:
            terminal = before.get("state", "waiting") in TERMINAL_CALL_STATES
            assert not terminal, f"call {entry['id']} has a second result"
        after = merged(before, entry)
        assert before == {} or after.get("rev", 1) > before.get("rev", 1), f"rev of {entry}"
        self.items[entry["id"]] = after

    def _input(self, entry: Mapping[str, Any]) -> None:
        before = self.inputs.get(entry["id"], {})
        state = before.get("state", "waiting")
        assert state in ("waiting", "held"), f"input {entry['id']} was {state} and changed"
        self.inputs[entry["id"]] = merged(before, entry)

    def texts_of(self, input_id: str) -> list[str]:
        """Return what entered history of an input, once for each time."""
        return [
            text_of(item["content"])
            for item in self.items.values()
            if item.get("inputId") == input_id and item["kind"] == "user_message"
        ]

    def check(self, runs: Counter[str]) -> None:
        self._check_order()
        self._check_inputs()
        self._check_calls(runs)
        self._check_folds()

    def _check_order(self) -> None:
        places = [item["at"] for item in self.items.values()]
        assert len(places) == len(set(places)), "two items have one place"

    def _check_inputs(self) -> None:
        made = Counter(i["inputId"] for i in self.items.values() if i.get("inputId"))
        assert all(count == 1 for count in made.values()), "an input entered history twice"
        for input_id, one in self.inputs.items():
            consumed = one.get("state") == "consumed"
            assert consumed == (input_id in made), f"input {one} and its item"
        peers = [i["fromSession"] for i in self.items.values() if i["kind"] == "peer_message"]
        assert len(peers) == len(set(peers)), "the result of an agent was told twice"
        clients = Counter(one["clientId"] for one in self.inputs.values())
        assert all(count == 1 for count in clients.values()), "a client id has two inputs"

    def _check_calls(self, runs: Counter[str]) -> None:
        for item in self.items.values():
            if item["kind"] != "tool_call":
                continue
            state, ran = item.get("state", "waiting"), runs[item["id"]]
            assert ran <= 1, f"call {item['id']} ran {ran} times"
            if item["name"] == "touch" and state == "done":
                assert ran == 1, f"call {item['id']} is done and never ran"
            assert not ran or state in _MAY_HAVE_RUN, f"call {item['id']} ran and is {state}"

    def _check_folds(self) -> None:
        starts = [n for n, entry in enumerate(self.entries) if entry["t"] == "checkpoint"]
        whole = self._fold(0)
        for start in starts:
            assert self._fold(start) == whole, f"the fold from entry {start} differs"

    def _fold(self, start: int) -> Any:
        state = SessionState(self.session_id)
        for entry in self.entries[start:]:
            state.apply(entry)
        queue = [to_json(waiting) for waiting in state.pending]
        open_items = {item_id: to_json(item) for item_id, item in state.open.items()}
        return to_json(state.head), queue, dict(state.client_ids), open_items

    def check_settled(self) -> None:
        """Check what recovery leaves: nothing runs, and what waits of people is held."""
        for item in self.items.values():
            if item["kind"] == "tool_call":
                assert item.get("state", "waiting") in TERMINAL_CALL_STATES, f"call {item}"
            if item["kind"] in ("approval", "question"):
                assert item.get("state", "pending") != "pending", f"{item['kind']} {item['id']}"
        for turn in self.turns.values():
            assert turn["state"] != "running", f"turn {turn['id']} of {self.session_id} runs"
        for one in self.inputs.values():
            if one["source"]["type"] == "user":
                assert one.get("state", "waiting") != "waiting", f"input {one['id']} waits"


def text_of(content: list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in content)


async def read_streams(log: LogStorage) -> dict[str, list[Stream]]:
    """Return the sessions' streams of every conversation; the root's is the first."""
    found: dict[str, list[Stream]] = {}
    for path in (await log.paths()).paths:
        names = [name for name in await log.streams(path) if name != METADATA_STREAM]
        names.sort(key=lambda name: (name != ROOT_STREAM, name))
        found[path] = [Stream(path, name, await _entries(log, path, name)) for name in names]
    return found


async def _entries(log: LogStorage, path: str, name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    while True:
        page = await log.read(path, name, after=len(entries), limit=1000)
        assert [one.seq for one in page.entries] == list(
            range(len(entries) + 1, len(entries) + 1 + len(page.entries))
        ), "a gap in the log"
        entries += [dict(stored.entry) for stored in page.entries]
        if not page.more:
            return entries


def check_ledger(streams: Mapping[str, list[Stream]], ledger: Ledger) -> None:
    """Check that nothing which was acknowledged is lost, changed or doubled."""
    for conversation_id in ledger.conversations:
        assert conversation_id in streams, f"conversation {conversation_id} is lost"
    for message in ledger.messages.values():
        if message.input_id is None:
            continue
        root = streams[message.conversation_id][0]
        assert message.input_id in root.inputs, f"{message} is lost"
        one = root.inputs[message.input_id]
        said = root.texts_of(message.input_id)
        if message.withdrawn:
            assert one["state"] == "withdrawn", f"{message} was withdrawn and is {one['state']}"
        if one.get("state") == "withdrawn":
            assert message.maybe_withdrawn, f"nobody has withdrawn {message}"
        text = said[0] if said else text_of(one["source"]["content"])
        assert text in message.texts, f"{message} says {text!r}"


def check_final(streams: Mapping[str, list[Stream]]) -> None:
    """Check the end of a story: nothing of a person waits any more."""
    for sessions in streams.values():
        for one in sessions[0].inputs.values():
            if one["source"]["type"] == "user":
                assert one.get("state") in ("consumed", "withdrawn"), f"input {one} still waits"
