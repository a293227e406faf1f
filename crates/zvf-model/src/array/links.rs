//! Attributes of link families and link arrays.

use serde_json::Value;
use zvf_format::{
    links::{LinkWidth, RowForm},
    numeric::{ByteOrder, Dtype, Kind},
    path::{Delta, OffsetCoords, Offsets},
};

use super::check_tag;
use crate::{
    generation::Generation,
    key::Key,
    metadata::{
        Assumed, Attributes, Excerpt, Fields, JsonField, JsonMembers, MetadataError, MetadataFault,
        Noted, Noter,
    },
    word::{Vocabulary, words},
    zarr::MAX_RANK,
};

words! {
    /// Number of stored copies of a link.
    pub enum LinkStore as "\"canonical\" or \"duplicate\"" {
        /// Once.
        Canonical = "canonical",
        /// One in each chunk of the link.
        Duplicate = "duplicate",
    }
}

/// Node that describes the links of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFamilyForm {
    /// `links/<delta>` of 0.9: all links.
    Merged,
    /// `links/<delta>` up to 0.8.1: links inside chunks, which have no policy.
    InChunks,
    /// `cross_chunk_links/<delta>` of this generation, up to 0.8.1: links between chunks. The policy is
    /// written from 0.8.1 on, and before it where it is not the default.
    BetweenChunks(Generation),
}

const MERGED: &str = "links_family";
const LINKS: &str = "links";
const BETWEEN: &str = "cross_chunk_links";
const NUM_LINKS: &str = "num_links";
const NUM_RECORDS: &str = "num_physical_records";

/// Metadata of a link family: `links/<delta>` of any generation, or `cross_chunk_links/<delta>` up
/// to 0.8.1.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFamily {
    /// Level of endpoints 1 and up minus level of endpoint 0.
    pub delta: Delta,
    /// Endpoints of every link.
    pub width: LinkWidth,
    /// `true` if the order of endpoints is data; `false` if absent.
    pub directed: bool,
    /// Number of copies of a link; one if absent.
    pub store: LinkStore,
    /// Numbers of a chunk key. Absent for links inside chunks up to 0.8.1.
    pub sid_ndim: Option<usize>,
    /// Number of links; absent before the first write.
    pub num_links: Option<u64>,
    /// Number of stored rows; equals the number of links if absent.
    pub num_physical_records: Option<u64>,
}

