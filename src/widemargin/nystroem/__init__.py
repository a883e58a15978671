"""A few points that stand for many: how they are chosen, what they say about a row, and the kernel they make."""
