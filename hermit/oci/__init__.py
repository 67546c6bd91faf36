"""Containers: the second place a sandbox can start in. Options, the engine, its failures, and one whole run inside."""
