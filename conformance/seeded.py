"""Random numbers that are equal under every Python version."""


class Random:
    """SplitMix64; Python promises no stable sequence beyond `random()`."""

    def __init__(self, seed):
        self.state = seed & (2**64 - 1)

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    def below(self, bound):
        return self.bits() % bound

    def between(self, low, high):
        """Returns a number between two limits, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent):
        return self.below(100) < percent

    def pick(self, values):
        return values[self.below(len(values))]

    def numbers(self, count, bound):
        return [self.below(bound) for _ in range(count)]

    def shuffled(self, values):
        values = list(values)
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1)
            values[last], values[other] = values[other], values[last]
        return values
