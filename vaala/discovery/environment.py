"""What a client tells of the environment it runs in, so that it does not matter from which shell
the server was started.

Keys of model providers go apart from what commands get, and nothing else is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaala_protocol.methods.runtime import ClientEnvironment

KEY_ORDER = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
)
"""The variables of providers, in the order in which a default model is looked for."""
KEY_VARIABLES = tuple(name for name in KEY_ORDER if name.endswith("_API_KEY"))
"""What commands of an agent must not be able to read."""

INTERPRETER_VARIABLES = (
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE",
)  # fmt: skip
"""What an interpreter may need to find itself and its packages. A server that a client starts has
those of that client, for itself: a `python` of another one's environment would not run with them.
"""
OVERLAY_VARIABLES = ("PATH", "VIRTUAL_ENV", "LANG", "TZ", "SSH_AUTH_SOCK", *INTERPRETER_VARIABLES)
OVERLAY_PREFIXES = ("CONDA_", "LC_")
"""What an activated environment, a language and an agent of SSH keys are made of."""


def client_environment(
    environ: Mapping[str, str],
    directory: str,
    *,
    keys: Iterable[str] = (),
    forward: Iterable[str] = (),
) -> ClientEnvironment:
    """Return what a client sends of ``environ``.

    ``directory`` is its absolute working directory. ``keys`` are more variables of providers, such
    as the ``api_key_env`` of the configuration; ``forward`` are more variables for commands, its
    ``env.forward``. A variable of `OVERLAY_VARIABLES` or ``forward`` that is not set is told to be
    so. A key is never told for commands, also when it is to be forwarded.
    """
    secret = dict.fromkeys((*KEY_ORDER, *keys))
    wanted = dict.fromkeys((*OVERLAY_VARIABLES, *forward))
    # Whoever wants the names alone has no use for the methods of the protocol.
    from vaala_protocol.methods.runtime import ClientEnvironment

    grouped = (name for name in environ if name.startswith(OVERLAY_PREFIXES))
    return ClientEnvironment(
        directory=directory,
        keys={name: environ[name] for name in secret if environ.get(name)},
        overlay={
            name: environ.get(name)
            for name in dict.fromkeys((*wanted, *grouped))
            if name not in secret
        },
    )
