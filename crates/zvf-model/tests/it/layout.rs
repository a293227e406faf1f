//! Paths of each generation.

use zvf_format::path::Delta;
use zvf_model::{
    generation::Generation,
    grid::{ChunkCoord, Grid, GridError},
    layout::{AddressError, ArrayRole, CellGrid, ChunkForm, Layout, LinkOffsets, RootArrayRole},
    level::LevelId,
};

const LEVEL: LevelId = LevelId::new(2);
const TRIANGLES: LinkOffsets<'_> = LinkOffsets::Zero { width: 3, arity: 2 };

#[track_caller]
fn values(layout: Layout, part: ArrayRole<'_>, want: Option<&str>) {
    let found = layout.values_at(LEVEL, &part).unwrap();
    assert_eq!(found.as_ref().map(AsRef::as_ref), want);
}

#[track_caller]
fn described(layout: Layout, part: ArrayRole<'_>, want: Option<&str>) {
    let found = layout.described_at(LEVEL, &part).unwrap();
    assert_eq!(found.as_ref().map(AsRef::as_ref), want);
}

#[test]
fn tables_move_with_the_generation() {
    let [v06, v07, v080, v081, v09, v010] = Generation::ALL.map(Layout::of);
    values(v06, ArrayRole::Manifests, Some("2/object_index/data"));
    values(
        v06,
        ArrayRole::ManifestOffsets,
        Some("2/object_index/offsets"),
    );
    values(v07, ArrayRole::Manifests, Some("2/object_index/manifests"));
    values(v07, ArrayRole::ManifestOffsets, None);
    values(v081, ArrayRole::ObjectIds, None);
    for current in [v09, v010] {
        values(
            current,
            ArrayRole::ObjectIds,
            Some("2/object_index/object_ids"),
        );
    }
    values(
        v080,
        ArrayRole::ObjectAttribute("w"),
        Some("2/object_attributes/w/data"),
    );
    values(
        v080,
        ArrayRole::PresentMask("w"),
        Some("2/object_attributes/w/present_mask"),
    );
    values(
        v081,
        ArrayRole::ObjectAttribute("w"),
        Some("2/object_attributes/w"),
    );
    values(v081, ArrayRole::PresentMask("w"), None);
    values(v080, ArrayRole::GroupOffsets, Some("2/groups/offsets"));
    values(v081, ArrayRole::GroupOffsets, None);
    values(v09, ArrayRole::CompositeLinks("mesh"), Some("2/links_mesh"));
    values(
        v07,
        ArrayRole::CrossChunkLinks(Delta::new(1)),
        Some("2/cross_chunk_links/+1/data"),
    );
    values(v080, ArrayRole::CrossChunkLinks(Delta::INTRA), None);
    values(v09, ArrayRole::Vertices, None);
}

#[test]
fn links_move_with_the_generation() {
    let [_, v07, _, v081, v09, v010] = Generation::ALL.map(Layout::of);
    let offsets = LinkOffsets::Segment("+1.0");
    let crossing = ArrayRole::Links(Delta::INTRA, offsets);
    described(v07, crossing, None);
    described(v09, crossing, Some("2/links/0/+1.0"));
    described(v010, crossing, Some("2/links/0/+1.0"));
    let intra = ArrayRole::Links(Delta::INTRA, TRIANGLES);
    described(v081, intra, Some("2/links/0"));
    described(v09, intra, Some("2/links/0/0.0_0.0"));
    let alone = LinkOffsets::Zero { width: 1, arity: 2 };
    described(
        v09,
        ArrayRole::Links(Delta::new(-2), alone),
        Some("2/links/-2/self"),
    );
    described(v09, ArrayRole::CrossChunkLinks(Delta::INTRA), None);
    described(
        v09,
        ArrayRole::LinkFamily(Delta::new(1)),
        Some("2/links/+1"),
    );
    described(
        v09,
        ArrayRole::LinkAttribute("w", Delta::INTRA, offsets),
        Some("2/link_attributes/w/0/+1.0"),
    );
}

