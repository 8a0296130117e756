"""The console as a person finds it, in headless Chromium, and its API as somebody else's page or script finds it."""
