//! Selection of the objects of a coarser level.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::random::hash;

mod coverage;

use self::coverage::covering;

/// Number of objects to keep, and the strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparsity {
    /// Number of objects.
    pub amount: Amount,
    /// Strategy.
    pub strategy: Strategy,
}

/// Number of objects to keep; at least one if there are any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Fraction of the objects, rounded half to even.
    Share(f64),
    /// Absolute number.
    Count(u64),
}

/// Strategy of selection. Ties are broken by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Objects with the smallest hashes of seed and id. With equal seeds, coarser levels keep a
    /// subset of the finer ones.
    Random {
        /// Seed of the hashes.
        seed: u64,
    },
    /// The longest objects, then those with most vertices.
    Length,
    /// Greedy cover: repeatedly the object that reaches most uncovered chunks, the longest of
    /// equals; once every chunk is reached, chunks that fewer than two objects reach, then four,
    /// and so on.
    Coverage,
    /// Objects with the smallest or greatest values of an attribute. Objects without a value, or
    /// with NaN, are dropped first.
    Attribute {
        /// `true` to keep the greatest values.
        descending: bool,
    },
    /// Like `Random`, for each group and the objects without a group. An object is kept if any of its
    /// groups keeps it.
    PerGroup {
        /// Seed of the hashes.
        seed: u64,
    },
    /// Exactly these objects.
    Ids(BTreeSet<i64>),
}

/// Properties of an object that decide its selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectFacts {
    /// Object id.
    pub id: i64,
    /// `true` if the object has geometry on the finer level; others are ignored.
    pub is_present: bool,
    /// Length of the path or cable.
    pub length: f64,
    /// Number of vertices.
    pub vertices: u64,
    /// Distinct chunks of the coarser level that contain the object, numbered by the caller from 0.
    pub chunks: Vec<u32>,
    /// Attribute value.
    pub value: Option<f64>,
    /// Groups of the object.
    pub groups: Vec<u32>,
}

impl Sparsity {
    /// Returns whether each object is kept.
    ///
    /// # Errors
    ///
    /// [`SparsityError`] when the amount or an id is invalid.
    #[doc(hidden)]
    pub fn kept(&self, objects: &[ObjectFacts]) -> Result<Vec<bool>, SparsityError> {
        match self.amount {
            Amount::Share(share) if !(share > 0.0 && share <= 1.0) => {
                return Err(SparsityError::Share(share));
            }
            Amount::Count(0) => return Err(SparsityError::Count),
            _ => {}
        }
        let present = (0..).zip(objects).filter(|(_, object)| object.is_present);
        let mut rows: Vec<u32> = present.map(|(row, _)| row).collect();
        let count = self.amount.of(rows.len());
        let object = |row: u32| &objects[row as usize];
        let drawn = |seed: u64, row: u32| {
            let id = object(row).id;
            (hash(seed, [id as u64]), id)
        };
        match &self.strategy {
            Strategy::Random { seed } => {
                rows.sort_by_cached_key(|row| drawn(*seed, *row));
            }
            Strategy::Length => sort_by_length(objects, &mut rows),
            Strategy::Coverage => {
                sort_by_length(objects, &mut rows);
                rows = covering(objects, &rows, count);
            }
            Strategy::Attribute { descending } => {
                let value = |row: u32| object(row).value.filter(|value| !value.is_nan());
                rows.sort_by(|a, b| {
                    let (one, other) = if *descending {
                        (value(*b), value(*a))
                    } else {
                        (value(*a), value(*b))
                    };
                    let is_without = value(*a).is_none().cmp(&value(*b).is_none());
                    let values = one.unwrap_or(0.0).total_cmp(&other.unwrap_or(0.0));
                    let ids = || object(*a).id.cmp(&object(*b).id);
                    is_without.then(values).then_with(ids)
                });
            }
            Strategy::PerGroup { seed } => {
                rows.sort_by_cached_key(|row| drawn(*seed, *row));
                rows = self.by_group(objects, &rows);
            }
            Strategy::Ids(ids) => {
                let known: BTreeSet<i64> = objects.iter().map(|object| object.id).collect();
                if let Some(id) = ids.difference(&known).next() {
                    return Err(SparsityError::Unknown(*id));
                }
                rows.retain(|row| ids.contains(&object(*row).id));
            }
        }
        if !matches!(self.strategy, Strategy::PerGroup { .. } | Strategy::Ids(_)) {
            rows.truncate(count);
        }
        let mut kept = vec![false; objects.len()];
        for row in rows {
            kept[row as usize] = true;
        }
        Ok(kept)
    }

    /// Selects the first of each group, and of the objects without a group.
    fn by_group(&self, objects: &[ObjectFacts], rows: &[u32]) -> Vec<u32> {
        let mut groups: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        for row in rows {
            let of = &objects[*row as usize].groups;
            if of.is_empty() {
                groups.entry(None).or_default().push(*row);
            }
            for group in of {
                let members = groups.entry(Some(*group)).or_default();
                // A repeated group counts its member once.
                if members.last() != Some(row) {
                    members.push(*row);
                }
            }
        }
        let firsts = groups.values().map(|members| {
            let count = self.amount.of(members.len());
            &members[..count]
        });
        firsts.flatten().copied().collect()
    }
}

impl Amount {
    /// Returns the number of objects to keep.
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are no 2^53 objects, and the reference divides floats too"
    )]
    fn of(self, objects: usize) -> usize {
        let count = match self {
            Self::Share(share) => (objects as f64 * share).round_ties_even() as usize,
            Self::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        };
        count.max(1).min(objects)
    }
}

/// Sorts by descending length; NaN last.
fn sort_by_length(objects: &[ObjectFacts], rows: &mut [u32]) {
    let length = |object: &ObjectFacts| {
        if object.length.is_nan() {
            f64::NEG_INFINITY
        } else {
            object.length
        }
    };
    rows.sort_by(|a, b| {
        let (a, b) = (&objects[*a as usize], &objects[*b as usize]);
        let lengths = length(b).total_cmp(&length(a));
        lengths
            .then(b.vertices.cmp(&a.vertices))
            .then(a.id.cmp(&b.id))
    });
}

/// Invalid selection of objects.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SparsityError {
    /// The fraction is not in (0, 1].
    #[error("the fraction {0} of objects is not above 0 and at most 1")]
    Share(f64),
    /// The count is 0.
    #[error("at least one object must be kept")]
    Count,
    /// An id does not exist.
    #[error("there is no object {0}")]
    Unknown(i64),
}
