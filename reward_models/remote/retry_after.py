"""How long a server asks to be left alone."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_WAIT_S = 600.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``retry-after`` (a number or a date); at most ten minutes.

    ``None`` where neither is there, or none can be read. Names of headers are taken in lower case.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) / scale
        except KeyError:
            continue
        except ValueError:
            wait = _until(headers[name]) if scale == 1.0 else math.nan
        if math.isfinite(wait):
            return min(max(wait, 0.0), LONGEST_WAIT_S)
    return None


def _until(date: str) -> float:
    """Seconds until an HTTP date; not a number if it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return math.nan
