"""Permission rules: ``tool``, ``tool(subject)`` and ``tool(subject:*)``.

A rule with a subject covers that exact subject and nothing else; with ``:*`` behind it, what begins
so: of a directory everything below it, of a command whatever follows these words. A path is
relative to the working directory where it lies below it; a denial holds for its other names too. A
rule without a subject covers every call of the tool, except on paths outside the workspace's roots,
which only a rule that names the path covers. The name of a tool may end in ``*``, and ``@executor``
behind it says where the call runs; without that a rule holds everywhere.

Rules for commands look at what a shell would run and not at the text: each command of a list or
pipeline must be covered by some rule, and where the shell could do anything else, nothing is. An
option that makes a reading program write or run something is covered only by a rule that names it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from vaala.permissions.base import Access
from vaala.permissions.limits import RULES_KEPT_MAX
from vaala.permissions.programs import covers_everything, guarded
from vaala.permissions.shell import Script, SimpleCommand, read_script
from vaala_protocol.errors import BadRequest

_RULE = re.compile(
    r"([A-Za-z0-9_-]{1,64}\*?)(?:@([A-Za-z0-9][A-Za-z0-9._-]{0,63}))?(?:\((.+)\))?", re.DOTALL
)
_PATH_KINDS = frozenset({"read", "edit"})
_BEGINNING = ":*"
_HARMLESS = frozenset({"cd", "echo", "pwd", "true", "false", ":"})
"""Builtins that may stand beside what a rule covers; ``cd`` only to a directory below."""


class Rule(Struct, frozen=True):
    tool: str
    subject: str | None = None
    """As it was written, with ``:*`` where it has that."""
    executor: str = ""

    def __str__(self) -> str:
        where = f"@{self.executor}" if self.executor else ""
        return f"{self.tool}{where}" + ("" if self.subject is None else f"({self.subject})")

    def is_for(self, tool: str, executor: str) -> bool:
        """Tell whether it says anything of calls of this tool there."""
        named = tool.startswith(self.tool[:-1]) if self.tool.endswith("*") else tool == self.tool
        return named and self.executor in ("", executor)

    def allows(self, access: Access) -> bool:
        """Tell whether it covers an access that is no command; for those see `allowing`."""
        if self.subject is None:
            return not (access.outside and access.kind in _PATH_KINDS)
        return self._covers(access, access.subject)

    def denies(self, access: Access, command: Command | None = None) -> bool:
        """Of a command that may run other things as well, what could be read counts: no rule can
        deny what nobody can know."""
        if self.subject is None:
            return True
        if command is None or self.subject == access.subject:
            names = (access.subject, *access.other_names)
            return any(self._covers(access, name) for name in names)
        words = command.words.of(self.subject)
        return any(_begins(one, words) for one in command.script.commands if words)

    def covers(self, command: SimpleCommand, words: RuleWords) -> bool:
        """Tell whether it covers a simple command whatever follows, or exactly."""
        if self.subject is None:
            return True
        mine = words.of(self.subject)
        if not mine or command.texts[: len(mine)] != mine:
            return False
        if self.subject.endswith(_BEGINNING):
            return not guarded(command, len(mine))
        return command.texts == mine

    def _covers(self, access: Access, name: str) -> bool:
        assert self.subject is not None
        if access.kind not in _PATH_KINDS:
            return self.subject == name
        if not self.subject.endswith(_BEGINNING):
            return posixpath.normpath(self.subject) == name
        above = posixpath.normpath(self.subject.removesuffix(_BEGINNING))
        if above == ".":
            return not access.outside and not name.startswith("/")
        return name == above or name.startswith(above.rstrip("/") + "/")


class RuleWords:
    """The words of rules for commands, each rule read once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str | None, ...]] = {}

    def of(self, subject: str) -> tuple[str | None, ...]:
        """Return the words that a command must begin with, () for what is no simple command."""
        if subject not in self._known:
            if len(self._known) >= RULES_KEPT_MAX:
                self._known.clear()
            script = read_script(subject.removesuffix(_BEGINNING))
            known = script.sure and len(script.commands) == 1
            texts = script.commands[0].texts if known else ()
            self._known[subject] = () if None in texts else texts
        return self._known[subject]


class Command(Struct, frozen=True):
    """A shell command as it was read, and the words of the rules that it is held against."""

    script: Script
    words: RuleWords


class Rules(Struct, frozen=True):
    """What is allowed, denied or asked for whatever the mode. A denial beats a question, and that
    an allowance."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()

    def plus(self, more: Rules) -> Rules:
        return Rules(self.allow + more.allow, self.deny + more.deny, self.ask + more.ask)


def allowing(rules: Sequence[Rule], access: Access, command: Command | None) -> Rule | None:
    """Return a rule by which an access is allowed; the rules are for its tool.

    Of a command each simple one must be covered, by whichever rule; one of them is returned.
    """
    exact = next((rule for rule in rules if rule.subject == access.subject), None)
    if command is None:
        return next((rule for rule in rules if rule.allows(access)), None)
    whole = next((rule for rule in rules if rule.subject is None), exact)
    if whole is not None or not command.script.sure:
        return whole
    found: Rule | None = None
    for one in command.script.commands:
        rule = next((rule for rule in rules if rule.covers(one, command.words)), None)
        if rule is None and not _is_harmless(one):
            return None
        found = found or rule
    return found


def parse_rule(text: str) -> Rule:
    """Read a rule; raises `BadRequest` that names it and the forms."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise BadRequest(
            f"not a permission rule: {text!r}. Write the name of a tool, as in write_file, or a "
            "tool and a command or path, as in exec_command(git status), exec_command(git log:*) "
            "or edit_file(src:*)"
        )
    return Rule(found[1], found[3], found[2] or "")


def check_allowance(rule: Rule) -> Rule:
    """Return a rule that may allow; raises `BadRequest` for one that covers more than it says."""
    if rule.subject is not None and rule.subject.endswith(_BEGINNING):
        script = read_script(rule.subject.removesuffix(_BEGINNING))
        for command in script.commands[:1]:
            words = [text for text in command.texts if text is not None]
            if words and covers_everything(words):
                raise BadRequest(
                    f"the rule {rule} would allow every command, since {' '.join(words)} runs what "
                    f"it is given: name more words, or write {rule.tool} to allow all"
                )
    return rule


def parse_rules(
    allow: Iterable[str] = (), deny: Iterable[str] = (), ask: Iterable[str] = ()
) -> Rules:
    """Read rules; raises `BadRequest` at the first that is none."""
    allowed = tuple(check_allowance(parse_rule(text)) for text in allow)
    return Rules(allowed, tuple(map(parse_rule, deny)), tuple(map(parse_rule, ask)))


def rule_for(tool: str, access: Access) -> Rule:
    """Return the narrowest rule that covers this call again."""
    subject = access.subject or None
    if subject is not None and subject.endswith(_BEGINNING):
        subject = None
    return Rule(tool, subject)


def _begins(command: SimpleCommand, words: Sequence[str | None]) -> bool:
    """Tell whether a command may begin with the words; one that is not known may be any."""
    texts = command.texts[: len(words)]
    pairs = zip(texts, words, strict=False)
    return len(texts) == len(words) and all(text in (None, word) for text, word in pairs)


def _is_harmless(command: SimpleCommand) -> bool:
    program, *rest = command.texts
    if program != "cd":
        return program in _HARMLESS
    to = rest[0] if len(rest) == 1 else None
    return to is not None and not to.startswith(("/", "-", "~")) and ".." not in to.split("/")
