//! Link rows, ragged cells, cross-chunk cells and tables, permutations, anchors.

use std::num::NonZeroU32;

use proptest::prelude::*;
use zvf_format::{
    links::{
        AxisScales, CrossChunkCell, CrossChunkCellError, CrossChunkTable, CrossChunkTableBuilder,
        CrossChunkTableError, LinkRowLimit, LinkRows, LinkRowsBuilder, LinkRowsError, LinkWidth,
        LinkWidthError, Permutation, PermutationError, RaggedLinks, RaggedLinksError, RowForm,
        TableLimit, duplicates,
    },
    ragged::{self, RaggedBlob, RaggedError},
};
use zvf_testkit::{LeBytes, hostile, laws, walk};

const EDGE: LinkWidth = LinkWidth::EDGE;
const TRIANGLE: LinkWidth = LinkWidth::TRIANGLE;

/// Returns the crossing edges of a polyline store: three rows in one group.
fn crossing_edges() -> Vec<u8> {
    LeBytes::new()
        .i64s([1, 0])
        .i64s([0, 1, 0])
        .i64s([1, 4, 2])
        .i64s([0, 4, 3])
        .done()
}

/// Returns groups of one, zero and two rows of plain edges.
fn three_groups() -> Vec<u8> {
    LeBytes::new()
        .i64s([3, 0, 16, 16])
        .i64s([0, 1])
        .i64s([5, 0])
        .i64s([7, 7])
        .done()
}

/// Returns the two records of a 0.8 graph between chunks 0.0.0 and 1.0.0.
fn graph_cell() -> Vec<u8> {
    LeBytes::new()
        .i64s([2, 0, 24])
        .i64s([0, 1, 0])
        .i64s([1, 2, 1])
        .done()
}

/// Returns the first two records of a 0.7 graph: chunk and row of each endpoint.
fn graph_table() -> Vec<u8> {
    LeBytes::new()
        .i64s([0, 0, 0, 1])
        .i64s([1, 0, 0, 0])
        .i64s([1, 0, 0, 1])
        .i64s([0, 0, 0, 2])
        .done()
}

/// Prepends width and form in one byte, as the walks and laws require.
fn with_shape(width: LinkWidth, form: RowForm, blob: &[u8]) -> Vec<u8> {
    let width = u8::try_from(width.get()).unwrap();
    let form = u8::from(form == RowForm::Permuted) << 7;
    [&[width | form], blob].concat()
}

fn inputs(rows: LinkRows<'_>) -> Vec<Vec<u64>> {
    rows.iter().map(|row| row.input().collect()).collect()
}

fn width(width: u64) -> LinkWidth {
    LinkWidth::new(width).unwrap()
}

#[test]
fn permuted_rows_give_back_the_input_order() {
    let bytes = crossing_edges();
    let links = RaggedLinks::parse(&bytes, EDGE, RowForm::Permuted).unwrap();
    assert_eq!(links.group_count(), 1);
    assert_eq!(inputs(links.rows()), [[1, 0], [2, 4], [4, 3]]);
    let swapped = links.rows().get(1).unwrap();
    assert!(swapped.stored().eq([4, 2]));
    assert_eq!((swapped.code(), swapped.order().slots()), (1, &[1, 0][..]));

    // Face 3, 4, 2 with vertex 2 in the first chunk: sorted 2 3 4, code 4.
    let triangle = LeBytes::new().i64s([4, 2, 0, 1]).done();
    let rows = LinkRows::parse(&triangle, TRIANGLE, RowForm::Permuted).unwrap();
    assert_eq!(inputs(rows), [[0, 1, 2]]);
}

#[test]
fn plain_rows_are_in_input_order() {
    let bytes = LeBytes::new().i64s([0, 1, 2, 0]).done();
    let rows = LinkRows::parse(&bytes, EDGE, RowForm::Plain).unwrap();
    assert_eq!(inputs(rows), [[0, 1], [2, 0]]);
    assert!(rows.get(0).unwrap().order().is_identity());
    assert!(
        LinkRows::parse(&[], EDGE, RowForm::Plain)
            .unwrap()
            .is_empty()
    );
    let parents = LinkRows::parse(&bytes, width(1), RowForm::Plain).unwrap();
    assert_eq!(inputs(parents), [[0], [1], [2], [0]]);
}

