//! Invariants of Tetration files for arbitrary bytes, used by the mutation test and the fuzz target
//! `dense_tet`.

use std::sync::Arc;

use zvf_dense::{
    DenseArray, Hyperslab, MemorySource,
    tet::{MemoryBudget, TetFile, TetOptions, verify},
};

/// Memory limit for a result.
const BUDGET: u64 = 1 << 20;

/// Opens the bytes and reads everything that is readable. Returns whether everything was.
///
/// # Panics
///
/// If a read exceeds the budget, if two ways to read the same bytes disagree, or if `verify`
/// accepts a file that cannot be read.
pub(crate) fn tet(bytes: &[u8]) -> bool {
    let budget = MemoryBudget {
        bytes: Some(BUDGET),
        bps: None,
    };
    let options = TetOptions { budget };
    let source = Arc::new(MemorySource::new("bytes", bytes.to_vec()));
    let Ok(file) = TetFile::open(source, options) else {
        return false;
    };
    let mut is_read = true;
    for array in (0..file.datasets().len()).filter_map(|id| file.dataset_at(id)) {
        let whole = Hyperslab::whole(array.shape());
        let Ok(plan) = array.read_plan(&whole) else {
            is_read = false;
            continue;
        };
        assert!(plan.bytes_read <= u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let read = array.slice(&whole);
        if let Ok(read) = &read {
            assert!(u64::try_from(read.len()).is_ok_and(|len| len == plan.bytes && len <= BUDGET));
            if let Ok(Some(borrowed)) = array.borrow(&whole) {
                assert!(*borrowed == **read, "the fast path is another array");
            }
        }
        is_read &= read.is_ok();
        // Select the last element, and every other element.
        let last: Vec<u64> = array.shape().iter().map(|extent| extent - 1).collect();
        let corner = Hyperslab::new(&last, array.shape(), None);
        let zeros = vec![0; last.len()];
        let sparse = Hyperslab::new(&zeros, array.shape(), Some(&vec![2; last.len()]));
        for selection in [corner, sparse].into_iter().flatten() {
            let part = array.slice(&selection);
            // If the whole array is readable, so is each part.
            assert!(part.is_ok() || read.is_err());
        }
    }
    let source = Arc::new(MemorySource::new("bytes", bytes.to_vec()));
    let verified = verify(source, options, false);
    assert!(verified.is_ok_and(|found| found.is_ok() || !is_read));
    is_read
}
