//! Metadata of families and arrays of links, and of their attributes.

use serde_json::{Value, json};
use zvf_format::{numeric::Kind, path::Delta, path::Offsets};
use zvf_model::{
    array::{CellAttribute, LinkArray, LinkFamily, LinkStore},
    key::Key,
    metadata::{MetadataError, MetadataFault, Noted},
    zarr::Node,
};

use super::{NodeCheck, faults};
use crate::{
    rule::Depth,
    rules::{consistency, metadata as rules},
};

type Family = Result<Noted<Option<LinkFamily>>, MetadataError>;

impl NodeCheck<'_, '_> {
    /// Checks the policy of a family of arrays.
    pub(super) fn link_family(&self, delta: Delta) {
        let read = LinkFamily::parse(self.key, delta, self.node.attributes());
        self.family(delta, read);
    }

    /// Checks links of a delta in one part, up to 0.8.1.
    pub(super) fn links_of_delta(&self, delta: Delta) {
        let read = LinkFamily::parse_intra(self.key, delta, self.node.attributes());
        self.family(delta, read);
    }

    /// Checks links between chunks, up to 0.8.1.
    pub(super) fn crossing_links(&self, delta: Delta) {
        let read = LinkFamily::parse_cross_chunk(self.key, delta, self.node.attributes());
        self.family(delta, read);
    }

    fn family(&self, delta: Delta, read: Family) {
        let holds = !self.store.tree.folders(self.key).is_empty();
        match read {
            Err(error) => faults::error(self.context, self.key, &error),
            Ok(read) => {
                for note in read.notes.iter().filter(|note| !faults::is_tag(note)) {
                    match note.fault {
                        // An empty family needs no policy.
                        MetadataFault::Missing if !holds => {}
                        MetadataFault::Missing => {
                            let message = "missing, so the links cannot be read";
                            let rule = &rules::LINK_POLICY;
                            self.context.report_at(rule, self.key, &note.path, message);
                        }
                        MetadataFault::Disagrees { .. } => self.delta(delta),
                        _ => faults::note(self.context, self.key, note),
                    }
                }
                self.check_arity(read.value.and_then(|family| family.sid_ndim));
            }
        }
        let target = self.level.and_then(|level| level.id.offset(delta.levels()));
        if delta != Delta::INTRA && target.and_then(|id| self.store.level(id)).is_none() {
            let message = match target {
                Some(level) => format!("level {level} does not exist"),
                None => "the target level does not exist".to_owned(),
            };
            self.context.report(&rules::LINK_TARGET, self.key, message);
        }
    }

    /// Checks `level_delta`, which repeats the path.
    fn delta(&self, delta: Delta) {
        let found = self.node.attributes().get("level_delta");
        let levels = delta.levels();
        match found {
            None | Some(Value::Null) => {}
            Some(found) if found.as_i64() == Some(i64::from(levels)) => {}
            Some(found) => {
                let message = format!("{found}, but the path says {levels}");
                let (rule, value) = (&rules::CONTRADICTION, Some(json!(levels)));
                self.context
                    .report_attribute(rule, self.key, &["level_delta"], message, value);
            }
        }
    }

    /// Returns the family of an array of links, if its policy is readable.
    fn family_of(&self, delta: Delta) -> Option<LinkFamily> {
        let key = self.level?.key.join_path(&format!("links/{delta}")).ok()?;
        let node = self.store.tree.node(&key)?;
        LinkFamily::parse(&key, delta, node.attributes())
            .ok()?
            .value
    }

    pub(super) fn link_array(&self, delta: Delta, segment: &str) {
        // Faults of the family are reported at its own node.
        let Some(family) = self.family_of(delta) else {
            return;
        };
        let arity = family.sid_ndim.unwrap_or_default();
        if let Ok(offsets) = Offsets::parse(segment, family.width, arity) {
            let ordered = !family.directed && family.store == LinkStore::Canonical;
            if delta == Delta::INTRA && ordered && !offsets.is_canonical() {
                let message = "negative or descending offsets in an undirected canonical family";
                self.context.report(&rules::LINK_ORDER, self.key, message);
            }
        }
        match LinkArray::parse(self.key, segment, self.node.attributes(), &family) {
            Err(error) => match &error.fault {
                MetadataFault::Disagrees { .. } => self.link_policy(segment, &family, &error),
                _ => faults::error(self.context, self.key, &error),
            },
            Ok(read) => {
                for note in read.notes.iter().filter(|note| !faults::is_tag(note)) {
                    match note.fault {
                        MetadataFault::Disagrees { .. } => self.delta(delta),
                        _ => faults::note(self.context, self.key, note),
                    }
                }
                let kind = read.value.dtype.kind();
                if !is_integer(kind) {
                    let message = format!("{}, but rows are integers", kind.name());
                    let place = "attributes.dtype";
                    self.context
                        .report_at(&rules::DTYPE, self.key, place, message);
                }
            }
        }
    }

