//! Attributes of the object index, of groups, and of tables over them.

use std::collections::BTreeMap;

use serde_json::Value;
use zvf_format::numeric::{Dtype, Kind};

use super::{attribute::read_extents, check_tag};
use crate::{
    attribute_name,
    key::Key,
    metadata::{
        Assumed, Attributes, Excerpt, Fields, JsonField, JsonMembers, MetadataError, MetadataFault,
        Noted, Noter, dialect,
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

impl ObjectIndexLayout {
    const ALL: [Self; 4] = [
        Self::Open,
        Self::Manifests,
        Self::ManifestsWithIds,
        Self::Dense,
    ];

    /// Returns the declaration; `None` if it is absent.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Open => None,
            Self::Manifests => Some("vlen_manifests_v1"),
            Self::ManifestsWithIds => Some("vlen_manifests_v2"),
            Self::Dense => Some("dense_manifests_v1"),
        }
    }

    /// Returns whether rows are ids, so that the index has no ids of its own.
    fn has_rows_as_ids(self) -> bool {
        matches!(self, Self::Open | Self::Manifests)
    }
}

const OBJECT_INDEX: &str = "object_index";
/// Type of the blocks of a dense index, a member of 0.10. Types other than that of 0.9 are not known.
const BLOCK_TYPE: &str = "manifest_block_dtype";
const GROUPS: &str = "groups";

/// Metadata of `object_index`.
#[derive(Clone, Debug, PartialEq)]
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
    /// [`MetadataError`] if the layout is unknown or, in 0.10, missing, blocks have another type than
    /// int64, or counts are missing or out of range.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &[OBJECT_INDEX], &mut notes);
        let layout = match fields.get("layout") {
            None if dialect::is_marked(attributes) => {
                return Err(fields.fault("layout", MetadataFault::Missing));
            }
            None => ObjectIndexLayout::Open,
            Some(at) => {
                let name = at.text()?;
                let mut layouts = ObjectIndexLayout::ALL.into_iter();
                let layout = layouts.find(|layout| layout.name() == Some(name));
                layout.ok_or_else(|| at.unknown_word(name, "a layout of manifests"))?
            }
        };
        if let Some(at) = fields.get(BLOCK_TYPE) {
            let name = at.text()?;
            if name != Kind::Int64.name() {
                return Err(at.error(MetadataFault::ManifestBlocks(Excerpt::of(name))));
            }
        }
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
            ids_sorted: sorted.unwrap_or(layout.has_rows_as_ids()),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        let sorted = (!self.layout.has_rows_as_ids()).then_some(self.ids_sorted);
        JsonMembers::tagged(OBJECT_INDEX)
            .with("num_objects", self.num_objects)
            .with_some("num_present", self.num_present)
            .with("sid_ndim", self.sid_ndim)
            .with_some("layout", self.layout.name())
            .with_some("object_ids_sorted", sorted)
            .finish()
    }

    /// Returns whether some of `rows` manifests belong to present objects, because the index declares
    /// more of these than there are other manifests.
    pub fn must_have_present(&self, rows: u64) -> bool {
        let present = self.num_present.unwrap_or(0);
        present.saturating_add(rows) > self.num_objects
    }
}

/// Rows that a table has values of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRole {
    /// Objects.
    Object,
    /// Groups.
    Group,
}

/// Type of the values of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableType {
    /// Numbers.
    Number(Dtype),
    /// Text of this many characters.
    Text(u64),
}

impl From<Dtype> for TableType {
    fn from(dtype: Dtype) -> Self {
        Self::Number(dtype)
    }
}

impl TableType {
    /// Returns the declaration as NumPy has it.
    pub fn name(self) -> String {
        match self {
            Self::Number(dtype) => dtype.to_string(),
            Self::Text(letters) => format!("<U{letters}"),
        }
    }
}

const OBJECT: &str = "object_attribute";
const GROUP: &str = "groupings_attribute";
const FILL_MEANING: &str = "fill_sentinel_meaning";
const ABSENT: &str = "absent";