#[test]
fn groups_keep_their_boundaries() {
    let bytes = three_groups();
    let links = RaggedLinks::parse(&bytes, EDGE, RowForm::Plain).unwrap();
    let groups: Vec<_> = links.groups().map(inputs).collect();
    assert_eq!(
        groups,
        [vec![vec![0, 1]], vec![], vec![vec![5, 0], vec![7, 7]]]
    );
    assert!(links.group(3).is_none());
    assert_eq!(links.rows().len(), 3);
}

#[test]
fn rows_may_have_a_header_of_groups() {
    let rows = |bytes: &[u8]| inputs(LinkRows::parse_maybe_grouped(bytes, EDGE).unwrap());
    assert_eq!(rows(&three_groups()), [[0, 1], [5, 0], [7, 7]]);
    assert_eq!(rows(&[0; 8]), [[0; 2]; 0]);
    assert_eq!(rows(&[]), [[0; 2]; 0]);
    let plain = LeBytes::new().i64s([0, 1, 2, 0]).done();
    assert_eq!(rows(&plain), [[0, 1], [2, 0]]);
    // No group starts at byte 3.
    let plain = LeBytes::new().i64s([1, 3, 4, 5]).done();
    assert_eq!(rows(&plain), [[1, 3], [4, 5]]);
    // Valid as both.
    let either = LeBytes::new().i64s([1, 0, 4, 5]).done();
    assert_eq!(rows(&either), [[4, 5]]);
    let error = LinkRows::parse_maybe_grouped(&either[..20], EDGE).unwrap_err();
    assert_eq!(error, LinkRowsError::Length(20));
}

#[test]
fn no_groups_are_eight_zero_bytes() {
    let links = RaggedLinks::parse(&[0; 8], EDGE, RowForm::Plain).unwrap();
    assert_eq!((links.group_count(), links.rows().len()), (0, 0));
    let rows = LinkRowsBuilder::new(EDGE, RowForm::Plain);
    assert_eq!(rows.finish_ragged(), [0; 8]);
}

#[test]
fn cross_chunk_cell_is_one_group_a_record() {
    let bytes = graph_cell();
    assert_eq!(bytes.len(), 72);
    let cell = CrossChunkCell::parse(&bytes, EDGE).unwrap();
    assert_eq!(inputs(cell.records()), [[1, 0], [1, 2]]);
    let mut builder = LinkRowsBuilder::new(EDGE, RowForm::Permuted);
    builder.push(Permutation::identity(EDGE), &[1, 0]).unwrap();
    let swapped = Permutation::from_slots(&[1, 0]).unwrap();
    builder.push(swapped, &[2, 1]).unwrap();
    assert_eq!(builder.finish_cell(), bytes);
}

#[test]
fn cross_chunk_table_carries_its_chunks() {
    let bytes = graph_table();
    let table = CrossChunkTable::parse(&bytes, EDGE, 3).unwrap();
    let records: Vec<Vec<(Vec<i64>, u64)>> = table
        .iter()
        .map(|record| record.endpoints())
        .map(|ends| {
            ends.map(|end| (end.chunk.iter().collect(), end.vertex))
                .collect()
        })
        .collect();
    assert_eq!(records[0], [(vec![0, 0, 0], 1), (vec![1, 0, 0], 0)]);
    assert_eq!(records[1], [(vec![1, 0, 0], 1), (vec![0, 0, 0], 2)]);
    let mut builder = CrossChunkTableBuilder::new(EDGE, 3);
    for record in &records {
        builder.push(record).unwrap();
    }
    assert_eq!(builder.finish(), bytes);
}

