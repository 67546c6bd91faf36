"""Which sandbox a role gets: pure, config in, values out."""
