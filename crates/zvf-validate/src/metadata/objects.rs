//! Metadata of the object index and of groups.

use serde_json::json;
use zvf_model::{
    array::{Groups, ObjectIndex, ObjectIndexLayout},
    generation::Generation,
    zarr::Node,
};

use super::{NodeCheck, faults};
use crate::rules::metadata as rules;

/// Bytes per entry of `offsets`.
const OFFSET: u64 = 8;

impl NodeCheck<'_, '_> {
    pub(super) fn object_index(&self) {
        let read = ObjectIndex::parse(self.key, self.node.attributes());
        let Some(index) = faults::noted(self.context, self.key, read) else {
            return;
        };
        self.check_arity(Some(index.sid_ndim));
        let open = index.layout == ObjectIndexLayout::Open;
        if open && self.store.layout().generation >= Generation::V0_8_1 {
            let (rule, place) = (&rules::FIELD_MISSING, "attributes.layout");
            let message = "missing, although this generation requires it";
            self.context.report_at(rule, self.key, place, message);
        }
        if index.layout == ObjectIndexLayout::Dense {
            self.dense(index.sid_ndim);
        }
        let rows = |name: &str| {
            let array = self.array_at(self.beside(name))?;
            Some((name.to_owned(), array.shape.first().copied()?))
        };
        let found = match index.layout {
            ObjectIndexLayout::Open => vec![self.offsets()],
            ObjectIndexLayout::Manifests => vec![rows("manifests")],
            ObjectIndexLayout::ManifestsWithIds => vec![rows("manifests"), rows("object_ids")],
            ObjectIndexLayout::Dense => vec![rows("manifest_spans"), rows("object_ids")],
        };
        let found: Vec<(String, u64)> = found.into_iter().flatten().collect();
        let wrong = found.iter().find(|(_, rows)| *rows != index.num_objects);
        let Some((name, rows)) = wrong else {
            return;
        };
        let message = format!("{}, but {name} has {rows} rows", index.num_objects);
        // If the arrays agree, the count is wrong.
        let rule = &rules::OBJECT_COUNT;
        if found.iter().all(|(_, other)| other == rows) {
            self.context.report_attribute(
                rule,
                self.key,
                &["num_objects"],
                message,
                Some(json!(rows)),
            );
        } else {
            self.context.report(rule, self.key, message);
        }
    }

    /// Checks the arrays of a dense index.
    fn dense(&self, sid_ndim: usize) {
        let coordinates = u64::try_from(sid_ndim).unwrap_or(u64::MAX);
        let columns = [
            ("manifest_spans", 2),
            ("manifest_blocks", coordinates.saturating_add(1)),
        ];
        for (name, expected) in columns {
            let key = self.beside(name);
            let array = self.array_at(key.clone());
            let found = array.and_then(|array| array.shape.get(1));
            if let (Some(key), Some(found)) = (key, found.filter(|found| **found != expected)) {
                let message = format!("{found} columns, but a row has {expected} numbers");
                self.context.report(&rules::ARRAY_SHAPE, &key, message);
            }
        }
        if let Some(key) = self.beside("manifests")
            && self.store.tree.exists(&key)
        {
            let message = "the layout of the index is dense, so that readers ignore manifests";
            self.context.report(&rules::CONTRADICTION, &key, message);
        }
    }

    /// Returns the number of rows that `offsets` describes.
    fn offsets(&self) -> Option<(String, u64)> {
        let array = self.array_at(self.beside("offsets"))?;
        let bytes = array.shape.first().copied()?;
        Some(("offsets".to_owned(), bytes.checked_div(OFFSET)?))
    }

    pub(super) fn groups(&self) {
        let read = Groups::parse(self.key, self.node.attributes());
        let Some(groups) = faults::noted(self.context, self.key, read) else {
            return;
        };
        let rows = match self.node {
            Node::Array(array) => array.shape.first().copied(),
            Node::Group(_) => self.offsets().map(|(_, rows)| rows),
        };
        let Some(rows) = rows.filter(|rows| groups.num_groups != Some(*rows)) else {
            return;
        };
        let message = match groups.num_groups {
            None if self.has_group_rows() => return,
            Some(found) => format!("{found}, but there are {rows}"),
            None => format!("missing, but there are {rows}"),
        };
        let (rule, value) = (&rules::GROUP_COUNT, Some(json!(rows)));
        self.context
            .report_attribute(rule, self.key, &["num_groups"], message, value);
    }
}