#[test]
fn rows_reject_each_damaged_field() {
    let bytes = LeBytes::new().i64s([0, 1, 2, 5, 1, 2]).done();
    let parse = |bytes: &[u8]| LinkRows::parse(bytes, EDGE, RowForm::Permuted).unwrap_err();
    let code = |code| LinkRowsError::Permutation {
        row: 1,
        error: PermutationError::Code { width: EDGE, code },
    };
    assert_eq!(parse(&bytes), code(5));
    let negative = LeBytes::new().i64s([0, 1, 2, -1, 1, 2]).done();
    assert_eq!(parse(&negative), code(-1));
    let vertex = LeBytes::new().i64s([0, 1, 2, 1, 1, -2]).done();
    assert_eq!(parse(&vertex), LinkRowsError::Vertex { row: 1 });
    assert_eq!(parse(&bytes[..47]), LinkRowsError::Length(47));
    assert_eq!(parse(&bytes[..40]), LinkRowsError::Length(40));
    let plain = LinkRows::parse(&vertex, EDGE, RowForm::Plain).unwrap_err();
    assert_eq!(plain, LinkRowsError::Vertex { row: 2 });
}

#[test]
fn ragged_blob_rejects_each_damaged_field() {
    let parse = |bytes: Vec<u8>| RaggedBlob::parse(&bytes).unwrap_err();
    let i64s = |values: &[i64]| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    };
    assert_eq!(parse(vec![0; 7]), RaggedError::TruncatedCount);
    assert_eq!(parse(i64s(&[-1])), RaggedError::NegativeCount(-1));
    assert_eq!(parse(i64s(&[2, 0])), RaggedError::TruncatedOffsets);
    assert_eq!(parse(i64s(&[i64::MAX])), RaggedError::TruncatedOffsets);
    assert_eq!(parse(i64s(&[1, 8, 0, 0])), RaggedError::Offsets);
    assert_eq!(parse(i64s(&[2, 0, -8, 0])), RaggedError::Offsets);
    assert_eq!(parse(i64s(&[3, 0, 8, 0, 0])), RaggedError::Offsets);
    assert_eq!(parse(i64s(&[2, 0, 9, 0])), RaggedError::TruncatedData);
    assert_eq!(parse(i64s(&[2, 0, i64::MAX])), RaggedError::TruncatedData);
    assert_eq!(parse(i64s(&[0, 0])), RaggedError::TrailingBytes(8));
}

#[test]
fn ragged_links_reject_a_boundary_inside_a_row() {
    let mut bytes = three_groups();
    bytes[16] = 8;
    bytes[24] = 8;
    let error = RaggedLinks::parse(&bytes, EDGE, RowForm::Plain).unwrap_err();
    assert_eq!(error, RaggedLinksError::Boundary { group: 0 });
    let error = RaggedLinks::parse(&three_groups(), TRIANGLE, RowForm::Permuted).unwrap_err();
    assert_eq!(error, RaggedLinksError::Rows(LinkRowsError::Length(48)));
}

#[test]
fn cross_chunk_cell_rejects_irregular_records() {
    let mut bytes = graph_cell();
    bytes[16] = 48;
    let error = CrossChunkCell::parse(&bytes, EDGE).unwrap_err();
    assert_eq!(error, CrossChunkCellError::Boundary { record: 0 });
    let short = &graph_cell()[..48];
    assert_eq!(
        CrossChunkCell::parse(short, EDGE).unwrap_err(),
        CrossChunkCellError::RecordCount {
            declared: 2,
            found: 1
        }
    );
    let more = [graph_cell(), vec![0; 24]].concat();
    assert_eq!(
        CrossChunkCell::parse(&more, EDGE).unwrap_err(),
        CrossChunkCellError::RecordCount {
            declared: 2,
            found: 3
        }
    );
}

