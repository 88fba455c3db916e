"""Techniques on positions: distances, directions, areas, cells and what is refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from anon_pipeline.errors import InputError
from anon_pipeline.masking import donut
from anon_pipeline.masking.cells import CellTechnique, grid, h3_parents
from anon_pipeline.masking.execution import Resources, StepReport, apply_steps
from anon_pipeline.masking.planar_laplace import expected_radius, laplace_radius, planar_radius_beyond
from anon_pipeline.masking.sphere import RADIUS, arc_of_chord, area_uniform, distances, moved
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.masking.tables import CATEGORICAL, KEY, NUMERIC, SECRETS, step
from anon_pipeline_tests.skips import require_package

Floats = npt.NDArray[np.float64]
KINDS = {"lat": NUMERIC, "lon": NUMERIC}
N = 20_000


def shown(
    latitude: Any, longitude: Any, technique: str, key: Any = KEY, **parameters: Any
) -> tuple[pa.Table, StepReport]:
    table = pa.table({"lat": pa.array(latitude, pa.float64()), "lon": pa.array(longitude, pa.float64())})
    steps = [step(technique, columns=["lat", "lon"], **parameters)]
    made, (report,) = apply_steps(table, KINDS, {}, steps, Resources(key=key))
    return made, report


def moves(latitude: float, longitude: float, technique: str, **parameters: Any) -> tuple[Floats, Floats]:
    """Distances in metres and bearings in radians of N people who all start at one place, each on their own."""
    here = np.full(N, latitude), np.full(N, longitude)
    made, _ = shown(*here, technique, one_move_per="row", digits=12, **parameters)
    there = np.array(made.column("lat")), np.array(made.column("lon"))
    east = np.radians((there[1] - here[1] + 180) % 360 - 180) * np.cos(np.radians((there[0] + here[0]) / 2))
    return distances(*here, *there), np.arctan2(east, np.radians(there[0] - here[0]))


@pytest.mark.long
@pytest.mark.parametrize("place", [(48.4, 10.0), (0.0, 0.0), (-70.0, 179.9999)])
def test_a_donut_is_uniform_by_area_and_direction(place: tuple[float, float]) -> None:
    metres, bearing = moves(*place, "donut", inner=500, outer=2000)
    assert metres.min() >= 499.9 and metres.max() <= 2000.1
    area = (metres**2 - 500**2) / (2000**2 - 500**2)  # a plane will do for two kilometres
    assert stats.kstest(area, "uniform").pvalue > 0.01
    assert stats.kstest(bearing / (2 * np.pi) + 0.5, "uniform").pvalue > 0.01


@pytest.mark.long
def test_a_large_donut_is_uniform_by_area_on_the_sphere() -> None:
    uniform = np.random.default_rng(0).random(100_000)
    inner, outer = 1e6, 5e6
    metres = area_uniform(uniform, np.full(100_000, inner), np.full(100_000, outer))
    area = (np.cos(inner / RADIUS) - np.cos(metres / RADIUS)) / (np.cos(inner / RADIUS) - np.cos(outer / RADIUS))
    assert stats.kstest(area, "uniform").pvalue > 0.01
    plane = (metres**2 - inner**2) / (outer**2 - inner**2)
    assert stats.kstest(plane, "uniform").pvalue < 0.01, "in the plane it is not"


@pytest.mark.long
def test_the_radius_of_planar_laplace_is_gamma() -> None:
    metres, bearing = moves(48.4, 10.0, "planar_laplace", level=np.log(4), radius=200)
    epsilon = np.log(4) / 200
    assert stats.kstest(metres, stats.gamma(2, scale=1 / epsilon).cdf).pvalue > 0.01
    assert stats.kstest(bearing / (2 * np.pi) + 0.5, "uniform").pvalue > 0.01
    uniform = np.random.default_rng(0).random(1000)
    gamma = stats.gamma(2, scale=1 / 0.01)
    assert gamma.cdf(laplace_radius(uniform, 0.01)) == pytest.approx(uniform, abs=1e-9)
    assert gamma.cdf(planar_radius_beyond(1 - uniform, 0.01)) == pytest.approx(uniform, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("per_earth", [1e-9, 0.64, 3.0, 40.0])
def test_laplace_noise_on_the_sphere_has_its_density_and_no_atom(per_earth: float) -> None:
    """Epsilon in units of the Earth's radius: 1e-7 per metre is .64, where 43.6 % once lay at the antipode."""
    n, half = 200_000, np.pi * RADIUS
    metres = laplace_radius((np.arange(n) + 0.5) / n, per_earth / RADIUS)
    assert (np.diff(metres) > 0).all() and metres[0] > 0 and metres[-1] < half
    assert (metres > 0.999 * half).mean() < 1e-5
    angles = np.linspace(0, np.pi, 100_001)
    density = np.exp(-per_earth * angles) * np.sin(angles)
    below = np.r_[0, np.cumsum((density[1:] + density[:-1]) / 2)]
    assert np.interp(metres / RADIUS, angles, below / below[-1]) == pytest.approx((np.arange(n) + 0.5) / n, abs=1e-6)
    if per_earth < 1e-6:
        assert (1 - np.cos(metres / RADIUS)) / 2 == pytest.approx((np.arange(n) + 0.5) / n, abs=1e-6), "by area"


