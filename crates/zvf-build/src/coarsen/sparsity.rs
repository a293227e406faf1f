//! Which objects a coarser level keeps.

use std::collections::{BTreeMap, BTreeSet};

mod coverage;

use self::coverage::covering;
use super::draw::draw;

/// How many objects stay, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparsity {
    /// How many.
    pub amount: Amount,
    /// Which.
    pub strategy: Strategy,
}

/// How many of some objects stay; one at least where there is any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// This part of them, rounded to the nearest, in the middle to the even number.
    Share(f64),
    /// So many.
    Count(u64),
}

/// Which objects stay. Equal ones stay in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Those that come first by a number drawn from the seed and their id: of levels
    /// with the same seed the coarser keep some of what the finer do.
    Random {
        /// What numbers are drawn from.
        seed: u64,
    },
    /// The longest, and of equally long ones those with most vertices.
    Length,
    /// Those that reach most: one by one the object that reaches most chunks which
    /// none does yet, the longest of several; then, as soon as all are reached, most
    /// chunks that fewer than two reach, then four, and so on.
    Coverage,
    /// Those with the least values of an attribute, or the greatest. Those without
    /// one, or with NaN, go first.
    Attribute {
        /// Whether the greatest stay.
        descending: bool,
    },
    /// So many of each group, and of those in none, as in `Random`. An object may be
    /// in several, and stays if one keeps it.
    PerGroup {
        /// What numbers are drawn from.
        seed: u64,
    },
    /// These, however many they are.
    Ids(BTreeSet<i64>),
}

/// What of an object decides whether it stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectFacts {
    /// Its id.
    pub id: i64,
    /// Whether it has geometry on the finer level. What has none is no object here.
    pub is_present: bool,
    /// Length of its path or cable.
    pub length: f64,
    /// Number of its vertices.
    pub vertices: u64,
    /// Chunks of the coarser level that it is in, by numbers that the caller gives
    /// them from 0 on, each once.
    pub chunks: Vec<u32>,
    /// Its value of the attribute.
    pub value: Option<f64>,
    /// The groups it is in.
    pub groups: Vec<u32>,
}

impl Sparsity {
    /// Which of the objects stay, one after the other.
    ///
    /// # Errors
    ///
    /// [`SparsityError`] says what cannot be kept.
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
            (draw(seed, [id as u64]), id)
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
                    let (one, other) = match descending {
                        true => (value(*b), value(*a)),
                        false => (value(*a), value(*b)),
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

    /// The first of each group, and of those in none.
    fn by_group(&self, objects: &[ObjectFacts], rows: &[u32]) -> Vec<u32> {
        let mut groups: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        for row in rows {
            let of = &objects[*row as usize].groups;
            if of.is_empty() {
                groups.entry(None).or_default().push(*row);
            }
            for group in of {
                let members = groups.entry(Some(*group)).or_default();
                // A group that is named twice has its member once.
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
    /// How many of so many.
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

/// The longest first; what has no length last.
fn sort_by_length(objects: &[ObjectFacts], rows: &mut [u32]) {
    let length = |object: &ObjectFacts| match object.length.is_nan() {
        true => f64::NEG_INFINITY,
        false => object.length,
    };
    rows.sort_by(|a, b| {
        let (a, b) = (&objects[*a as usize], &objects[*b as usize]);
        let lengths = length(b).total_cmp(&length(a));
        lengths
            .then(b.vertices.cmp(&a.vertices))
            .then(a.id.cmp(&b.id))
    });
}

/// Why objects cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SparsityError {
    /// The share is no part of a whole.
    #[error("a share of {0} of the objects is not above 0 and at most 1")]
    Share(f64),
    /// No object would stay.
    #[error("a level without objects is no level")]
    Count,
    /// There is no such object.
    #[error("there is no object {0}")]
    Unknown(i64),
}