#[test]
fn cells_move_with_the_generation() {
    let [v06, .., v09] = Generation::ALL.map(Layout::of);
    let chunk = ChunkCoord::new([-1, 3]);
    let cell = v06.cell(LEVEL, &ArrayRole::Vertices, &chunk, None).unwrap();
    assert_eq!(
        (cell.array.as_str(), &cell.element[..]),
        ("2/vertices/-1.3", &[0][..])
    );

    let grid = Grid::new(Some(&[-1, 0]), &[2, 4]).unwrap();
    let array = |rank| Some(CellGrid { grid: &grid, rank });
    let cell = v09
        .cell(LEVEL, &ArrayRole::Vertices, &chunk, array(2))
        .unwrap();
    assert_eq!(
        (cell.array.as_str(), &cell.element[..]),
        ("2/vertices", &[0, 3][..])
    );
    let error = v09.cell(LEVEL, &ArrayRole::Vertices, &chunk, None);
    assert_eq!(error, Err(AddressError::NoGrid));
    let far = ChunkCoord::new([5, 0]);
    let error = v09
        .cell(LEVEL, &ArrayRole::Vertices, &far, array(2))
        .unwrap_err();
    assert_eq!(
        error,
        AddressError::Grid(GridError::Outside { axis: 0, chunk: 5 })
    );
    let error = v09.cell(LEVEL, &ArrayRole::Groups, &chunk, None);
    assert_eq!(error, Err(AddressError::NoCells));
    for rank in [1, usize::MAX] {
        let error = v09.cell(LEVEL, &ArrayRole::Vertices, &chunk, array(rank));
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
    let cell = padded
        .cell(LEVEL, &ArrayRole::Vertices, &chunk, array)
        .unwrap();
    assert_eq!(cell.element, [4, 1, 0, 0]);
    // Fragment indexes stay blobs of their own.
    assert_eq!(
        padded.chunk_form(&ArrayRole::VertexFragments),
        Some(ChunkForm::Child)
    );
    let cell = padded
        .cell(LEVEL, &ArrayRole::VertexFragments, &chunk, array)
        .unwrap();
    assert_eq!(cell.array.as_str(), "2/vertex_fragments/4.1");
}

#[test]
fn profiles_have_names() {
    let names = Generation::ALL.map(|generation| Layout::of(generation).profile());
    assert_eq!(names, ["0.6", "0.7", "0.8", "0.8.1", "0.9", "0.10"]);
}

#[test]
fn names_from_files_cannot_leave_the_store() {
    for layout in Generation::ALL.map(Layout::of) {
        for name in ["..", "a/b", "", "\\", "\0"] {
            // Attributes are stored with identifiers.
            for key in [
                layout.described_at(LEVEL, &ArrayRole::VertexAttribute(name)),
                layout.values_at(LEVEL, &ArrayRole::ObjectAttribute(name)),
            ] {
                let key = key.unwrap().unwrap();
                let is_identifier = |part: &str| {
                    part.bytes()
                        .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
                };
                assert!(key.as_str().split('/').all(is_identifier), "{key}");
                assert!((3..=4).contains(&key.as_str().split('/').count()), "{key}");
            }
            assert!(layout.root_part(&RootArrayRole::Header(name)).is_err());
        }
        let huge = LinkOffsets::Zero {
            width: usize::MAX,
            arity: usize::MAX,
        };
        let part = ArrayRole::Links(Delta::INTRA, huge);
        let is_current = layout.generation.is_current();
        assert_eq!(layout.described_at(LEVEL, &part).is_err(), is_current);
    }
}

#[test]
fn parts_of_the_root() {
    let [v06, .., v09] = Generation::ALL.map(Layout::of);
    let check = |layout: Layout, part: RootArrayRole<'_>, want: Option<&str>| {
        let found = layout.root_part(&part).unwrap();
        assert_eq!(found.as_ref().map(AsRef::as_ref), want);
    };
    check(
        v06,
        RootArrayRole::ParametricObjects,
        Some("parametric/objects/data"),
    );
    check(
        v09,
        RootArrayRole::ParametricObjects,
        Some("parametric/objects"),
    );
    check(
        v06,
        RootArrayRole::ParametricGroupOffsets,
        Some("parametric/groups/offsets"),
    );
    check(v09, RootArrayRole::ParametricGroupOffsets, None);
    check(v09, RootArrayRole::Header("trk"), Some("headers/trk"));
}
