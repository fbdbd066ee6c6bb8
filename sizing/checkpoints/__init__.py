"""Figures of a model from its own files: config.json, safetensors index and header, GGUF header.

Plain Python, nothing from the network, nothing guessed: what is not understood is refused by the name of its field.
"""
