"""Model files: safetensors arrays and a JSON header, never code."""
