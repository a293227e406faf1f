//! Exact quantiles in bounded memory.
//!
//! Values that fit in memory are sorted. Otherwise each value is mapped to an ordered 64-bit key, and a
//! radix selection runs: one pass counts the values by 16 bits of the key, and the next pass refines
//! the bucket of each requested rank. Four passes find any rank, or fewer if the keys differ in few bits.

use std::collections::BTreeMap;

use super::{Number, Reduced, Reduction, Scalar, Task, reduce, with_numbers};
use crate::{
    ArrayView, AxisRange, ChunkGrid, DenseArray, DenseError, GridCells, Hyperslab, MemoryArray,
    hyperslab::product,
};

/// Maximum number of quantiles per call; each takes a table of half a megabyte.
const MAX_QUANTILES: usize = 64;
const BITS: u32 = 16;

/// Computes quantiles of `array` without NaN, over `axes` or over all axes if the list is empty. Returns
/// one [`Reduced`] for each entry of `at`, from 0 to 1, with NumPy's linear interpolation.
///
/// Over all axes, memory is bounded for any array. Over some axes, the values of one result are in
/// memory at a time.
///
/// # Errors
///
/// If elements are not real numbers, an axis does not exist or occurs twice, `at` has more than 64
/// entries or one outside 0 to 1, the results exceed the budget, or the array cannot be read.
pub fn quantiles(
    array: &dyn DenseArray,
    at: &[f64],
    axes: &[usize],
) -> Result<Vec<Reduced>, DenseError> {
    let is_valid = at.len() <= MAX_QUANTILES && at.iter().all(|at| (0.0..=1.0).contains(at));
    if !is_valid {
        return Err(DenseError::Reduction {
            name: array.name().to_owned(),
            fault: "at most 64 quantiles can be computed at once, and each must be in 0 to 1",
        });
    }
    let kept = super::kept(array, axes)?;
    let shape = array.shape().to_vec();
    let mut results = empty_results(array, at.len(), &kept)?;
    let strides = super::strides(&shape, &kept);
    let budget = array.scratch();
    let grid = box_grid(array, &kept)?;
    let mut boxes = grid.chunks(&Hyperslab::whole(&shape));
    while let Some(parts) = boxes.next() {
        let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
        let of_box = grid.chunk_selection(&coordinate);
        let len = of_box.byte_len(array.dtype().size()).unwrap_or(u64::MAX);
        let held = if len <= budget {
            let bytes = array.slice_within(&of_box, budget)?;
            let dtype = array.dtype().clone();
            Some(MemoryArray::of_result(
                array.name().to_owned(),
                dtype,
                of_box.shape(),
                bytes,
            )?)
        } else {
            None
        };
        // One line per result.
        let ones: Vec<u64> = shape
            .iter()
            .zip(&kept)
            .map(|(extent, kept)| if *kept { 1 } else { (*extent).max(1) })
            .collect();
        let mut lines = GridCells::new(Hyperslab::whole(&of_box.shape()).axes(), &ones);
        while let Some(parts) = lines.next() {
            let in_box: Hyperslab = of_box
                .axes()
                .iter()
                .zip(parts)
                .zip(&kept)
                .map(|((axis, part), kept)| {
                    let whole = AxisRange::whole(axis.count());
                    if *kept {
                        whole.portion(part.at..part.at.saturating_add(1))
                    } else {
                        whole
                    }
                })
                .collect();
            let place = of_box.axes().iter().zip(parts).zip(&strides);
            let place = place.fold(0_usize, |place, ((axis, part), stride)| {
                let at = usize::try_from(axis.position(part.at)).unwrap_or(usize::MAX);
                place.saturating_add(at.saturating_mul(*stride))
            });
            let found = if let Some(held) = &held {
                with_numbers(&ArrayView::new(held, in_box)?, Select { at })?
            } else {
                let whole = ArrayView::new(array, of_box.clone())?;
                with_numbers(&ArrayView::new(&whole, in_box)?, Select { at })?
            };
            for (result, value) in results.iter_mut().zip(found) {
                if let Some(slot) = result.values.get_mut(place) {
                    *slot = value;
                }
            }
        }
    }
    Ok(results)
}

/// Returns one result without a value for each of `quantiles`.
fn empty_results(
    array: &dyn DenseArray,
    quantiles: usize,
    kept: &[bool],
) -> Result<Vec<Reduced>, DenseError> {
    let shape: Vec<u64> = array
        .shape()
        .iter()
        .zip(kept)
        .filter_map(|(extent, kept)| kept.then_some(*extent))
        .collect();
    let count = product(shape.iter().copied()).unwrap_or(u64::MAX);
    let size = u64::try_from(size_of::<Scalar>()).unwrap_or(u64::MAX);
    let results = u64::try_from(quantiles).unwrap_or(u64::MAX);
    let needed = count.saturating_mul(size).saturating_mul(results);
    let budget = array.scratch();
    if needed > budget {
        return Err(DenseError::Budget { needed, budget });
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let result = || Reduced {
        shape: shape.clone(),
        values: vec![Scalar::Float(f64::NAN); count],
    };
    Ok((0..quantiles).map(|_| result()).collect())
}

/// Returns boxes with as many results as a chunk, whole along the reduced axes.
fn box_grid(array: &dyn DenseArray, kept: &[bool]) -> Result<ChunkGrid, DenseError> {
    let shape = array.shape();
    let chunk = array.grid().chunk_shape().iter().zip(shape).zip(kept);
    let chunk = chunk
        .map(|((chunk, extent), kept)| if *kept { *chunk } else { *extent })
        .map(|extent| extent.max(1))
        .collect();
    ChunkGrid::new(shape.to_vec(), chunk, None).map_err(|source| DenseError::Grid {
        name: array.name().to_owned(),
        source,
    })
}

struct Select<'a> {
    at: &'a [f64],
}

