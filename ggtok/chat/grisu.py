"""Converts doubles to digits with Grisu2 (Loitsch, 2010), as llama-server's JSON library does.

The digits always parse to the same double, but in one of a thousand cases they aren't the
shortest: 5.972269109151214e+16 becomes 5.9722691091512144e+16. This shows in the arguments of tool
calls, in templates that take arguments as text.
"""

from __future__ import annotations

from functools import cache
from math import frexp, ldexp

_ALPHA, _GAMMA = -60, -32  # bounds of the exponent of a scaled number
_BITS = 64
_PRECISION = 53
_LEAST_EXPONENT = -1074
_LOG10_2 = 78913 / (1 << 18)
_STEP, _FIRST = 8, -300  # the powers of ten in the library's table

Scaled = tuple[int, int]  # f times 2**e


def digits(value: float) -> tuple[str, int]:
    """The decimal digits of a positive double, and the power of ten to multiply them by."""
    f, e, lower_is_closer = _parts(value)
    plus = _normalized(2 * f + 1, e - 1)
    minus = (4 * f - 1, e - 2) if lower_is_closer else (2 * f - 1, e - 1)
    low = minus[0] << (minus[1] - plus[1])
    power, power_e, k = _power(plus[1])
    w = _times(_normalized(f, e)[0], power)
    # Shrink the interval by one unit at both ends, the error of the product.
    high = _times(plus[0], power) - 1
    return _generated(_times(low, power) + 1, w, high, plus[1] + power_e + _BITS, k)


def _parts(value: float) -> tuple[int, int, bool]:
    """f, e, and whether the next smaller double is nearer than the next larger one."""
    fraction, exponent = frexp(value)
    e = max(exponent - _PRECISION, _LEAST_EXPONENT)
    f = int(ldexp(fraction, exponent - e))
    return f, e, f == 1 << (_PRECISION - 1) and e > _LEAST_EXPONENT


def _normalized(f: int, e: int) -> Scaled:
    shift = _BITS - f.bit_length()
    return f << shift, e - shift


def _times(x: int, y: int) -> int:
    """The upper 64 bits of a product, rounded."""
    return (x * y + (1 << (_BITS - 1))) >> _BITS


@cache
def _power_of_ten(k: int) -> Scaled:
    """The 64 leading bits of ten to the power of k, rounded, and their exponent."""
    if k >= 0:
        numerator, denominator = 10**k, 1
    else:
        numerator, denominator = 1, 10**-k
    e = numerator.bit_length() - denominator.bit_length() - _BITS
    if e >= 0:
        denominator <<= e
    else:
        numerator <<= -e
    if numerator // denominator >= 1 << _BITS:
        denominator <<= 1
        e += 1
    f = (2 * numerator + denominator) // (2 * denominator)
    return f, e


def _power(e: int) -> tuple[int, int, int]:
    """The power of ten in the table that scales a number with this exponent into range.

    Returns f, e, -k.
    """
    f = _ALPHA - e - 1
    k = int(f * _LOG10_2) + (f > 0)  # rounded towards zero, but up from 0
    index = (-_FIRST + k + _STEP - 1) // _STEP
    kept = _FIRST + index * _STEP
    return *_power_of_ten(kept), kept


def _generated(low: int, w: int, high: int, e: int, k: int) -> tuple[str, int]:
    """The shortest digits between low and high, adjusted towards w."""
    delta, distance = high - low, high - w
    shift = -e
    one = 1 << shift
    whole, rest = high >> shift, high & (one - 1)
    text = ""
    n = len(str(whole))
    power = 10 ** (n - 1)
    while n > 0:
        digit, whole = divmod(whole, power)
        text += str(digit)
        n -= 1
        left = (whole << shift) + rest
        if left <= delta:
            return _nearer(text, distance, delta, left, power << shift), n - k
        power //= 10
    m = 0
    while True:
        rest *= 10
        digit, rest = rest >> shift, rest & (one - 1)
        text += str(digit)
        m += 1
        delta *= 10
        distance *= 10
        if rest <= delta:
            return _nearer(text, distance, delta, rest, one), -m - k


def _nearer(text: str, distance: int, delta: int, rest: int, ten: int) -> str:
    """Decrements the last digit as long as that brings the number nearer to w."""
    last = int(text[-1])
    while (
        rest < distance
        and delta - rest >= ten
        and (rest + ten < distance or distance - rest > rest + ten - distance)
    ):
        last -= 1
        rest += ten
    return text[:-1] + str(last)
