//! Ids of added objects and numbers of their groups, as a store continues them.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::{column::Column, object_ids::Owner};

use super::{image::LevelSnapshot, tables::Table};
use crate::geometry::{GeometryBuilder, VertexOwners};

/// Attribute of groups by which groups of different stores are the same group.
const NAME: &str = "name";

impl LevelSnapshot {
    /// Gives all objects of geometry the next free ids, in the order of the ids that they have. Their
    /// attributes and groups follow. Does nothing if the level has no objects.
    pub fn renumber(&self, geometry: &mut GeometryBuilder) {
        let Some(next) = self.next_id() else {
            return;
        };
        geometry.owners.number_paths(0);
        let own = geometry.owners.ids().unwrap_or_default().iter();
        let described = geometry.objects.iter().flatten();
        let members = geometry.groups.values().flatten();
        let named = own.chain(described).chain(members).copied();
        let ids: BTreeSet<i64> = named.filter(|id| *id != Owner::NONE).collect();
        // Ids that do not fit are equal, and refused.
        let free = (0_i64..).map(|rank| next.saturating_add(rank));
        let numbers: BTreeMap<i64, i64> = ids.into_iter().zip(free).collect();
        let change = |ids: &mut Vec<i64>| {
            for id in ids {
                *id = numbers.get(id).copied().unwrap_or(*id);
            }
        };
        match &mut geometry.owners {
            VertexOwners::Vertices(ids) => change(ids),
            VertexOwners::Paths { objects, .. } => objects.iter_mut().for_each(change),
            VertexOwners::Unnamed => {}
        }
        geometry.objects.iter_mut().for_each(change);
        geometry.groups.values_mut().for_each(change);
    }

    /// Gives each group of geometry with a name the number of the stored group of this name, or a new
    /// number. Groups without a name keep their numbers.
    pub fn join_groups_by_name(&self, geometry: &mut GeometryBuilder) {
        let Some(names) = geometry.group.iter().find(|column| column.name == NAME) else {
            return;
        };
        let stored = self.group_names();
        let rows = names.values.len();
        let mut next = self.tables.groups.len();
        for table in self.tables.group.values() {
            next = next.max(table.rows.len());
        }
        let last = geometry.groups.last_key_value();
        let listed = last.map_or(0, |(number, _)| *number as usize + 1);
        let mut numbers: Vec<usize> = (0..rows.max(listed)).collect();
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut order: Vec<Option<&str>> = (0..rows).map(|row| names.text_at(row)).collect();
        order.resize(numbers.len(), None);
        let unnamed = order.iter().rposition(Option::is_none);
        next = next.max(unnamed.map_or(0, |row| row + 1));
        for (number, name) in numbers.iter_mut().zip(&order) {
            let Some(name) = name else { continue };
            let known = stored.get(*name).or_else(|| taken.get(name));
            *number = known.copied().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            taken.insert(name, *number);
        }
        let groups = std::mem::take(&mut geometry.groups);
        for (number, members) in groups {
            let number = numbers.get(number as usize).copied();
            let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else {
                continue;
            };
            geometry.groups.entry(number).or_default().extend(members);
        }
        let count = numbers.iter().max().map_or(0, |last| last + 1);
        for column in &mut geometry.group {
            *column = moved(column, &numbers, count);
        }
    }

    /// Returns the numbers of the stored groups with a name.
    fn group_names(&self) -> BTreeMap<String, usize> {
        let named = self.tables.group.get(NAME);
        let text = named.filter(|table| table.kind.is_none());
        let rows = text.map_or(&[][..], |table| &table.rows);
        let mut names = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            if let Some(name) = row.as_deref().and_then(Table::text) {
                names.entry(name).or_insert(number);
            }
        }
        names
    }
}

/// Returns a column whose row `numbers[row]` is the given row, and null where there is none.
fn moved(column: &Column, numbers: &[usize], count: usize) -> Column {
    let nulls = column.len();
    let mut from = vec![nulls; count];
    for (row, number) in numbers.iter().enumerate().take(column.len()) {
        if let Some(from) = from.get_mut(*number) {
            *from = row;
        }
    }
    let mut column = column.clone();
    column.extend_with_nulls(nulls + 1);
    column.take(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_groups_move_with_their_numbers() {
        let column = Column::text("name", [Some("a"), Some("b"), None]);
        let moved = moved(&column, &[3, 0, 2], 4);
        let texts: Vec<Option<&str>> = (0..4).map(|row| moved.text_at(row)).collect();
        assert_eq!(texts, [Some("b"), None, None, Some("a")]);
    }
}
