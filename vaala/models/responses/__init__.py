"""OpenAI Responses, stateless: OpenAI, OpenRouter, DeepSeek, LM Studio, llama.cpp, Copilot ..."""
