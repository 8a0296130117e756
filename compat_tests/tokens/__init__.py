"""Delegation tokens: who may make, see, renew and expire one, and what it opens, on both brokers."""
