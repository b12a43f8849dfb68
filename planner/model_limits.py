"""Bounds of decoding, known without what it imports."""

#: Tokens of one plan, where nobody says otherwise: some twenty steps.
MAX_TOKENS = 1024
#: The same without a grammar, where a model may loop: some ten steps.
FREE_TOKENS = 256
#: Memory for the key/value states of prompt heads.
HEAD_BYTES = 512 * 2**20
#: Disk space for them, between processes.
HEAD_FILE_BYTES = 2**30
