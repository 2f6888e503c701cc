"""The commands: one table that help, parsing, completion and the documentation's test read.

Only standard library here, and nothing heavy of it (so no dataclasses, which import inspect):
`vaala --help` must cost next to nothing.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Literal, NamedTuple, TypeAlias

Complete: TypeAlias = Literal["", "file", "directory", "conversation", "agent"]

VERSION_OPTIONS = ("--version", "-V")
HELP_OPTIONS = ("--help", "-h")


class Option(NamedTuple):
    """``--name VALUE``; without ``metavar`` a flag."""

    name: str
    help: str
    metavar: str = ""
    short: str = ""
    choices: tuple[str, ...] = ()
    repeat: bool = False
    complete: Complete = ""
    words: tuple[str, ...] = ()
    """Values that a shell completes; others are taken, too."""

    @property
    def field(self) -> str:
        name = self.name.removeprefix("--").replace("-", "_")
        return f"{name}_" if iskeyword(name) else name


class Argument(NamedTuple):
    """A word of the command line without a name."""

    name: str
    help: str
    many: Literal["one", "optional", "any", "some"] = "one"
    choices: tuple[str, ...] = ()
    complete: Complete = ""


class Command(NamedTuple):
    name: str
    summary: str
    entry: str
    """``module:function``; imported when the command runs, called with an argparse Namespace."""
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    more: str = ""
    """Further help, below the options."""


DATA_DIR = Option(
    "--data-dir", "where conversations are kept, instead of VAALA_DATA_DIR or the user's",
    metavar="DIR", complete="directory",
)  # fmt: skip
JSON = Option("--json", "print JSON instead of text for people")
LIMIT = Option("--limit", "show at most this many (default 20)", metavar="N")
ID = Argument("ID", "a conversation's id, or the beginning of one that no other has",
              complete="conversation")  # fmt: skip
YES = Option("--yes", "do not ask", short="-y")

EFFORTS = ("default", "none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Those of the protocol, which is not imported for help."""

RUN = Command(
    "run",
    "give an agent a prompt and print its answer",
    "vaala.cli.run:main",
    arguments=(
        Argument("PROMPT", "what to do; - stands for what comes on stdin", many="any"),
    ),
    options=(
        Option("--model", "the model, as PROVIDER/MODEL, scripted, or scripted:FILE", "MODEL",
               short="-m"),
        Option("--agent", "the agent that does the work (default: default)", "NAME", short="-a",
               complete="agent"),
        Option("--cwd", "the directory to work in (default: this one)", "DIR", short="-C",
               complete="directory"),
        Option("--mode", "what runs without asking (default: the agent's, else ask)", "MODE",
               choices=("read-only", "ask", "auto-edit", "full")),
        Option("--effort", "how hard the model should think, as in low or high; default: as it "
               "does by itself", "LEVEL", words=EFFORTS),
        Option("--option", "an option of the model, as in temperature=0.2 or "
               "max_output_tokens=2000; the value is JSON, null takes one away; may be given again",
               "NAME=VALUE", repeat=True),
        Option("--allow", "allow a tool, or some calls of it, as in 'exec_command(make test)' or "
               "'exec_command(git log:*)'; may be given again", "RULE", repeat=True),
        Option("--continue", "go on with the newest conversation of the directory", short="-c"),
        Option("--conversation", "go on with this conversation", "ID", complete="conversation"),
        Option("--prompts", "run the prompts of a file one after the other; lines of --- stand "
               "between them, without any such line each line is a prompt", "FILE",
               complete="file"),
        Option("--output-schema", "the answer is one line of JSON that matches this JSON Schema",
               "FILE", complete="file"),
        Option("--json", "print one event per line as JSON instead of the answer"),
        Option("--detach", "print the conversation's id and leave; the server goes on with it",
               short="-d"),
        Option("--in-process", "run the agent in this process, without a server"),
        DATA_DIR,
    ),
    more=(
        "Without PROMPT and --prompts the prompt is read from stdin, if that is no terminal.\n"
        "Nothing behind -- is taken for an option.\n"
        "Exit code: 0 done, 1 failed, 2 wrong usage, 3 refused or a limit was reached,\n"
        "4 cannot start or reach what is needed, 130 interrupted (128 and the number of another\n"
        "signal), 141 nobody reads stdout."
    ),
)  # fmt: skip

SERVE = Command(
    "serve",
    "run the server that keeps conversations going and lets many clients share them",
    "vaala.cli.serve:main",
    options=(
        Option("--host", "a numeric address to listen on (default: 127.0.0.1); may be given again, "
               "all get the same port", "ADDRESS", repeat=True),
        Option("--port", "listen on this port and no other; 0 is any that is free (default: 8790, "
               "or a free one where that is taken)", "N"),
        Option("--socket", "listen on a unix socket, too", "PATH", complete="file"),
        Option("--allow-host", "a name that clients use for this server, as in box.example or "
               "box.example:443; may be given again", "NAME", repeat=True),
        Option("--allow-origin", "a web page that may use this server, as in "
               "https://box.example; may be given again", "ORIGIN", repeat=True),
        Option("--idle-exit", "end when there has been nothing to do for so long; 0 is never "
               "(default: never, or 30 for a server that a client started)", "MINUTES"),
        Option("--ready-fd", "write one line of JSON to this open descriptor when the server is "
               "ready, or cannot be", "N"),
        DATA_DIR,
    ),
    more=(
        "Runs in the foreground; Ctrl-C and SIGTERM end it in order, a second one at once.\n"
        "Exit code: 0 it was told to end, 2 wrong usage or configuration, 4 the data directory,\n"
        "an address or the record for clients cannot be had."
    ),
)  # fmt: skip

