"""The REST API of a tenant: orders, and what a key may read of its own organization."""
