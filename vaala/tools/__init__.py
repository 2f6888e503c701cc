"""Tools: what a model can call, the built-in ones, and those made from plain functions."""
