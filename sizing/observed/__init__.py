"""Readings of memory that others published, beside what the rules of sizing give. It measures gaps and closes none."""
