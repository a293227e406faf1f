//! Pruning of ranges of rows by the minimum and maximum of their columns.

use std::cmp::Ordering;

use super::{
    BoundPredicate, Number, Truth,
    bind::{Node, Slot, Term},
};

/// Bounds of a column's values in a range of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Lower bound of the values; of categories, the least code.
    pub min: Number,
    /// Upper bound of the values; of categories, the greatest code.
    pub max: Number,
    /// `true` if a value may be missing or NaN. `min` and `max` cover the other values.
    pub has_missing: bool,
}

/// Zones of the columns a predicate is bound to, for one range of rows.
pub trait ZoneMap {
    /// Returns the zone of one channel of a column, or `None` if it is unknown.
    fn zone(&self, id: usize, channel: u32) -> Option<Zone>;
}

impl BoundPredicate {
    /// Returns whether a row of the range may satisfy the predicate. If `false`, no row does, and
    /// the range need not be read; `true` does not guarantee that one does.
    ///
    /// ```
    /// use zvf_format::numeric::{Dtype, NumericRows};
    /// use zvf_query::predicate::{Number, Predicate, Scope, CellTable, Zone, ZoneMap};
    ///
    /// /// One zone for all columns.
    /// struct All(Zone);
    ///
    /// impl ZoneMap for All {
    ///     fn zone(&self, _: usize, _: u32) -> Option<Zone> {
    ///         Some(self.0)
    ///     }
    /// }
    ///
    /// let radius = NumericRows::parse(b"", Dtype::parse("float32")?, 1.try_into()?)?;
    /// let mut table = CellTable::default();
    /// table.add_numbers(Scope::Vertex, "radius", radius)?;
    /// let (min, max) = (Number::Float(0.5), Number::Float(2.0));
    /// let zones = All(Zone { min, max, has_missing: false });
    /// let may_match = |text| Ok::<_, Box<dyn std::error::Error>>(
    ///     Predicate::parse(text)?.bind(&table)?.may_match(&zones)
    /// );
    /// assert!(may_match("radius > 1")?);
    /// assert!(!may_match("radius > 2 or radius is null")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn may_match(&self, zones: &impl ZoneMap) -> bool {
        self.root.outcomes(zones).has(Truth::True)
    }
}

/// A superset of the truth values a predicate has for the rows of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcomes([bool; 3]);

impl Outcomes {
    const ANY: Self = Self([true; 3]);
    const NONE: Self = Self([false; 3]);

    fn has(self, truth: Truth) -> bool {
        let outcomes = Truth::ALL.into_iter().zip(self.0);
        outcomes
            .into_iter()
            .any(|(other, may)| may && other == truth)
    }

    fn with(mut self, truth: Truth, may: bool) -> Self {
        for (other, slot) in Truth::ALL.into_iter().zip(&mut self.0) {
            *slot |= may && other == truth;
        }
        self
    }

    fn iter(self) -> impl Iterator<Item = Truth> + Clone {
        let outcomes = Truth::ALL.into_iter().zip(self.0);
        outcomes.filter_map(|(truth, may)| may.then_some(truth))
    }

    fn of(truths: impl IntoIterator<Item = Truth>) -> Self {
        let none = Self::NONE;
        truths
            .into_iter()
            .fold(none, |all, truth| all.with(truth, true))
    }

    fn join(self, other: Self, join: impl Fn(Truth, Truth) -> Truth) -> Self {
        let join = &join;
        Self::of(
            self.iter()
                .flat_map(|a| other.iter().map(move |b| join(a, b))),
        )
    }
}

impl Node {
    fn outcomes(&self, zones: &impl ZoneMap) -> Outcomes {
        let zone = |slot: &Slot| zones.zone(slot.id, slot.channel);
        match self {
            Self::Constant(truth) => Outcomes::of([*truth]),
            Self::IsTrue(_) | Self::Ranks(..) => Outcomes::ANY,
            Self::IsNull(slot) => match zone(slot) {
                Some(zone) => Outcomes::of([Truth::False]).with(Truth::True, zone.has_missing),
                None => Outcomes::ANY,
            },
            Self::Compare(left, comparison, right) => {
                let zone = |term: &Term| match term {
                    Term::Slot(slot) => zone(slot),
                    Term::Number(number) => Some(Zone {
                        min: *number,
                        max: *number,
                        has_missing: number.is_nan(),
                    }),
                    Term::Bool(_) => None,
                };
                match zone(left).zip(zone(right)) {
                    Some((left, right)) => {
                        let truths =
                            orders(left, right).map(|order| comparison.accepts(order).into());
                        Outcomes::of(truths)
                            .with(Truth::Unknown, left.has_missing || right.has_missing)
                    }
                    None => Outcomes::ANY,
                }
            }
            Self::In(slot, numbers, has_null) => match zone(slot) {
                Some(zone) => {
                    let may = numbers.iter().any(|number| may_contain(zone, *number));
                    let unknown = zone.has_missing || *has_null;
                    Outcomes::of([Truth::False])
                        .with(Truth::True, may)
                        .with(Truth::Unknown, unknown)
                }
                None => Outcomes::ANY,
            },
            Self::Categories(slot, truths) => match zone(slot) {
                Some(zone) => {
                    let truths = truths.iter().zip(0_u64..);
                    let within = truths.filter(|(_, code)| may_contain(zone, Number::UInt(*code)));
                    // A code without a category counts as missing.
                    Outcomes::of(within.map(|(truth, _)| *truth)).with(Truth::Unknown, true)
                }
                None => Outcomes::ANY,
            },
            Self::Not(inner) => Outcomes::of(inner.outcomes(zones).iter().map(|truth| !truth)),
            Self::And(parts) => parts.iter().fold(Outcomes::of([Truth::True]), |all, part| {
                all.join(part.outcomes(zones), |a, b| a & b)
            }),
            Self::Or(parts) => parts
                .iter()
                .fold(Outcomes::of([Truth::False]), |any, part| {
                    any.join(part.outcomes(zones), |a, b| a | b)
                }),
        }
    }
}

/// Returns whether the zone may contain this number. A NaN bound excludes nothing.
fn may_contain(zone: Zone, number: Number) -> bool {
    let below = zone.min.compare(number) == Some(Ordering::Greater);
    let above = zone.max.compare(number) == Some(Ordering::Less);
    !below && !above
}

/// Returns the possible orders of a value of one zone and a value of the other.
fn orders(left: Zone, right: Zone) -> impl Iterator<Item = Ordering> {
    let bounds = (left.min.compare(right.max), left.max.compare(right.min));
    let may = move |order: &Ordering| match bounds {
        (Some(lowest), Some(highest)) => match order {
            Ordering::Less => lowest.is_lt(),
            Ordering::Equal => lowest.is_le() && highest.is_ge(),
            Ordering::Greater => highest.is_gt(),
        },
        _ => true,
    };
    let orders = [Ordering::Less, Ordering::Equal, Ordering::Greater];
    orders.into_iter().filter(may)
}