@settings(max_examples=times(30))
@given(st.floats(1e-8, 1e-5), st.integers(0, 2**32 - 1))
def test_near_places_are_alike_up_to_their_distance(epsilon: float, seed: int) -> None:
    """The noise of two places, by area, at any third: the ratio of densities is at most e^(epsilon distance)."""
    random = np.random.default_rng(seed)
    one, other, shown = (
        (np.degrees(np.arcsin(random.uniform(-1, 1, 50))), random.uniform(-180, 180, 50)) for _ in range(3)
    )
    numbers = np.linspace(0.001, 0.999, 999)
    radii = laplace_radius(numbers, epsilon)

    def density(metres: Floats) -> Floats:
        """Of the radius, from the numbers that it is made of; over the length of the circle, by area."""
        of_radius = np.interp(metres, (radii[1:] + radii[:-1]) / 2, np.diff(numbers) / np.diff(radii))
        return of_radius / np.sin(metres / RADIUS)

    here, there = distances(*one, *shown), distances(*other, *shown)
    inside = [(radii[2] < far) & (far < radii[-3]) for far in (here, there)]
    ratio = np.log(density(here) / density(there)) / epsilon
    allowed = distances(*one, *other)
    assert (np.abs(ratio) <= 1.05 * allowed + 0.02 / epsilon)[inside[0] & inside[1]].all()


@pytest.mark.parametrize("per_earth", [0.64, 3.0, 40.0])
def test_a_radius_on_the_sphere_is_the_quantile_of_its_density(per_earth: float) -> None:
    uniform = np.array([0.001, 0.1, 0.5, 0.9, 0.999])

    def part(end: float) -> float:
        return float(integrate.quad(lambda angle: np.exp(-per_earth * angle) * np.sin(angle), 0, end)[0])

    angles = laplace_radius(uniform, per_earth / RADIUS) / RADIUS
    assert [part(end) / part(np.pi) for end in angles] == pytest.approx(uniform, abs=1e-7)


def test_the_expected_move_is_the_mean_of_ten_thousand_quantiles() -> None:
    uniform = (np.arange(10_000) + 0.5) / 10_000
    assert expected_radius(0.01) == pytest.approx(laplace_radius(uniform, 0.01).mean(), rel=1e-9)
    assert expected_radius(0.01) == pytest.approx(200, rel=1e-3)


@pytest.mark.long
def test_a_tiny_epsilon_leaves_people_anywhere_on_earth() -> None:
    metres, _ = moves(48.4, 10.0, "planar_laplace", epsilon=1e-14)
    assert stats.kstest((1 - np.cos(metres / RADIUS)) / 2, "uniform").pvalue > 0.001


