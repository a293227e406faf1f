//! Paths of each generation.

use zvf_format::path::Delta;
use zvf_model::{
    generation::Generation,
    grid::{ChunkCoord, Grid, GridError},
    layout::{AddressError, CellGrid, ChunkForm, Layout, LinkOffsets, Part, RootPart},
    level::LevelId,
};

const LEVEL: LevelId = LevelId::new(2);
const TRIANGLES: LinkOffsets<'_> = LinkOffsets::Zero { width: 3, arity: 2 };

#[track_caller]
fn values(layout: Layout, part: Part<'_>, want: Option<&str>) {
    let found = layout.values_at(LEVEL, &part).unwrap();
    assert_eq!(found.as_ref().map(AsRef::as_ref), want);
}

#[track_caller]
fn described(layout: Layout, part: Part<'_>, want: Option<&str>) {
    let found = layout.described_at(LEVEL, &part).unwrap();
    assert_eq!(found.as_ref().map(AsRef::as_ref), want);
}

#[test]
fn tables_move_with_the_generation() {
    let [v06, v07, v080, v081, v09] = Generation::ALL.map(Layout::of);
    values(v06, Part::Manifests, Some("2/object_index/data"));
    values(v06, Part::ManifestOffsets, Some("2/object_index/offsets"));
    values(v07, Part::Manifests, Some("2/object_index/manifests"));
    values(v07, Part::ManifestOffsets, None);
    values(v081, Part::ObjectIds, None);
    values(v09, Part::ObjectIds, Some("2/object_index/object_ids"));
    values(
        v080,
        Part::ObjectAttribute("w"),
        Some("2/object_attributes/w/data"),
    );
    values(
        v080,
        Part::PresentMask("w"),
        Some("2/object_attributes/w/present_mask"),
    );
    values(
        v081,
        Part::ObjectAttribute("w"),
        Some("2/object_attributes/w"),
    );
    values(v081, Part::PresentMask("w"), None);
    values(v080, Part::GroupOffsets, Some("2/groups/offsets"));
    values(v081, Part::GroupOffsets, None);
    values(v09, Part::CompositeLinks("mesh"), Some("2/links_mesh"));
    values(
        v07,
        Part::CrossChunkLinks(Delta::new(1)),
        Some("2/cross_chunk_links/+1/data"),
    );
    values(v080, Part::CrossChunkLinks(Delta::INTRA), None);
    values(v09, Part::Vertices, None);
}

#[test]
fn links_move_with_the_generation() {
    let [_, v07, _, v081, v09] = Generation::ALL.map(Layout::of);
    let offsets = LinkOffsets::Segment("+1.0");
    let crossing = Part::Links(Delta::INTRA, offsets);
    described(v07, crossing, None);
    described(v09, crossing, Some("2/links/0/+1.0"));
    let intra = Part::Links(Delta::INTRA, TRIANGLES);
    described(v081, intra, Some("2/links/0"));
    described(v09, intra, Some("2/links/0/0.0_0.0"));
    let alone = LinkOffsets::Zero { width: 1, arity: 2 };
    described(
        v09,
        Part::Links(Delta::new(-2), alone),
        Some("2/links/-2/self"),
    );
    described(v09, Part::CrossChunkLinks(Delta::INTRA), None);
    described(v09, Part::LinkFamily(Delta::new(1)), Some("2/links/+1"));
    described(
        v09,
        Part::LinkAttribute("w", Delta::INTRA, offsets),
        Some("2/link_attributes/w/0/+1.0"),
    );
}

