"""Files between sandboxes: every one is a copy that follows no link."""
