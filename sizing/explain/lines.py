"""What each line of an estimate is: its label, and a short text that ends with what makes it grow.

A pipeline can have several networks of one role; the second text encoder has the code `text_encoder_2`.
"""

from sizing.engine.estimate import MemoryEstimate

LABELS = {
    "weights": "Model weights",
    "kv_cache": "KV cache",
    "base_weights": "Base weights",
    "adapters": "LoRA adapters",
    "checkpoints": "Checkpointed activations",
    "working_set": "Training working set",
    "denoiser": "Denoiser",
    "text_encoder": "Text encoder",
    "vae": "Autoencoder (VAE)",
    "safety_checker": "Safety checker",
    "decoder_cache": "Decoder cache",
    "stated_need": "GPU memory you stated",
    "margin": "Additional margin",
    "runtime": "CUDA runtime",
    "reserve": "Own reserve",
}
WHAT_IS_THIS = {
    "weights": (
        "The numbers that the model learned, all of which must be in GPU memory before it can answer. "
        "A mixture of experts keeps every expert there, also those that a token does not use. "
        "It grows with the number of parameters and with the bits kept for each."
    ),
    "kv_cache": (
        "For every token it has seen, each attention layer keeps a key and a value, so that it need not "
        "compute them again. Architectures that keep less, such as a sliding window or one shared vector, are "
        "counted as published. It grows with the context and with the requests at once."
    ),
    "margin": (
        "Room for what is not counted line by line: activations, work memory of the kernels, captured graphs, "
        "fragmentation. It is a planning rule, not a measurement, and a server can need more. "
        "It grows with the weights and the KV cache."
    ),
    "runtime": (
        "What CUDA and its libraries take on a GPU before the model is loaded. "
        "It is a planning rule as well: the real amount depends on driver and libraries. "
        "It grows with the number of GPUs, for each has its own."
    ),
    "reserve": (
        "Memory that you want kept free on every GPU, for the reason you gave. "
        "No margin is put on it. "
        "It grows only when you raise it."
    ),
    "base_weights": (
        "The model that is adapted, all of it in GPU memory and frozen: it gets no gradients and no optimizer state. "
        "At 4 bits it is kept in NormalFloat with double quantization (QLoRA), whose scales are counted. "
        "It grows with the number of parameters and with the bits kept for each."
    ),
    "adapters": (
        "The small matrices that are trained beside the frozen modules, with their gradients and the two moments of "
        "the optimizer. "
        "A module of in × out gets rank × (in + out) parameters. "
        "It grows with the rank and with the modules that are targeted."
    ),
    "checkpoints": (
        "The input of every layer, kept until the backward pass comes back to it. "
        "Gradient checkpointing keeps nothing else and computes the rest again. "
        "It grows with the sequence length and with the batch."
    ),
    "working_set": (
        "The larger of two peaks that never come together: one layer computed again for the backward pass, and the "
        "logits with their loss. "
        "With a large vocabulary the loss is the larger, whatever is trained. "
        "It grows with the sequence length and with the batch."
    ),
    "denoiser": (
        "The network that turns noise into an image step by step, used again at every step. "
        "All of its weights are counted at 16 bits. "
        "It grows with its number of parameters."
    ),
    "text_encoder": (
        "Reads the prompt before the first step, and is kept in memory with the rest of the pipeline. "
        "In some pipelines it is larger than the denoiser. "
        "It grows with its number of parameters."
    ),
    "vae": (
        "Turns the finished latent into pixels. "
        "Its weights are small, but decoding can have a peak of its own, which is not in this line. "
        "It grows with its number of parameters."
    ),
    "safety_checker": (
        "Looks at the finished image, and is loaded with the pipeline unless it is switched off. "
        "All of its weights are counted at 16 bits. "
        "It grows with its number of parameters."
    ),
    "decoder_cache": (
        "Keys and values of the decoder for one window of 30 seconds: for the text written so far, and for what the "
        "encoder heard. "
        "A long recording is worked through window by window, so its length does not matter. "
        "It grows with the audio streams at once."
    ),
    "stated_need": (
        "The figure you gave, compared with the memory of each GPU as it is. "
        "No margin and no runtime are added. "
        "It grows only when you raise it."
    ),
}


def label(code: str) -> str:
    """The label of a line: "Text encoder", "Text encoder 2"."""
    role, number = _numbered(code)
    return f"{LABELS[role]} {number}" if number else LABELS[role]


def labels(need: MemoryEstimate) -> dict[str, str]:
    """The labels of all lines of an estimate, by code."""
    return {term.code: label(term.code) for term in need.terms}


def what_is_this(code: str) -> str:
    """What a line is and what makes it grow."""
    return WHAT_IS_THIS[_numbered(code)[0]]


def _numbered(code: str) -> tuple[str, str]:
    role, _, number = code.rpartition("_")
    return (role, number) if role and number.isdigit() else (code, "")
