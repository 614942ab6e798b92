"""Numbers as the report writes them."""

import pytest

from toprank.report.numbers_as_text import cell, count, limits, number, percent, round_percent


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (count(12345), "12,345"),
        (count(1.5), "1.50"),
        (percent(0.98765), "98.8\u00a0%"),
        (percent(0.0123456), "1.23\u00a0%"),
        (percent(0.00001), "0.001\u00a0%"),
        (percent(float("nan")), "–"),
        (round_percent(0.95), "95\u00a0%"),
        (round_percent(0.001), "0.1\u00a0%"),
        (round_percent(-0.0), "0\u00a0%"),
        (limits(0.4439, 0.9748), "44.4\u00a0% – 97.5\u00a0%"),
        (number(0.123456), "0.1235"),
        (number(1234567.0), "1,234,567"),
        (number(-1.5e-9), "−1.5·10⁻⁹"),
        (cell(3.14159265), "3.1416"),
        (cell(138889.4), "138889"),
        (cell(None), "–"),
        (cell("a" * 200)[-3:], "aa…"),
    ],
)
def test_number_is_written_for_readers(shown, expected):
    assert shown == expected
