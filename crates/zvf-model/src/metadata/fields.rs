//! Access to JSON that tracks the path, so that every fault names it.

use core::fmt::Write;
use std::sync::Arc;

use serde_json::Value;
use zvf_format::numeric::Dtype;

use super::{
    Assumed, Attributes, Excerpt, JsonKind, JsonPath, MetadataError, MetadataFault, MetadataNote,
    places,
};
use crate::{
    key::Key,
    word::{Vocabulary, Word},
};

/// A value and its path.
#[derive(Clone)]
pub(crate) struct JsonField<'a> {
    key: &'a Key,
    parent: ParentPath<'a>,
    step: Option<PathStep<'a>>,
    value: &'a Value,
}

/// The fields of an object and its path.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    key: &'a Key,
    path: ParentPath<'a>,
    map: &'a Attributes,
}

/// The path of an object or a list. Its text is written for faults only: most values have none.
#[derive(Clone)]
enum ParentPath<'a> {
    Document,
    Attributes(&'a Attributes),
    Below(Arc<(ParentPath<'a>, PathStep<'a>)>),
}

/// A step from an object to a field or from a list to an item.
#[derive(Clone, Copy)]
enum PathStep<'a> {
    Field(&'a str),
    Item(usize),
}

impl ParentPath<'_> {
    fn text(&self) -> String {
        match self {
            Self::Document => String::new(),
            Self::Attributes(_) => "attributes".to_owned(),
            Self::Below(below) => {
                let (parent, step) = &**below;
                parent.child(*step)
            }
        }
    }

    /// Returns the path of a child as the node is stored.
    fn stored(&self, step: PathStep<'_>) -> String {
        let path = self.child(step);
        match self.base() {
            Self::Attributes(attributes) => places::place(attributes, &path),
            _ => path,
        }
    }

    /// Returns the first of its parents.
    fn base(&self) -> &Self {
        match self {
            Self::Below(below) => below.0.base(),
            base => base,
        }
    }

    /// Returns the text of the path of a child.
    fn child(&self, step: PathStep<'_>) -> String {
        let mut path = self.text();
        // Writing to a String cannot fail.
        let _ = match step {
            PathStep::Item(at) => write!(path, "[{at}]"),
            PathStep::Field(name) if !is_plain(name) => {
                write!(path, "[\"{}\"]", Excerpt::of(name))
            }
            PathStep::Field(name) if path.is_empty() => write!(path, "{name}"),
            PathStep::Field(name) => write!(path, ".{name}"),
        };
        path
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.bytes().all(plain)
}

impl<'a> Fields<'a> {
    /// Returns the attributes of node `key`.
    pub(crate) fn attributes(key: &'a Key, map: &'a Attributes) -> Self {
        Self {
            key,
            path: ParentPath::Attributes(map),
            map,
        }
    }

    /// Returns the field; `None` if absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<JsonField<'a>> {
        let (name, value) = self.map.get_key_value(name)?;
        (!value.is_null()).then(|| self.field(name, value))
    }

    pub(crate) fn require(&self, name: &str) -> Result<JsonField<'a>, MetadataError> {
        self.get(name)
            .ok_or_else(|| self.fault(name, MetadataFault::Missing))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, JsonField<'a>)> {
        let fields = self.map.iter();
        fields.map(|(name, value)| (name.as_str(), self.field(name, value)))
    }

    fn field(&self, name: &'a str, value: &'a Value) -> JsonField<'a> {
        JsonField {
            key: self.key,
            parent: self.path.clone(),
            step: Some(PathStep::Field(name)),
            value,
        }
    }

    pub(crate) fn map(&self) -> &'a Attributes {
        self.map
    }

    /// Returns all fields except these.
    pub(crate) fn without(&self, names: &[&str]) -> Attributes {
        let others = self
            .map
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()));
        others.map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Returns an error at a field of this object.
    pub(crate) fn fault(&self, name: &str, fault: MetadataFault) -> MetadataError {
        MetadataError {
            key: self.key.clone(),
            path: JsonPath(self.path.stored(PathStep::Field(name)).into_boxed_str()),
            fault,
        }
    }

    /// Returns an error at a member of the node that is not an attribute.
    pub(crate) fn beside(key: &Key, name: &str, fault: MetadataFault) -> MetadataError {
        MetadataError {
            key: key.clone(),
            path: JsonPath(name.into()),
            fault,
        }
    }
}