/// Metadata of an attribute of objects or groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Rows that have the values; `None` for attributes of parametric objects and their groups.
    pub role: Option<TableRole>,
    /// Its name.
    pub name: Option<String>,
    /// Type of a value; `None` if only the array itself declares it.
    pub values: Option<TableType>,
    /// Number of rows, and number of columns if there are several.
    pub shape: Option<Vec<u64>>,
    /// Number of columns, declared up to 0.8.0. Unreliable: the shape decides.
    pub num_channels: Option<u64>,
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
        let values = fields.require("dtype")?.dtype()?.into();
        let shape = read_extents(&fields.require("shape")?)?;
        Ok(Self::read(
            &fields,
            Some(values),
            Some(shape),
            Noter::default(),
        ))
    }

    /// Reads the attributes of array `key`, whose own shape and data type take precedence.
    pub fn parse_array(key: &Key, attributes: &Attributes) -> Noted<Self> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        let number = notes.field(&fields, "dtype", JsonField::dtype);
        let text = || fields.get("dtype")?.text().ok().and_then(text_letters);
        let values = number
            .map(TableType::Number)
            .or_else(|| text().map(TableType::Text));
        let shape = notes.field(&fields, "shape", read_extents);
        Self::read(&fields, values, shape, notes)
    }

    fn read(
        fields: &Fields<'_>,
        values: Option<TableType>,
        shape: Option<Vec<u64>>,
        mut notes: Noter,
    ) -> Noted<Self> {
        let role = match check_tag(fields, &[OBJECT, GROUP], &mut notes) {
            Some(OBJECT) => Some(TableRole::Object),
            Some(_) => Some(TableRole::Group),
            None => None,
        };
        let mask = notes.field(fields, "has_present_mask", JsonField::boolean);
        let meaning = notes.field(fields, FILL_MEANING, |at| match at.text()? {
            ABSENT => Ok(true),
            other => Err(at.unknown_word(other, "\"absent\"")),
        });
        let value = Self {
            role,
            name: notes.field(fields, "name", |at| at.text().map(str::to_owned)),
            values,
            shape,
            num_channels: fields.get("num_channels").and_then(|at| at.u64().ok()),
            has_present_mask: mask.unwrap_or_default(),
            fill_is_absent: meaning.unwrap_or_default(),
        };
        let notes = notes.finish();
        Noted { value, notes }
    }

    /// Returns the attributes of the group of a table, up to 0.8.0.
    pub fn to_group_attributes(&self) -> Attributes {
        let has_mask = (self.role == Some(TableRole::Object)).then_some(self.has_present_mask);
        attribute_name::write(JsonMembers::default(), self.name.as_deref())
            .with_some("dtype", self.values.map(TableType::name))
            .with_some("num_channels", self.num_channels)
            .with_some("shape", self.shape.clone())
            .with_some("zv_array", self.tag())
            .with_some("has_present_mask", has_mask)
            .finish()
    }

    /// Returns the attributes of the array of a table, from 0.8.1 on.
    pub fn to_array_attributes(&self) -> Attributes {
        let members = JsonMembers::default().with_some("zv_array", self.tag());
        attribute_name::write(members, self.name.as_deref())
            .with_some("dtype", self.values.map(TableType::name))
            .with_some("shape", self.shape.clone())
            .with_some(FILL_MEANING, self.fill_is_absent.then_some(ABSENT))
            .finish()
    }

    /// Sets the type and the shape in attributes of the array of a table, and that rows which equal the
    /// fill value are absent if some are.
    pub fn set_rows(
        attributes: &mut Attributes,
        values: TableType,
        shape: Vec<u64>,
        has_absent: bool,
    ) {
        if has_absent {
            attributes.insert(FILL_MEANING.to_owned(), ABSENT.into());
        }
        attributes.insert("shape".to_owned(), shape.into());
        attributes.insert("dtype".to_owned(), values.name().into());
    }

    /// Returns the type of the values, if they are numbers.
    pub fn dtype(&self) -> Option<Dtype> {
        match self.values {
            Some(TableType::Number(dtype)) => Some(dtype),
            _ => None,
        }
    }

    fn tag(&self) -> Option<&'static str> {
        self.role.map(|role| match role {
            TableRole::Object => OBJECT,
            TableRole::Group => GROUP,
        })
    }
}

/// Returns the number of characters of text in NumPy's notation.
fn text_letters(dtype: &str) -> Option<u64> {
    dtype.strip_prefix("<U")?.parse().ok()
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
pub struct Groups {
    /// `true` if the node has a tag, which groups of parametric objects lack.
    pub is_tagged: bool,
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
        let is_tagged = check_tag(&fields, &[GROUPS], &mut notes).is_some();
        let num_groups = notes.field(&fields, "num_groups", JsonField::u64);
        let mut ranges = BTreeMap::new();
        if let Some(at) = fields.get("group_ranges") {
            for (name, at) in at.fields()?.iter() {
                let group = name.parse::<u64>().ok();
                let group = group
                    .filter(|group| group.to_string() == name)
                    .ok_or_else(|| at.unknown_word(name, "a group number"))?;
                let range = GroupRange::read(&at)?;
                if num_groups.is_some_and(|groups| group >= groups) {
                    notes.note(at.disagrees("num_groups"), Assumed::AsFound);
                }
                ranges.insert(group, range);
            }
        }
        let value = Self {
            is_tagged,
            num_groups,
            ranges,
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        let ranges: Attributes = self
            .ranges
            .iter()
            .map(|(group, range)| (group.to_string(), Value::from([range.start, range.stop])))
            .collect();
        JsonMembers::default()
            .with_some("zv_array", self.is_tagged.then_some(GROUPS))
            .with_some("num_groups", self.num_groups)
            .with_some("group_ranges", (!ranges.is_empty()).then_some(ranges))
            .finish()
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
