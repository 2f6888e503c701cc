"""A title by the model that models.yaml names, through the server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Script = Callable[[str], str]
Vaala = Callable[..., Any]


def test_the_configured_model_makes_titles(vaala: Vaala, script: Script) -> None:
    configuration = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    configuration.mkdir(parents=True)
    titler = script('  - {say: "A short title", usage: {input: 5, output: 3}}\n')
    (configuration / "models.yaml").write_text(f"titles: {titler}\n")
    model = script("  - say: Fine.\n")
    assert vaala("run", "--model", model, "Look at all of this").code == 0
    deadline = time.monotonic() + 30
    while (row := vaala("list", "--json").lines[0])["title"] != "A short title":
        assert time.monotonic() < deadline, row
    assert f"{titler}: 5 in, 3 out" in vaala("usage").out
    vaala("rename", row["id"], "Mine")
    vaala("run", "--continue", "And this")
    assert vaala("list", "--json").lines[0]["title"] == "Mine"
