"""Names in other libraries, listed by the names here."""

from __future__ import annotations

from collections.abc import Mapping


def by_peer_name(peers: Mapping[str, str]) -> dict[str, str]:
    """Map each name elsewhere to the name here, from texts of names elsewhere by the name here."""
    return {peer: name for name, listed in peers.items() for peer in listed.split()}
