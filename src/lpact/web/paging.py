"""Where a page stands among all pages."""

from __future__ import annotations

from dataclasses import dataclass

from lpact.web.address import Address


@dataclass(frozen=True)
class Paging:
    """``size`` rows of ``total`` from page ``wanted`` on; a page behind the last one is the last one."""

    address: Address
    total: int
    size: int
    wanted: int

    @property
    def last(self) -> int:
        """Number of pages, at least 1."""
        return max(1, -(-self.total // self.size))

    @property
    def number(self) -> int:
        """The page that is shown, from 1."""
        return min(self.wanted, self.last)

    @property
    def offset(self) -> int:
        """Rows before the page."""
        return (self.number - 1) * self.size

    @property
    def first_row(self) -> int:
        """Number of the first row, from 1; 0 without rows."""
        return self.offset + 1 if self.total else 0

    @property
    def last_row(self) -> int:
        """Number of the last row."""
        return min(self.total, self.offset + self.size)

    def to(self, number: int) -> str:
        """Address of another page."""
        return str(self.address.having(page="" if number == 1 else number))