impl Task for Select<'_> {
    type Output = Vec<Scalar>;

    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<Vec<Scalar>, DenseError> {
        let whole = Hyperslab::whole(array.shape());
        let values = whole.element_count().unwrap_or(u64::MAX);
        // One key per value.
        let mut sorted: Option<Vec<u64>> = None;
        let count = if values.saturating_mul(8) <= array.scratch() {
            let bytes = array.slice_within(&whole, array.scratch())?;
            let values = T::all(&bytes).filter(|value| !is_nan(*value));
            let mut keys: Vec<u64> = values.map(Number::key).collect();
            keys.sort_unstable();
            let count = u64::try_from(keys.len()).unwrap_or(u64::MAX);
            sorted = Some(keys);
            count
        } else {
            let counted = |reduction| {
                let reduced = reduce(array, reduction, &[])?;
                Ok::<_, DenseError>(match reduced.values.first() {
                    Some(Scalar::Int(count)) => u64::try_from(*count).unwrap_or(0),
                    _ => 0,
                })
            };
            counted(Reduction::Count)?.saturating_sub(counted(Reduction::NanCount)?)
        };
        let Some(last) = count.checked_sub(1) else {
            return Ok(vec![Scalar::Float(f64::NAN); self.at.len()]);
        };
        let last = Scalar::Int(last.into()).to_f64();
        let places: Vec<f64> = self.at.iter().map(|at| at * last).collect();
        let mut ranks: Vec<u64> = places
            .iter()
            .flat_map(|at| [rank(at.floor()), rank(at.ceil())])
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        let keys = match sorted {
            Some(sorted) => {
                let key = |rank: u64| sorted.get(usize::try_from(rank).ok()?).copied();
                let keys = ranks.iter().filter_map(|rank| Some((*rank, key(*rank)?)));
                keys.collect()
            }
            None => keys::<T>(array, &ranks)?,
        };
        let value = |at: f64| keys.get(&rank(at)).map(|key| T::of_key(*key));
        let found = places.iter().map(|at| {
            let low = value(at.floor()).unwrap_or(Scalar::Float(f64::NAN));
            let high = value(at.ceil()).unwrap_or(low);
            let share = at - at.floor();
            if low == high || share == 0.0 {
                return low;
            }
            let (low, high) = (low.to_f64(), high.to_f64());
            Scalar::Float(low + (high - low) * share)
        });
        Ok(found.collect())
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and below the number of values"
)]
fn rank(at: f64) -> u64 {
    at as u64
}

fn is_nan<T: Number>(value: T) -> bool {
    T::IS_FLOAT && value.float().is_nan()
}

/// Finds the keys of the values with the given ascending ranks.
fn keys<T: Number>(
    array: &dyn DenseArray,
    ranks: &[u64],
) -> Result<BTreeMap<u64, u64>, DenseError> {
    // The known bits of the key of each rank, and its rank among values that share them.
    let mut known: Vec<(u64, u64, u64)> = ranks.iter().map(|rank| (*rank, 0, *rank)).collect();
    for shift in (0..64 / BITS).rev().map(|part| part.saturating_mul(BITS)) {
        let above = shift.saturating_add(BITS);
        let prefix = |key: u64| key.checked_shr(above).unwrap_or(0);
        let mut tables: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (_, key, _) in &known {
            let table = || vec![0; 1 << BITS];
            tables.entry(prefix(*key)).or_insert_with(table);
        }
        array.visit_chunks(&mut |_, bytes| {
            for value in T::all(bytes) {
                if is_nan(value) {
                    continue;
                }
                let key = value.key();
                let place = usize::from(u16::try_from(key >> shift & 0xffff).unwrap_or(0));
                let table = tables.get_mut(&prefix(key));
                if let Some(count) = table.and_then(|table| table.get_mut(place)) {
                    *count = count.saturating_add(1);
                }
            }
            Ok(())
        })?;
        for (_, key, among) in &mut known {
            let table = tables.get(&prefix(*key));
            for (place, count) in (0_u64..).zip(table.into_iter().flatten()) {
                if *among < *count {
                    *key |= place << shift;
                    break;
                }
                *among = among.saturating_sub(*count);
            }
        }
    }
    Ok(known
        .into_iter()
        .map(|(rank, key, _)| (rank, key))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: Number>(dtype: &str, bytes: Vec<u8>) {
        let values = T::all(&bytes).filter(|value| !is_nan(*value));
        let mut sorted: Vec<T> = values.collect();
        sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let count = bytes.len() / T::SIZE;
        let shape = vec![u64::try_from(count).unwrap()];
        let array = MemoryArray::new("a", dtype.parse().unwrap(), shape, bytes).unwrap();
        let last = u64::try_from(sorted.len()).unwrap() - 1;
        let ranks = [0, 1, last / 2, last / 2 + 1, last];
        let found = keys::<T>(&array, &ranks).unwrap();
        for rank in ranks {
            let expected = sorted[usize::try_from(rank).unwrap()];
            assert_eq!(
                T::of_key(found[&rank]).to_f64().to_bits(),
                (expected.float() + 0.0).to_bits()
            );
        }
    }

    #[test]
    fn passes_find_what_sorting_finds() {
        let mut state = 7_u64;
        let noise: Vec<u8> = core::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()
        })
        .take(500)
        .flatten()
        .collect();
        check::<f64>("<f8", noise.clone());
        check::<f32>("<f4", noise.clone());
        check::<half::f16>("<f2", noise.clone());
        check::<i64>("<i8", noise.clone());
        check::<i16>("<i2", noise.clone());
        check::<u8>("u1", noise);
    }
}
