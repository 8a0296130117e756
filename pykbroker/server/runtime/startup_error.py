"""A startup error ends a node that cannot start."""


class StartupError(Exception):
    """The node cannot run with the configuration, the files or the cluster that it was given; the text is one line."""