    /// Reports an array that contradicts its path or family.
    fn link_policy(&self, segment: &str, family: &LinkFamily, error: &MetadataError) {
        let field = error.path.as_str().rsplit('.').next().unwrap_or_default();
        let rule = &rules::LINK_ARRAY;
        let value = match field {
            "offsets" => offsets(segment, family),
            "link_width" => Some(json!(family.width.get())),
            // Either the array or the family is wrong about the order.
            _ => None,
        };
        match value {
            Some(value) => {
                let message = &error.fault;
                self.context
                    .report_attribute(rule, self.key, &[field], message, Some(value));
            }
            None => self
                .context
                .report_at(rule, self.key, &error.path, &error.fault),
        }
    }

    pub(super) fn link_attribute_family(&self, delta: Delta) {
        self.attribute();
        self.delta(delta);
        self.counts(&format!("links/{delta}"));
    }

    pub(super) fn link_attribute(&self, delta: Delta, segment: Option<&str>) {
        self.attribute();
        self.delta(delta);
        let (links, family) = match segment {
            Some(segment) => (format!("links/{delta}/{segment}"), self.family_of(delta)),
            None => (format!("links/{delta}"), None),
        };
        self.orphan(&links);
        let found = self.node.attributes().get("offsets");
        let expected = family
            .zip(segment)
            .and_then(|(family, segment)| offsets(segment, &family));
        if let (Some(found), Some(expected)) = (found, expected)
            && *found != expected
        {
            let message = format!("{found} contradicts the array's path");
            let (rule, value) = (&rules::LINK_ARRAY, Some(expected));
            self.context
                .report_attribute(rule, self.key, &["offsets"], message, value);
        }
    }

    pub(super) fn crossing_attribute(&self, name: &str, delta: Delta) {
        self.attribute();
        self.type_inside(&format!("link_attributes/{name}/{delta}"));
        self.delta(delta);
        let links = format!("cross_chunk_links/{delta}");
        self.orphan(&links);
        self.counts(&links);
    }

    /// Compares the type of the values with that of the links inside chunks.
    fn type_inside(&self, path: &str) {
        let kind = |node: &Node| {
            let read = CellAttribute::parse(self.key, node.attributes()).ok()?;
            Some(read.value.dtype.kind())
        };
        let inside = self.other(self.in_level(path)).and_then(kind);
        let (Some(found), Some(expected)) = (kind(self.node), inside) else {
            return;
        };
        if found != expected {
            let message = format!("{}, but {path} has {}", found.name(), expected.name());
            let place = "attributes.dtype";
            self.context
                .report_at(&rules::DTYPE, self.key, place, message);
        }
    }

    fn in_level(&self, path: &str) -> Option<Key> {
        self.level?.key.join_path(path).ok()
    }

    /// Reports attributes without links.
    fn orphan(&self, links: &str) {
        let key = self.in_level(links);
        if key.is_some_and(|key| !self.store.tree.exists(&key)) {
            let message = format!("{links} does not exist");
            self.context
                .report(&rules::LINK_ATTRIBUTE_ORPHAN, self.key, message);
        }
    }

    /// Compares the link count of an attribute with that of the family, which is a check of L3.
    fn counts(&self, links: &str) {
        if self.context.options.depth < Depth::Consistency {
            return;
        }
        let count = |attributes: &zvf_model::metadata::Attributes| {
            attributes.get("num_links").and_then(Value::as_u64)
        };
        let family = self.other(self.in_level(links));
        let (Some(found), Some(expected)) = (
            count(self.node.attributes()),
            family.and_then(|family| count(family.attributes())),
        ) else {
            return;
        };
        if found != expected {
            let message = format!("{found}, but {links} declares {expected}");
            let (rule, value) = (&consistency::LINK_ATTRIBUTE_COUNT, Some(json!(expected)));
            self.context
                .report_attribute(rule, self.key, &["num_links"], message, value);
        }
    }
}

/// Returns the value of the attribute `offsets`.
fn offsets(segment: &str, family: &LinkFamily) -> Option<Value> {
    let offsets = Offsets::parse(segment, family.width, family.sid_ndim?)
        .ok()?
        .iter()
        .map(Iterator::collect::<Vec<i64>>);
    Some(json!(offsets.collect::<Vec<_>>()))
}

fn is_integer(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Int8
            | Kind::Int16
            | Kind::Int32
            | Kind::Int64
            | Kind::UInt8
            | Kind::UInt16
            | Kind::UInt32
            | Kind::UInt64
    )
}
