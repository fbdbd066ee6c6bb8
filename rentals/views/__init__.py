"""The tenant's pages, one module a subject."""
