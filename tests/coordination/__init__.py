"""Coordinators, logs and clients in a simulated world that fails: one seed is one run, and its history is judged.

`sizes` says how large a run is. `simulation.simulate(seed)` runs clients of all kinds against a whole node that dies
between any two changes of its disk, on a network that delays and cuts. When all is quiet everything acknowledged must
be there. `python -m tests.coordination SEED` plays a seed again and prints the verdict; `bugs` are mistakes in the
broker that the simulation must find.
"""
