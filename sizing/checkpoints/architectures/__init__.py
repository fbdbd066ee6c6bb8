"""One module for each family of architectures: which fields it has, and what they make of weights and cache."""
