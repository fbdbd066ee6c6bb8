"""The one rounding of the engine: up, to the next whole byte."""


def ceil_div(dividend: int, divisor: int) -> int:
    """`dividend / divisor` rounded up.

    >>> ceil_div(7, 2)
    4
    """
    return -(-dividend // divisor)
