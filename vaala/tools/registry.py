"""`ToolSet`: the tools that an agent may use, and the one way to a call.

What a tool does wrong is contained here: an exception of its own becomes the result of the call,
and its texts come out clean and bounded whatever it returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vaala.models.base import ToolSpec
from vaala.tools import limits
from vaala.tools.arguments import explain_cut
from vaala.tools.base import PreparedCall, Tool, ToolFailure
from vaala.tools.containment import contained, contained_call
from vaala.tools.explain import meant
from vaala.tools.text import clean_line
from vaala_executors.workspace import Workspace
from vaala_protocol.errors import BadRequest

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider accepts as the name of a function."""


class ToolSet:
    """Tools in a fixed order, by name. Immutable; may be shared by all sessions."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Raises `BadRequest` for a name that is not legal or stands twice."""
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            name = tool.spec.name
            if _NAME.fullmatch(name) is None:
                raise BadRequest(
                    f"not a name for a tool: {name!r}. Use 1 to 64 letters, digits, _ and -"
                )
            if name in self._tools:
                raise BadRequest(f"two tools are called {name!r}; rename one of them")
            self._tools[name] = tool
        self._specs = tuple(tool.spec for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model sees them, always in the same order."""
        return self._specs

    def only(self, names: Sequence[str] | None) -> ToolSet:
        """Return the set of the named tools, in this set's order; None: all.

        Raises `BadRequest` naming what is not there.
        """
        if names is None:
            return self
        for name in names:
            if name not in self._tools:
                known = ", ".join(self._tools) or "none"
                raise BadRequest(
                    f"there is no tool {name!r}{meant(name, self.names)}. Tools: {known}"
                )
        return ToolSet(tool for name, tool in self._tools.items() if name in names)

    def plus(self, tools: Iterable[Tool]) -> ToolSet:
        """Return the set with more tools behind; raises `BadRequest` for a name that is taken."""
        return ToolSet((*self._tools.values(), *tools))

    async def prepare(
        self, name: str, arguments: str, workspace: Workspace, *, truncated: bool = False
    ) -> PreparedCall:
        """Check a call; the loop asks the gate, then runs it.

        ``truncated``: the answer reached its token limit within this call, which therefore is
        refused whatever its arguments look like. Raises `ToolFailure`, whose text is the result;
        so does the returned call's ``run``.
        """
        tool = self._tools.get(name)
        if tool is None:
            shown = clean_line(name, limits.VALUE_TEXT_CHARS_MAX)
            known = ", ".join(self._tools) or "none"
            raise ToolFailure(
                f"there is no tool {shown!r}{meant(shown, self.names)}. Your tools: {known}"
            )
        if truncated:
            raise explain_cut(name, arguments)
        return contained_call(name, await contained(name, tool.prepare(arguments, workspace)))
