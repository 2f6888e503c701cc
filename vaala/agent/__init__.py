"""The agent: its definition, its history for a model, one model call, and the loop guard."""
