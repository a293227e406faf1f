//! Fields of records of one size as columns.

/// Appends a field of `size` bytes at `at` of each record. A field past the end of a record is zero.
pub(crate) fn gather(records: &[u8], record: usize, at: usize, size: usize, values: &mut Vec<u8>) {
    // A copy whose size is known at compile time is a move or two.
    match size {
        1 => gather_fixed::<1>(records, record, at, values),
        2 => gather_fixed::<2>(records, record, at, values),
        4 => gather_fixed::<4>(records, record, at, values),
        6 => gather_fixed::<6>(records, record, at, values),
        8 => gather_fixed::<8>(records, record, at, values),
        12 => gather_fixed::<12>(records, record, at, values),
        24 => gather_fixed::<24>(records, record, at, values),
        _ => {
            for record in records.chunks_exact(record.max(1)) {
                let end = values.len().saturating_add(size);
                let field = record.get(at..at.saturating_add(size));
                values.extend_from_slice(field.unwrap_or_default());
                values.resize(end, 0);
            }
        }
    }
}

fn gather_fixed<const N: usize>(records: &[u8], record: usize, at: usize, values: &mut Vec<u8>) {
    let field = |record: &[u8]| {
        let field = record.get(at..).and_then(|rest| rest.first_chunk::<N>());
        field.copied().unwrap_or([0; N])
    };
    let records = records.chunks_exact(record.max(1));
    let start = values.len();
    values.resize(start.saturating_add(records.len().saturating_mul(N)), 0);
    let (targets, _) = values
        .get_mut(start..)
        .unwrap_or_default()
        .as_chunks_mut::<N>();
    for (target, record) in targets.iter_mut().zip(records) {
        *target = field(record);
    }
}

/// Puts a value of `size` bytes at `at` of each record.
pub(crate) fn scatter(values: &[u8], size: usize, records: &mut [u8], record: usize, at: usize) {
    match size {
        1 => scatter_fixed::<1>(values, records, record, at),
        2 => scatter_fixed::<2>(values, records, record, at),
        4 => scatter_fixed::<4>(values, records, record, at),
        6 => scatter_fixed::<6>(values, records, record, at),
        8 => scatter_fixed::<8>(values, records, record, at),
        12 => scatter_fixed::<12>(values, records, record, at),
        _ => {
            let records = records.chunks_exact_mut(record.max(1));
            for (record, value) in records.zip(values.chunks_exact(size.max(1))) {
                if let Some(target) = record.get_mut(at..at.saturating_add(size)) {
                    target.copy_from_slice(value);
                }
            }
        }
    }
}

fn scatter_fixed<const N: usize>(values: &[u8], records: &mut [u8], record: usize, at: usize) {
    let (values, _) = values.as_chunks::<N>();
    for (record, value) in records.chunks_exact_mut(record.max(1)).zip(values) {
        let target = record
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut::<N>());
        if let Some(target) = target {
            *target = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_sizes_are_gathered_and_scattered() {
        let records: Vec<u8> = (0..60).collect();
        for size in 1..=13 {
            let mut values = Vec::new();
            gather(&records, 20, 3, size, &mut values);
            let expected = [0_u8, 20, 40].map(|start| {
                let fields = (start..).skip(3).take(size);
                fields.collect::<Vec<u8>>()
            });
            assert_eq!(values, expected.concat(), "{size}");
            let mut copy = vec![0; 60];
            scatter(&values, size, &mut copy, 20, 3);
            let mut again = Vec::new();
            gather(&copy, 20, 3, size, &mut again);
            assert_eq!(again, values, "{size}");
        }
        let mut values = Vec::new();
        gather(&records, 20, 18, 4, &mut values);
        gather(&records, 20, 18, 5, &mut values);
        assert_eq!(values[..12], [0; 12]);
    }
}
