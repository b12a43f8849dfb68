"""Limits of decoding, in a module of their own since the decoder's imports are slow."""

#: Default maximum number of tokens of a plan, enough for some twenty steps.
MAX_TOKENS = 1024
#: Default maximum number of tokens of a plan without a grammar, where a model may repeat itself;
#: enough for ten steps.
FREE_TOKENS = 256
#: Maximum bytes in memory for the prefix cache, which holds the key/value states of prefixes.
PREFIX_BYTES = 512 * 2**20
#: Maximum bytes on disk for the prefix cache that processes share.
PREFIX_FILE_BYTES = 2**30