impl<'a> JsonField<'a> {
    /// Returns the whole document of file `key`.
    pub(crate) fn document(key: &'a Key, value: &'a Value) -> Self {
        Self {
            key,
            parent: ParentPath::Document,
            step: None,
            value,
        }
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) fn error(&self, fault: MetadataFault) -> MetadataError {
        MetadataError {
            key: self.key.clone(),
            path: JsonPath(self.path().into_boxed_str()),
            fault,
        }
    }

    fn path(&self) -> String {
        match self.step {
            Some(step) => self.parent.stored(step),
            None => self.parent.text(),
        }
    }

    /// Returns this value as the parent of its fields or items.
    fn as_parent(&self) -> ParentPath<'a> {
        match self.step {
            Some(step) => ParentPath::Below(Arc::new((self.parent.clone(), step))),
            None => self.parent.clone(),
        }
    }

    fn kind(&self, expected: JsonKind) -> MetadataError {
        let found = JsonKind::of(self.value);
        self.error(MetadataFault::Kind { expected, found })
    }

    pub(crate) fn fields(&self) -> Result<Fields<'a>, MetadataError> {
        let map = self
            .value
            .as_object()
            .ok_or_else(|| self.kind(JsonKind::Object))?;
        Ok(Fields {
            key: self.key,
            path: self.as_parent(),
            map,
        })
    }

    /// Returns the values of a list, without their paths.
    pub(crate) fn list(&self) -> Result<&'a [Value], MetadataError> {
        let list = self.value.as_array();
        Ok(list.ok_or_else(|| self.kind(JsonKind::List))?)
    }

    /// Returns item `at` of a list with its path.
    pub(crate) fn item(&self, at: usize, value: &'a Value) -> Self {
        Self {
            key: self.key,
            parent: self.as_parent(),
            step: Some(PathStep::Item(at)),
            value,
        }
    }

    pub(crate) fn items(&self) -> Result<impl Iterator<Item = Self> + use<'a>, MetadataError> {
        let list = self.list()?.iter().enumerate();
        let (key, parent) = (self.key, self.as_parent());
        Ok(list.map(move |(at, value)| Self {
            key,
            parent: parent.clone(),
            step: Some(PathStep::Item(at)),
            value,
        }))
    }

    /// Reads every item of a list with the same function.
    pub(crate) fn each<T>(
        &self,
        read: impl Fn(&Self) -> Result<T, MetadataError>,
    ) -> Result<Vec<T>, MetadataError> {
        self.items()?.map(|item| read(&item)).collect()
    }

    /// Like [`each`](Self::each), for a list of known length.
    pub(crate) fn exactly<T>(
        &self,
        expected: usize,
        read: impl Fn(&Self) -> Result<T, MetadataError>,
    ) -> Result<Vec<T>, MetadataError> {
        let found = self.list()?.len();
        if found != expected {
            return Err(self.error(MetadataFault::Length { expected, found }));
        }
        self.each(read)
    }

    pub(crate) fn text(&self) -> Result<&'a str, MetadataError> {
        let text = self.value.as_str();
        text.ok_or_else(|| self.kind(JsonKind::Text))
    }

    pub(crate) fn boolean(&self) -> Result<bool, MetadataError> {
        let value = self.value.as_bool();
        value.ok_or_else(|| self.kind(JsonKind::Bool))
    }

    /// Reads a finite number.
    pub(crate) fn number(&self) -> Result<f64, MetadataError> {
        let number = self
            .value
            .as_f64()
            .ok_or_else(|| self.kind(JsonKind::Number))?;
        if !number.is_finite() {
            let expected = "a finite number";
            let found = number;
            return Err(self.error(MetadataFault::Range { found, expected }));
        }
        Ok(number)
    }

    /// Reads a number above zero.
    pub(crate) fn positive(&self) -> Result<f64, MetadataError> {
        let found = self.number()?;
        if found > 0.0 {
            return Ok(found);
        }
        let expected = "greater than 0";
        Err(self.error(MetadataFault::Range { found, expected }))
    }

    /// Reads an integer written as one: `2`, not `2.0`.
    pub(crate) fn unsigned(&self, min: u64, max: u64) -> Result<u64, MetadataError> {
        let number = self.value.as_u64().filter(|n| (min..=max).contains(n));
        number.ok_or_else(|| self.no_integer(i64::try_from(min).unwrap_or(i64::MAX), max))
    }

    pub(crate) fn u64(&self) -> Result<u64, MetadataError> {
        self.unsigned(0, u64::MAX)
    }

    pub(crate) fn u32(&self) -> Result<u32, MetadataError> {
        let number = self.unsigned(0, u32::MAX.into())?;
        u32::try_from(number).map_err(|_| self.no_integer(0, u32::MAX.into()))
    }

    pub(crate) fn i64(&self) -> Result<i64, MetadataError> {
        let max = i64::MAX.unsigned_abs();
        let number = self.value.as_i64();
        number.ok_or_else(|| self.no_integer(i64::MIN, max))
    }

    pub(crate) fn no_integer(&self, min: i64, max: u64) -> MetadataError {
        if !self.value.is_number() {
            return self.kind(JsonKind::Number);
        }
        let found = Excerpt::of(&self.value.to_string());
        self.error(MetadataFault::Integer { found, min, max })
    }

    pub(crate) fn dtype(&self) -> Result<Dtype, MetadataError> {
        let text = self.text()?;
        let found = || Excerpt::of(text);
        Dtype::parse(text).map_err(|error| {
            self.error(MetadataFault::Dtype {
                found: found(),
                error,
            })
        })
    }

    pub(crate) fn unknown_word(&self, found: &str, expected: &'static str) -> MetadataError {
        let found = Excerpt::of(found);
        self.error(MetadataFault::Word { found, expected })
    }

    pub(crate) fn disagrees(&self, with: &'static str) -> MetadataError {
        let found = Excerpt::of(&self.value.to_string());
        self.error(MetadataFault::Disagrees { found, with })
    }
}

