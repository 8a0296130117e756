"""Payments are booked on accounts, each of them exactly once."""
