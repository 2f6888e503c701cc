"""Anthropic Messages: Anthropic itself, and the servers that speak its API beside their own."""
