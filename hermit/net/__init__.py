"""The host's side of a sandbox's network: one pump for every port that is let in, and the allowlist proxy."""
