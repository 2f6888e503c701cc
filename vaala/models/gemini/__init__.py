"""Gemini generateContent, as generativelanguage.googleapis.com and Vertex AI speak it."""
