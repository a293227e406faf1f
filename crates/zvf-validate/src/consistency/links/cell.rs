//! Checks of the links of one part, cell by cell.

use std::hash::{DefaultHasher, Hash, Hasher};

use zvf_format::path::Delta;
use zvf_model::{
    array::LinkStore,
    grid::ChunkCoord,
    random::{STEP, mix},
};

use super::{ChunkLookup, ChunkVertices, Groups, copies::Copies, values::Values};
use crate::{
    batch::CellPayload,
    consistency::LinkSum,
    context::Context,
    links::{LinkPart, LinkRecord, each_record},
    rule::Rule,
    rules::consistency as rules,
};

/// The checks of one part, and their counts.
pub(super) struct PartChecks<'a, 'c> {
    context: &'a Context<'c>,
    part: &'a LinkPart,
    own: ChunkLookup<'a>,
    target: ChunkLookup<'a>,
    sum: &'a mut LinkSum,
    pub(super) copies: Option<&'a mut Copies>,
    pub(super) values: Vec<Values<'a>>,
    /// Link fragments, for links inside chunks.
    pub(super) groups: Option<&'a Groups>,
    held: LinkCounts,
}

/// Counts of the links of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkCounts {
    /// Number of rows.
    pub(super) rows: u64,
    /// Number of links, without copies.
    pub(super) links: u64,
    /// Some cells could not be read.
    pub(super) is_cut: bool,
}

/// A chunk that contains an end of a link.
#[derive(Clone, Copy)]
struct End {
    limit: ChunkVertices,
    /// Hash of the chunk coordinates.
    hash: u64,
}

/// Rows of a cell that violate one rule: their number, and the first message.
#[derive(Default)]
struct Violations {
    count: u64,
    first: Option<String>,
}

impl Violations {
    fn add(&mut self, message: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert_with(message);
    }

    fn find(self, rule: &'static Rule, checking: &PartChecks<'_, '_>, at: &ChunkCoord) {
        let Some(first) = self.first else {
            return;
        };
        let message = match self.count {
            1 => first,
            count => format!("{first}; {count} such links in the cell"),
        };
        checking.find(rule, at, message);
    }
}

impl<'a, 'c> PartChecks<'a, 'c> {
    pub(super) fn new(
        context: &'a Context<'c>,
        part: &'a LinkPart,
        own: ChunkLookup<'a>,
        target: ChunkLookup<'a>,
        sum: &'a mut LinkSum,
    ) -> Self {
        Self {
            context,
            part,
            own,
            target,
            sum,
            copies: None,
            values: Vec::new(),
            groups: None,
            held: LinkCounts::default(),
        }
    }

    /// Returns the counts. `columns` holds the width of each attribute in other parts.
    pub(super) fn finish(self, columns: &mut [Option<u64>]) -> LinkCounts {
        for (values, columns) in self.values.into_iter().zip(columns) {
            values.finish(self.context, columns);
        }
        self.held
    }

    fn find(&self, rule: &'static Rule, at: &ChunkCoord, message: impl ToString) {
        let key = &self.part.key;
        // The one cell of a table has no chunk.
        match at.coords() {
            [] => self.context.report(rule, key, message),
            _ => self.context.report_in_chunk(rule, key, at, message),
        }
    }

    /// Checks a cell of links and the cells of its attributes.
    pub(super) fn cell(&mut self, at: &ChunkCoord, links: &CellPayload, values: &[&CellPayload]) {
        // Without link fragments, no row of a padded array is in use.
        let used = self.groups.filter(|_| self.part.is_padded());
        let used = used.and_then(|groups| groups.used(at));
        let rows = match links {
            CellPayload::Absent => Some(0),
            CellPayload::Unreadable => None,
            CellPayload::Bytes(bytes) => self.records(at, bytes, used),
        };
        let Some(rows) = rows else {
            self.held.is_cut = true;
            return;
        };
        self.held.rows = self.held.rows.saturating_add(rows);
        if self.part.is_leading(at) {
            self.held.links = self.held.links.saturating_add(rows);
        }
        if let Some(groups) = self.groups {
            groups.check(self.context, at, rows);
        }
        for (attribute, cell) in self.values.iter_mut().zip(values) {
            attribute.cell(self.context, at, rows, cell);
        }
    }

