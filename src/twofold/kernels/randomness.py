"""Random numbers from a counter: the same on every machine and in every order of work.

state ← state + STRIDE,   64 bits = mix_bits(state)      (SplitMix; Steele, Lea & Flood 2014)
"""

import math

import numpy as np
from numba import njit

HIGH = np.uint64(32)
STRIDE, MIX1, MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True, error_model="numpy")
def mix_bits(state):
    """Return 64 random bits for a state of a counter that goes in steps of STRIDE."""
    z = (state ^ (state >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True, error_model="numpy")
def as_integer(bits, n):
    """Return a whole number in 0..n-1 from the upper half of 64 bits."""
    return np.int64(((bits >> HIGH) * np.uint64(n)) >> HIGH)


@njit(cache=True, nogil=True, error_model="numpy")
def as_fraction(bits):
    """Return a number between 0 and 1, both excluded."""
    return (np.float64(bits >> np.uint64(11)) + 0.5) / 9007199254740992.0


@njit(cache=True, nogil=True, error_model="numpy")
def log_gamma_draw(a, state):
    """Return the logarithm of a draw from Gamma(a), which itself may underflow for small a, and the next state.

    It is that of Gamma(a + 1), drawn by rejection, plus log(u) / a (Marsaglia & Tsang 2000).
    """
    d = a + 2 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        u, state = as_fraction(mix_bits(state)), state + STRIDE
        angle, state = as_fraction(mix_bits(state)), state + STRIDE
        test, state = as_fraction(mix_bits(state)), state + STRIDE
        x = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * angle)
        v = (1 + c * x) ** 3
        if v > 0 and math.log(test) < 0.5 * x * x + d - d * v + d * math.log(v):
            return math.log(d * v) + math.log(as_fraction(mix_bits(state))) / a, state + STRIDE
