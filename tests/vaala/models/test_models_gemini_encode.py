"""Requests of generateContent: legal whatever the messages hold, joinable, signatures in place."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from vaala.models.base import (
    AssistantSaid,
    CallPart,
    CallResult,
    Message,
    ModelFailure,
    ModelRequest,
    ReasoningPart,
    ToolSpec,
    UserSaid,
)
from vaala.models.gemini.encode import encode_messages, joined_contents
from vaala.models.gemini.names import ToolNames, legal_name
from vaala.models.gemini.replay import PLACEHOLDER_SIGNATURE, Owner
from vaala.models.gemini.request import declared, request_body
from vaala.models.wire import call_id
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import Private

MODEL = "gemini-3-pro-preview"
OWNER = Owner("gemini", f"gemini/{MODEL}", wants_signatures=True)
EMPTY = ModelRequest("", (), b"", ())
SIGNATURE = "Et0BCtoBAXLI2nw="


def said(*texts: str) -> UserSaid:
    return UserSaid(tuple(TextContent(text=text) for text in texts))


def mine(**data: Any) -> Private:
    return Private(provider=OWNER.provider, api="gemini", model=OWNER.model, data=data)


def parts(message: Message, owner: Owner = OWNER) -> list[dict[str, Any]]:
    (value,) = json.loads(b"[" + encode_messages([message], owner) + b"]")
    return list(value["parts"])


def contents(*messages: Message, history: bytes = b"") -> list[dict[str, Any]]:
    pieces = [history, encode_messages(messages, OWNER)]
    return list(json.loads(b"[" + joined_contents(pieces) + b"]"))


def body(request: ModelRequest, model: str = MODEL, *, json_schema: bool = True) -> dict[str, Any]:
    return dict(json.loads(request_body(request, OWNER, model, json_schema=json_schema)))


def test_user() -> None:
    image = ImageContent(blob="1", media_type="image/png", size_bytes=5)
    file = FileContent(name="a.pdf", blob="2", media_type="application/pdf", size_bytes=7)
    message = UserSaid((TextContent(text="see"), TextContent(text=" \u200b"), image, file))
    assert parts(message) == [
        {"text": "see"},
        {"text": "[an image, image/png, 5 bytes: not shown here]"},
        {"text": "[the file a.pdf, application/pdf, 7 bytes: not shown here]"},
    ]


def test_a_call_and_its_result_have_one_id_and_name() -> None:
    (asked,) = parts(AssistantSaid("\n\n", calls=(CallPart("x", "read.file", '{"path":"a"}'),)))
    (result,) = parts(CallResult("x", "read.file", (TextContent(text="1"), TextContent(text="2"))))
    assert asked["functionCall"] == {
        "id": call_id("x"), "name": legal_name("read.file"), "args": {"path": "a"},
    }  # fmt: skip
    assert result["functionResponse"] == {
        "id": call_id("x"), "name": legal_name("read.file"), "response": {"output": "1\n\n2"},
    }  # fmt: skip


def test_results_that_are_errors_or_empty() -> None:
    failed = CallResult("x", "read", (TextContent(text="gone"),), is_error=True)
    assert parts(failed)[0]["functionResponse"]["response"] == {"error": "gone"}
    empty = parts(CallResult("x", "read", ()))[0]["functionResponse"]
    assert empty["response"] == {"output": "(no output)"}


def test_all_results_of_an_answer_stand_in_one_content() -> None:  # A1-2 A5-2
    calls = tuple(CallPart(name, name, "{}") for name in "abc")
    results = [CallResult(name, name, ()) for name in "abc"]
    history = encode_messages([said("go"), AssistantSaid("", calls=calls), results[0]], OWNER)
    found = contents(*results[1:], said("and then?"), history=history)
    assert [one["role"] for one in found] == ["user", "model", "user"]
    answers = [part.get("functionResponse", {}).get("name") for part in found[2]["parts"]]
    assert answers == ["a", "b", "c", None]
    assert found[2]["parts"][3] == {"text": "and then?"}


def test_a_text_that_looks_like_a_border_is_none() -> None:
    border = '] },{"role": "user","parts":['
    argument = json.dumps({"a": [{"role": "user", "parts": [1]}], "b": border})
    asked = AssistantSaid(border, calls=(CallPart("x", "read", argument),))
    found = contents(said(border), asked, CallResult("x", "read", (TextContent(text=border),)))
    assert [one["role"] for one in found] == ["user", "model", "user"]
    assert found[1]["parts"][1]["functionCall"]["args"] == json.loads(argument)
    assert found[0]["parts"] == [{"text": border}]


def test_the_first_and_the_last_are_a_users() -> None:
    roles = [one["role"] for one in contents(AssistantSaid("a"), AssistantSaid("b"))]
    assert roles == ["user", "model", "user"]
    assert len(contents()) == 1


@pytest.mark.parametrize("text", ["", "\n\n", "\u200b\ufeff"])
def test_blank_text_is_left_out(text: str) -> None:  # A4
    assert parts(AssistantSaid(text)) == [{"text": "(nothing)"}]
    (part,) = parts(AssistantSaid(text, calls=(CallPart("x", "read", "{}"),)))
    assert "functionCall" in part
    assert parts(said(text)) == [{"text": "(an empty message)"}]


@pytest.mark.parametrize(
    "arguments",
    ["", " ", '{"path":"a', "[1]", "None", '{"a":NaN}', "[" * 50_000, '{"a":"\ud800"}',
     '{"a":' * 80 + "1" + "}" * 80],
)  # fmt: skip
def test_arguments_in_the_history_are_always_an_object(arguments: str) -> None:  # A2-4 A2-5
    (part,) = parts(AssistantSaid("", calls=(CallPart("x", "read", arguments),)))
    args = part["functionCall"]["args"]
    assert isinstance(args, dict)
    assert (args == {}) == (not arguments.strip())


@pytest.mark.parametrize("name", ["a.b/c", "", "x" * 80, "读", "1st", "-a", "a b"])
def test_names_are_legal_and_come_back(name: str) -> None:  # B7-3
    legal = legal_name(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", legal)
    assert ToolNames([name, "other"]).ours(legal) == name
    assert legal != legal_name(f"{name}?")


def test_a_legal_name_stays() -> None:
    assert legal_name("read_file") == "read_file"
    assert legal_name("x" * 64) == "x" * 64


def test_ids_are_stable_and_distinct() -> None:  # A3-3 B5-4
    ours = [new_id() for _ in range(50)] + ["", "x" * 60, "toolu_1"]
    assert len({call_id(one) for one in ours}) == len(ours)
    assert call_id(ours[0]) == f"call_{ours[0].replace('-', '')}"


def test_a_signature_goes_back_on_its_call() -> None:  # A7-2
    first = CallPart("x", "a", "{}", mine(thoughtSignature=SIGNATURE))
    found = parts(AssistantSaid("so", calls=(first, CallPart("y", "b", "{}"))))
    assert [part.get("thoughtSignature") for part in found] == [None, SIGNATURE, None]


@pytest.mark.parametrize(
    "private",
    [
        None,
        Private(
            provider="gemini", api="gemini", model="gemini/other", data={"thoughtSignature": "a"}
        ),
        Private(provider="proxy", api="gemini", model=OWNER.model, data={"thoughtSignature": "a"}),
        Private(provider="gemini", api="chat", model=OWNER.model, data={"thoughtSignature": "a"}),
        mine(thoughtSignature="no base64!"),
        mine(thoughtSignature="Et0BC"),
        mine(thoughtSignature="Et0B="),
        mine(thoughtSignature=7),
        mine(),
    ],
)
def test_a_call_of_another_model_has_the_placeholder(private: Private | None) -> None:  # B5
    calls = tuple(CallPart(one, one, "{}", private) for one in "xy")
    signatures = [part.get("thoughtSignature") for part in parts(AssistantSaid("", calls=calls))]
    assert signatures == [PLACEHOLDER_SIGNATURE, None]
    older = Owner("gemini", "gemini/gemini-2.5-pro")
    for part in parts(AssistantSaid("", calls=calls), older):
        assert "thoughtSignature" not in part


LAYOUT = [
    {"thought": 2, "thoughtSignature": "aa"},
    {"text": 1},
    {"call": 0},
    {"text": 2, "thoughtSignature": "bb"},
    {"call": 1},
    {"text": 0, "thoughtSignature": "cc"},
]


def answer(text: str = "abc", thought: str = "hm", calls: int = 2) -> AssistantSaid:
    made = tuple(CallPart(str(n), f"f{n}", "{}") for n in range(calls))
    return AssistantSaid(text, (ReasoningPart(thought),), made, mine(parts=LAYOUT))


def test_parts_go_back_in_the_order_in_which_they_came() -> None:
    found = parts(answer(), Owner(OWNER.provider, OWNER.model))
    assert [part for part in found if "text" in part] == [
        {"text": "hm", "thought": True, "thoughtSignature": "aa"},
        {"text": "a"},
        {"text": "bc", "thoughtSignature": "bb"},
        {"text": "", "thoughtSignature": "cc"},
    ]
    order = [part.get("functionCall", {}).get("name") for part in found]
    assert order == [None, None, "f0", None, "f1", None]


@pytest.mark.parametrize("message", [answer(text="abcd"), answer(calls=1), answer(text="")])
def test_parts_that_are_not_those_of_the_message_are_no_parts(message: AssistantSaid) -> None:
    found = parts(message, Owner(OWNER.provider, OWNER.model))
    expected = [{"text": message.text}] if message.text else []
    assert [part for part in found if "functionCall" not in part] == expected


def test_thoughts_go_back_only_whole_and_signed() -> None:
    assert not any("thought" in part for part in parts(answer(thought="changed")))
    unsigned = AssistantSaid("a", (ReasoningPart("hm"),), (), mine(parts=[{"thought": 2}]))
    assert parts(unsigned) == [{"text": "a"}]


def test_body_without_anything() -> None:  # B7-4
    assert body(EMPTY, "gemma-3-27b-it") == {
        "contents": [{"role": "user", "parts": [{"text": "(The conversation goes on.)"}]}]
    }


def test_body_with_everything() -> None:
    tool = ToolSpec("read", "Read.", {"type": "object", "properties": {"p": {"type": "string"}}})
    request = replace(
        EMPTY,
        instructions="rules",
        tools=(tool, ToolSpec("now", " ", {})),
        history=encode_messages([said("one"), AssistantSaid("yes")], OWNER),
        messages=(said("two"),),
        effort="high",
        output_tokens_max=7,
        options={
            "temperature": 0.5,
            "top_p": 0.9,
            "safetySettings": [],
            "generationConfig": {"seed": 1},
        },
    )
    assert body(request) == {
        "contents": [
            {"role": "user", "parts": [{"text": "one"}]},
            {"role": "model", "parts": [{"text": "yes"}]},
            {"role": "user", "parts": [{"text": "two"}]},
        ],
        "systemInstruction": {"parts": [{"text": "rules"}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read",
                        "description": "Read.",
                        "parametersJsonSchema": tool.parameters,
                    },
                    {"name": "now", "description": "now"},
                ]
            }
        ],
        "generationConfig": {
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "high"},
            "maxOutputTokens": 7,
            "temperature": 0.5,
            "topP": 0.9,
            "seed": 1,
        },
        "safetySettings": [],
    }
    (older,) = body(request, json_schema=False)["tools"]
    assert older["functionDeclarations"][0]["parameters"] == tool.parameters


def test_an_option_replaces_what_we_would_say() -> None:
    ours = {"thinking_config": {"thinkingBudget": 1}, "max_output_tokens": 9}
    request = replace(EMPTY, effort="low", output_tokens_max=5, options=ours)
    assert body(request)["generationConfig"] == {
        "thinkingConfig": {"thinkingBudget": 1}, "maxOutputTokens": 9,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tools": [], "contents": []}, "contents, tools"),
        ({"system_instruction": "x"}, "system_instruction"),
        ({"generationConfig": {"candidateCount": 2}}, "candidateCount"),
        ({"cachedContent": "x"}, "cachedContent"),
    ],
)
def test_reserved_options_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFailure, match=f"cannot set {named}") as caught:
        body(replace(EMPTY, options=options))
    assert caught.value.kind == "invalid_request"


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3-pro-preview", None, {"includeThoughts": True}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-3-flash-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-flash-latest", "xhigh", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-2.5-flash", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"includeThoughts": True, "thinkingBudget": 128}),
        ("publishers/google/models/gemini-2.5-pro", "max",
         {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.0-flash", "high", None),
        ("gemini-2.5-flash-image", "high", None),
        ("gemini-2.5-flash-preview-tts", None, None),
        ("gemma-3-27b-it", "high", None),
    ],
)  # fmt: skip
def test_effort(model: str, effort: str | None, config: dict[str, Any] | None) -> None:
    found = body(replace(EMPTY, effort=effort), model).get("generationConfig", {})
    assert found.get("thinkingConfig") == config


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ModelFailure, match="'huge' is not known: use none, minimal"):
        body(replace(EMPTY, effort="huge"))


def test_many_tools_and_two_of_one_name() -> None:
    tools = [ToolSpec(f"tool.{n}", "d", {}) for n in range(300)]
    assert len({one["name"] for one in declared(tools, json_schema=True)}) == 300
    twice = declared([ToolSpec("a", "1", {}), ToolSpec("a", "2", {})], json_schema=True)
    assert [one["description"] for one in twice] == ["1"]


# The checker: what the server refuses, as its error messages say it.


def refuse_illegal(request: dict[str, Any], *, signed: bool) -> None:
    assert set(request) <= {"contents", "systemInstruction", "tools", "generationConfig"}
    found = request["contents"]
    assert found
    roles = [one["role"] for one in found]
    assert all(a != b for a, b in itertools.pairwise(roles))
    assert (roles[0], roles[-1]) == ("user", "user")
    waiting: list[tuple[str, str]] = []
    for one in found:
        assert set(one) == {"role", "parts"}
        assert one["parts"]
        answered: list[tuple[str, str]] = []
        calls: list[dict[str, Any]] = []
        for part in one["parts"]:
            assert len(part.keys() & {"text", "functionCall", "functionResponse"}) == 1
            assert set(part) <= {
                "text", "functionCall", "functionResponse", "thought", "thoughtSignature",
            }  # fmt: skip
            assert part.get("text", "x").strip() or part["thoughtSignature"]
            if "functionCall" in part:
                assert one["role"] == "model"
                assert isinstance(part["functionCall"]["args"], dict)
                calls.append(part)
            if "functionResponse" in part:
                assert one["role"] == "user"
                response = part["functionResponse"]
                assert set(response["response"]) <= {"output", "error"}
                answered.append((response["id"], response["name"]))
        assert answered == waiting
        waiting = [(call["functionCall"]["id"], call["functionCall"]["name"]) for call in calls]
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for _, name in waiting)
        if calls and signed:
            assert re.fullmatch(r"[A-Za-z0-9+/_-]+=*", calls[0]["thoughtSignature"])
    assert not waiting


TEXTS = st.text(max_size=8) | st.sampled_from([" \n", "\u200b", "\x00", "a\ud800", '"},{"'])
NAMES = st.sampled_from(["read_file", "a.b", "1", "", "读", "x" * 90]) | st.text(max_size=5)
SIGNED = st.sampled_from([SIGNATURE, "", "not base64!", 7])
DATA = st.fixed_dictionaries(
    {},
    optional={
        "thoughtSignature": SIGNED,
        "parts": st.lists(
            st.dictionaries(
                st.sampled_from(["text", "thought", "call"]), st.integers(-1, 8), max_size=1
            ).flatmap(lambda one: SIGNED.map(lambda sign: {**one, "thoughtSignature": sign}))
            | st.none()
        )
        | st.integers(),
    },
)
PRIVATE = st.none() | st.builds(
    Private,
    provider=st.sampled_from(["gemini", "other"]),
    api=st.sampled_from(["gemini", "chat"]),
    model=st.sampled_from([OWNER.model, "gemini/gemini-2.5-pro"]),
    data=DATA,
)
BLOCKS: st.SearchStrategy[Content] = (
    st.builds(TextContent, text=TEXTS)
    | st.builds(ImageContent, blob=TEXTS, media_type=TEXTS, size_bytes=st.integers())
    | st.builds(FileContent, name=TEXTS, blob=TEXTS, media_type=TEXTS, size_bytes=st.integers())
)
CONTENT = st.lists(BLOCKS, max_size=3).map(tuple)
ARGUMENTS = st.sampled_from(["", "{}", '{"a":"\\u0000"}', "[1]", '{"a":[{"b":1}]}', "{", "NaN"])


def distinct(answer: AssistantSaid, number: int) -> AssistantSaid:
    calls = tuple(
        replace(call, id=f"{number}.{at}{call.id}") for at, call in enumerate(answer.calls)
    )
    return replace(answer, calls=calls)


ANSWERS = st.builds(
    AssistantSaid,
    TEXTS,
    st.lists(st.builds(ReasoningPart, TEXTS, PRIVATE), max_size=2).map(tuple),
    st.lists(st.builds(CallPart, TEXTS, NAMES, ARGUMENTS, PRIVATE), max_size=3).map(tuple),
    PRIVATE,
)


def laid_out(answer: AssistantSaid, cut: int, signature: str) -> AssistantSaid:
    """The answer with the order of its parts: one piece of its text, calls, the other piece."""
    cut = min(cut, len(answer.text))
    order = [{"call": number} for number in range(len(answer.calls))]
    rest = {"text": len(answer.text) - cut}
    signed = {"thoughtSignature": signature} if signature else {}
    return replace(answer, private=mine(parts=[{"text": cut}, *order, rest | signed]))


ANSWERED = st.tuples(
    ANSWERS | st.builds(laid_out, ANSWERS, st.integers(0, 4), st.sampled_from(["", SIGNATURE])),
    CONTENT,
    st.booleans(),
)


def steps(said: list[UserSaid | tuple[AssistantSaid, tuple[Content, ...], bool]]) -> list[Message]:
    """Messages in an order that a log gives: calls have their results, whoever speaks before."""
    messages: list[Message] = []
    for number, one in enumerate(said):
        if isinstance(one, UserSaid):
            messages.append(one)
            continue
        answer = distinct(one[0], number)
        if messages and isinstance(messages[-1], AssistantSaid):
            messages.append(UserSaid((TextContent(text="so"),)))
        messages.append(answer)
        messages += [CallResult(call.id, call.name, one[1], one[2]) for call in answer.calls]
    return messages


MESSAGES = st.lists(st.builds(UserSaid, CONTENT) | ANSWERED, max_size=6).map(steps)
TOOLS = st.lists(
    st.builds(ToolSpec, NAMES, TEXTS, st.just({"type": "object", "properties": {"a": {}}})),
    max_size=4,
).map(tuple)


@given(MESSAGES, st.integers(0, 20), TEXTS, TOOLS)
@settings(max_examples=80)
def test_every_request_is_legal(
    messages: list[Message], cut: int, instructions: str, tools: tuple[ToolSpec, ...]
) -> None:
    for model in (MODEL, "gemini-2.5-flash"):
        signed = model == MODEL
        owner = replace(OWNER, wants_signatures=signed)
        request = ModelRequest(
            instructions, tools, encode_messages(messages[:cut], owner), tuple(messages[cut:])
        )
        encoded = request_body(request, owner, model, json_schema=True)
        refuse_illegal(json.loads(encoded), signed=signed)


@given(MESSAGES, st.integers(0, 20))
@settings(max_examples=50)
def test_encoding_is_local(messages: list[Message], cut: int) -> None:
    pieces = [encode_messages(messages[:cut], OWNER), encode_messages(messages[cut:], OWNER)]
    assert b",".join(piece for piece in pieces if piece) == encode_messages(messages, OWNER)
