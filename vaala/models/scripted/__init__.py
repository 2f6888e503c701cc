"""The scripted model: it says and calls what a script tells, and uses the real results.

For demos, tests and measurements: deterministic, without network. A script is YAML, or the same
as Python data:

    steps:
      - say: I look around.
        call:
          - {tool: list_dir, arguments: {path: .}, as: files}
          - {tool: exec_command, arguments: {command: python -m unittest}, as: tests}
      - when: results.tests | match "FAILED"
        then:
          - say: "It fails: {{ results.tests | last_line }}"
        else:
          - say: "{{ results.files | lines }} entries, and the tests pass."

**Steps** run from the top; an *answer* is one model call. After an answer without calls the turn
is over, and the next prompt goes on with the next step; after the last one it begins anew. The
place in the script travels with the answers, in the conversation itself, so it survives a restart
of the runtime; an answer that broke off is given again.

An answer has at least one of these:

    say        what it says                          (a text with templates)
    think      its reasoning                         (a text with templates)
    call       one call or a list, asked for at once; each has `tool`, `arguments` (any structure,
               its texts are templates) or `raw` (the very text of the arguments), and `as`: the
               name of its result, the tool's name when left out
    fail       {kind, message, retryable, retry_after_s, status, times}: fails before it says
               anything; with `times` only so often, counted by this model object
    cut        the same, or `true`: fails after what it said and called
    hang       true: after what it said it is silent until it is cancelled
    wait       the name of a gate, `ScriptedModel(gates=...)`: waits there, after what it said
    finish     a finish reason other than what follows from the calls
    usage      {input, cache_read, cache_write, output, reasoning}; left out: from the sizes
    delay_s    seconds before the first byte
    pace_s     seconds between two pieces of text
    chunk      characters of a piece

The others steer: ``{when: EXPRESSION, then: [...], else: [...]}`` takes the first branch when the
expression gives any text, ``{repeat: N, steps: [...]}`` runs its steps N times. Beside ``steps``
the top level may have ``chunk``, ``pace_s`` and ``window`` (tokens).

**Templates**: ``{{ EXPRESSION }}`` in a text. An expression is ``results.NAME`` (the newest result
of that name), ``prompt`` (the newest message of the user) or ``round`` (of the innermost repeat,
from 1), then any filters: ``| first_line``, ``| last_line``, ``| line 3``, ``| lines`` (their
number), ``| chars`` (their number), ``| trim``, ``| match "REGEX"`` (its first group, or all that
it matches, or nothing).
"""

from vaala.models.scripted.model import ScriptedModel

__all__ = ["ScriptedModel"]
