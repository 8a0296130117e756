"""Committed offsets: plain and transactional commits, fetches, expiry."""
