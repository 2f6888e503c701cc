"""``python -m vaala_protocol.schema``: write what is generated from the types anew."""

from __future__ import annotations

from vaala_protocol.schema.files import generated


def main() -> None:
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
