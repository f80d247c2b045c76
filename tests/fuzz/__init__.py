"""Garbage for every public callable: `doors` finds them with a valid call each, `garbage` has what is put in
the place of one or two arguments, `judge` says whether the answer is sound, `known` what is left out and why.
"""
