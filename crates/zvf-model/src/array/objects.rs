//! Attributes of the object index, of groups, and of tables over them.

use std::collections::BTreeMap;

use zvf_format::numeric::Dtype;

use super::{attribute::read_extents, check_tag};
use crate::{
    key::Key,
    metadata::{
        Assumed, Attributes, Fields, JsonField, MetadataError, MetadataFault, Noted, Noter,
    },
    zarr::MAX_RANK,
};

/// Storage of the manifests of an object index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectIndexLayout {
    /// No `layout`: `data` and `offsets`.
    Open,
    /// `vlen_manifests_v1`: `manifests`, and the row is the id.
    Manifests,
    /// `vlen_manifests_v2`: `manifests` and `object_ids`.
    ManifestsWithIds,
    /// `dense_manifests_v1`, a draft after 0.9.2: `manifest_spans`, `manifest_blocks` and
    /// `object_ids`, which are arrays of numbers.
    Dense,
}

/// Metadata of `object_index`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ObjectIndex {
    /// Storage of manifests.
    pub layout: ObjectIndexLayout,
    /// Rows.
    pub num_objects: u64,
    /// Number of rows that are not empty.
    pub num_present: Option<u64>,
    /// Numbers of a chunk key in manifests.
    pub sid_ndim: usize,
    /// `true` if ids ascend or rows are ids; `false` if absent.
    pub ids_sorted: bool,
}

/// Maximum number of rows.
const MAX_OBJECTS: u64 = 1 << 26;

impl ObjectIndex {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the layout is unknown, counts are missing or out of range.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &["object_index"], &mut notes);
        let layout = match fields.get("layout") {
            None => ObjectIndexLayout::Open,
            Some(at) => match at.text()? {
                "vlen_manifests_v1" => ObjectIndexLayout::Manifests,
                "vlen_manifests_v2" => ObjectIndexLayout::ManifestsWithIds,
                "dense_manifests_v1" => ObjectIndexLayout::Dense,
                other => return Err(at.unknown_word(other, "a layout of manifests")),
            },
        };
        let num_objects = fields.require("num_objects")?.unsigned(0, MAX_OBJECTS)?;
        let max = u64::try_from(MAX_RANK).unwrap_or(u64::MAX);
        let sid_ndim = fields.require("sid_ndim")?.unsigned(1, max)?;
        let present = |at: &JsonField<'_>| at.unsigned(0, num_objects);
        let sorted = notes.field(&fields, "object_ids_sorted", JsonField::boolean);
        let value = Self {
            layout,
            num_objects,
            num_present: notes.field(&fields, "num_present", present),
            sid_ndim: usize::try_from(sid_ndim).unwrap_or(MAX_RANK),
            ids_sorted: sorted.unwrap_or(matches!(
                layout,
                ObjectIndexLayout::Open | ObjectIndexLayout::Manifests
            )),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns whether some of `rows` manifests belong to present objects, because the index declares
    /// more of these than there are other manifests.
    pub fn must_have_present(&self, rows: u64) -> bool {
        let present = self.num_present.unwrap_or(0);
        present.saturating_add(rows) > self.num_objects
    }
}

/// Metadata of an attribute of objects or groups.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Table {
    /// Its name.
    pub name: Option<String>,
    /// Type of a value; `None` if only the array itself declares it, as for text.
    pub dtype: Option<Dtype>,
    /// Number of rows, and number of columns if there are several.
    pub shape: Option<Vec<u64>>,
    /// `true` if `present_mask` marks the existing rows, up to 0.8.0.
    pub has_present_mask: bool,
    /// `true` if rows that equal the fill value are absent, from 0.8.1 on.
    pub fill_is_absent: bool,
}

impl Table {
    /// Reads the attributes of group `key`, up to 0.8.0.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if it has no usable dtype or shape.
    pub fn parse_group(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let dtype = fields.require("dtype")?.dtype()?;
        let shape = read_extents(&fields.require("shape")?)?;
        Ok(Self::read(
            &fields,
            Some(dtype),
            Some(shape),
            Noter::default(),
        ))
    }

    /// Reads the attributes of array `key`, whose own shape and data type take precedence.
    pub fn parse_array(key: &Key, attributes: &Attributes) -> Noted<Self> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        let dtype = notes.field(&fields, "dtype", JsonField::dtype);
        let shape = notes.field(&fields, "shape", read_extents);
        Self::read(&fields, dtype, shape, notes)
    }

    fn read(
        fields: &Fields<'_>,
        dtype: Option<Dtype>,
        shape: Option<Vec<u64>>,
        mut notes: Noter,
    ) -> Noted<Self> {
        let tags = ["object_attribute", "groupings_attribute"];
        check_tag(fields, &tags, &mut notes);
        let mask = notes.field(fields, "has_present_mask", JsonField::boolean);
        let meaning = notes.field(fields, "fill_sentinel_meaning", |at| match at.text()? {
            "absent" => Ok(true),
            other => Err(at.unknown_word(other, "\"absent\"")),
        });
        let value = Self {
            name: notes.field(fields, "name", |at| at.text().map(str::to_owned)),
            dtype,
            shape,
            has_present_mask: mask.unwrap_or_default(),
            fill_is_absent: meaning.unwrap_or_default(),
        };
        let notes = notes.finish();
        Noted { value, notes }
    }
}

/// Members of a group, as a run of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRange {
    /// The first.
    pub start: i64,
    /// One after the last; not below the first.
    pub stop: i64,
}

/// Metadata of `groups`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Groups {
    /// Declared number of groups.
    pub num_groups: Option<u64>,
    /// Groups that are runs of ids, by number. Their items are empty.
    pub ranges: BTreeMap<u64, GroupRange>,
}

impl Groups {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if a range is malformed.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &["groups"], &mut notes);
        let num_groups = notes.field(&fields, "num_groups", JsonField::u64);
        let mut ranges = BTreeMap::new();
        if let Some(at) = fields.get("group_ranges") {
            for (name, at) in at.fields()?.iter() {
                let group = name.parse::<u64>().ok();
                let group = group.filter(|group| group.to_string() == name);
                let group = group.ok_or_else(|| at.unknown_word(name, "a group number"))?;
                let range = GroupRange::read(&at)?;
                if num_groups.is_some_and(|groups| group >= groups) {
                    notes.note(at.disagrees("num_groups"), Assumed::AsFound);
                }
                ranges.insert(group, range);
            }
        }
        let value = Self { num_groups, ranges };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }
}

impl GroupRange {
    fn read(at: &JsonField<'_>) -> Result<Self, MetadataError> {
        let (start, stop) = match at.exactly(2, JsonField::i64)?.as_slice() {
            [start, stop] => (*start, *stop),
            _ => (0, 0),
        };
        if stop < start {
            return Err(at.error(MetadataFault::Inverted { start, stop }));
        }
        Ok(Self { start, stop })
    }
}