impl LinkFamily {
    /// Reads the attributes of `links/<delta>` of 0.9. `None`, with a note, if width or arity is
    /// missing: such a family has no links.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the storage policy is unknown.
    pub fn parse(
        key: &Key,
        delta: Delta,
        attributes: &Attributes,
    ) -> Result<Noted<Option<Self>>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        Self::read(&fields, delta, &[MERGED], &["link_width", "sid_ndim"])
    }

    /// Reads the attributes of `links/<delta>` up to 0.8.1. `None`, with a note, if the width is
    /// missing.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the storage policy is unknown.
    pub fn parse_intra(
        key: &Key,
        delta: Delta,
        attributes: &Attributes,
    ) -> Result<Noted<Option<Self>>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        Self::read(&fields, delta, &[LINKS], &["link_width"])
    }

    /// Reads the attributes of `cross_chunk_links/<delta>` up to 0.8.1. `None`, with a note, if the
    /// arity is missing: such a family has no links.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the storage policy is unknown.
    pub fn parse_cross_chunk(
        key: &Key,
        delta: Delta,
        attributes: &Attributes,
    ) -> Result<Noted<Option<Self>>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let required = ["link_width", "sid_ndim"];
        Self::read(&fields, delta, &[BETWEEN], &required)
    }

    fn read(
        fields: &Fields<'_>,
        delta: Delta,
        tags: &[&str],
        required: &[&str],
    ) -> Result<Noted<Option<Self>>, MetadataError> {
        let mut notes = Noter::default();
        check_tag(fields, tags, &mut notes);
        check_delta(fields, delta, &mut notes);
        let missing = required.iter().find(|name| fields.get(name).is_none());
        if let Some(missing) = missing {
            let error = fields.fault(missing, MetadataFault::Missing);
            notes.note(error, Assumed::Nothing);
            let notes = notes.finish();
            return Ok(Noted { value: None, notes });
        }
        let store_at = fields.get("store");
        let store = match &store_at {
            None => LinkStore::Canonical,
            Some(at) => {
                let text = at.text()?;
                LinkStore::of_word(text).ok_or_else(|| at.unknown_word(text, LinkStore::WHAT))?
            }
        };
        let directed = fields.get("directed").map(|at| at.boolean()).transpose()?;
        let arity = |at: &JsonField<'_>| {
            let max = u64::try_from(MAX_RANK).unwrap_or(u64::MAX);
            let arity = at.unsigned(1, max)?;
            Ok(usize::try_from(arity).unwrap_or(MAX_RANK))
        };
        let value = Some(Self {
            delta,
            width: read_width(&fields.require("link_width")?)?,
            directed: directed.unwrap_or_default(),
            store,
            sid_ndim: fields.get("sid_ndim").map(|at| arity(&at)).transpose()?,
            num_links: notes.field(fields, NUM_LINKS, JsonField::u64),
            num_physical_records: notes.field(fields, NUM_RECORDS, JsonField::u64),
        });
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self, form: LinkFamilyForm) -> Attributes {
        let (delta, width) = (self.delta.levels(), self.width.get());
        match form {
            LinkFamilyForm::InChunks => JsonMembers::tagged(LINKS)
                .with("dtype", Kind::Int64.name())
                .with("link_width", width)
                .with("level_delta", delta)
                .finish(),
            LinkFamilyForm::Merged => JsonMembers::tagged(MERGED)
                .with("level_delta", delta)
                .with("link_width", width)
                .with("directed", self.directed)
                .with("store", self.store.as_str())
                .with_some("sid_ndim", self.sid_ndim)
                .with_some(NUM_LINKS, self.num_links)
                .with_some(NUM_RECORDS, self.num_physical_records)
                .finish(),
            LinkFamilyForm::BetweenChunks(generation) => {
                let has_policy = generation >= Generation::V0_8_1
                    || self.directed
                    || self.store == LinkStore::Duplicate;
                let members = JsonMembers::tagged(BETWEEN)
                    .with("level_delta", delta)
                    .with("link_width", width)
                    .with_some(NUM_LINKS, self.num_links)
                    .with_some("sid_ndim", self.sid_ndim);
                let members = if has_policy {
                    members
                        .with("directed", self.directed)
                        .with("store", self.store.as_str())
                        .with_some(NUM_RECORDS, self.num_physical_records)
                } else {
                    members
                };
                members.finish()
            }
        }
    }

    /// Removes from attributes the ones that a family of another form has, which would change the
    /// meaning of this one. `is_default` is whether the policy is the default of 0.8.0.
    pub fn remove_foreign(attributes: &mut Attributes, form: LinkFamilyForm, is_default: bool) {
        if form == LinkFamilyForm::InChunks {
            // Families with this number declare how many links they have.
            attributes.remove("sid_ndim");
        }
        if is_default {
            attributes.remove("directed");
            attributes.remove("store");
        }
    }

    /// Returns whether the attributes of a family of any form declare the order of endpoints as data,
    /// and several copies of a link.
    pub fn declared_policy(attributes: &Attributes) -> (bool, bool) {
        let store = attributes.get("store").and_then(Value::as_str);
        let directed = attributes.get("directed") == Some(&Value::Bool(true));
        (directed, store == Some(LinkStore::Duplicate.as_str()))
    }

    /// Returns the number of links that the attributes of a family of any form declare.
    pub fn declared_links(attributes: &Attributes) -> Option<u64> {
        attributes.get(NUM_LINKS).and_then(Value::as_u64)
    }

    /// Changes the number of links that attributes of a family declare; 0 if they declare none.
    pub fn change_links(attributes: &mut Attributes, change: impl Fn(u64) -> u64) {
        change_count(attributes, NUM_LINKS, change);
    }

    /// Changes the number of stored rows, as [`change_links`](Self::change_links).
    pub fn change_records(attributes: &mut Attributes, change: impl Fn(u64) -> u64) {
        change_count(attributes, NUM_RECORDS, change);
    }

    /// Returns the offsets in the path segment of an array; none if it is malformed.
    pub fn offsets(&self, segment: &str) -> Vec<Vec<i64>> {
        let parsed = Offsets::parse(segment, self.width, self.sid_ndim.unwrap_or_default());
        let offsets = parsed.iter().flat_map(Offsets::iter);
        offsets.map(Iterator::collect).collect()
    }

    /// Returns the number of stored rows, if known.
    pub fn physical_records(&self) -> Option<u64> {
        self.num_physical_records.or(self.num_links)
    }

    /// Returns the form of the rows of an array of 0.9. Rows start with a permutation for
    /// cross-chunk links within a level, unless the family is directed and canonical.
    pub fn row_form(&self, offsets: &Offsets<'_>) -> RowForm {
        self.form_of_rows(!offsets.is_zero())
    }

    fn form_of_rows(&self, crosses: bool) -> RowForm {
        let crosses = crosses && self.delta == Delta::INTRA;
        if crosses && (self.store == LinkStore::Duplicate || !self.directed) {
            RowForm::Permuted
        } else {
            RowForm::Plain
        }
    }
}

