"""The acting layer: what an agent is, and the worker that runs one inside its sandbox."""
