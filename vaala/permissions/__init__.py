"""Permissions: what a call would do, and who decides whether it may."""
