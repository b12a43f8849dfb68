"""What the reader's network and those who run it must agree on."""

from __future__ import annotations

#: Most asks of one message, and most literals of one ask.
MAX_ASKS, MAX_SLOTS = 6, 4
#: What a cosine is multiplied by to be a logit.
SHARPNESS = 14.0
