"""JSON Schemas of the files, for editors. Descriptions are the docstrings of the keys."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from vaala.config import schema
from vaala.config.schema import SCHEMAS


def json_schema(file: str) -> dict[str, Any]:
    """Return the schema of a file ("providers.yaml")."""
    model = SCHEMAS[file]
    made = model.model_json_schema()
    texts = _docstrings()
    sections = {model.__name__: made, **made.get("$defs", {})}
    for name, section in sections.items():
        for key, value in section.get("properties", {}).items():
            value.pop("title", None)
            if text := texts.get((name, key)):
                value["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": file}


def schema_name(file: str) -> str:
    """Return the name of the schema of a file, as it stands beside the file."""
    return f".schema/{file.removesuffix('.yaml')}.json"


def _docstrings() -> dict[tuple[str, str], str]:
    """Return the text below each key of each section.

    Pydantic would gather it whenever a configuration is loaded, which takes longer than the
    loading.
    """
    texts: dict[tuple[str, str], str] = {}
    for section in ast.parse(inspect.getsource(schema)).body:
        if not isinstance(section, ast.ClassDef):
            continue
        for key, below in zip(section.body, section.body[1:], strict=False):
            match key, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[section.name, name] = text
                case _:
                    pass
    return texts
