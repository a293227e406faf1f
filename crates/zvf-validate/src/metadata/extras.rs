//! Composite geometries of a level, and parametric objects.

use zvf_model::{
    array::{CompositeLinks, GeometryIndex, ParametricObjects, ParametricTypes},
    key::Key,
    zarr::Node,
};

use super::{NodeCheck, faults};
use crate::rules::metadata as rules;

impl NodeCheck<'_, '_> {
    /// Compares the index of composite geometries with their parts.
    pub(super) fn geometry_index(&self) {
        let read = GeometryIndex::parse(self.key, self.node.attributes());
        let Some(index) = faults::noted(self.context, self.key, read) else {
            return;
        };
        let Some(level) = self.level else {
            return;
        };
        let has = |name: &str| {
            let key = level.key.join(name);
            key.is_ok_and(|key| self.store.tree.exists(&key))
        };
        for (kind, geometry) in &index.geometries {
            let parts = [Some(&geometry.vertices), geometry.links.as_ref()];
            for part in parts.into_iter().flatten().filter(|part| !has(part)) {
                let place = format!("attributes.{kind}");
                let message = format!("{part} does not exist");
                self.context
                    .report_at(&rules::COMPOSITE, self.key, place, message);
            }
            let links = geometry
                .links
                .as_ref()
                .and_then(|name| level.key.join(name).ok());
            let node = links.and_then(|key| Some((self.other(Some(key.clone()))?, key)));
            let links =
                node.and_then(|(node, key)| CompositeLinks::parse(&key, node.attributes()).ok());
            if let (Some(found), Some(links)) = (geometry.part_count, links)
                && found != links.value.link_count
            {
                let place = format!("attributes.{kind}");
                let message = format!(
                    "{found} links, but their array declares {}",
                    links.value.link_count
                );
                self.context
                    .report_at(&rules::COMPOSITE, self.key, place, message);
            }
        }
        let further = self
            .store
            .tree
            .folders(&level.key)
            .into_iter()
            .filter(|name| name.starts_with("vertices_"));
        for name in further {
            if !index
                .geometries
                .values()
                .any(|geometry| geometry.vertices == name)
            {
                let message = format!("{name} exists, but is not listed");
                self.context.report(&rules::COMPOSITE, self.key, message);
            }
        }
    }

    pub(super) fn composite_links(&self) {
        let read = CompositeLinks::parse(self.key, self.node.attributes());
        let Some(links) = faults::noted(self.context, self.key, read) else {
            return;
        };
        let width = u64::try_from(links.width.get()).unwrap_or(u64::MAX);
        let (found, expected) = match self.node {
            Node::Array(array) => (array.shape.clone(), vec![links.link_count, width]),
            Node::Group(_) => {
                let Some(array) = self.array_at(self.beside("data")) else {
                    let message = "data does not exist";
                    return self.context.report(&rules::TABLE_BYTES, self.key, message);
                };
                let bytes = links.link_count.saturating_mul(width).saturating_mul(8);
                (array.shape.clone(), vec![bytes])
            }
        };
        if found != expected {
            let message = format!("{found:?}, but the metadata require {expected:?}");
            self.context.report(&rules::TABLE_BYTES, self.key, message);
        }
    }

    pub(super) fn parametric(&self) {
        let read = ParametricTypes::parse(self.key, self.node.attributes());
        let Some(types) = faults::noted(self.context, self.key, read) else {
            return;
        };
        let key = self.beside("objects");
        let objects = self
            .other(key.clone())
            .zip(key)
            .and_then(|(node, key)| ParametricObjects::parse(&key, node.attributes()).ok());
        let Some(objects) = objects else {
            return;
        };
        // A row is the type followed by coefficients. Unused types may have longer rows.
        let shortest = types
            .types
            .values()
            .map(|known| known.coefficients.len())
            .min();
        let shortest = u64::try_from(shortest.unwrap_or_default()).unwrap_or(u64::MAX);
        let max = objects.value.max_row_length;
        if objects.value.num_objects > 0 && shortest >= max {
            let message =
                format!("rows of {max} numbers, but the shortest type has {shortest} coefficients");
            self.context.report(&rules::PARAMETRIC, self.key, message);
        }
    }

    pub(super) fn parametric_objects(&self) {
        let read = ParametricObjects::parse(self.key, self.node.attributes());
        let Some(objects) = faults::noted(self.context, self.key, read) else {
            return;
        };
        let (rows, columns) = (objects.num_objects, objects.max_row_length);
        let (found, expected) = match self.node {
            Node::Array(array) => (array.shape.clone(), vec![rows, columns]),
            Node::Group(_) => match self.array_at(self.beside("data")) {
                Some(array) => {
                    let bytes = rows.saturating_mul(columns).saturating_mul(8);
                    (array.shape.clone(), vec![bytes])
                }
                None => {
                    return self.context.report(
                        &rules::TABLE_BYTES,
                        self.key,
                        "data does not exist",
                    );
                }
            },
        };
        if found != expected {
            let message = format!("{found:?}, but the metadata require {expected:?}");
            self.context.report(&rules::TABLE_BYTES, self.key, message);
        }
        let names = Key::parse("parametric/names").ok();
        let Some(Node::Array(names)) = self.other(names) else {
            return;
        };
        if names.shape != [rows] {
            let message = format!("{rows} objects, but names has {:?} rows", names.shape);
            self.context.report(&rules::PARAMETRIC, self.key, message);
        }
    }
}
