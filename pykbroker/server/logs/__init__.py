"""The logs of a node stand in its log directories: here are loading, flushes, truncations, retention and the log
cleaner.
"""
