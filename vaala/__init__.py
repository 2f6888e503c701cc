"""A local runtime for LLM agents."""