    /// Checks the records of a cell, and returns their number, or `None` if they cannot be decoded.
    fn records(&mut self, at: &ChunkCoord, bytes: &[u8], used: Option<u64>) -> Option<u64> {
        let (part, own, target) = (self.part, self.own, self.target);
        let is_intra = part.delta() == Delta::INTRA;
        let slots = part.slots(at).unwrap_or_default();
        let order = Order::of(part, &slots);
        let is_copied = is_intra && !part.is_inside && part.family.store == LinkStore::Duplicate;
        let is_summed = !is_intra || is_copied;
        let (mut no_row, mut no_chunk) = (Violations::default(), Violations::default());
        let (mut unsorted, mut turned) = (Violations::default(), Violations::default());
        let mut no_order = Violations::default();
        let mut sum = 0_u128;
        let resolve = |coords: &[i64], is_target: bool| {
            let places = if is_target && !is_intra { target } else { own };
            let mut hasher = DefaultHasher::new();
            coords.hash(&mut hasher);
            End {
                limit: places.limit(coords),
                hash: hasher.finish(),
            }
        };
        let delta = part.delta().levels();
        let each = |record: LinkRecord<'_, End>| {
            for (end, row) in record.ends {
                match end.limit {
                    ChunkVertices::Rows(rows) if *row >= rows => {
                        no_row.add(|| format!("link {} names row {row} of {rows}", record.at));
                    }
                    ChunkVertices::OrderLost => {
                        no_order.add(|| format!("link {} names a row of lost order", record.at));
                    }
                    ChunkVertices::Absent => no_chunk
                        .add(|| format!("link {} ends in a chunk without vertices", record.at)),
                    _ => {}
                }
            }
            if let Some(stored) = record.stored {
                let code = stored.code();
                match order {
                    Order::Any => {}
                    Order::Given => {
                        if code != 0 {
                            turned.add(|| format!("link {} has order {code}", record.at));
                        }
                    }
                    Order::Sorted(ref ties) => {
                        let falls = ties.iter().any(|tie| {
                            let next = tie.saturating_add(1);
                            stored.stored_at(*tie) > stored.stored_at(next)
                        });
                        if falls {
                            unsorted.add(|| {
                                format!("the ends of link {} descend within a chunk", record.at)
                            });
                        }
                    }
                    Order::Led(ref same) => {
                        let slots = stored.order();
                        let rest = slots.slots().get(1..).unwrap_or_default();
                        let lead = stored.stored_at(0);
                        let leads = same.iter().all(|slot| stored.stored_at(*slot) >= lead);
                        if !leads || !rest.is_sorted() {
                            unsorted.add(|| {
                                format!("copy {} does not start with its first end", record.at)
                            });
                        }
                    }
                }
            }
            if is_summed {
                sum = sum.wrapping_add(digest(record.ends, delta < 0));
            }
        };
        let rows = each_record(part, at, bytes, used, resolve, each);
        no_row.find(&rules::LINK_ROW, self, at);
        no_chunk.find(&rules::LINK_CHUNK, self, at);
        no_order.find(&rules::ORDER_LOST, self, at);
        turned.find(&rules::LINK_DIRECTED, self, at);
        unsorted.find(&rules::LINK_NOT_SORTED, self, at);
        let rows = match rows {
            Ok(rows) => rows,
            Err(fault) => {
                self.find(fault.rule, at, fault.message);
                return None;
            }
        };
        if part.is_permuted() && part.segment.is_none() {
            self.key_ascends(at, &slots, rows);
        }
        self.sum.records = self.sum.records.saturating_add(rows);
        if !is_intra {
            self.sum.digest = self.sum.digest.wrapping_add(sum);
        }
        if is_copied && let Some(copies) = &mut self.copies {
            copies.add(&part.family_key, &slots, rows, sum);
        }
        Some(rows)
    }

    /// Checks that the chunks in the key of a cell of 0.8 ascend, as offsets of 0.9 do.
    fn key_ascends(&self, at: &ChunkCoord, slots: &[ChunkCoord], rows: u64) {
        let family = &self.part.family;
        let is_sorted = family.store == LinkStore::Canonical && !family.directed;
        if is_sorted && rows > 0 && !slots.is_sorted() {
            let message = "the chunks in its key descend";
            self.find(&rules::LINK_CELL_KEY, at, message);
        }
    }
}

/// The required order of the ends of stored rows.
enum Order {
    /// Any order.
    Any,
    /// The original order.
    Given,
    /// Ascending by chunk and row. Each of these slots shares its chunk with the next.
    Sorted(Vec<usize>),
    /// First the smallest end in the chunk of the cell, then the original order. These slots share
    /// the chunk of the first.
    Led(Vec<usize>),
}

impl Order {
    fn of(part: &LinkPart, slots: &[ChunkCoord]) -> Self {
        if part.is_inside || !part.is_permuted() {
            return Self::Any;
        }
        let is_copied = part.family.store == LinkStore::Duplicate;
        match (is_copied, part.family.directed) {
            (true, _) => {
                let same = slots.iter().enumerate().skip(1);
                let same = same.filter(|(_, chunk)| slots.first() == Some(chunk));
                Self::Led(same.map(|(slot, _)| slot).collect())
            }
            (false, true) => Self::Given,
            (false, false) => {
                let pairs = slots.iter().zip(slots.iter().skip(1)).enumerate();
                let ties = pairs.filter(|(_, (one, next))| one == next);
                Self::Sorted(ties.map(|(slot, _)| slot).collect())
            }
        }
    }
}

/// Returns a checksum of a link that is independent of its location. Edges to a finer level are
/// reversed, so that both directions have equal sums.
fn digest(ends: &[(End, u64)], is_turned: bool) -> u128 {
    let mut low = STEP;
    let mut high = 0xc2b2_ae3d_27d4_eb4f_u64;
    let mut take = |(end, row): &(End, u64)| {
        low = mix(low ^ end.hash).wrapping_add(mix(*row));
        high = mix(high.wrapping_add(end.hash) ^ row.rotate_left(32));
    };
    if is_turned {
        ends.iter().rev().for_each(&mut take);
    } else {
        ends.iter().for_each(&mut take);
    }
    u128::from(mix(low)) | (u128::from(high) << 64)
}
