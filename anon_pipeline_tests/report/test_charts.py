"""Charts: the bars are as long as the numbers are large, and nothing a user writes breaks out of them."""

import math
from xml.etree import ElementTree

import pytest

from anon_pipeline.report import charts

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = [
    {"size": "1", "classes": 0, "people": 0},
    {"size": "10-19", "classes": 20, "people": 300},
    {"size": "20-49", "classes": 4, "people": 100},
    {"size": "1000 or more", "classes": 0, "people": 0},
]


def bars(picture: str, kind: str) -> list[float]:
    """Widths in percent; parsing also shows that the picture stands alone as XML."""
    return [
        float(one.attrib["width"].rstrip("%"))
        for one in ElementTree.fromstring(picture).iter(f"{SVG}rect")
        if one.attrib["class"] == kind and one.attrib["width"].endswith("%")
    ]


def words(picture: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_class_sizes_are_drawn_in_proportion_to_people() -> None:
    long, short = bars(charts.class_size_chart(GROUPS), "after")
    assert long == pytest.approx(3 * short, abs=0.02)


def test_an_empty_group_has_a_label_and_a_zero_but_no_bar_and_trailing_ones_are_left_out() -> None:
    assert words(charts.class_size_chart(GROUPS)) == [
        "1",
        "0",
        "10\u201319",
        "300 · 75\u00a0%",
        "20\u201349",
        "100 · 25\u00a0%",
    ]


def test_shares_fill_their_share_of_the_track() -> None:
    picture = charts.share_chart({"age": 0.25, "sex": 1.0, "race": 0.0})
    assert bars(picture, "after") == [25.0, 100.0]
    assert bars(picture, "track") == [100.0] * 3


def test_a_share_out_of_range_stays_on_the_track() -> None:
    assert bars(charts.share_chart({"a": 1.7, "b": -0.2}), "after") == [100.0, 0.0]


def test_before_and_after_share_one_scale() -> None:
    picture = charts.before_after_chart(["1", "2"], [10, 5], [0, 20])
    first, second = bars(picture, "before")
    (then,) = bars(picture, "after")
    assert first == pytest.approx(2 * second, abs=0.02)
    assert then == pytest.approx(2 * first, abs=0.02)


def test_before_and_after_of_different_lengths_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"."):
        charts.before_after_chart(["1"], [1, 2], [1])


@pytest.mark.parametrize("gap", [None, math.nan, math.inf])
def test_what_is_no_number_has_no_bar_and_says_so(gap: float | None) -> None:
    shares = charts.share_chart({"age": gap})
    pair = charts.before_after_chart(["1"], [gap], [3])
    assert bars(shares, "after") == bars(pair, "before") == []
    assert "not measured" in words(shares)
    assert "not measured" in words(pair)


def test_nothing_to_draw_is_still_a_picture() -> None:
    for picture in (charts.class_size_chart([]), charts.share_chart({}), charts.before_after_chart([], [], [])):
        assert ElementTree.fromstring(picture).attrib["role"] == "img"


def test_names_of_columns_are_text_and_no_markup() -> None:
    nasty = '<script>alert("1")</script>&\x00\x0b'
    picture = charts.share_chart({nasty: 0.5})
    assert "<script" not in picture
    assert nasty.rstrip("\x00\x0b") in (ElementTree.fromstring(picture).findtext(f"{SVG}desc") or "")


def test_a_single_class_is_told_in_the_singular() -> None:
    picture = ElementTree.fromstring(charts.class_size_chart([{"size": "10-19", "classes": 1, "people": 12}]))
    assert (picture.findtext(f"{SVG}desc") or "").strip(" .;") == "classes of 10\u201319: 12 people in 1 class"


def test_every_picture_has_a_title_and_all_its_numbers_in_words() -> None:
    picture = ElementTree.fromstring(charts.class_size_chart(GROUPS, title="Sizes"))
    assert picture.findtext(f"{SVG}title") == "Sizes"
    assert "classes of 10\u201319: 300 people in 20 classes" in (picture.findtext(f"{SVG}desc") or "")


def test_a_picture_that_stands_alone_brings_its_own_colours_and_size() -> None:
    picture = ElementTree.fromstring(charts.before_after_chart(["1"], [1], [2]))
    assert picture.attrib["width"] == "640"
    assert all(one.attrib["fill"].startswith("#") for one in picture if one.tag in (f"{SVG}rect", f"{SVG}text"))


def test_inside_a_page_no_address_is_left() -> None:
    assert "http" not in charts.inline(charts.class_size_chart(GROUPS))


def test_the_same_numbers_give_the_same_text() -> None:
    assert charts.class_size_chart(GROUPS) == charts.class_size_chart([dict(one) for one in GROUPS])


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.1, "10 %"),
        (0.1424, "14.2 %"),
        (0.00001, "< 0.1 %"),
        (0.99999, "> 99.9 %"),
        (1, "100 %"),
        (-0.05, "\u22125 %"),
        (-1e-9, "0 %"),
        (None, "not measured"),
        (math.nan, "not measured"),
    ],
)
def test_percent_never_rounds_somebody_away(share: float | None, text: str) -> None:
    assert charts.percent(share).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (48842, "48,842"),
        (10.0, "10"),
        (22.456, "22.46"),
        (-3, "\u22123"),
        (1234.5, "1,234"),
        (-0.0, "0"),
        (None, "not measured"),
    ],
)
def test_count(value: float | None, text: str) -> None:
    assert charts.count(value) == text


# ---------------------------------------------------------------------------------------------------- the trade-off

PANELS = [
    charts.Panel("lost", "", [0.1, 0.4, None], ["10 %", "40 %", "-"]),
    charts.Panel("one value only", "income", [0.0, -0.2, None], ["0", "less", "-"]),
]


def trade_off(labels: list[str] | None = None, refusal: str = "too many") -> str:
    return charts.trade_off_chart(labels or ["k 2", "k 5", "k 9"], PANELS, [None, None, refusal], "Prices")


def test_each_measure_of_a_price_list_has_a_scale_of_its_own_and_no_bar_below_zero() -> None:
    short, long = bars(trade_off(), "after")
    assert long == pytest.approx(4 * short, abs=0.02)
    assert long == pytest.approx(50 * charts.BAR_OF_PANEL, abs=0.01)


def test_a_refused_setting_says_so_in_place_of_bars() -> None:
    picture = ElementTree.fromstring(trade_off())
    assert words(trade_off())[-2:] == ["k 9", "refused: too many"]
    described = picture.findtext(f"{SVG}desc") or ""
    assert "k 9: refused, too many" in described
    assert "k 5: lost 40 %, one value only income less" in described
    assert picture.findtext(f"{SVG}title") == "Prices"


def test_a_price_list_stands_alone_and_holds_texts_as_texts() -> None:
    picture = ElementTree.fromstring(trade_off(["<b>", "&", "k"], refusal='"<script>'))
    assert all(one.attrib["fill"].startswith("#") for one in picture if one.tag in (f"{SVG}rect", f"{SVG}text"))
    assert "<script" not in trade_off(refusal="<script>")
    assert ElementTree.fromstring(charts.trade_off_chart([], [], [])).attrib["role"] == "img"


def test_a_price_list_of_many_measures_is_wider_so_that_headings_do_not_run_into_each_other() -> None:
    many = charts.trade_off_chart(["k 2"], [charts.Panel("m" * 50, "", [1], ["1"])] * 9, [None])
    assert int(ElementTree.fromstring(many).attrib["width"]) == 9 * charts.PANEL
    assert len(words(many)[0]) * 7 <= charts.PANEL
