"""What a finished run says: read from its files, shown as a table and a page, compared with another."""
