"""What must be true of a cluster besides what clients see: each oracle names the rule that is broken, and by whom.

- `lives`: the parts of each node's latest process, for those that look inside.
- `replicas`, `agreement`, `directories`: replicas, images and what is on disks are the same when all is quiet.
- `images`, `topic_order`: one image at each offset; topics are linearizable.
- `membership`: every node that is up and connected rejoins.
- `traffic`, `lines`, `quiet`, `loop`: nothing repeats without progress.
- `resources`: nodes hold no more than after a start.
- `watch`: all of them together, for the simulation.

How long a step holds the event loop is told by `tests.loops`, for every test.
"""