#[test]
fn cross_chunk_table_rejects_each_damaged_field() {
    let parse = |bytes: &[u8]| CrossChunkTable::parse(bytes, EDGE, 3).unwrap_err();
    let bytes = graph_table();
    assert_eq!(parse(&bytes[..120]), CrossChunkTableError::Length(120));
    assert_eq!(parse(&bytes[..127]), CrossChunkTableError::Length(127));
    let mut negative = bytes.clone();
    negative[63] = 0x80;
    assert_eq!(parse(&negative), CrossChunkTableError::Vertex { record: 0 });
    let mut chunk = bytes.clone();
    chunk[7] = 0x80;
    assert!(
        CrossChunkTable::parse(&chunk, EDGE, 3).is_ok(),
        "chunks may be negative"
    );
    for sid_ndim in [usize::MAX, usize::MAX - 1, usize::MAX / 2] {
        assert!(CrossChunkTable::parse(&bytes, EDGE, sid_ndim).is_err());
    }
}

/// Cells and tables contain their length. Rows and the last group of a ragged blob do not, so a
/// blob truncated between two rows is a valid shorter one.
#[test]
fn rejects_every_detectable_prefix() {
    hostile::prefixes(&graph_cell(), |prefix| {
        assert!(CrossChunkCell::parse(prefix, EDGE).is_err());
    });
    hostile::prefixes(&crossing_edges(), |prefix| {
        let whole = prefix.len() >= 16 && (prefix.len() - 16).is_multiple_of(24);
        let parsed = RaggedLinks::parse(prefix, EDGE, RowForm::Permuted);
        assert_eq!(parsed.is_ok(), whole, "{} bytes", prefix.len());
    });
    hostile::prefixes(&three_groups(), |prefix| {
        let whole = prefix.len() >= 48 && prefix.len().is_multiple_of(16);
        let parsed = RaggedLinks::parse(prefix, EDGE, RowForm::Plain);
        assert_eq!(parsed.is_ok(), whole, "{} bytes", prefix.len());
    });
    hostile::prefixes(&graph_table(), |prefix| {
        let parsed = CrossChunkTable::parse(prefix, EDGE, 3);
        assert_eq!(parsed.is_ok(), prefix.len().is_multiple_of(64));
    });
}

#[test]
fn reads_at_every_alignment_and_survives_damage() {
    type Walk = fn(&[u8]) -> Option<u64>;
    type Law = fn(&[u8]);
    let table = [&[2, 3], &graph_table()[..]].concat();
    let cases: [(Vec<u8>, Walk, Law); 5] = [
        (
            with_shape(EDGE, RowForm::Permuted, &crossing_edges()),
            walk::ragged_links,
            laws::ragged_links,
        ),
        (
            with_shape(EDGE, RowForm::Permuted, &crossing_edges()[16..]),
            walk::link_rows,
            laws::link_rows,
        ),
        (
            with_shape(EDGE, RowForm::Permuted, &graph_cell()),
            walk::cross_chunk_cell,
            laws::cross_chunk_cell,
        ),
        (table, walk::cross_chunk_table, laws::cross_chunk_table),
        (three_groups(), walk::ragged_blob, laws::ragged_blob),
    ];
    for (bytes, walk, law) in cases {
        let want = walk(&bytes);
        assert!(want.is_some());
        hostile::alignments(&bytes, |moved| assert_eq!(walk(moved), want));
        hostile::damage(&bytes, law);
    }
}

#[test]
fn every_code_of_every_width_is_one_permutation() {
    for links in 1..=8 {
        let width = width(links);
        let mut last: Option<Vec<u8>> = None;
        for code in 0..width.permutations() {
            let order = Permutation::from_code(width, code).unwrap();
            assert_eq!(order.code(), code);
            let slots = order.slots().to_vec();
            // Codes count the permutations in lexicographic order.
            assert!(last.is_none_or(|last| last < slots));
            last = Some(slots);
        }
        for code in [-1, width.permutations(), i64::MAX, i64::MIN] {
            let error = PermutationError::Code { width, code };
            assert_eq!(Permutation::from_code(width, code), Err(error));
        }
    }
}

