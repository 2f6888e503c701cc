"""The built-in script: an agent finds and mends the bug of the sample project beside it.

Anywhere else it looks around, says what it sees, and touches nothing. It is data and no YAML file,
so that a first start need not load a YAML reader.
"""

from __future__ import annotations

from typing import Any

_TEST = {"command": "python3 -m unittest stats"}
_OLD = "    middle = len(ordered) // 2\n    return ordered[middle]\n"
_NEW = (
    "    middle = len(ordered) // 2\n"
    "    if len(ordered) % 2 == 0:\n"
    "        return (ordered[middle - 1] + ordered[middle]) / 2\n"
    "    return ordered[middle]\n"
)

_MEND: list[dict[str, Any]] = [
    {
        "say": '{{ results.before | match "^AssertionError: (.*)" }}. The function takes the'
        " upper of the two middle values; I correct it.",
        "call": {
            "tool": "edit_file",
            "arguments": {"path": "stats.py", "old_text": _OLD, "new_text": _NEW},
            "as": "edit",
        },
    },
    {
        "say": "Now the tests again.",
        "call": {"tool": "exec_command", "arguments": _TEST, "as": "after"},
    },
    {
        "when": 'results.after | match "^OK"',
        "then": [
            {
                "say": "Done: median() in stats.py takes the mean of the two middle values when"
                ' their number is even.\n\nBefore: {{ results.before | match "^FAILED.*" }}\n'
                'After: {{ results.after | match "^Ran [0-9]+ tests" }},'
                ' {{ results.after | match "^OK" }}',
            },
        ],
        "else": [
            {
                "say": "The tests do not pass after the change:\n\n"
                "{{ results.edit | first_line }}\n{{ results.after | last_line }}",
            },
        ],
    },
]

_LOOK_CLOSER: list[dict[str, Any]] = [
    {
        "say": "A small Python module. I read it and run its tests.",
        "call": [
            {"tool": "read_file", "arguments": {"path": "stats.py"}, "as": "source"},
            {"tool": "exec_command", "arguments": _TEST, "as": "before"},
        ],
    },
    {
        "when": 'results.before | match "^FAILED"',
        "then": _MEND,
        "else": [
            {
                "say": "There is nothing that I could mend. The tests say:"
                " {{ results.before | trim | last_line }}",
            },
        ],
    },
]

DEMO: dict[str, Any] = {
    "chunk": 12,
    "steps": [
        {
            "say": "I look around.",
            "call": {"tool": "list_dir", "arguments": {"path": "."}, "as": "files"},
        },
        {
            "when": r'results.files | match "\bstats\.py\b"',
            "then": _LOOK_CLOSER,
            "else": [
                {
                    "say": "I am the scripted model: I play a small script and call no real model."
                    ' You said "{{ prompt | first_line }}". This directory lists'
                    " {{ results.files | lines }} lines; the first is"
                    ' "{{ results.files | first_line }}".',
                },
            ],
        },
    ],
}
