//! Invariants of Blosc2 arrays for arbitrary bytes, used by the mutation test and the fuzz target
//! `dense_b2nd`.

use std::sync::Arc;

use zvf_dense::{DenseArray, Hyperslab, MemorySource, b2nd::B2nd};

/// Memory limit for untrusted input.
const BUDGET: u64 = 1 << 20;

/// Checks that a part of the array equals the same part of the whole, and that a plan equals the
/// cost of the read. Returns whether the bytes are an array, and whether the whole array can be
/// read.
pub(crate) fn array(bytes: &[u8]) -> (bool, bool) {
    let source = MemorySource::new("bytes", bytes.to_vec());
    let Ok(array) = B2nd::from_source(Arc::new(source), 0, BUDGET) else {
        return (false, false);
    };
    let whole = array.slice(&Hyperslab::whole(array.shape()));
    // Select the second element along each axis, or the only one.
    let start: Vec<u64> = array
        .shape()
        .iter()
        .map(|extent| u64::from(*extent > 1))
        .collect();
    let stop: Vec<u64> = array
        .shape()
        .iter()
        .map(|extent| (*extent).min(2))
        .collect();
    let one = Hyperslab::new(&start, &stop, None).unwrap();
    let plan = array.read_plan(&one);
    let len = array.byte_len(&one).unwrap();
    if u64::try_from(len).is_ok_and(|len| len > BUDGET) {
        return (true, false);
    }
    let mut bytes = vec![0; len];
    let taken = array.slice_into(&one, &mut bytes);
    if let (Ok(plan), Ok(taken)) = (&plan, &taken) {
        assert_eq!(plan, taken);
    }
    let Ok(whole) = whole else {
        return (true, false);
    };
    taken.unwrap();
    plan.unwrap();
    let at = start.iter().zip(array.shape());
    let at = at.fold(0, |at, (start, extent)| at * extent + start);
    let at = usize::try_from(at).unwrap() * bytes.len();
    assert_eq!(whole.get(at..at + bytes.len()), Some(&bytes[..]));
    (true, true)
}
