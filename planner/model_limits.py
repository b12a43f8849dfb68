"""Bounds of decoding, in a module without heavy imports."""

#: Default for most tokens of one plan: some twenty steps.
MAX_TOKENS = 1024
#: The same without a grammar, where a model may loop: some ten steps.
FREE_TOKENS = 256
#: Memory of the prefix cache, which holds the key/value states of prompts' heads.
HEAD_BYTES = 512 * 2**20
#: Disk space of the prefix cache between processes.
HEAD_FILE_BYTES = 2**30
