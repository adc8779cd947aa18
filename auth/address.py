"""Where a request comes from, for whoever counts; and keys in its URL, which are refused."""

import ipaddress
import re

from flask import request

from errors import Unauthorized
from logs import plain

# A key or a token by its form under any name, and anything under the names that keys are sent by.
KEY = re.compile(
    r"cqa\.v[0-9]\.[0-9a-f-]{32,36}\.\w|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", re.IGNORECASE
)
NAMED = re.compile(r"(?:^|&)(?:api[_-]?key|access[_-]token|authorization)=[^&]", re.IGNORECASE)
IN_URL = (
    "A key in a URL ends in logs and histories. Send it in the Authorization header, as "
    "`Bearer KEY`, and revoke this one: others may have seen it"
)


def caller():
    """The address that rates and failed logins count by.

    Whoever has an IPv6 address has all of its /64 to choose from: they count as one.
    """
    try:
        address = ipaddress.ip_address(request.remote_addr or "")
    except ValueError:
        return str(request.remote_addr)
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def refuse_keys_in_url():
    """A key in a path or a query is refused on every route, valid or not. Raises Unauthorized."""
    query = plain(request.query_string.decode("latin-1"))
    if KEY.search(plain(request.path)) or KEY.search(query) or NAMED.search(query):
        raise Unauthorized(IN_URL)
