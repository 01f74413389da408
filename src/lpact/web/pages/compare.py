"""Two runs beside each other."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lpact.web.site import Site, read_address

KNOWN = ("a", "b")


def show(site: Site, request: Request) -> Response:
    """What differs between two runs; without a choice, the first two."""
    address, elsewhere = read_address(request, KNOWN)
    if elsewhere is not None:
        return elsewhere
    slugs = [run.slug for run in site.shelf.runs]
    a = site.run(address.get("a", slugs[0]))
    b = site.run(address.get("b", slugs[1 if len(slugs) > 1 else 0]))
    return site.page(request, "compare.html", a=a, b=b, comparison=None)