#[test]
fn codes_are_those_of_the_reference_table() {
    let slots = |links, code| {
        let order = Permutation::from_code(width(links), code).unwrap();
        order.slots().to_vec()
    };
    assert_eq!(slots(2, 1), [1, 0]);
    let three = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (code, want) in (0..).zip(three) {
        assert_eq!(slots(3, code), want);
    }
    for (code, want) in [(8, [1, 2, 0, 3]), (13, [2, 0, 3, 1]), (18, [3, 0, 1, 2])] {
        assert_eq!(slots(4, code), want);
    }
    for bad in [&[][..], &[0, 0], &[1, 2], &[0; 9]] {
        assert_eq!(Permutation::from_slots(bad), Err(PermutationError::Slots));
    }
}

#[test]
fn canonical_order_breaks_ties_by_row_then_position() {
    let code = |endpoints: &[([i64; 3], u64)]| Permutation::sorting(endpoints).unwrap().code();
    assert_eq!(
        code(&[([2, 0, 0], 12), ([0, 0, 0], 10), ([1, 0, 0], 11)]),
        3
    );
    assert_eq!(code(&[([0, 0, 1], 4), ([0, 0, 0], 9), ([0, 0, 0], 2)]), 5);
    assert_eq!(code(&[([0, 0, 0], 5), ([0, 0, 0], 5), ([0, 0, 1], 1)]), 0);
    // Chunks compare as numbers, not as text.
    assert_eq!(code(&[([10, 0, 0], 0), ([9, 0, 0], 0)]), 1);
    assert_eq!(code(&[([-2, 0, 0], 0), ([-1, 0, 0], 0)]), 0);
    assert_eq!(Permutation::sorting::<u8>(&[]), Err(LinkWidthError(0)));
    assert_eq!(Permutation::sorting(&[0; 9]), Err(LinkWidthError(9)));
}

#[test]
fn duplicates_are_one_copy_for_each_distinct_chunk() {
    let record = [([0, 0, 0], 1), ([1, 0, 0], 2), ([2, 0, 0], 3)];
    let codes: Vec<_> = duplicates(&record)
        .unwrap()
        .map(|copy| copy.code())
        .collect();
    assert_eq!(codes, [0, 2, 4]);
    let shared = [([5, 0, 0], 3), ([0, 0, 0], 1), ([0, 0, 0], 2)];
    let copies: Vec<_> = duplicates(&shared)
        .unwrap()
        .map(|copy| copy.code())
        .collect();
    assert_eq!(copies, [2, 0]);
    assert_eq!(duplicates(&shared).unwrap().len(), 2);
}

#[test]
fn anchors_round_down() {
    let scales = |source, target| AxisScales {
        source: NonZeroU32::new(source).unwrap(),
        target: NonZeroU32::new(target).unwrap(),
    };
    let up = scales(1, 2);
    assert_eq!(
        [-3, -2, -1, 0, 1, 2].map(|c| up.anchor(c).unwrap()),
        [-2, -1, -1, 0, 0, 1]
    );
    let down = scales(4, 2);
    assert_eq!(down.anchor(-3), Some(-6));
    // Fine chunk (1,0,0) aligned with (1,0,0) of a level with doubled chunks.
    assert_eq!(up.offset(1, 1), Some(1));
    assert_eq!(up.resolve(1, 1), Some(1));
    assert_eq!(down.anchor(i64::MAX), None);
    assert_eq!(AxisScales::EQUAL.offset(i64::MIN, 1), None);
}

#[test]
fn widths_are_one_to_eight() {
    assert_eq!(LinkWidth::new(8).unwrap().get(), 8);
    for bad in [0, 9, 256 + 2, u64::MAX] {
        assert_eq!(LinkWidth::new(bad), Err(LinkWidthError(bad)));
    }
}

