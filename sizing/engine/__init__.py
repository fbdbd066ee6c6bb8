"""The sizing engine: pure arithmetic on published figures. No Django, no database, no clock, no floats.

Not modelled, and therefore refused or absent rather than guessed: full fine-tuning, prefix reuse between requests, a
quantized cache, quantization metadata, pipeline parallelism, GPUs of two machines.
"""

ENGINE_VERSION = "1"
