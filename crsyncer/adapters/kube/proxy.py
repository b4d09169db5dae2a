"""Which proxy leads to a server, by the environment: HTTPS_PROXY and NO_PROXY as kubectl reads them.

Source: golang.org/x/net/http/httpproxy, which differs from Python's own reading: networks, ports and `*.` count.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """The URL of the proxy for an https server; None: connect directly."""
    proxy = environ.get("HTTPS_PROXY") or environ.get("https_proxy")
    if not proxy or _is_direct(server, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_direct(server: str, exceptions: str) -> bool:
    url = urlsplit(server)
    host, port = (url.hostname or "").rstrip("."), url.port or 443
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, address, port) for entry in exceptions.split(","))


def _matches(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
    """Whether one entry of NO_PROXY names a host: `*`, a network, an address, or a domain, the last two with a port."""
    if not entry or entry == "*":
        return bool(entry)
    try:
        network = ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        name, colon, number = entry.rpartition(":")
        if colon and number.isdigit() and (":" not in name or name.endswith("]")):
            return int(number) == port and _matches(name, host, address, port)
        name = entry.removeprefix("*")
        return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
    return address is not None and address.version == network.version and address in network
