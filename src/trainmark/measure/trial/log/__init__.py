"""The progress lines of a log: their order, their times, and what speaks against them."""
