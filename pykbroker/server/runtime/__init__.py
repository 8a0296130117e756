"""The runtime is what every wing of the server stands on: clock, threads, signals, turns on the event loop, and the
watch over the loop. The modules, in reading order:

- `clock`: the wall clock and the monotonic clock, a seam.
- `time_scopes`: for what a node asks how late it is; each may be ahead of the clock.
- `threads`: blocking work, a seam.
- `signal`: tells tasks that something has changed.
- `causes`: which request is in hand, and what state machines say about it.
- `deferred_answer`: an answer that another task gives later.
- `deferred_event_queue`: events that wait until a log has got far enough.
- `recurring_step`: what is done at an interval, and at once for whoever asks.
- `turns`: a long request lets others have their turn.
- `fair_queue`: places for work go to the client that has had the least.
- `few_tasks`: many waits in few tasks.
- `throttle`: a bound on the bytes per second of work in threads.
- `loop_monitor`: who held the event loop.
- `garbage_collection`: full passes of the collector come in quiet moments.
- `free_memory`: free memory goes back to the system.
- `thread_switches`: a thread gives the interpreter to the loop soon.
- `log_lines`: the log's set-up, its escaping and its bounds.
- `ephemeral_directories`: directories that go with their process, and the sweep of those whose process was killed.
- `reserved_port`: a port that is kept for a node which may be down.
- `startup_error`: why a node cannot start.
"""
