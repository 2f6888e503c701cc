"""The server: one runtime, many clients."""
