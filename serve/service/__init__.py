"""The HTTP service: routes, authentication, limits, and the storage of threads and retained answers."""
