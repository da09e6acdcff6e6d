"""Hooks that watch a program's training steps from inside its process, without a change to the program.

`trainmark run -- python train.py` puts `injected/` on the PYTHONPATH of that program alone. Python imports
`sitecustomize` from there before the program begins, and the hooks wait for the frameworks to be imported.
Standard library only, Python 3.7 and later; what goes wrong here never reaches the program.
"""
