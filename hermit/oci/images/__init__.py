"""The images themselves: what they are made from, how they are built, stored, compared, locked and judged."""
