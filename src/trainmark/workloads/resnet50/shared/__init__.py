"""What all frameworks' ResNet-50 share: recipe, command line, data, refusals, and what is compared of them.

Runs inside every framework's interpreter: standard library and numpy only, Python 3.7+.
"""
