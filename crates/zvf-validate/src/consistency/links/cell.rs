//! Checks of the links of one part, cell by cell.

use core::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};
use zvf_format::{links::LinkRow, path::Delta};
use zvf_model::{
    array::LinkStore,
    grid::ChunkCoord,
    random::{STEP, mix},
};

use super::{ChunkLookup, ChunkVertices, Groups, copies::Copies, values::Values};
use crate::{
    batch::CellPayload,
    chunk_pass::ChunkCheck,
    consistency::{LinkSum, chunks::optional},
    context::Context,
    links::{LinkPart, LinkRecord, each_record},
    rule::Rule,
    rules::consistency as rules,
    share::ChunkOutcome,
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
    /// The attributes that have a cell for each cell of links.
    pub(super) has_cells: Vec<bool>,
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
    /// Position in the list of resolved chunks, in a share.
    place: usize,
}

impl End {
    fn new(coords: &[i64], limit: ChunkVertices, place: usize) -> Self {
        let mut hasher = DefaultHasher::new();
        coords.hash(&mut hasher);
        Self {
            limit,
            hash: hasher.finish(),
            place,
        }
    }
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

    fn message(self) -> Option<String> {
        let first = self.first?;
        Some(match self.count {
            1 => first,
            count => format!("{first}; {count} such links in the cell"),
        })
    }
}

/// The outcome of the checks of a cell.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CheckedLinks {
    links: CellLinks,
    /// The chunks at the ends of links. Only a share lists them.
    reached: Vec<EndChunk>,
    /// Number of bytes of the values of each attribute, or `None` if they cannot be read.
    values: Vec<Option<u64>>,
}

/// The links of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CellLinks {
    /// There is no cell.
    #[default]
    Absent,
    /// They cannot be read.
    Lost,
    /// Their number, and a checksum.
    Read { rows: u64, sum: u128 },
}

/// A chunk at the end of links of a cell.
#[derive(Debug, PartialEq, Eq)]
struct EndChunk {
    coords: Vec<i64>,
    /// The chunk belongs to the level at the other ends.
    is_target: bool,
    /// The highest row that a link names.
    row: Option<u64>,
}

impl EndChunk {
    fn none(coords: &[i64], is_target: bool) -> Self {
        Self {
            coords: coords.to_vec(),
            is_target,
            row: None,
        }
    }
}

/// Notes the rows at the ends of a link.
fn reach(reached: &mut [EndChunk], ends: &[(End, u64)]) {
    for (end, row) in ends {
        if let Some(reached) = reached.get_mut(end.place) {
            reached.row = reached.row.max(Some(*row));
        }
    }
}

impl ChunkOutcome for CheckedLinks {
    fn to_json(&self) -> Value {
        let links = match self.links {
            CellLinks::Absent => json!(null),
            CellLinks::Lost => json!([]),
            CellLinks::Read { rows, sum } => json!([rows, sum.to_string()]),
        };
        let reached = self.reached.iter();
        let reached =
            reached.map(|reached| json!([reached.coords, reached.is_target, reached.row]));
        json!([links, reached.collect::<Value>(), self.values])
    }

