"""The values Hermit is made of: frozen, checked when built, without effects."""
