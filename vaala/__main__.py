"""The `vaala` program."""

from __future__ import annotations

import sys

from vaala.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
