"""The simulated world in which whole nodes run: one seed gives one order of events.

The modules, in reading order:

- `determinism`: Trio's scheduler follows a seed.
- `node`: one node that can be stopped, crashed, killed, paused and started again.
- `process`: the tasks of one process, which can be paused.
- `clock`: the clocks of a node, right or wrong.
- `threads`: the threads of a node, which stand still at their file operations as long as the seed wants.
- `interleaving`: functions that stop there, and turns among them.
- `disk`: a disk in memory that forgets in a crash what was not synced.
- `process_disk`: a disk whose process may die between two changes.
- `network`: hosts, and connections between them.
- `links`: the links between two hosts, which may be cut, slow or lossy.
- `pipe`: one direction of a connection.
"""