/// Collects tolerated faults.
#[derive(Default)]
pub(crate) struct Noter {
    notes: Vec<MetadataNote>,
}

impl Noter {
    pub(crate) fn note(&mut self, error: MetadataError, assumed: Assumed) {
        self.notes.push(MetadataNote {
            path: error.path,
            fault: error.fault,
            assumed,
        });
    }

    /// Returns the value, or adds a note and returns `None`.
    pub(crate) fn take<T>(
        &mut self,
        read: Result<T, MetadataError>,
        assumed: Assumed,
    ) -> Option<T> {
        read.map_err(|error| self.note(error, assumed)).ok()
    }

    /// Reads an optional informational field.
    pub(crate) fn field<'a, T>(
        &mut self,
        fields: &Fields<'a>,
        name: &str,
        read: impl Fn(&JsonField<'a>) -> Result<T, MetadataError>,
    ) -> Option<T> {
        let place = fields.get(name)?;
        self.take(read(&place), Assumed::Default)
    }

    /// Reads a field of one word; an unknown word is kept and noted.
    pub(crate) fn word<T: Vocabulary>(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
    ) -> Option<Word<T>> {
        let at = fields.get(name)?;
        let text = self.take(at.text(), Assumed::Default)?;
        Some(self.known(&at, text))
    }

    /// Parses the word `text` at `at`; an unknown word is noted.
    pub(crate) fn known<T: Vocabulary>(&mut self, at: &JsonField<'_>, text: &str) -> Word<T> {
        let word = Word::from(text);
        if word.known().is_none() {
            self.note(at.unknown_word(text, T::WHAT), Assumed::AsFound);
        }
        word
    }

    pub(crate) fn finish(self) -> Vec<MetadataNote> {
        self.notes
    }
}
