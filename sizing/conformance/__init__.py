"""The proof of the sizing rules: vectors that any program can be checked with, and the page of formulas made from them.

The vectors are data (`sizing/vectors/`), with everything that a calculation needs in each of them. Their expected
figures come from arithmetic outside the engine, so that engine and vectors check each other.
"""
