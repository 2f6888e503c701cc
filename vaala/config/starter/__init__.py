"""The files that `vaala init` writes: all that can be set, with its default, as comments."""
