"""The process that searches files; see `walk` and `scan`.

`re` holds the interpreter's lock while it matches, so a pattern with exponential backtracking
would stop the whole runtime, and no thread can be ended. A process can, and what it found until
then counts.

Its modules run under ``python -I -S`` with the standard library and pathspec.
"""
