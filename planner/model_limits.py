"""Limits of decoding, in a module of their own that imports nothing slow."""

#: Default maximum number of tokens of a plan: some twenty steps.
MAX_TOKENS = 1024
#: The same for decoding without a grammar, where a model may repeat itself: some ten steps.
FREE_TOKENS = 256
#: Memory of the prefix cache, which holds the key/value states of prompt prefixes.
PREFIX_BYTES = 512 * 2**20
#: Disk space of the prefix cache that processes share.
PREFIX_FILE_BYTES = 2**30
