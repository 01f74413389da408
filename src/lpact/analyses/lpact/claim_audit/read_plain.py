"""Plain text: paragraphs between empty lines; lines that begin with ``>`` are quoted."""

from __future__ import annotations

from lpact.analyses.lpact.claim_audit.blocks import Block, BlockKind, paragraphs


def read_plain(source: str) -> list[Block]:
    """Return the paragraphs of a plain text."""
    blocks = []
    for start, end in paragraphs(source):
        text = source[start:end]
        quoted = all(line.lstrip().startswith(">") for line in text.splitlines())
        blocks.append(Block(BlockKind.QUOTE if quoted else BlockKind.PROSE, start, text))
    return blocks
