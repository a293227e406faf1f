//! Choice of attributes.

use zvf_model::scope::Scope;

/// The attributes to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All attributes. Finding them takes a listing of the store.
    #[default]
    All,
    /// These attributes; a missing one is an error. A name without a scope selects the attribute in
    /// every scope that has it.
    Named(Vec<(Option<Scope>, String)>),
}

impl Selection {
    /// Selects no attributes.
    pub fn none() -> Self {
        Self::Named(Vec::new())
    }
}
