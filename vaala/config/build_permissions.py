"""From permissions.yaml to rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from vaala.config.check import problem
from vaala.config.errors import Problem
from vaala.config.read import Checked
from vaala.config.schema import PermissionsFile
from vaala.permissions.rules import Rule, Rules, check_allowance, parse_rule
from vaala_protocol.errors import BadRequest


def build_rules(file: Checked[PermissionsFile], problems: list[Problem]) -> Rules:
    """Return the rules; adds a problem for each text that is none."""

    def read(key: str, texts: Sequence[str], parse: Callable[[str], Rule]) -> Iterator[Rule]:
        for number, text in enumerate(texts):
            try:
                yield parse(text)
            except BadRequest as error:
                problems.append(problem(file.document, (key, number), str(error)))

    values = file.values
    return Rules(
        tuple(read("allow", values.allow, lambda text: check_allowance(parse_rule(text)))),
        tuple(read("deny", values.deny, parse_rule)),
        tuple(read("ask", values.ask, parse_rule)),
    )
