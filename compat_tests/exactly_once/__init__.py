"""Exactly once: applications that consume, process and produce in transactions, killed together with their broker."""
