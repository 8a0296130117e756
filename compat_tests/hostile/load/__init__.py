"""Requests that cost a broker much more than their client, beside a client that only wants to produce.

`python -m compat_tests.hostile.load` runs each of them on a pykbroker of its own and prints what the honest client, the
memory and the event loop felt of it.
"""
