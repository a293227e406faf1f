//! Attributes of links.

use std::collections::BTreeSet;

use serde_json::json;
use zvf_model::{
    array::CellAttribute,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, ChunkForm, LinkOffsets},
};

use crate::{
    chunked_part::ChunkedPart,
    consistency::chunks::wrong_code,
    context::Context,
    links::{LinkPart, LinkStorage},
    rule::Rule,
    rules::consistency as rules,
    store::LevelScope,
};

/// Name of the array with the values of all links between chunks.
const FLAT: &str = "data";

/// An attribute of the links of a delta.
#[derive(Debug)]
pub(super) struct Attribute {
    /// Values for each part of the links.
    parts: Vec<PartValues>,
}

/// Values for one part.
#[derive(Debug)]
struct PartValues {
    key: Key,
    state: State,
    is_old: bool,
}

#[derive(Debug)]
enum State {
    Open(LinkStorage, Box<CellAttribute>),
    /// No such node.
    Absent,
    /// Cannot be opened, which is reported.
    Broken,
}

impl Attribute {
    /// Returns the cells for a part.
    pub(super) fn of(&self, part: usize) -> Option<&LinkStorage> {
        match &self.parts.get(part)?.state {
            State::Open(cells, _) => Some(cells),
            _ => None,
        }
    }

    /// Returns the array with the values of all cells of a part, if it has one.
    pub(super) fn flat(&self, part: usize) -> Option<&LinkStorage> {
        self.of(part)
            .filter(|cells| matches!(cells, LinkStorage::Table(_)))
    }

    /// Returns the cells for all parts.
    pub(super) fn cells(&self) -> impl Iterator<Item = &LinkStorage> {
        (0..self.parts.len()).filter_map(|part| self.of(part))
    }
}

/// The checks of the values of one part.
#[derive(Debug)]
pub(super) struct Values<'a> {
    key: &'a Key,
    metadata: Option<&'a CellAttribute>,
    is_absent: bool,
    /// Values inside chunks and between them are stored apart, as up to 0.8.1.
    is_old: bool,
    is_table: bool,
    /// Bytes per row.
    row: Option<u64>,
    /// Number of links without values.
    bare: u64,
}

/// Opens all attributes of the links of a delta.
pub(super) fn open(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    parts: &[LinkPart],
) -> Vec<Attribute> {
    let inside = scope.store.names(scope.level, "link_attributes");
    let between = scope
        .store
        .names(scope.level, "cross_chunk_link_attributes");
    let names: BTreeSet<&str> = inside.into_iter().chain(between).collect();
    let mut found = Vec::new();
    for name in names {
        let values = parts.iter().filter_map(|part| {
            let key = node(scope, name, part)?;
            let exists = scope.store.tree.exists(&key);
            let state = if exists {
                open_values(context, scope, &key, part)
            } else {
                State::Absent
            };
            Some(PartValues {
                key,
                state,
                is_old: part.segment.is_none(),
            })
        });
        let parts_of: Vec<_> = values.collect();
        let is_there = |values: &PartValues| !matches!(values.state, State::Absent);
        if parts_of.iter().any(is_there) {
            found.push(Attribute { parts: parts_of });
        }
    }
    found
}

/// Returns the node of the values for a part.
fn node(scope: LevelScope<'_>, name: &str, part: &LinkPart) -> Option<Key> {
    let delta = part.delta();
    let is_keyed = part.segment.is_none() && part.is_between();
    let part = match (is_keyed, &part.segment) {
        (true, _) => ArrayRole::CrossChunkLinkAttribute(name, delta),
        (_, Some(segment)) => ArrayRole::LinkAttribute(name, delta, LinkOffsets::Segment(segment)),
        _ => ArrayRole::LinkAttribute(name, delta, LinkOffsets::Segment("self")),
    };
    scope.store.at(scope.level, &part)
}

fn open_values(context: &Context<'_>, scope: LevelScope<'_>, key: &Key, part: &LinkPart) -> State {
    let tree = &scope.store.tree;
    let attributes = tree.node(key).map(|node| node.attributes().clone());
    let metadata = CellAttribute::parse(key, &attributes.unwrap_or_default());
    let metadata = match metadata {
        Ok(metadata) => Box::new(metadata.value),
        Err(error) => {
            let rule = &rules::LINK_NOT_CHECKED;
            context.report_at(rule, key, &error.path, &error.fault);
            return State::Broken;
        }
    };
    let has_flat = part.segment.is_none() && part.is_between() && {
        let names = tree.folders(key);
        let has_flat = names.contains(&FLAT);
        if has_flat && names.len() > 1 && !matches!(part.cells, LinkStorage::Table(_)) {
            let message = format!("values of cells beside {FLAT}, which has those of all links");
            context.report(&rules::LINK_VALUES, key, message);
            return State::Broken;
        }
        has_flat
    };
    if has_flat || matches!(part.cells, LinkStorage::Table(_)) {
        return match key.join(FLAT) {
            Ok(data) => State::Open(LinkStorage::Table(data), metadata),
            Err(_) => State::Broken,
        };
    }
    let form = match part.segment {
        Some(_) => ChunkForm::Cell,
        None => ChunkForm::Child,
    };
    let arity = part.key_arity(scope.level.arity);
    match ChunkedPart::open(context, tree, key, form, arity) {
        Some(cells) => State::Open(LinkStorage::Each(cells), metadata),
        None => State::Broken,
    }
}

