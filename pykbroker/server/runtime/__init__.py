"""The runtime is what every wing of the server stands on: clock, threads, signals, turns on the event loop, and the
watch over the loop.
"""
