"""This machine as an executor."""
