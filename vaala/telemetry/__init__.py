"""Logs, and traces and metrics for who wants them."""
