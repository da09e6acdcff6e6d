"""FLOP and bytes of operators from their operands, of a step by class, and of a family's step."""
