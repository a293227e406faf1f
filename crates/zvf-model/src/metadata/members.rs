//! JSON objects as nodes are written.

use serde_json::Value;

use super::Attributes;

/// The members of an object, in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonMembers(Attributes);

impl JsonMembers {
    /// Starts with the tag of a node.
    pub(crate) fn tagged(tag: &str) -> Self {
        Self::default().with("zv_array", tag)
    }

    /// Starts with members that exist already.
    pub(crate) fn of(members: Attributes) -> Self {
        Self(members)
    }

    /// Adds a member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a member that may be absent.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the member of a flag that is absent if it is not set.
    pub(crate) fn with_flag(self, name: &str, is_set: bool) -> Self {
        self.with_some(name, is_set.then_some(true))
    }

    /// Adds members that this crate does not know.
    pub(crate) fn with_all(mut self, others: &Attributes) -> Self {
        let others = others.iter();
        self.0.extend(others.map(|(k, v)| (k.clone(), v.clone())));
        self
    }

    pub(crate) fn finish(self) -> Attributes {
        self.0
    }
}

impl From<JsonMembers> for Value {
    fn from(members: JsonMembers) -> Self {
        Self::Object(members.0)
    }
}