/// Returns the checks of all attributes of a part.
pub(super) fn of_part(attributes: &[Attribute], part: usize) -> Vec<Values<'_>> {
    let values = attributes.iter().filter_map(|attribute| {
        let values = attribute.parts.get(part)?;
        let (metadata, is_table) = match &values.state {
            State::Open(cells, metadata) => {
                let is_table = matches!(cells, LinkStorage::Table(_));
                (Some(&**metadata), is_table)
            }
            _ => (None, false),
        };
        Some(Values {
            key: &values.key,
            metadata,
            is_absent: matches!(values.state, State::Absent),
            is_old: values.is_old,
            is_table,
            row: None,
            bare: 0,
        })
    });
    values.collect()
}

impl Values<'_> {
    /// Checks that all codes of a cell have a category.
    pub(super) fn codes(&self, context: &Context<'_>, at: &ChunkCoord, bytes: &[u8]) {
        // `cell` reports cells that end within a code.
        let is_whole =
            |metadata: &&CellAttribute| bytes.len().is_multiple_of(metadata.dtype.size());
        let metadata = self.metadata.filter(is_whole);
        if let Some(message) = metadata.and_then(|metadata| wrong_code(metadata, bytes)) {
            self.report(context, &rules::UNKNOWN_CODE, at, message);
        }
    }

    fn report(&self, context: &Context<'_>, rule: &'static Rule, at: &ChunkCoord, message: String) {
        match at.coords() {
            [] => context.report(rule, self.key, message),
            _ => context.report_in_chunk(rule, self.key, at, message),
        }
    }

    /// Checks the values of a cell with `links` links: their number of bytes, or `None` if they
    /// cannot be read.
    pub(super) fn cell(
        &mut self,
        context: &Context<'_>,
        at: &ChunkCoord,
        links: u64,
        bytes: Option<u64>,
    ) {
        let find = |message: String| self.report(context, &rules::LINK_VALUES, at, message);
        let Some(metadata) = self.metadata else {
            self.bare = self.bare.saturating_add(links);
            return;
        };
        // The array of all cells is checked once, as a cell without a chunk.
        let Some(bytes) = bytes.filter(|_| !self.is_table || at.coords().is_empty()) else {
            return;
        };
        if links == 0 || bytes == 0 {
            if links > 0 {
                find(format!("no values for {links} links"));
            } else if bytes > 0 {
                find(format!("{bytes} bytes of values, but no links"));
            }
            return;
        }
        let size = u64::try_from(metadata.dtype.size()).unwrap_or(1).max(1);
        let row = bytes.checked_div(links).unwrap_or(0);
        let is_whole = row.checked_mul(links) == Some(bytes) && row.checked_rem(size) == Some(0);
        if !is_whole || row == 0 {
            return find(format!(
                "{bytes} bytes are not whole rows for {links} links"
            ));
        }
        match self.row {
            Some(first) if first != row => {
                find(format!(
                    "rows of {row} bytes, but of {first} in other cells"
                ));
            }
            _ => self.row = Some(row),
        }
        let declared = metadata.shape.as_deref().and_then(<[u64]>::split_first);
        if let Some((rows, columns)) = declared.filter(|_| self.is_table) {
            let columns = columns.iter().product::<u64>();
            let found = row.checked_div(size).unwrap_or(0);
            if (*rows, columns) != (links, found) {
                let message = format!(
                    "{links} rows of {found} values, but shape declares {rows} of {columns}"
                );
                self.report(context, &rules::LINK_VALUES, at, message);
            }
        }
    }

    /// Reports faults that depend on all cells. `columns_of` holds the width in other parts.
    pub(super) fn finish(self, context: &Context<'_>, columns_of: &mut Option<u64>) {
        if self.is_absent && self.bare > 0 {
            let rule = if self.is_old {
                &rules::LINK_VALUES_ABSENT
            } else {
                &rules::LINK_VALUES
            };
            let message = format!("no values for {} links", self.bare);
            context.report(rule, self.key, message);
        }
        let (Some(metadata), Some(row)) = (self.metadata, self.row) else {
            return;
        };
        let size = u64::try_from(metadata.dtype.size()).unwrap_or(1);
        let columns = row.checked_div(size).unwrap_or(1);
        let others = *columns_of.get_or_insert(columns);
        if others != columns {
            let message = format!("rows of {columns} values, but of {others} elsewhere");
            context.report(&rules::LINK_VALUES, self.key, message);
        }
        // Tables declare their shape elsewhere, and cells up to 0.8.0 do not.
        let is_declared = metadata.row_shape.is_some() && !self.is_table;
        if is_declared && others == columns && metadata.declared_columns() != Some(columns) {
            let message = format!("rows have {columns} values");
            let value = Some(json!([columns]));
            let rule = &rules::LINK_COLUMNS;
            context.report_attribute(rule, self.key, &["row_shape"], message, value);
        }
    }
}
