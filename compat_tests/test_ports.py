"""What a port that is held means to others: this is how the kernel shares ports, and brokers rely on it."""

import socket

import pytest

from .ports import take_consecutive_ports, take_ports


def test_a_server_listens_on_a_held_port_as_often_as_it_likes() -> None:
    (port,) = take_ports(1)
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()


def test_nobody_answers_at_a_held_port_without_a_server() -> None:
    (port,) = take_ports(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_held_port_is_not_taken_again() -> None:
    first = take_consecutive_ports(3)
    for port in range(first, first + 3):
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(("127.0.0.1", port))
    others = take_ports(100)
    assert len({*others, first, first + 1, first + 2}) == 103
