"""The built-in tools."""

from __future__ import annotations

from vaala.tools.agent_tools import SpawnAgent, WaitAgent
from vaala.tools.ask_user import AskUser
from vaala.tools.edit_file import EditFile
from vaala.tools.exec_command import ExecCommand
from vaala.tools.list_dir import ListDir
from vaala.tools.locks import PathLocks
from vaala.tools.read_file import ReadFile
from vaala.tools.registry import ToolSet
from vaala.tools.search import Search
from vaala.tools.write_file import WriteFile
from vaala.tools.write_stdin import WriteStdin


def builtin_tools() -> ToolSet:
    """Make the tools of a runtime. Changes of one file exclude each other within one set."""
    locks = PathLocks()
    return ToolSet(
        (
            ReadFile(),
            WriteFile(locks),
            EditFile(locks),
            ListDir(),
            Search(),
            ExecCommand(),
            WriteStdin(),
            SpawnAgent(),
            WaitAgent(),
            AskUser(),
        )
    )