    fn from_json(json: &Value) -> Option<Self> {
        let [links, reached, values] = json.as_array()?.as_slice() else {
            return None;
        };
        let reached = reached.as_array()?.iter().map(|reached| {
            let [coords, is_target, row] = reached.as_array()?.as_slice() else {
                return None;
            };
            let coords = coords.as_array()?.iter().map(Value::as_i64);
            Some(EndChunk {
                coords: coords.collect::<Option<_>>()?,
                is_target: is_target.as_bool()?,
                row: Some(row.as_u64()?),
            })
        });
        let values = values.as_array()?.iter();
        let values = values.map(|values| optional(values, Value::as_u64));
        Some(Self {
            links: match links.as_array().map(Vec::as_slice) {
                None if links.is_null() => CellLinks::Absent,
                Some([]) => CellLinks::Lost,
                Some([rows, sum]) => CellLinks::Read {
                    rows: rows.as_u64()?,
                    sum: sum.as_str()?.parse().ok()?,
                },
                _ => return None,
            },
            reached: reached.collect::<Option<_>>()?,
            values: values.collect::<Option<_>>()?,
        })
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
            has_cells: Vec::new(),
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

    fn find(
        &self,
        context: &Context<'_>,
        rule: &'static Rule,
        at: &ChunkCoord,
        message: impl ToString,
    ) {
        let key = &self.part.key;
        // The one cell of a table has no chunk.
        match at.coords() {
            [] => context.report(rule, key, message),
            _ => context.report_in_chunk(rule, key, at, message),
        }
    }

    /// Checks a cell of links and the cells of its attributes.
    pub(super) fn cell(&mut self, at: &ChunkCoord, links: &CellPayload, values: &[&CellPayload]) {
        let checked = self.checked(self.context, at, links, values.iter().copied());
        self.add(at, checked);
    }

    /// Checks an array with the values of all links that were checked.
    pub(super) fn flat(&mut self, attribute: usize, values: &CellPayload) {
        let (rows, at) = (self.held.rows, ChunkCoord::new([]));
        let Some(attribute) = self.values.get_mut(attribute) else {
            return;
        };
        let bytes = match values {
            CellPayload::Unreadable => None,
            CellPayload::Absent => Some(0),
            CellPayload::Bytes(bytes) => {
                attribute.codes(self.context, &at, bytes);
                Some(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
        };
        // Without all links, their number is unknown.
        if !self.held.is_cut {
            attribute.cell(self.context, &at, rows, bytes);
        }
    }

    fn checked<'v>(
        &self,
        context: &Context<'_>,
        at: &ChunkCoord,
        links: &CellPayload,
        values: impl Iterator<Item = &'v CellPayload>,
    ) -> CheckedLinks {
        // Without link fragments, no row of a padded array is in use.
        let used = self.groups.filter(|_| self.part.is_padded());
        let used = used.and_then(|groups| groups.used(at));
        let mut checked = match links {
            CellPayload::Absent => CheckedLinks::default(),
            CellPayload::Unreadable => CheckedLinks {
                links: CellLinks::Lost,
                ..CheckedLinks::default()
            },
            CellPayload::Bytes(bytes) => self.records(context, at, bytes, used),
        };
        let bytes = self.values.iter().zip(values);
        let bytes = bytes.map(|(attribute, values)| match values {
            CellPayload::Unreadable => None,
            CellPayload::Absent => Some(0),
            CellPayload::Bytes(bytes) => {
                attribute.codes(context, at, bytes);
                Some(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
        });
        checked.values = bytes.collect();
        checked
    }

    /// Checks the records of a cell.
    fn records(
        &self,
        context: &Context<'_>,
        at: &ChunkCoord,
        bytes: &[u8],
        used: Option<u64>,
    ) -> CheckedLinks {
        let part = self.part;
        let is_intra = part.delta() == Delta::INTRA;
        let slots = part.slots(at).unwrap_or_default();
        let order = Order::of(part, &slots);
        let is_summed = !is_intra || is_copied(part);
        let (mut no_row, mut no_chunk) = (Violations::default(), Violations::default());
        let (mut unsorted, mut turned) = (Violations::default(), Violations::default());
        let mut no_order = Violations::default();
        let mut sum = 0_u128;
        let is_share = context.is_share();
        let reached: RefCell<Vec<EndChunk>> = RefCell::default();
        let resolve = |coords: &[i64], is_target: bool| {
            let is_target = is_target && !is_intra;
            let places = if is_target { self.target } else { self.own };
            // A share does not know other chunks.
            let limit = if is_share {
                ChunkVertices::Unknown
            } else {
                places.limit(coords)
            };
            let mut reached = reached.borrow_mut();
            let place = reached.len();
            if is_share {
                reached.push(EndChunk::none(coords, is_target));
            }
            End::new(coords, limit, place)
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
                        if falls(stored, ties) {
                            unsorted.add(|| {
                                format!("the ends of link {} descend within a chunk", record.at)
                            });
                        }
                    }
                    Order::Led(ref same) => {
                        if !leads(stored, same) {
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
            if is_share {
                reach(&mut reached.borrow_mut(), record.ends);
            }
        };
        let rows = each_record(part, at, bytes, used, resolve, each);
        let find = |violations: Violations, rule| {
            if let Some(message) = violations.message() {
                self.find(context, rule, at, message);
            }
        };
        find(no_row, &rules::LINK_ROW);
        find(no_chunk, &rules::LINK_CHUNK);
        find(no_order, &rules::ORDER_LOST);
        find(turned, &rules::LINK_DIRECTED);
        find(unsorted, &rules::LINK_NOT_SORTED);
        let mut checked = CheckedLinks {
            links: CellLinks::Lost,
            reached: reached.into_inner(),
            values: Vec::new(),
        };
        checked.reached.retain(|reached| reached.row.is_some());
        match rows {
            Ok(rows) => {
                if part.is_permuted() && part.segment.is_none() {
                    self.key_ascends(context, at, &slots, rows);
                }
                checked.links = CellLinks::Read { rows, sum };
            }
            Err(fault) => self.find(context, fault.rule, at, fault.message),
        }
        checked
    }

    /// Checks that the chunks in the key of a cell of 0.8 ascend, as offsets of 0.9 do.
    fn key_ascends(&self, context: &Context<'_>, at: &ChunkCoord, slots: &[ChunkCoord], rows: u64) {
        let family = &self.part.family;
        let is_sorted = family.store == LinkStore::Canonical && !family.directed;
        if is_sorted && rows > 0 && !slots.is_sorted() {
            let message = "the chunks in its key descend";
            self.find(context, &rules::LINK_CELL_KEY, at, message);
        }
    }
}

impl ChunkCheck for PartChecks<'_, '_> {
    type Outcome = CheckedLinks;

    fn check(&self, context: &Context<'_>, at: &ChunkCoord, cells: &[CellPayload]) -> CheckedLinks {
        let mut cells = cells.iter();
        let links = cells.next().unwrap_or(&CellPayload::Absent);
        let values = self.has_cells.iter().map(|has_cells| {
            if *has_cells {
                cells.next().unwrap_or(&CellPayload::Absent)
            } else {
                &CellPayload::Absent
            }
        });
        self.checked(context, at, links, values)
    }

    fn add(&mut self, at: &ChunkCoord, checked: CheckedLinks) {
        let rows = match checked.links {
            CellLinks::Lost => {
                self.held.is_cut = true;
                return;
            }
            CellLinks::Absent => 0,
            CellLinks::Read { rows, sum } => {
                let is_intra = self.part.delta() == Delta::INTRA;
                self.sum.records = self.sum.records.saturating_add(rows);
                if !is_intra {
                    self.sum.digest = self.sum.digest.wrapping_add(sum);
                }
                if is_copied(self.part)
                    && let Some(copies) = &mut self.copies
                {
                    let slots = self.part.slots(at).unwrap_or_default();
                    copies.add(&self.part.family_key, &slots, rows, sum);
                }
                rows
            }
        };
        self.held.rows = self.held.rows.saturating_add(rows);
        if self.part.is_leading(at) {
            self.held.links = self.held.links.saturating_add(rows);
        }
        if let Some(groups) = self.groups {
            groups.check(self.context, at, rows);
        }
        for (attribute, bytes) in self.values.iter_mut().zip(checked.values) {
            attribute.cell(self.context, at, rows, bytes);
        }
    }

    fn holds(&self, _: &ChunkCoord, checked: &CheckedLinks) -> bool {
        checked.reached.iter().all(|reached| {
            let places = if reached.is_target {
                self.target
            } else {
                self.own
            };
            match places.limit(&reached.coords) {
                ChunkVertices::Rows(rows) => reached.row < Some(rows),
                ChunkVertices::Unknown => true,
                ChunkVertices::OrderLost | ChunkVertices::Absent => false,
            }
        })
    }
}

/// Returns whether the links of a part are stored in each of their chunks.
fn is_copied(part: &LinkPart) -> bool {
    let is_intra = part.delta() == Delta::INTRA;
    is_intra && !part.is_inside && part.family.store == LinkStore::Duplicate
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
                let same = slots
                    .iter()
                    .enumerate()
                    .skip(1)
                    .filter(|(_, chunk)| slots.first() == Some(chunk));
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

/// Returns whether the rows of ends in one chunk descend.
fn falls(stored: LinkRow<'_>, ties: &[usize]) -> bool {
    ties.iter().any(|tie| {
        let next = tie.saturating_add(1);
        stored.stored_at(*tie) > stored.stored_at(next)
    })
}

/// Returns whether a copy starts with its smallest end in the chunk of the cell, followed by the
/// others in their original order.
fn leads(stored: LinkRow<'_>, same: &[usize]) -> bool {
    let slots = stored.order();
    let rest = slots.slots().get(1..).unwrap_or_default();
    let lead = stored.stored_at(0);
    rest.is_sorted() && same.iter().all(|slot| stored.stored_at(*slot) >= lead)
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
