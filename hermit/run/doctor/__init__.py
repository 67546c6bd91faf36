"""Direct probes of a machine: each looks at one thing, alone, and has its own cure."""
