"""The container image without a container daemon: built and run by buildah, its services joined by a network."""