/// Metadata of a link array of 0.9, `links/<delta>/<offsets>`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkArray {
    /// Type of a row's numbers; int64 when absent.
    pub dtype: Dtype,
    /// The segment of its path.
    pub segment: String,
    /// Form of a row.
    pub row_form: RowForm,
}

impl LinkArray {
    /// Creates the metadata of the array of links with these offsets.
    pub fn new(family: &LinkFamily, offsets: &[Vec<i64>]) -> Self {
        let crosses = offsets.iter().flatten().any(|number| *number != 0);
        Self {
            dtype: Dtype::new(Kind::Int64, ByteOrder::Little),
            segment: OffsetCoords(offsets).to_string(),
            row_form: family.form_of_rows(crosses),
        }
    }

    /// Returns the attributes of the node in its family.
    pub fn to_attributes(&self, family: &LinkFamily) -> Attributes {
        JsonMembers::tagged(LINKS)
            .with("dtype", self.dtype.to_string())
            .with("offsets", family.offsets(&self.segment))
            .with("has_perm", self.row_form == RowForm::Permuted)
            .with("link_width", family.width.get())
            .with("level_delta", family.delta.levels())
            .finish()
    }

    /// Reads the attributes of the array at path segment `segment` of `family`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the segment does not match the family, or the attributes contradict
    /// segment or family.
    pub fn parse(
        key: &Key,
        segment: &str,
        attributes: &Attributes,
        family: &LinkFamily,
    ) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &[LINKS], &mut notes);
        check_delta(&fields, family.delta, &mut notes);
        let arity = family.sid_ndim.unwrap_or_default();
        let offsets = Offsets::parse(segment, family.width, arity).map_err(|error| {
            let found = Excerpt::of(segment);
            fields.fault("offsets", MetadataFault::Segment { found, error })
        })?;
        if let Some(at) = fields.get("offsets") {
            let written = at.each(|offset| offset.each(JsonField::i64))?;
            let same = written.len() == offsets.iter().count()
                && written
                    .iter()
                    .zip(offsets.iter())
                    .all(|(written, offset)| offset.eq(written.iter().copied()));
            if !same {
                return Err(at.disagrees("the array's path"));
            }
        }
        if let Some(at) = fields.get("link_width") {
            if read_width(&at)? != family.width {
                return Err(at.disagrees("link_width of the family"));
            }
        }
        let row_form = family.row_form(&offsets);
        if let Some(at) = fields.get("has_perm") {
            if at.boolean()? != (row_form == RowForm::Permuted) {
                return Err(at.disagrees("the policy of the family"));
            }
        }
        let dtype = match fields.get("dtype") {
            Some(at) => at.dtype()?,
            None => Dtype::new(Kind::Int64, ByteOrder::Little),
        };
        let value = Self {
            dtype,
            segment: segment.to_owned(),
            row_form,
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }
}

fn change_count(attributes: &mut Attributes, name: &str, change: impl Fn(u64) -> u64) {
    let count = attributes.get(name).and_then(Value::as_u64);
    attributes.insert(name.to_owned(), change(count.unwrap_or(0)).into());
}

fn read_width(at: &JsonField<'_>) -> Result<LinkWidth, MetadataError> {
    LinkWidth::new(at.u64()?).map_err(|error| at.error(error.into()))
}

/// Checks that `level_delta` matches the path.
fn check_delta(fields: &Fields<'_>, delta: Delta, notes: &mut Noter) {
    if let Some(at) = fields.get("level_delta") {
        match at.i64() {
            Ok(levels) if levels == i64::from(delta.levels()) => {}
            Ok(_) => notes.note(at.disagrees("the family's path"), Assumed::FromPath),
            Err(error) => notes.note(error, Assumed::FromPath),
        }
    }
}
