"""A client starts fast: what it imports is what it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "httpx", "ruamel", "apsw", "vaala.runtime", "vaala.dao", "vaala.models",
         "vaala.tools", "vaala.config", "vaala.server", "vaala_storage", "vaala_executors",
         "opentelemetry", "yaml", "asyncio")  # fmt: skip


def _loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_a_client_loads_nothing_of_the_runtime() -> None:
    loaded = _loaded("from vaala.client import connect, Client, RemoteConversation")
    found = {name for name in loaded for heavy in HEAVY if f"{name}.".startswith(f"{heavy}.")}
    assert found == set()


def test_the_package_alone_loads_next_to_nothing() -> None:
    loaded = _loaded("import vaala.client")
    assert {"trio", "msgspec", "trio_websocket"} & loaded == set()


@pytest.mark.parametrize("name", ["conect", "limits_"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    import vaala.client

    with pytest.raises(AttributeError, match=name):
        getattr(vaala.client, name)
