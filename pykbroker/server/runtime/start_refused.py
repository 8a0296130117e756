"""Why a node does not start, for whoever started it."""


class StartRefused(Exception):
    """The node cannot run with what it was given; the text is one line."""
