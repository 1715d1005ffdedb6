"""Text from outside, made safe for a terminal."""

from __future__ import annotations

import re

# Controls of terminals, ends of lines, marks that reverse or hide text, and halves of pairs that no encoding has.
# Joiners (U+200C, U+200D) are part of some scripts and of emoji, and stay.
_HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str, *, keep: str = "") -> str:
    """Write what a terminal would obey, or hide, as an escape that can be read."""
    return _HARMFUL.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def visible_json(text: str) -> str:
    """Write the same characters in a JSON document as JSON's own escapes, which stand for the same values."""
    return _HARMFUL.sub(lambda found: found[0] if found[0] == "\n" else _json_escape(found[0]), text)


def one_line(text: object, most: int = 200) -> str:
    """Write the message of another library in one short line."""
    return shortened(visible(" ".join(str(text).split())), most)


def shortened(text: str, most: int) -> str:
    """Cut a long text before its end."""
    end = most // 4
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))
