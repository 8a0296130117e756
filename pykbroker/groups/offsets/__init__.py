"""Committed offsets: commits, plain and in transactions, fetches, deletion and expiry."""