def test_another_radius_moves_a_place_in_another_direction() -> None:
    """Else two releases, with other people around, would point at where somebody lives."""
    lone, crowd = [48.4, 48.5, 48.6], [48.4, 48.5, 48.6, 48.4001, 48.4002]
    first, _ = shown(lone, [10.0] * 3, "population_donut", k=3, digits=12)
    second, _ = shown(crowd, [10.0] * 5, "population_donut", k=3, digits=12)
    towards = [np.arctan2(made.column("lon")[0].as_py() - 10, made.column("lat")[0].as_py() - 48.4)
               for made in (first, second)]  # fmt: skip
    assert abs(towards[0] - towards[1]) > 1e-3
    again, _ = shown([*lone, 48.7], [10.0] * 4, "population_donut", k=3, digits=12)
    assert again.column("lat")[0] == first.column("lat")[0], "who changes nobody's radius moves nobody"


def test_planar_laplace_promises_only_what_holds() -> None:
    _, report = shown([48.4, 48.4], [10.0, 10.0], "planar_laplace", epsilon=0.01)
    assert report.guarantee == "local DP" and report.facts["epsilon_per_metre"] == 0.01
    _, report = shown([48.4, 48.4], [10.0, 10.0], "planar_laplace", epsilon=0.01, one_move_per="place")
    assert report.guarantee == "none" and any("move together" in note for note in report.notes)


def test_of_people_without_a_place_nobody_moves() -> None:
    table = pa.table({name: pa.nulls(3, pa.float64()) for name in ("lat", "lon")})
    steps = [step("donut", columns=["lat", "lon"], inner=100, outer=200)]
    shown, _ = apply_steps(table, dict.fromkeys(("lat", "lon"), NUMERIC), {}, steps, Resources(key=KEY))
    assert shown.equals(table)


def test_a_population_donut_holds_k_people() -> None:
    rng = np.random.default_rng(2)
    latitude = np.r_[48.4 + rng.normal(0, 0.005, 400), 47 + rng.normal(0, 0.5, 40)]
    longitude = np.r_[10 + rng.normal(0, 0.005, 400), 11 + rng.normal(0, 0.5, 40)]
    latitude[:5], longitude[:5] = latitude[0], longitude[0]  # a household
    made, report = shown(latitude, longitude, "population_donut", k=10, inner_share=0.2, least=50)
    there = np.array(made.column("lat")), np.array(made.column("lon"))
    metres = distances(latitude, longitude, *there)
    every = distances(latitude[:, None], longitude[:, None], latitude[None, :], longitude[None, :])
    radius = np.maximum(np.sort(every, axis=1)[:, 9], 50)  # the person counts among the ten
    assert (metres <= 1.1 * radius + 0.2).all() and (metres >= 0.2 * radius - 0.2).all()
    assert (metres > 0.6 * radius).mean() > 0.5
    assert np.median(metres[400:]) > 20 * np.median(metres[:400])
    assert len({*zip(*(half[:5].tolist() for half in there), strict=True)}) == 1, "who lives together moves together"
    assert radius.max() <= report.facts["largest_radius"] <= 1.1 * radius.max()  # type: ignore[operator]


@pytest.mark.parametrize(("n", "k"), [(20, 10), (40, 33), (40, 40), (3, 2), (9, 9)])
def test_the_radius_reaches_the_k_th_person_however_few_places_there_are(n: int, k: int) -> None:
    random = np.random.default_rng(n)
    latitude, longitude = random.uniform(40, 50, n), random.uniform(0, 10, n)
    people = random.integers(1, 3, n) if k < n else np.ones(n, dtype=np.int64)
    found = donut._radius_of(latitude, longitude, people, k)
    every = distances(latitude[:, None], longitude[:, None], latitude[None, :], longitude[None, :])
    for place in range(n):
        order = np.argsort(every[place])
        reached = order[int((np.cumsum(people[order]) >= k).argmax())]
        assert found[place] == pytest.approx(every[place, reached], abs=1e-3)


def test_the_farthest_reach_is_allowed() -> None:
    _, report = shown([48.4, 48.4001], [10.0, 10.0], "population_donut", k=2, least=5_000_000)
    assert report.facts["largest_radius"] == 5e6


def test_places_that_share_a_latitude_or_a_longitude_are_different_places() -> None:
    _, report = shown([48.4, 48.4, 48.5, 48.5, 48.4], [10.0, 10.1, 10.1, 10.0, 10.0], "donut", inner=1, outer=2)
    assert report.facts["places"] == 4


