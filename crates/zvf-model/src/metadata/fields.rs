//! Access to JSON that tracks the path, so that every fault names it.

use core::fmt::Write;

use serde_json::Value;
use zvf_format::numeric::Dtype;

use super::{
    Assumed, Attributes, Excerpt, JsonKind, JsonPath, MetadataError, MetadataFault, MetadataNote,
};
use crate::{key::Key, name::Word};

/// A value and its path.
#[derive(Clone)]
pub(crate) struct JsonField<'a> {
    key: &'a Key,
    path: String,
    value: &'a Value,
}

/// The fields of an object and its path.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    key: &'a Key,
    path: String,
    map: &'a Attributes,
}

impl<'a> Fields<'a> {
    /// Returns the attributes of node `key`.
    pub(crate) fn attributes(key: &'a Key, map: &'a Attributes) -> Self {
        Self {
            key,
            path: "attributes".to_owned(),
            map,
        }
    }

    /// Returns the field; `None` if absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<JsonField<'a>> {
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        Some(JsonField {
            key: self.key,
            path: self.path_of(name),
            value,
        })
    }

    pub(crate) fn require(&self, name: &str) -> Result<JsonField<'a>, MetadataError> {
        self.get(name)
            .ok_or_else(|| self.fault(name, MetadataFault::Missing))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, JsonField<'a>)> {
        self.map.iter().map(|(name, value)| {
            let place = JsonField {
                key: self.key,
                path: self.path_of(name),
                value,
            };
            (name.as_str(), place)
        })
    }

    pub(crate) fn map(&self) -> &'a Attributes {
        self.map
    }

    /// Returns all fields except these.
    pub(crate) fn without(&self, names: &[&str]) -> Attributes {
        let others = self.map.iter();
        let others = others.filter(|(name, _)| !names.contains(&name.as_str()));
        others.map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Returns an error at a field of this object.
    pub(crate) fn fault(&self, name: &str, fault: MetadataFault) -> MetadataError {
        MetadataError {
            key: self.key.clone(),
            path: JsonPath(self.path_of(name).into_boxed_str()),
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

    fn path_of(&self, name: &str) -> String {
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        match (self.path.as_str(), plain) {
            ("", true) => name.to_owned(),
            (path, true) => format!("{path}.{name}"),
            (path, false) => format!("{path}[\"{}\"]", Excerpt::of(name)),
        }
    }
}

impl<'a> JsonField<'a> {
    /// Returns the whole document of file `key`.
    pub(crate) fn document(key: &'a Key, value: &'a Value) -> Self {
        Self {
            key,
            path: String::new(),
            value,
        }
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) fn error(&self, fault: MetadataFault) -> MetadataError {
        MetadataError {
            key: self.key.clone(),
            path: JsonPath(self.path.clone().into_boxed_str()),
            fault,
        }
    }

    fn kind(&self, expected: JsonKind) -> MetadataError {
        let found = JsonKind::of(self.value);
        self.error(MetadataFault::Kind { expected, found })
    }

    pub(crate) fn fields(&self) -> Result<Fields<'a>, MetadataError> {
        let map = self.value.as_object();
        let map = map.ok_or_else(|| self.kind(JsonKind::Object))?;
        Ok(Fields {
            key: self.key,
            path: self.path.clone(),
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
        let mut path = self.path.clone();
        // Writing to a String cannot fail.
        let _ = write!(path, "[{at}]");
        Self {
            key: self.key,
            path,
            value,
        }
    }

    pub(crate) fn items(&self) -> Result<impl Iterator<Item = Self> + use<'a>, MetadataError> {
        let this = self.clone();
        let list = self.list()?.iter().enumerate();
        Ok(list.map(move |(at, value)| this.item(at, value)))
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
        let number = self.value.as_f64();
        let number = number.ok_or_else(|| self.kind(JsonKind::Number))?;
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
    pub(crate) fn unsigned(&self, least: u64, most: u64) -> Result<u64, MetadataError> {
        let number = self.value.as_u64();
        let number = number.filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| self.no_integer(i64::try_from(least).unwrap_or(i64::MAX), most))
    }

    pub(crate) fn u64(&self) -> Result<u64, MetadataError> {
        self.unsigned(0, u64::MAX)
    }

    pub(crate) fn u32(&self) -> Result<u32, MetadataError> {
        let number = self.unsigned(0, u32::MAX.into())?;
        u32::try_from(number).map_err(|_| self.no_integer(0, u32::MAX.into()))
    }

    pub(crate) fn i64(&self) -> Result<i64, MetadataError> {
        let most = i64::MAX.unsigned_abs();
        let number = self.value.as_i64();
        number.ok_or_else(|| self.no_integer(i64::MIN, most))
    }

    pub(crate) fn no_integer(&self, least: i64, most: u64) -> MetadataError {
        if !self.value.is_number() {
            return self.kind(JsonKind::Number);
        }
        let found = Excerpt::of(&self.value.to_string());
        self.error(MetadataFault::Integer { found, least, most })
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
    pub(crate) fn word<T: Word>(&mut self, fields: &Fields<'_>, name: &str) -> Option<T> {
        let at = fields.get(name)?;
        let text = self.take(at.text(), Assumed::Default)?;
        Some(self.known(&at, text))
    }

    /// Parses the word `text` at `at`; an unknown word is noted.
    pub(crate) fn known<T: Word>(&mut self, at: &JsonField<'_>, text: &str) -> T {
        let word = T::from(text);
        if !word.is_known() {
            self.note(at.unknown_word(text, T::WHAT), Assumed::AsFound);
        }
        word
    }

    pub(crate) fn finish(self) -> Vec<MetadataNote> {
        self.notes
    }
}
