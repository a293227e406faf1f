//! Nodes of links, written after all cells.

use core::slice;
use std::collections::BTreeMap;

use zvf_build::{
    BuildError,
    migrate::{LinkArrayKey, LinkAttributeType, LinkTotals, MigrationNote},
};
use zvf_catalog::LinkCells;
use zvf_dataset::{
    Failure,
    nodes::{self, place},
};
use zvf_format::path::Delta;
use zvf_model::{
    array::{CellAttribute, LinkFamily},
    key::Key,
    layout::{ArrayRole, GroupRole},
    metadata::Attributes,
    zarr::Node,
};

use super::Links;
use crate::migrate::{Migration, level::Level, parts::BATCH_BYTES, units::LinkValues};

impl Migration<'_> {
    /// Writes the nodes of all arrays and families, and records repairs and losses.
    pub(super) async fn finish_links(
        &self,
        level: &mut Level,
        links: Links<'_>,
    ) -> Result<(), Failure> {
        self.report_links(&links).await?;
        self.state().links += links.written.logical;
        let (keys, form) = (level.keys, &links.form);
        let families = links.cells.families();
        let mut old = Attributes::new();
        for (node, _) in &families {
            old.extend(self.attributes(node).await?);
        }
        let counts = |array_key: &LinkArrayKey| match array_key {
            LinkArrayKey::CrossChunk => {
                LinkTotals::new(links.written.crossing, links.physical_crossing())
            }
            _ => LinkTotals::new(links.written.logical, links.written.physical),
        };
        let mut outputs = Vec::new();
        let mut cell_indexes = links.written.cell_indexes.clone();
        let has_inside = families
            .iter()
            .any(|(node, width)| *width == form.width && !is_crossing(node));
        if has_inside && links.cells.has_inside() {
            let zeros = vec![0; links.arity];
            if let Some(array_key) = form.aligned(&zeros) {
                cell_indexes.entry(array_key).or_default();
            }
        }
        if form.is_current() {
            self.parent(&place(keys.group(GroupRole::Links))?).await?;
            let any = LinkArrayKey::Offsets(String::new());
            let family = form.family(&any, &old, links.arity, counts(&any));
            outputs.push(family.map_err(BuildError::from)?);
        } else if families.len() > 1 || cell_indexes.is_empty() {
            // A family exists even if it is empty.
            let crossing = families
                .iter()
                .any(|(node, width)| *width == form.width && is_crossing(node));
            if crossing || cell_indexes.is_empty() {
                cell_indexes.entry(LinkArrayKey::CrossChunk).or_default();
            }
        }
        for (array_key, chunks) in &cell_indexes {
            let folder = match array_key {
                LinkArrayKey::CrossChunk => GroupRole::CrossChunkLinks,
                _ => GroupRole::Links,
            };
            level.facts.present.push(folder.name());
            self.parent(&place(keys.group(folder))?).await?;
            if !form.is_current() {
                let family = form.family(array_key, &old, links.arity, counts(array_key));
                outputs.push(family.map_err(BuildError::from)?);
                continue;
            }
            let none = Attributes::new();
            let mut target = links.target(place(form.key(array_key))?, &none);
            target.keys.clone_from(chunks);
            target.end(self, form.array(array_key, links.arity)).await?;
        }
        self.writer.write(outputs).await?;
        self.link_attributes(level, &links).await
    }

    /// Writes fill values for the cells of links without values of an attribute that other links
    /// have. Returns the chunks with values by array, and the number of values.
    async fn fill_link_values(
        &self,
        links: &Links<'_>,
        number: usize,
        (name, metadata): (&str, &CellAttribute),
        columns: usize,
    ) -> Result<(BTreeMap<LinkArrayKey, Vec<Vec<i64>>>, u64), Failure> {
        let mut valued = links.written.valued[number].clone();
        if valued.is_empty() {
            return Ok((valued, 0));
        }
        let none = Attributes::new();
        let row = columns * metadata.dtype.size();
        let mut filled_rows = 0;
        for (array_key, cells) in &links.written.unvalued[number] {
            let key = place(links.form.attribute_key(name, array_key))?;
            let mut target = links.target(key, &none);
            target.begin(self)?;
            let (mut outputs, mut bytes) = (Vec::new(), 0);
            for (chunk, rows) in cells {
                let rows_in_memory = usize::try_from(*rows).unwrap_or(usize::MAX);
                let values = LinkValues::filled(metadata, row, rows_in_memory);
                filled_rows += rows;
                bytes += values.len() as u64;
                target.cell(self, chunk, values, &mut outputs)?;
                if bytes >= BATCH_BYTES {
                    self.writer.write(core::mem::take(&mut outputs)).await?;
                    bytes = 0;
                }
            }
            self.writer.write(outputs).await?;
            valued
                .entry(array_key.clone())
                .or_default()
                .extend(target.keys);
        }
        Ok((valued, filled_rows))
    }

    async fn link_attributes(&self, level: &mut Level, links: &Links<'_>) -> Result<(), Failure> {
        let (form, keys) = (&links.form, level.keys);
        let mut present = Vec::new();
        for (number, (name, metadata)) in links.cells.attributes().enumerate() {
            let Some(metadata) = metadata else { continue };
            let mut old = Attributes::new();
            for node in links.cells.attribute_nodes(number) {
                old.extend(self.attributes(&node).await?);
            }
            let columns = links.written.rows[number] / metadata.dtype.size().max(1);
            let columns = match columns {
                0 => metadata
                    .declared_columns()
                    .and_then(|n| usize::try_from(n).ok())
                    .unwrap_or(1),
                columns => columns,
            };
            // The attributes of the previous container do not apply.
            CellAttribute::remove_extents(&mut old);
            let about = (name, metadata);
            let filled = self.fill_link_values(links, number, about, columns);
            let (valued, filled_rows) = filled.await?;
            for (array_key, chunks) in &valued {
                let folders = match array_key {
                    LinkArrayKey::CrossChunk => [
                        GroupRole::CrossChunkLinkAttributes,
                        GroupRole::CrossChunkLinkAttribute(name),
                    ],
                    _ => [GroupRole::LinkAttributes, GroupRole::LinkAttribute(name)],
                };
                for folder in folders {
                    self.parent(&place(keys.group(folder))?).await?;
                }
                present.extend(folders.first().map(|folder| folder.name()));
                let key = place(form.attribute_key(name, array_key))?;
                let mut target = links.target(key, &old);
                target.keys.clone_from(chunks);
                let logical = match array_key {
                    LinkArrayKey::CrossChunk => links.written.crossing,
                    _ => links.written.logical,
                };
                let about = LinkAttributeType {
                    name,
                    dtype: metadata.dtype,
                    columns,
                };
                let attributes = form.attribute(array_key, about, links.arity, logical);
                target.end(self, attributes).await?;
            }
            if form.is_current() && !valued.is_empty() {
                let family = form.attribute_family(name, links.written.logical);
                self.writer
                    .write(vec![family.map_err(BuildError::from)?])
                    .await?;
            }
            let what = "values of links that had none, now filled in";
            let part = ArrayRole::LinkAttributeFamily(name, form.delta);
            self.lost(MigrationNote::new(
                place(keys.node(&part))?.to_string(),
                what,
                links.written.filled_rows[number] + filled_rows,
            ));
        }
        level.facts.present.extend(present);
        Ok(())
    }

    async fn report_links(&self, links: &Links<'_>) -> Result<(), Failure> {
        for (node, width) in links.cells.families() {
            if width != links.form.width {
                continue;
            }
            let attributes = self.attributes(&node).await?;
            let declared = LinkFamily::declared_links(&attributes);
            let found = if is_crossing(&node) {
                links.written.crossing
            } else {
                links.written.logical
            };
            let is_wrong = declared.is_some_and(|declared| declared != found);
            let what = "a count of links that differed from the records";
            self.repaired(MigrationNote::new(
                node.to_string(),
                what,
                u64::from(is_wrong),
            ));
        }
        let node = links
            .cells
            .families()
            .pop()
            .map(|(node, _)| node.to_string())
            .unwrap_or_default();
        let what = "links between pieces of paths with wrong rows";
        self.repaired(MigrationNote::new(&node, what, links.repaired));
        let what = "rows of links between chunks that match no path";
        self.lost(MigrationNote::new(&node, what, links.unexplained));
        let what = "links to vertices that cannot be read";
        self.lost(MigrationNote::new(&node, what, links.dangling));
        let what = "vertices whose parent cannot be read";
        let why = "the vertex before becomes the parent of one that does not start a fragment";
        self.lost(MigrationNote::new(&node, what, links.orphans).because(why));
        let what = "copies of links that were missing";
        self.repaired(MigrationNote::new(&node, what, links.written.copies));
        Ok(())
    }

    /// Records names in link folders that are not deltas, and attributes of deltas without links.
    pub(super) async fn orphans(
        &self,
        level: &Level,
        all: &[(Delta, LinkCells)],
    ) -> Result<(), Failure> {
        let fetch = self.source.cells();
        for folder in [GroupRole::Links, GroupRole::CrossChunkLinks] {
            let key = place(level.keys.group(folder))?;
            // The metadata of a group have no meaning here, so they may be damaged.
            let node = zvf_model::fetch::Fetch::nodes(fetch, slice::from_ref(&key)).await;
            if let Ok([Some(Node::Array(_))]) = node.as_deref() {
                // Pairs of numbered vertices: the children are the chunks of the array.
                continue;
            }
            let names = zvf_model::fetch::Fetch::children(fetch, &key).await;
            for name in names.map_err(zvf_catalog::CatalogError::from)? {
                if Delta::parse(&name).is_err() {
                    let path = format!("{key}/{name}");
                    self.lost(MigrationNote::new(path, "a name that is not a delta", 1));
                }
            }
        }
        for folder in [
            GroupRole::LinkAttributes,
            GroupRole::CrossChunkLinkAttributes,
        ] {
            let key = place(level.keys.group(folder))?;
            let names = zvf_model::fetch::Fetch::children(fetch, &key).await;
            for name in names.map_err(zvf_catalog::CatalogError::from)? {
                let of_name = nodes::child(&key, &name)?;
                let deltas = zvf_model::fetch::Fetch::children(fetch, &of_name).await;
                for delta in deltas.map_err(zvf_catalog::CatalogError::from)? {
                    let known = Delta::parse(&delta).ok();
                    if !all.iter().any(|(delta, _)| known == Some(*delta)) {
                        let what = "an attribute of links that do not exist";
                        self.lost(MigrationNote::new(format!("{of_name}/{delta}"), what, 1));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a family has the links between chunks, up to 0.8.1.
fn is_crossing(family: &Key) -> bool {
    family.segments().nth(1) == Some(GroupRole::CrossChunkLinks.name())
}

impl Links<'_> {
    /// Returns the number of rows stored between chunks, before 0.9.
    fn physical_crossing(&self) -> u64 {
        let inside = self.written.logical - self.written.crossing;
        self.written.physical - inside
    }
}