def test_the_poles_and_the_date_line_are_places() -> None:
    latitude, longitude = [90.0, -90.0, 0.0, 0.0], [0.0, 0.0, 180.0, -180.0]
    made, _ = shown(latitude, longitude, "donut", inner=1000, outer=1100, digits=9)
    metres = distances(*map(np.array, (latitude, longitude, made.column("lat"), made.column("lon"))))
    assert (metres > 999).all() and (metres < 1101).all()


def test_rounding_beyond_the_sphere_does_no_harm() -> None:
    for chord, metres in ((0.0, 0.0), (2.0, np.pi * RADIUS), (2 + 2**-51, np.pi * RADIUS)):
        assert arc_of_chord(np.array([chord])) == pytest.approx([metres])
    to_the_pole = np.radians(90 - 86.62) * RADIUS  # from there the sine is larger than 1
    for latitude, bearing, pole in ((86.62, 0.0, 90), (-86.62, np.pi, -90)):
        there = moved(*(np.array([number]) for number in (latitude, 10.0, to_the_pole, bearing)))
        assert there[0] == pytest.approx([pole])
    here = np.array([0.08])  # whose antipode is farther than half around
    assert distances(here, np.array([0.0]), -here, np.array([180.0])) == pytest.approx([np.pi * RADIUS])


def test_rows_of_one_place_move_together_or_apart() -> None:
    together, _ = shown([48.4] * 50, [10.0] * 50, "donut", inner=10, outer=100)
    apart, _ = shown([48.4] * 50, [10.0] * 50, "donut", inner=10, outer=100, one_move_per="row")
    assert len(together.column("lat").unique()) == 1 and len(apart.column("lat").unique()) > 40


@settings(max_examples=times(60))
@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(0, 2e7), st.floats(0, 2 * np.pi))
def test_one_arrives_as_far_as_one_goes(latitude: float, longitude: float, metres: float, bearing: float) -> None:
    here = np.array([latitude]), np.array([longitude])
    there = moved(*here, np.array([metres]), np.array([bearing]))
    assert -90 <= there[0][0] <= 90 and -180 <= there[1][0] < 180
    assert distances(*here, *there)[0] == pytest.approx(metres, rel=1e-5, abs=0.5)


@settings(max_examples=times(60))
@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(10, 500_000))
def test_a_grid_cell_holds_its_point_and_is_about_square(latitude: float, longitude: float, metres: float) -> None:
    south, west, height, width = grid(np.array([latitude]), np.array([longitude]), metres)
    assert south[0] - 1e-9 <= latitude <= south[0] + height + 1e-9
    east = (longitude + 180) % 360 - 180
    assert west[0] - 1e-9 <= east <= west[0] + width[0] + 1e-9
    assert np.radians(height) * RADIUS == pytest.approx(metres, rel=0.03)
    if abs(latitude) < 60:
        across = np.radians(width[0]) * RADIUS * np.cos(np.radians(south[0] + height / 2))
        assert across == pytest.approx(metres, rel=0.05)


def test_cells_at_the_poles_and_at_the_date_line_are_those_beside_them() -> None:
    """Of a thousand kilometres there are 20 bands of 9 degrees, and three cells around each pole."""
    latitude, longitude = np.array([90, 89.9, 81, 80.9, -90, 4.4]), np.array([180.0, -180, -60.1, 59.9, 61, 179])
    south, west, height, width = grid(latitude, longitude, 1e6)
    assert height == 9 and south.tolist() == [81, 81, 81, 72, -90, 0]
    assert width == pytest.approx([120, 120, 120, 40, 120, 9])
    assert west == pytest.approx([-180, -180, -180, 20, 60, 171])


def test_a_grid_cell_is_as_wide_as_is_stated_and_a_hexagon_twice_its_edge() -> None:
    require_package("h3")
    grid_cell, hexagon = (step(columns=["lat", "lon"], **how) for how in (
        {"technique": "grid_cell", "metres": 750}, {"technique": "h3_cell", "resolution": 9}))  # fmt: skip
    assert isinstance(grid_cell, CellTechnique) and isinstance(hexagon, CellTechnique)
    assert grid_cell.side == 750 and hexagon.side == pytest.approx(2 * 200.786, rel=1e-4)
    for technique in (grid_cell, hexagon):
        assert [half.shape for half in technique.centres([])] == [(0,), (0,)]


