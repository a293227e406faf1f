//! The groups of objects: segments of their own, and tags of objects.

use zvf::{Column, Dataset, NumericColumn};
use zvf_catalog::Scope;
use zvf_model::level::LevelId;

use super::SegmentTable;
use crate::layers::LayerError;

/// Maximum number of groups that are shown: each is a tag, and the viewer reads 65 535 tags.
const MAX_GROUPS: u64 = 60_000;
/// Members of all groups.
const MAX_MEMBERS: u64 = 2 << 20;

/// The groups of a store that have members.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupTable {
    /// Objects with the places of their groups in `segments`, in ascending order.
    members: Vec<Membership>,
    /// Numbers and attributes of the groups.
    pub(crate) segments: SegmentTable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Membership {
    object: i64,
    group: u32,
}

impl GroupTable {
    /// Reads the groups of level 0.
    pub(crate) async fn read(
        dataset: &Dataset,
        notes: &mut Vec<String>,
    ) -> Result<Self, LayerError> {
        let catalog = dataset.catalog();
        let Some(list) = catalog.group_list(LevelId::FULL).await? else {
            return Ok(Self::default());
        };
        let sizes = (0..list.len()).filter_map(|group| Some(list.members(group)?.len()));
        let (mut groups, mut members) = (0_u64, 0_u64);
        for size in sizes.filter(|size| *size > 0) {
            groups = groups.saturating_add(1);
            members = members.saturating_add(size);
        }
        if groups > MAX_GROUPS || members > MAX_MEMBERS {
            notes.push(format!(
                "groups are left out: more than {MAX_GROUPS} groups or {MAX_MEMBERS} members"
            ));
            return Ok(Self::default());
        }
        let (mut ids, mut counts, mut members) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..list.len() {
            let objects = list.members(number).filter(|group| !group.is_empty());
            let (Some(objects), Ok(id)) = (objects, i64::try_from(number)) else {
                continue;
            };
            let group = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            ids.push(id);
            counts.push(u32::try_from(objects.len()).unwrap_or(u32::MAX));
            let objects = objects.iter().filter(|object| *object >= 0);
            members.extend(objects.map(|object| Membership { object, group }));
        }
        members.sort_unstable();
        members.dedup();
        if ids.is_empty() {
            return Ok(Self::default());
        }
        let numbers: Vec<u64> = ids
            .iter()
            .filter_map(|id| u64::try_from(*id).ok())
            .collect();
        let mut columns = Vec::new();
        for name in catalog
            .attribute_list(LevelId::FULL, Scope::Group)
            .await?
            .iter()
        {
            let column = catalog.group_values(LevelId::FULL, name, Some(&numbers));
            columns.push(column.await?);
        }
        if columns.iter().all(|column| column.name != "objects") {
            let counts = NumericColumn::from_values(1, counts);
            columns.push(Column::new("objects", counts));
        }
        let mut segments = SegmentTable::default();
        segments.add(&ids, &columns, usize::MAX);
        segments.finish("groups", notes);
        Ok(Self { members, segments })
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.ids.is_empty()
    }

    /// Returns the places of the groups of an object, in ascending order.
    pub(crate) fn places_of(&self, object: i64) -> impl Iterator<Item = u32> + '_ {
        let start = self
            .members
            .partition_point(|member| member.object < object);
        let members = self.members.get(start..).unwrap_or_default().iter();
        let own = members.take_while(move |member| member.object == object);
        own.map(|member| member.group)
    }

    /// Returns the numbers of the groups of an object, in ascending order.
    pub(crate) fn numbers_of(&self, object: i64) -> Vec<u64> {
        let places = self.places_of(object);
        let numbers = places.filter_map(|place| {
            let number = self.segments.ids.get(usize::try_from(place).ok()?)?;
            u64::try_from(*number).ok()
        });
        numbers.collect()
    }

    /// Returns a name for each group: its first text, or its number.
    pub(crate) fn names(&self) -> Vec<String> {
        let texts = self.segments.first_texts();
        let ids = self.segments.ids.iter().enumerate();
        let names = ids.map(|(row, id)| {
            let text = texts.and_then(|column| column.text_at(row));
            let text = text.filter(|text| !text.is_empty());
            text.map_or_else(|| format!("group_{id}"), str::to_owned)
        });
        names.collect()
    }
}
