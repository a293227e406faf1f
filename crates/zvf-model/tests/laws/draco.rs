//! Invariants of Draco streams for arbitrary bytes, used by the tests and the fuzz target
//! `model_draco`.

use zvf_model::draco::{DracoCell, DracoError, PositionBits};

/// Bytes of a decoded cell at most.
const LIMIT: u64 = 1 << 20;

/// Checks that a decoded cell is within the limit, names its own rows, and can be encoded again
/// with the same rows and triangles. Returns whether the bytes are a stream.
pub(crate) fn draco(bytes: &[u8]) -> bool {
    let cell = match DracoCell::parse(bytes, LIMIT) {
        Ok(cell) => cell,
        Err(error) => {
            assert_ne!(error, DracoError::Damaged("the decoder panicked"));
            return false;
        }
    };
    let rows = cell.positions.len();
    assert!(size_of_val(cell.positions.as_slice()) as u64 <= LIMIT);
    assert!(size_of_val(cell.triangles.as_slice()) as u64 <= LIMIT);
    let mut corners = cell.triangles.as_flattened().iter();
    assert!(corners.all(|row| (*row as usize) < rows));
    // Positions that are not finite, or too far apart, may be refused.
    if let Ok(again) = cell.encode(PositionBits::default()) {
        let again = DracoCell::parse(&again, LIMIT);
        let again = again.map(|again| (again.positions.len(), again.triangles));
        assert_eq!(again, Ok((rows, cell.triangles)));
    }
    true
}
