//! Reductions compared with plain loops, and with the results of NumPy for the recorded files.
#![expect(
    clippy::float_cmp,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are small, and equal values are equal"
)]

use std::sync::Arc;

use serde_json::Value;
use zvf_dense::{
    ArrayView, DenseArray, Hyperslab, MemoryArray, MemorySource,
    reduce::{Reduction, Scalar, histogram, quantiles, reduce},
    tet::{MemoryBudget, TetFile, TetOptions},
};
use zvf_testkit::golden::Golden;

#[track_caller]
fn near(found: f64, expected: f64, what: &str) {
    let is_same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
    let scale = expected.abs().max(f64::MIN_POSITIVE);
    let is_near = (found - expected).abs() <= 1e-12 * scale;
    assert!(
        is_same || found == expected || is_near,
        "{what}: {found}, not {expected}"
    );
}

/// Reads a number; JSON represents NaN and infinity as text.
fn number(value: &Value) -> f64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    value.as_f64().or(text).unwrap_or(f64::NAN)
}

#[test]
fn reductions_of_recorded_files_match_numpy() {
    let golden = Golden::open("tet");
    let expected = golden.json("expected.json");
    let mut checked = 0;
    for expected in expected["files"].as_array().unwrap() {
        let name = expected["file"].as_str().unwrap();
        let bytes = golden.file(&format!("good/{name}")).to_vec();
        let budget = MemoryBudget {
            bytes: Some(1 << 30),
            bps: None,
        };
        let source = Arc::new(MemorySource::new(name, bytes));
        let file = TetFile::open(source, TetOptions { budget }).unwrap();
        for (id, expected) in expected["datasets"].as_array().unwrap().iter().enumerate() {
            let truth = &expected["reduction_truth"];
            let array = file.dataset_at(id).unwrap();
            let kinds = [
                ("sum", Reduction::Sum),
                ("mean", Reduction::Mean),
                ("min", Reduction::NanMin),
                ("max", Reduction::NanMax),
                ("var", Reduction::Var),
                ("std", Reduction::Std),
                ("count", Reduction::Count),
                ("nan_count", Reduction::NanCount),
            ];
            for (key, reduction) in kinds {
                let Some(expected) = truth.get(key) else {
                    continue;
                };
                let found = reduce(&array, reduction, &[]).unwrap();
                assert_eq!((found.shape.len(), found.values.len()), (0, 1));
                near(
                    found.values[0].to_f64(),
                    number(expected),
                    &format!("{name}: {key}"),
                );
                checked += 1;
            }
            if let Some(expected) = truth.get("median") {
                let found = quantiles(&array, &[0.5], &[]).unwrap();
                let nans = reduce(&array, Reduction::NanCount, &[]).unwrap();
                if nans.values == [Scalar::Int(0)] {
                    near(found[0].values[0].to_f64(), number(expected), name);
                    checked += 1;
                }
            }
            if let Some(expected) = truth.get("sum_axis0") {
                let found = reduce(&array, Reduction::Sum, &[0]).unwrap();
                let values = expected["values"].as_array().unwrap();
                assert_eq!(found.values.len(), values.len(), "{name}");
                for (found, expected) in found.values.iter().zip(values) {
                    near(found.to_f64(), number(expected), name);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

const KINDS: [Reduction; 14] = [
    Reduction::Count,
    Reduction::NanCount,
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Min,
    Reduction::Max,
    Reduction::Var,
    Reduction::Std,
    Reduction::NanSum,
    Reduction::NanMean,
    Reduction::NanMin,
    Reduction::NanMax,
    Reduction::NanVar,
    Reduction::NanStd,
];

/// Computes a reduction directly from its definition.
fn plain(values: &[f64], reduction: Reduction) -> f64 {
    use Reduction as R;
    let skips = matches!(
        reduction,
        R::NanSum | R::NanMean | R::NanMin | R::NanMax | R::NanVar | R::NanStd
    );
    let nans = values.iter().filter(|value| value.is_nan()).count();
    let some: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    let count = some.len() as f64;
    match reduction {
        R::Count => return values.len() as f64,
        R::NanCount => return nans as f64,
        _ if nans > 0 && !skips => return f64::NAN,
        _ => {}
    }
    let sum: f64 = some.iter().sum();
    let var = some
        .iter()
        .map(|value| (value - sum / count).powi(2))
        .sum::<f64>()
        / count;
    let end = |pick: fn(f64, f64) -> f64| some.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    match reduction {
        R::Sum | R::NanSum => sum,
        R::Mean | R::NanMean => sum / count,
        R::Min | R::NanMin => end(f64::min),
        R::Max | R::NanMax => end(f64::max),
        R::Var | R::NanVar => var,
        R::Std | R::NanStd => var.sqrt(),
        R::Count | R::NanCount => unreachable!(),
    }
}

#[test]
fn reductions_over_any_axes_match_plain_loops() {
    let shape = [3_u64, 4, 5];
    let values: Vec<f64> = (0..60)
        .map(|at| match at % 17 {
            3 => f64::NAN,
            _ => f64::from(at * 37 % 23) - 7.5,
        })
        .collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let dtype = ">f8".parse().unwrap();
    let memory = MemoryArray::new("a", dtype, shape.to_vec(), bytes).unwrap();
    // Reduce over every combination of axes and compare with groups of elements.
    for axes in [
        vec![],
        vec![0],
        vec![1],
        vec![2],
        vec![2, 0],
        vec![1, 2],
        vec![0, 1, 2],
    ] {
        let goes = |axis: usize| axes.is_empty() || axes.contains(&axis);
        let kept: Vec<usize> = (0..3).filter(|axis| !goes(*axis)).collect();
        let count: u64 = kept.iter().map(|axis| shape[*axis]).product();
        let mut groups = vec![Vec::new(); usize::try_from(count).unwrap()];
        for (at, value) in values.iter().enumerate() {
            let at = u64::try_from(at).unwrap();
            let place = [at / 20, at / 5 % 4, at % 5];
            let group = kept
                .iter()
                .fold(0, |group, axis| group * shape[*axis] + place[*axis]);
            groups[usize::try_from(group).unwrap()].push(*value);
        }
        for reduction in KINDS {
            let found = reduce(&memory, reduction, &axes).unwrap();
            let expected: Vec<u64> = kept.iter().map(|axis| shape[*axis]).collect();
            assert_eq!(found.shape, expected);
            for (found, group) in found.values.iter().zip(&groups) {
                near(
                    found.to_f64(),
                    plain(group, reduction),
                    &format!("{reduction:?} {axes:?}"),
                );
            }
        }
        let found = quantiles(&memory, &[0.0, 0.3, 0.5, 1.0], &axes).unwrap();
        for (at, found) in [0.0, 0.3, 0.5, 1.0].into_iter().zip(found) {
            for (found, group) in found.values.iter().zip(&groups) {
                let mut some: Vec<f64> = group.iter().copied().filter(|v| !v.is_nan()).collect();
                some.sort_by(f64::total_cmp);
                let place = at * (some.len() - 1) as f64;
                let (low, high) = (some[place.floor() as usize], some[place.ceil() as usize]);
                near(
                    found.to_f64(),
                    low + (high - low) * place.fract(),
                    "quantile",
                );
            }
        }
    }
}

#[test]
fn integer_sums_are_exact_beyond_f64() {
    let values = [u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) + 1];
    let bytes = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let array = MemoryArray::new("a", "uint64".parse().unwrap(), vec![4], bytes).unwrap();
    let one = |reduction| reduce(&array, reduction, &[]).unwrap().values[0];
    let sum = values.iter().map(|value| i128::from(*value)).sum();
    assert_eq!(one(Reduction::Sum), Scalar::Int(sum));
    assert_eq!(one(Reduction::Max), Scalar::Int(u64::MAX.into()));
    assert_eq!(one(Reduction::Min), Scalar::Int(1 << 53));
    let top = quantiles(&array, &[1.0], &[]).unwrap();
    assert_eq!(top[0].values, [Scalar::Int(u64::MAX.into())]);
}

#[test]
fn float_sums_compensate_rounding() {
    let mut values = vec![1e16, 1.0, -1e16];
    values.extend([1.0; 5]);
    let bytes = values
        .iter()
        .flat_map(|value: &f64| value.to_le_bytes())
        .collect();
    let array = MemoryArray::new("a", "<f8".parse().unwrap(), vec![2, 4], bytes).unwrap();
    // Columns have two values each. Compensated summation carries the rounding error of each step.
    let columns = reduce(&array, Reduction::Sum, &[0]).unwrap();
    let found: Vec<f64> = columns.values.iter().map(|value| value.to_f64()).collect();
    assert_eq!(found, [1e16 + 1.0, 2.0, -1e16 + 1.0, 2.0]);
    let infinite = [f64::INFINITY, 1.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let array = MemoryArray::new("a", "<f8".parse().unwrap(), vec![2], infinite).unwrap();
    let sum = reduce(&array, Reduction::Sum, &[]).unwrap();
    assert_eq!(sum.values, [Scalar::Float(f64::INFINITY)]);
}

#[test]
fn histograms_count_every_value_once() {
    let values: Vec<f32> = (0..1000_u16).map(|at| f32::from(at) / 10.0).collect();
    let mut bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    bytes.extend(
        [f32::NAN, -1.0, 1e9]
            .iter()
            .flat_map(|value| value.to_le_bytes()),
    );
    let array = MemoryArray::new("a", "<f4".parse().unwrap(), vec![1003], bytes).unwrap();
    let found = histogram(&array, 0.0, 50.0, 7).unwrap();
    assert_eq!((found.nans, found.below), (1, 1));
    let mut expected = vec![0_u64; 7];
    let mut above = 1;
    for value in values.iter().map(|value| f64::from(*value)) {
        let bin = (0..7).find(|bin| value < found.edges[bin + 1] || (*bin == 6 && value <= 50.0));
        match bin {
            Some(bin) => expected[bin] += 1,
            None => above += 1,
        }
    }
    assert_eq!((found.counts, found.above), (expected, above));
    assert!(histogram(&array, 1.0, 1.0, 3).is_err());
    assert!(histogram(&array, 0.0, f64::INFINITY, 3).is_err());
}

#[test]
fn invalid_dtypes_and_axes_are_rejected() {
    let text = MemoryArray::new("a", "S2".parse().unwrap(), vec![2], vec![0; 4]).unwrap();
    assert!(reduce(&text, Reduction::Sum, &[]).is_err());
    let array = MemoryArray::new("a", "u1".parse().unwrap(), vec![2, 2], vec![0; 4]).unwrap();
    assert!(reduce(&array, Reduction::Sum, &[2]).is_err());
    assert!(reduce(&array, Reduction::Sum, &[0, 0]).is_err());
    assert!(quantiles(&array, &[1.5], &[]).is_err());
    let none = ArrayView::new(&array, Hyperslab::new(&[0, 0], &[0, 2], None).unwrap()).unwrap();
    assert_eq!(none.shape(), [0, 2]);
    let sum = reduce(&none, Reduction::Sum, &[]).unwrap();
    assert_eq!(sum.values, [Scalar::Int(0)]);
    let min = reduce(&none, Reduction::Min, &[0]).unwrap();
    assert!(min.values.iter().all(|value| value.to_f64().is_nan()) && min.values.len() == 2);
}
