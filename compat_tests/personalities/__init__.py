"""Personalities of other releases, beside the releases themselves."""
