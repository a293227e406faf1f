//! The elements that have attributes.

/// The kind of element an attribute belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the variants are terms of the format")]
pub enum Scope {
    Vertex,
    Fragment,
    Link,
    Object,
    Group,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [
        Self::Vertex,
        Self::Fragment,
        Self::Link,
        Self::Object,
        Self::Group,
    ];

    /// Returns the name of the scope, as written before an attribute's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vertex => "vertex",
            Self::Fragment => "fragment",
            Self::Link => "link",
            Self::Object => "object",
            Self::Group => "group",
        }
    }
}
