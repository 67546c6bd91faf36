"""How a sandbox is made with bubblewrap."""
