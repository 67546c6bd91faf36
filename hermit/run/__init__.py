"""When it happens: the only place where policy and mechanism meet."""
