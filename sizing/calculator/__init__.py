"""The memory calculator: weights and own entries, and chains of stages. It knows no model of the catalog."""