def test_cells_are_shown_by_name_or_by_centre() -> None:
    require_package("h3")
    latitude, longitude = [48.4, 48.4001, 52.5, None], [10.0, 10.0001, 13.4, 5.0]
    for technique, size in (("grid_cell", {"metres": 5000}), ("h3_cell", {"resolution": 7})):
        named, report = shown(latitude, longitude, technique, into="cell", **size)
        assert named.column_names == ["cell"] and report.facts["cells"] == 2
        cells = named.column("cell").to_pylist()
        assert cells[0] == cells[1] != cells[2] and cells[3] is None
        centred, report = shown(latitude, longitude, technique, **size)
        assert centred.column("lat")[0] == centred.column("lat")[1] and report.facts["cells"] == 2
        assert centred.column("lon").to_pylist()[3] is None, "half a position goes too"
        far = distances(*(np.array(one[:3], dtype=float) for one in (latitude, longitude)),
                        *(np.array(centred.column(name).to_pylist()[:3]) for name in ("lat", "lon")))  # fmt: skip
        assert far.max() < 4000


@pytest.mark.parametrize(
    "technique", [{"technique": "grid_cell", "metres": 5000}, {"technique": "h3_cell", "resolution": 7}]
)
def test_a_cell_may_take_the_name_of_one_of_its_columns(technique: dict[str, Any]) -> None:
    require_package("h3")
    latitude, longitude = [48.4, 48.4001, 52.5, None], [10.0, 10.0001, 13.4, 5.0]
    named, report = shown(latitude, longitude, into="lat", **technique)
    expected, _ = shown(latitude, longitude, into="cell", **technique)
    assert named.to_pydict() == {"lat": expected.column("cell").to_pylist()}
    assert report.linkage is None  # no distance leads from a number to a name
    assert shown(latitude, longitude, **technique)[1].linkage is not None


def test_different_cells_are_counted() -> None:
    corners = [(48.0, 10.0), (48.0, 13.0), (52.0, 10.0), (52.0, 10.0)]  # three cells, of two norths and two easts
    latitude, longitude = ([*axis] for axis in zip(*corners, strict=True))
    assert shown(latitude, longitude, "grid_cell", metres=5000)[1].facts["cells"] == 3
    assert shown([None], [None], "grid_cell", metres=5000)[1].facts["cells"] == 0


@settings(max_examples=times(15))
@given(
    st.lists(st.tuples(st.floats(-89, 89), st.floats(-180, 179.99)), min_size=1, max_size=20),
    st.sampled_from([{"technique": "grid_cell", "metres": 300.0}, {"technique": "h3_cell", "resolution": 8}]),
)
def test_a_named_cell_lies_where_its_centre_is_shown(points: list[tuple[float, float]], how: dict[str, Any]) -> None:
    latitude, longitude = np.array(points).T
    named, _ = shown(latitude, longitude, into="cell", **how)
    placed, _ = shown(latitude, longitude, **how)
    technique = step(columns=["lat", "lon"], into="cell", **how)
    assert isinstance(technique, CellTechnique)
    found = technique.centres(named.column("cell").to_pylist())
    apart = distances(*found, np.array(placed.column("lat")), np.array(placed.column("lon")))
    assert apart.max() < 3  # metres: what rounding the corner's name costs
    assert distances(latitude, longitude, *found).max() < technique.side


def test_the_parents_of_h3_cells_are_a_hierarchy() -> None:
    h3 = require_package("h3")
    cells = [h3.latlng_to_cell(48.4 + step_ / 50, 10.0, 8) for step_ in range(10)]
    parents = h3_parents(cells, [7, 5, 3])
    assert set(parents) == set(cells) and all(len(one) == 3 for one in parents.values())
    counts = [len({one[level] for one in parents.values()}) for level in range(3)]
    assert len(set(cells)) >= counts[0] >= counts[1] >= counts[2]


