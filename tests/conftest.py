"""Settings of every test: what is built is kept in the checkout, never in the user's folders."""

import os
from pathlib import Path

os.environ.setdefault("CASEWRIGHT_HOME", str(Path(__file__).parents[1] / ".casewright"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
