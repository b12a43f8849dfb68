"""The HTTP service: routes, authentication, limits, stored threads and retained answers."""
