"""A startup error ends a node that cannot start."""


class StartupError(Exception):
    """The node cannot run with the configuration, the files or the cluster that it was given; the text is one line."""


class PortInUse(StartupError):
    """Another process listens where this node is to listen. listener: the name of this node's listener."""

    def __init__(self, listener: str, address: str, port: int) -> None:
        super().__init__(f"cannot listen on {address}: Address already in use")
        self.listener = listener
        self.port = port
