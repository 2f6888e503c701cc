"""This machine as an executor."""

from vaala_executors.local.executor import LocalExecutor

__all__ = ["LocalExecutor"]
