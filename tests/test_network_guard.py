"""The guard in ``conftest.py``: a test reaches this machine and no other, and sees no key."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from conftest import NetworkBlocked, is_local

ELSEWHERE = "192.0.2.1"  # reserved for documentation: nothing is there


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", b"localhost", "::1", "0.0.0.0", "", None])
def test_this_machine_is_local(host: object) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", [ELSEWHERE, "10.0.0.1", "169.254.169.254", "fe80::1%eth0", "localhost.example"])
def test_every_other_is_not(host: str) -> None:
    assert not is_local(host)


def test_a_connection_elsewhere_is_refused() -> None:
    with socket.socket() as client, pytest.raises(NetworkBlocked, match=ELSEWHERE):
        client.connect((ELSEWHERE, 80))
    with socket.socket() as client, pytest.raises(NetworkBlocked, match=ELSEWHERE):
        client.connect_ex((ELSEWHERE, 80))
    with pytest.raises(NetworkBlocked, match=r"look 'hub\.example' up"):
        socket.create_connection(("hub.example", 443), timeout=1)


def test_so_is_one_from_an_event_loop() -> None:
    with pytest.raises(NetworkBlocked, match=ELSEWHERE):
        asyncio.run(asyncio.open_connection(ELSEWHERE, 80))


def test_a_connection_to_this_machine_goes_through() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"ok")
            assert accepted.recv(2) == b"ok"


def test_no_key_is_in_the_environment() -> None:
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