#[test]
fn encoders_reject_values_beyond_the_format() {
    let mut rows = LinkRowsBuilder::new(EDGE, RowForm::Plain);
    let swapped = Permutation::from_slots(&[1, 0]).unwrap();
    assert_eq!(
        rows.push(swapped, &[1, 2]).unwrap_err(),
        LinkRowLimit::Order(swapped)
    );
    let identity = Permutation::identity(EDGE);
    let limit = LinkRowLimit::Vertex(1 << 63);
    assert_eq!(rows.push(identity, &[1, 1 << 63]).unwrap_err(), limit);
    let limit = LinkRowLimit::Width {
        expected: EDGE,
        found: 3,
    };
    assert_eq!(rows.push(identity, &[1, 2, 3]).unwrap_err(), limit);
    assert!(rows.finish_rows().is_empty());

    let mut table = CrossChunkTableBuilder::new(EDGE, 3);
    let good = ([0, 0, 0], 1);
    let limit = TableLimit::Width {
        expected: EDGE,
        found: 1,
    };
    assert_eq!(table.push(&[good]).unwrap_err(), limit);
    let limit = TableLimit::Vertex(u64::MAX);
    assert_eq!(
        table.push(&[good, ([0, 0, 0], u64::MAX)]).unwrap_err(),
        limit
    );
    let limit = TableLimit::Coordinates {
        expected: 3,
        found: 2,
    };
    assert_eq!(table.push(&[([0, 0], 1), ([0, 0], 1)]).unwrap_err(), limit);
    assert!(table.finish().is_empty());
}

/// Returns a record: endpoints as chunk and vertex row, some chunks repeated.
fn record() -> impl Strategy<Value = Vec<([i64; 2], u64)>> {
    let chunk = prop_oneof![Just([0, 0]), Just([0, -1]), [-20..20_i64, -20..20_i64]];
    prop::collection::vec((chunk, 0..5_u64), 1..=8)
}

proptest! {
    #[test]
    fn placement_and_code_give_the_record_back(record in record()) {
        let order = Permutation::sorting(&record).unwrap();
        let placed: Vec<_> = order.slots().iter().map(|&at| record[usize::from(at)]).collect();
        prop_assert!(placed.is_sorted());
        let stored: Vec<u64> = placed.iter().map(|endpoint| endpoint.1).collect();
        let mut builder = LinkRowsBuilder::new(order.width(), RowForm::Permuted);
        builder.push(order, &stored).unwrap();
        let bytes = builder.finish_cell();
        let cell = CrossChunkCell::parse(&bytes, order.width()).unwrap();
        let row = cell.records().get(0).unwrap();
        prop_assert!(row.input().eq(record.iter().map(|endpoint| endpoint.1)));
        for (at, endpoint) in record.iter().enumerate() {
            prop_assert_eq!(placed[row.order().slot_of(at).unwrap()], *endpoint);
        }
        for copy in duplicates(&record).unwrap() {
            prop_assert_eq!(Permutation::from_code(copy.width(), copy.code()), Ok(copy));
        }
    }

    #[test]
    fn groups_survive_encoding(
        groups in prop::collection::vec(prop::collection::vec([0..9_u64, 0..9_u64], 0..4), 0..5),
    ) {
        let mut builder = LinkRowsBuilder::new(EDGE, RowForm::Plain);
        for group in &groups {
            for row in group {
                builder.push(Permutation::identity(EDGE), row).unwrap();
            }
            builder.end_group();
        }
        let bytes = builder.finish_ragged();
        let links = RaggedLinks::parse(&bytes, EDGE, RowForm::Plain).unwrap();
        let got: Vec<_> = links.groups().map(inputs).collect();
        let want: Vec<Vec<Vec<u64>>> = groups
            .iter()
            .map(|group| group.iter().map(|row| row.to_vec()).collect())
            .collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn any_bytes_obey_the_laws(
        head in 0..=255_u8,
        body in prop::collection::vec(prop_oneof![6 => Just(0_u8), 1 => 0..25_u8, 1 => any::<u8>()], 0..200),
    ) {
        let bytes = [&[head], &body[..]].concat();
        for law in [
            laws::link_rows, laws::ragged_links, laws::cross_chunk_cell,
            laws::cross_chunk_table, laws::placement, laws::ragged_blob,
        ] {
            law(&bytes);
        }
    }
}

#[test]
fn links_use_the_ragged_encoding_of_bytes() {
    let groups: [&[u8]; 2] = [&[1, 2], &[]];
    let bytes = ragged::encode(&groups);
    assert_eq!(bytes, LeBytes::new().i64s([2, 0, 2]).raw(&[1, 2]).done());
}
