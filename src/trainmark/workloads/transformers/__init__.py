"""What the transformer families share: shapes, FLOP counts, options, recipes, and each framework's training.

Runs inside every framework's interpreter: Python 3.7+, the standard library, numpy where arrays are handled;
`frameworks/NAME.py` inside that framework's.
"""
