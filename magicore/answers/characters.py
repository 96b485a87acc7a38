"""Unicode made plain, without moving anything: one character in, one character out.

Keeping lengths lets a span found in the plain text point into the text as written.
"""

import functools
import unicodedata

_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad"
_LOOKALIKES = {
    "\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2012": "-", "\ufe63": "-", "\uff0d": "-",
    "\uff0b": "+", "\ufe62": "+", "\uff0f": "/", "\u2044": "/", "\u2215": "/", "\uff0a": "*", "\u2217": "*",
    "\uff1d": "=", "\uff05": "%", "\u066a": "%", "\ufe6a": "%", "\uff04": "$",
    "\uff0e": ".", "\uff0c": ",", "\u066b": ".", "\u066c": ",", "\uff1a": ":", "\uff1b": ";", "\uff01": "!",
    "\uff08": "(", "\uff09": ")", "\uff3b": "[", "\uff3d": "]", "\uff5b": "{", "\uff5d": "}",
    "\u3010": "[", "\u3011": "]", "\u3002": ".", "\u2019": "'", "\u2018": "'", "\u02bc": "'",
    "\u201c": '"', "\u201d": '"', "\u00ab": '"', "\u00bb": '"',
}  # fmt: skip
_FULL_WIDTH_LETTERS = {chr(0xFF21 + i): chr(0x41 + i) for i in range(26)} | {
    chr(0xFF41 + i): chr(0x61 + i) for i in range(26)
}


class _PlainTable(dict[int, str]):
    """A `str.translate` table that learns the decimal digits of every script as it meets them."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        digit = unicodedata.decimal(char, None) if code > 0x7F else None
        plain = str(digit) if digit is not None else char
        self[code] = plain
        return plain


@functools.cache
def _table() -> _PlainTable:
    table = _PlainTable()
    table.update({ord(char): " " for char in _SPACES})
    table.update({code: " " for code in range(0x20) if chr(code) not in "\n\t"})
    table.update({ord(char): plain for char, plain in (_LOOKALIKES | _FULL_WIDTH_LETTERS).items()})
    return table


def plain(text: str) -> str:
    """Digits, signs, brackets, quotes and spaces of every script as ASCII; the length stays the same.

    >>> plain("−\uff11\uff12\u00a0km")
    '-12 km'
    """
    return text.translate(_table())


def visible(text: str) -> str:
    """`text` without zero-width and direction marks. Unlike `plain`, this shortens the text."""
    return text.translate(dict.fromkeys(map(ord, _INVISIBLE)))
