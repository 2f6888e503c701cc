"""The public names of the four packages: a change here is a change for everyone who uses them."""

from __future__ import annotations

import importlib

import pytest

PUBLIC = {
    "vaala_protocol": [
        "Malformed", "Value", "decode", "encode", "from_json", "is_id", "new_id", "to_json",
    ],
}  # fmt: skip


@pytest.mark.parametrize("package", PUBLIC)
def test_a_package_exports_what_this_list_says(package: str) -> None:
    assert sorted(importlib.import_module(package).__all__) == sorted(PUBLIC[package])


@pytest.mark.parametrize("package", PUBLIC)
def test_each_exported_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
