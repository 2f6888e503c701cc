"""Small functions over lists of numbers."""

import unittest


def mean(values: list[float]) -> float:
    """Return the arithmetic mean of at least one value."""
    return sum(values) / len(values)


def median(values: list[float]) -> float:
    """Return the middle value; of an even number of values, the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]


class StatsTest(unittest.TestCase):
    def test_mean(self) -> None:
        found = mean([1, 2, 6])
        assert found == 3, f"mean of 1, 2, 6 is 3, not {found}"

    def test_median_of_an_odd_number_of_values(self) -> None:
        found = median([9, 1, 5])
        assert found == 5, f"median of 1, 5, 9 is 5, not {found}"

    def test_median_of_an_even_number_of_values(self) -> None:
        found = median([4, 1, 3, 2])
        assert found == 2.5, f"median of 1, 2, 3, 4 is 2.5, not {found}"
