"""What every wing of the server runs on: clock, threads, turns on the event loop, and what watches the loop."""
