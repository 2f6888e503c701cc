"""OpenAI-compatible chat completions: OpenAI, OpenRouter, Ollama, llama.cpp, LM Studio, vLLM ..."""