DECISION = Argument("ID", "the id that inbox shows, or the beginning of it")

LIVE: tuple[Command, ...] = (
    Command(
        "status", "show what is alive in the server, and what it waits for",
        "vaala.cli.status:main", (), (JSON, DATA_DIR),
    ),
    Command(
        "stop", "end the server; running turns are interrupted, everything is kept",
        "vaala.cli.lifecycle:stop", (),
        (Option("--if-idle", "only when no turn and no command runs"), DATA_DIR),
    ),
    Command(
        "restart", "end the server and start it again", "vaala.cli.lifecycle:restart", (),
        (Option("--if-idle", "only when no turn and no command runs"), DATA_DIR),
    ),
    Command("watch", "follow a conversation while it goes on", "vaala.cli.following:watch", (ID,),
            (JSON, DATA_DIR), more="Ctrl-C leaves; the conversation goes on."),
    Command(
        "send", "give a conversation a message and leave", "vaala.cli.following:send",
        (ID, Argument("PROMPT", "the message", many="some")),
        (Option("--steer", "let the running turn read it, instead of the next one"), DATA_DIR),
    ),
    Command(
        "wait", "wait until a conversation is idle and print its last answer",
        "vaala.cli.following:wait", (ID,),
        (
            Option("--timeout", "give up after so long, with exit code 3", "SECONDS"),
            Option("--until-asked", "end with exit code 3 when it waits for a person"),
            DATA_DIR,
        ),
        more="Exit code: that of the last turn, as for run.",
    ),
    Command(
        "attach", "talk with a conversation on the terminal: watch, answer and send",
        "vaala.cli.attach:main", (ID,), (DATA_DIR,),
        more="Ctrl-C interrupts the turn, a second one leaves, as Ctrl-D always does.",
    ),
    Command("inbox", "list what waits for a person, in all conversations", "vaala.cli.inbox:main",
            (), (JSON, DATA_DIR)),
    Command(
        "approve", "allow or reject a call that waits", "vaala.cli.inbox:approve", (DECISION,),
        (
            Option("--reject", "reject it"),
            Option("--option", "one of the options that inbox shows (default: allow this call)",
                   "OPTION"),
            Option("--reason", "what the agent is told with it", "TEXT"),
            DATA_DIR,
        ),
    ),
    Command(
        "answer", "answer a question of an agent", "vaala.cli.inbox:answer",
        (DECISION, Argument("TEXT", "the answer", many="any")),
        (Option("--none", "let the agent go on without an answer"), DATA_DIR),
    ),
)  # fmt: skip

