//! Streams of Draco: those of the reference and of `DracoPy`, our own, and damaged ones.

#[path = "../laws/draco.rs"]
mod law;

use proptest::prelude::*;
use serde_json::Value;
use zvf_model::draco::{DracoCell, DracoError, PositionBits, VertexOrder};
use zvf_testkit::golden::testdata;

const LIMIT: u64 = 1 << 20;

struct Recorded {
    name: String,
    input: DracoCell,
    bytes: Vec<u8>,
    decoded: DracoCell,
}

fn recorded() -> Vec<Recorded> {
    let text = std::fs::read(testdata().join("codec/draco.json")).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let hex = |value: &Value| -> Vec<u8> {
        let digits = value.as_str().unwrap().as_bytes().chunks(2);
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.map(byte).collect()
    };
    let cell = |value: &Value| {
        let bytes = hex(&value["positions"]);
        let coordinate = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let rows = (0..bytes.len()).step_by(12);
        let mut cell = DracoCell::default();
        cell.positions = rows
            .map(|at| [at, at + 4, at + 8].map(coordinate))
            .collect();
        cell.triangles = serde_json::from_value(value["triangles"].clone()).unwrap();
        cell
    };
    let cases = file["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| Recorded {
            name: case["name"].as_str().unwrap().to_owned(),
            input: cell(&case["input"]),
            bytes: hex(&case["hex"]),
            decoded: cell(&case["decoded"]),
        });
    cases.collect()
}

/// Returns the coordinates of each triangle in an order that no encoder changes.
fn shapes(cell: &DracoCell) -> Vec<[[u32; 3]; 3]> {
    let corners = |triangle: &[u32; 3]| {
        let mut corners =
            triangle.map(|row| cell.positions[row as usize].map(|along| (along + 0.0).to_bits()));
        let first = (0..3).min_by_key(|at| corners[*at]).unwrap();
        corners.rotate_left(first);
        corners
    };
    let mut shapes: Vec<_> = cell.triangles.iter().map(corners).collect();
    shapes.sort_unstable();
    shapes
}

fn sorted(cell: &DracoCell) -> Vec<[u32; 3]> {
    let bits = |row: &[f32; 3]| row.map(|along| (along + 0.0).to_bits());
    let mut rows: Vec<_> = cell.positions.iter().map(bits).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn streams_of_others_have_the_geometry_that_dracopy_decodes() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 8);
    for case in recorded {
        let cell = DracoCell::parse(&case.bytes, LIMIT).unwrap();
        assert_eq!(sorted(&cell), sorted(&case.decoded), "{}", case.name);
        assert_eq!(shapes(&cell), shapes(&case.decoded), "{}", case.name);
        assert_eq!(cell.rows().len(), cell.positions.len() * 12);
        let is_ordered = case.name.contains("order") || case.name.contains("without_quant");
        let order = if is_ordered {
            VertexOrder::Kept
        } else {
            VertexOrder::Lost
        };
        assert_eq!(cell.order, order, "{}", case.name);
        assert_eq!(VertexOrder::of(&case.bytes), Ok(order));
        if order == VertexOrder::Kept {
            // The same vertex and triangle in each row, up to the rounding of the encoder.
            assert_eq!(cell.triangles, case.input.triangles, "{}", case.name);
            let pairs = cell.positions.iter().zip(&case.input.positions);
            for (ours, given) in pairs {
                let near = ours.iter().zip(given).all(|(a, b)| (a - b).abs() < 0.02);
                assert!(near, "{}: {ours:?} {given:?}", case.name);
            }
        }
    }
}

#[test]
fn a_stream_decodes_within_the_limit() {
    for case in recorded() {
        let rows = case
            .decoded
            .positions
            .len()
            .max(case.decoded.triangles.len()) as u64;
        assert!(
            DracoCell::parse(&case.bytes, rows * 12).is_ok(),
            "{}",
            case.name
        );
        let limit = (case.decoded.positions.len() as u64 * 12) - 1;
        let refused = DracoCell::parse(&case.bytes, limit);
        assert_eq!(refused, Err(DracoError::TooLarge(limit)), "{}", case.name);
    }
}

#[test]
fn every_prefix_of_a_stream_is_rejected() {
    for case in recorded() {
        for len in 0..case.bytes.len() {
            let error = DracoCell::parse(&case.bytes[..len], LIMIT).unwrap_err();
            if len < 9 {
                assert_eq!(error, DracoError::NoStream);
            }
        }
    }
}

#[test]
fn what_cannot_be_encoded_is_refused() {
    let mut cell = DracoCell::default();
    let bits = PositionBits::default();
    let refused = DracoError::Unencodable;
    assert_eq!(cell.encode(bits), Err(refused("there are no vertices")));
    cell.positions = vec![[0.0, 1.0, 2.0], [f32::NAN, 0.0, 0.0]];
    let error = refused("a coordinate is not finite");
    assert_eq!(cell.encode(bits), Err(error));
    cell.positions[1][0] = 0.5;
    cell.triangles = vec![[0, 1, 2]];
    assert_eq!(
        cell.encode(bits),
        Err(DracoError::NoVertex { row: 2, rows: 2 })
    );
    assert_eq!((PositionBits::new(0), PositionBits::new(31)), (None, None));
}

fn any_cell() -> impl Strategy<Value = DracoCell> {
    let coordinate = prop_oneof![-1000.0_f32..1000.0, Just(0.0), -1e-3_f32..1e-3, Just(1e6)];
    let positions = prop::collection::vec(prop::array::uniform3(coordinate), 1..60);
    let cell = positions.prop_flat_map(|positions| {
        let rows = u32::try_from(positions.len()).unwrap();
        let triangles = prop::collection::vec(prop::array::uniform3(0..rows), 0..60);
        (Just(positions), triangles)
    });
    cell.prop_map(|(positions, triangles)| {
        let mut cell = DracoCell::default();
        (cell.positions, cell.triangles) = (positions, triangles);
        cell
    })
}

proptest! {
    #[test]
    fn a_stream_keeps_rows_triangles_and_positions_up_to_a_step(cell in any_cell(), bits in 1_u8..=24) {
        let bytes = cell.encode(PositionBits::new(bits).unwrap()).unwrap();
        let again = DracoCell::parse(&bytes, LIMIT).unwrap();
        prop_assert_eq!(again.order, VertexOrder::Kept);
        prop_assert_eq!(&again.triangles, &cell.triangles);
        prop_assert_eq!(again.positions.len(), cell.positions.len());
        let along = |axis: usize| cell.positions.iter().map(move |row| row[axis]);
        let (low, high) = (
            [0, 1, 2].map(|axis| along(axis).fold(f32::INFINITY, f32::min)),
            [0, 1, 2].map(|axis| along(axis).fold(f32::NEG_INFINITY, f32::max)),
        );
        // One range for all axes, as in the encoder of Draco.
        let range = [0, 1, 2].map(|axis| high[axis] - low[axis]);
        let range = range.into_iter().fold(0.0, f32::max);
        let step = range / (f32::from(bits).exp2() - 1.0);
        let rounding = 1e-6 * range + 1e-6 * high.into_iter().chain(low).fold(0.0, |a: f32, b| a.max(b.abs()));
        for (ours, given) in again.positions.iter().zip(&cell.positions) {
            for axis in 0..3 {
                prop_assert!((ours[axis] - given[axis]).abs() <= step / 2.0 + rounding);
            }
        }
    }

    #[test]
    fn damaged_streams_do_not_panic(at in 0_usize..8, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = recorded().swap_remove(at).bytes;
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] ^= value;
        }
        law::draco(&bytes);
    }
}