def test_columns_keep_their_storage() -> None:
    table = pa.table({"lat": pa.array([48.4, 48.5], pa.float32()), "lon": pa.array([10, 11], pa.int8())})
    made, _ = apply_steps(
        table, KINDS, {}, [step("donut", columns=["lat", "lon"], inner=1, outer=9)], Resources(key=KEY)
    )
    assert made.schema.types == [pa.float32(), pa.int8()]


def test_private_positions_of_whole_degrees_move_by_less_than_one() -> None:
    """One position that is not of whole degrees would change what is shown of all others."""
    table = pa.table({"lat": pa.array([48, 49]), "lon": pa.array([10, 11])})
    made, (report,) = apply_steps(
        table, KINDS, {}, [step("planar_laplace", columns=["lat", "lon"], epsilon=0.01)], Resources(key=KEY)
    )
    assert report.guarantee == "local DP" and made.schema.types == [pa.float64(), pa.float64()]
    assert 0 < abs(made["lat"][0].as_py() - 48) < 0.1


@pytest.mark.parametrize(
    ("latitude", "longitude", "name"), [([91.0], [0.0], "lat"), ([0.0, 1.0], [0.0, -181.0], "lon")]
)
def test_what_is_no_place_is_refused(latitude: list[float], longitude: list[float], name: str) -> None:
    with pytest.raises(
        InputError, match=rf"steps\.0\.columns: 1 value of {name} lies beyond .* name the latitude first"
    ) as refused:
        shown(latitude, longitude, "donut", inner=1, outer=2)
    assert "91" not in str(refused.value) and "181" not in str(refused.value)


def test_too_few_people_for_k_are_refused() -> None:
    with pytest.raises(InputError, match=r"steps\.0\.k: the table has 2 people with a position, fewer than k = 3"):
        shown([1.0, 2.0, None], [1.0, 2.0, 3.0], "population_donut", k=3)
    with pytest.raises(InputError, match="no 2 people within 5,000 km"):
        shown([60.0, -60.0], [0.0, 180.0], "population_donut", k=2)


def test_the_absent_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h3", None)
    with pytest.raises(InputError, match=r"pip install 'anon-pipeline\[geo\]'"):
        shown([1.0], [1.0], "h3_cell", resolution=5)


@pytest.mark.parametrize(
    ("technique", "parameters", "sentence"),
    [
        ("donut", {"columns": ["lat"], "inner": 1, "outer": 2}, "are two, the latitude and the longitude"),
        ("donut", {"columns": ["lat", "lat"], "inner": 1, "outer": 2}, "named twice"),
        ("donut", {"columns": ["lat", "lon"], "inner": 2, "outer": 2}, "inner: must be less than outer"),
        ("planar_laplace", {"columns": ["lat", "lon"]}, "give either epsilon per metre, or level and radius"),
        ("planar_laplace", {"columns": ["lat", "lon"], "level": 1}, "give either epsilon"),
        ("planar_laplace", {"columns": ["lat", "lon"], "radius": 1}, "give either epsilon"),
        ("planar_laplace", {"columns": ["lat", "lon"], "level": 1, "radius": 1, "epsilon": 1}, "give"),
        ("planar_laplace", {"columns": ["lat", "lon"], "level": 1, "epsilon": 1}, "beside level or radius"),
        ("planar_laplace", {"columns": ["lat", "lon"], "radius": 1, "epsilon": 1}, "beside level or radius"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(technique: str, parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        step(technique, **parameters)


def test_a_cell_takes_the_place_of_the_pair_in_what_follows() -> None:
    table = pa.table({"lat": [48.4] * 4, "lon": [10.0] * 4, "v": [1, 2, 3, 4]})
    steps = [
        step("grid_cell", columns=["lat", "lon"], metres=9, into="cell"),
        step("local_suppression", columns=["cell"], k=2),
    ]
    made, _ = apply_steps(table, KINDS | {"v": CATEGORICAL}, {}, steps, Resources(key=KEY, secrets=SECRETS))
    assert made.column_names == ["v", "cell"]