#[test]
fn cells_move_with_the_generation() {
    let [v06, .., v09] = Generation::ALL.map(Layout::of);
    let chunk = ChunkCoord::new([-1, 3]);
    let cell = v06.cell(LEVEL, &Part::Vertices, &chunk, None).unwrap();
    assert_eq!(
        (cell.array.as_str(), &cell.element[..]),
        ("2/vertices/-1.3", &[0][..])
    );

    let grid = Grid::new(Some(&[-1, 0]), &[2, 4]).unwrap();
    let array = |rank| Some(CellGrid { grid: &grid, rank });
    let cell = v09.cell(LEVEL, &Part::Vertices, &chunk, array(2)).unwrap();
    assert_eq!(
        (cell.array.as_str(), &cell.element[..]),
        ("2/vertices", &[0, 3][..])
    );
    let error = v09.cell(LEVEL, &Part::Vertices, &chunk, None);
    assert_eq!(error, Err(AddressError::NoGrid));
    let far = ChunkCoord::new([5, 0]);
    let error = v09
        .cell(LEVEL, &Part::Vertices, &far, array(2))
        .unwrap_err();
    assert_eq!(
        error,
        AddressError::Grid(GridError::Outside { axis: 0, chunk: 5 })
    );
    let error = v09.cell(LEVEL, &Part::Groups, &chunk, None);
    assert_eq!(error, Err(AddressError::NoCells));
    for rank in [1, usize::MAX] {
        let error = v09.cell(LEVEL, &Part::Vertices, &chunk, array(rank));
        assert_eq!(error, Err(AddressError::Rank { rank, grid: 2 }));
    }
}

#[test]
fn padded_arrays_have_rows_and_columns_after_the_chunk() {
    let padded = Layout::PADDED;
    assert_eq!(padded.profile(), "0.8-padded");
    let grid = Grid::new(None, &[5, 6]).unwrap();
    let array = Some(CellGrid {
        grid: &grid,
        rank: 4,
    });
    let chunk = ChunkCoord::new([4, 1]);
    let cell = padded.cell(LEVEL, &Part::Vertices, &chunk, array).unwrap();
    assert_eq!(cell.element, [4, 1, 0, 0]);
    // Fragment indexes stay blobs of their own.
    assert_eq!(
        padded.chunk_form(&Part::VertexFragments),
        Some(ChunkForm::Child)
    );
    let cell = padded
        .cell(LEVEL, &Part::VertexFragments, &chunk, array)
        .unwrap();
    assert_eq!(cell.array.as_str(), "2/vertex_fragments/4.1");
}

#[test]
fn profiles_have_names() {
    let names = Generation::ALL.map(|generation| Layout::of(generation).profile());
    assert_eq!(names, ["0.6", "0.7", "0.8", "0.8.1", "0.9"]);
}

#[test]
fn names_from_files_cannot_leave_the_store() {
    for layout in Generation::ALL.map(Layout::of) {
        for name in ["..", "a/b", "", "\\", "\0"] {
            assert!(
                layout
                    .described_at(LEVEL, &Part::VertexAttribute(name))
                    .is_err()
            );
            assert!(
                layout
                    .values_at(LEVEL, &Part::ObjectAttribute(name))
                    .is_err()
            );
            assert!(layout.root_part(&RootPart::Header(name)).is_err());
        }
        let huge = LinkOffsets::Zero {
            width: usize::MAX,
            arity: usize::MAX,
        };
        let part = Part::Links(Delta::INTRA, huge);
        let of_09 = layout.generation == Generation::V0_9;
        assert_eq!(layout.described_at(LEVEL, &part).is_err(), of_09);
    }
}

#[test]
fn parts_of_the_root() {
    let [v06, .., v09] = Generation::ALL.map(Layout::of);
    let check = |layout: Layout, part: RootPart<'_>, want: Option<&str>| {
        let found = layout.root_part(&part).unwrap();
        assert_eq!(found.as_ref().map(AsRef::as_ref), want);
    };
    check(
        v06,
        RootPart::ParametricObjects,
        Some("parametric/objects/data"),
    );
    check(v09, RootPart::ParametricObjects, Some("parametric/objects"));
    check(
        v06,
        RootPart::ParametricGroupOffsets,
        Some("parametric/groups/offsets"),
    );
    check(v09, RootPart::ParametricGroupOffsets, None);
    check(v09, RootPart::Header("trk"), Some("headers/trk"));
}