COMMANDS: tuple[Command, ...] = (
    RUN,
    SERVE,
    *LIVE,
    Command(
        "list", "list conversations, newest first", "vaala.cli.listing:main",
        options=(
            LIMIT,
            Option("--cwd", "only those that work in this directory", "DIR", short="-C",
                   complete="directory"),
            JSON, DATA_DIR,
        ),
    ),
    Command("show", "print a conversation", "vaala.cli.show:main", (ID,), (JSON, DATA_DIR)),
    Command(
        "search", "find conversations by words in titles and messages", "vaala.cli.search:main",
        (Argument("TEXT", "words that must all occur", many="some"),), (LIMIT, JSON, DATA_DIR),
    ),
    Command("delete", "delete a conversation for good", "vaala.cli.delete:main", (ID,),
            (YES, DATA_DIR)),
    Command("rename", "give a conversation a title", "vaala.cli.organizing:rename",
            (ID, Argument("TITLE", "the new title", many="some")), (DATA_DIR,)),
    Command("archive", "take a conversation out of the list", "vaala.cli.organizing:archive",
            (ID,), (Option("--undo", "put it back"), DATA_DIR)),
    Command("compact", "let a summary take the place of what was said, for the model",
            "vaala.cli.compact:main", (ID,), (DATA_DIR,)),
    Command("fork", "copy a conversation; the copy goes its own way", "vaala.cli.organizing:fork",
            (ID,), (Option("--turn", "the last turn to take along (default: all)", "ID"),
                    DATA_DIR)),
    Command(
        "export", "write a conversation to an archive", "vaala.cli.transfer:export",
        (ID, Argument("FILE", "the archive (default: ID.tar.gz); - is stdout", many="optional",
                      complete="file")),
        (DATA_DIR,),
    ),
    Command("import", "add a conversation from an archive", "vaala.cli.transfer:import_",
            (Argument("FILE", "an archive that export wrote; - is stdin", complete="file"),),
            (DATA_DIR,)),
    Command(
        "config", "check, show and change the configuration", "vaala.cli.config:main",
        (Argument("ACTION", "what to do, see below",
                  choices=("check", "show", "set", "edit", "path", "schema")),
         Argument("FILE", "a file of the configuration, such as models", many="optional"),
         Argument("KEY", "where in the file, as in team.deadlines.connect_s", many="optional"),
         Argument("VALUE", "a value in YAML; - reads it from stdin", many="optional")),
        (Option("--delete", "with set: take the key out"), JSON),
        more=(
            "check                 tell everything that is wrong; exit code 2 when something is\n"
            "show [FILE [KEY]]     print what is in force, and where each value comes from\n"
            "set FILE KEY VALUE    change one value; comments and style stay\n"
            "edit FILE             open a copy in $VISUAL or $EDITOR; what is wrong is not saved\n"
            "path [FILE]           print where the configuration is\n"
            "schema [FILE]         print the JSON Schema of a file, or of all\n"
            "A name with a dot in it stands in quotes: 'team.windows.\"m-1.5\"'."
        ),
    ),
    Command("init", "write a first configuration, with everything that can be set as comments",
            "vaala.cli.init:main"),
    Command(
        "usage", "show what was used, and what it cost as far as prices are known",
        "vaala.cli.usage:main",
        (ID._replace(many="optional", help=f"{ID.help} (default: all)"),),
        (
            Option("--since", "only turns since this day, as in 2026-11-30, or since so long ago, "
                   "as in 12h, 7d or 4w", "WHEN"),
            JSON, DATA_DIR,
        ),
    ),
    Command(
        "permissions", "list the rules, and explain how a call would be decided",
        "vaala.cli.permissions:main",
        (Argument("ACTION", "what to do, see below", choices=("list", "explain")),
         Argument("CALL", "with explain: a command, or with --tool a path", many="any")),
        (Option("--tool", "the tool that would be called (exec_command)", metavar="TOOL",
                choices=(
                    "exec_command", "read_file", "list_dir", "search", "write_file", "edit_file",
                )),
         Option("--mode", "the mode to assume (ask)", "MODE",
                choices=("read-only", "ask", "auto-edit", "full")),
         Option("--allow", "a rule to assume as well; may be given again", "RULE", repeat=True),
         JSON),
        more=(
            "list              the rules of permissions.yaml\n"
            "explain COMMAND   whether it would run, be asked about or be denied, and why\n"
            "\n"
            "Quote the command: vaala permissions explain 'git log | head'"
        ),
    ),
    Command(
        "models", "list, show and try models, add providers of them, and renew prices",
        "vaala.cli.models:main",
        (Argument("ACTION", "what to do, see below",
                  choices=("list", "show", "add", "remove", "test", "refresh")),
         Argument("NAME", "a model, as PROVIDER/MODEL; with add and remove a provider",
                  many="optional")),
        (Option("--url", "with add: the base URL, for a provider that is not known", "URL"),
         Option("--api", "with add: the wire format (default: found out)", "FORMAT",
                choices=("chat", "anthropic", "responses", "gemini")),
         Option("--key-env", "with add: the key is in this variable", "VARIABLE"),
         Option("--key-file", "with add: the key is in this file", "FILE", complete="file"),
         Option("--key-command", "with add: this command prints the key, as in 'pass show x'",
                "COMMAND"),
         Option("--key-keyring", "with add: the key is in the keyring of the system",
                "SERVICE/USER"),
         Option("--key-stdin", "with add: the key comes on stdin; it is kept in secrets.yaml"),
         Option("--model", "with add: the model to try, and for --default", "MODEL", short="-m"),
         Option("--default", "with add: let its model run when none is named"),
         Option("--test", "with add: try the model with one short request"),
         Option("--no-test", "with add: do not even ask the server for its models"),
         YES, JSON, DATA_DIR),
        more=(
            "list            models that can be chosen, with windows and prices\n"
            "show MODEL      what is known of a model, and who says it; its server is asked\n"
            "add [PROVIDER]  add a provider, or change one; asks for what it was not told\n"
            "remove PROVIDER take a provider out, with its key in secrets.yaml\n"
            "test [MODEL]    one short request: how quick it is, or why it fails\n"
            "refresh         take the list of OpenRouter anew; needs the network, but no key\n"
            "\n"
            "vaala models add\n"
            "vaala models add anthropic --key-command 'pass show anthropic' --default\n"
            "vaala models add team --url https://models.example.com/v1 --key-env TEAM_KEY --test\n"
            "vaala models add openai --key-stdin < key.txt"
        ),
    ),
    Command("reindex", "rebuild the index of lists and search from the conversations",
            "vaala.cli.reindex:main", (), (DATA_DIR,)),
    Command("doctor", "check data, server, configuration and model, and tell what to do",
            "vaala.cli.doctor:main", (), (JSON, DATA_DIR),
            more="Exit code: 1 when something is wrong."),
    Command(
        "completion", "print the completion script of a shell", "vaala.cli.completion:main",
        (Argument("SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        more="For example: vaala completion bash > "
        "~/.local/share/bash-completion/completions/vaala",
    ),
)  # fmt: skip


def find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)
