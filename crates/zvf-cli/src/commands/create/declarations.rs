//! Units and descriptions of attributes: those of options, and those of the file.

use serde_json::Value;
use zvf::{Design, Geometry, GeometrySource};

use zvf_files::FileError;

/// A unit or a description of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declaration {
    /// Name of the attribute, with or without a scope.
    name: String,
    text: String,
}

/// A name that does not identify one attribute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {}", attribute_problem(name, names))]
#[non_exhaustive]
pub struct DeclarationError {
    /// The name.
    pub name: String,
    /// Scopes and names of all attributes.
    pub names: Vec<String>,
}

/// Explains why a name does not identify one attribute.
fn attribute_problem(name: &str, names: &[String]) -> String {
    let is_same = |full: &&String| full.split_once('.').is_some_and(|(_, own)| own == name);
    let same: Vec<&str> = names.iter().filter(is_same).map(String::as_str).collect();
    match (&same[..], names) {
        ([_, _, ..], _) => format!("names several attributes; write {}", same.join(" or ")),
        (_, []) => "is not an attribute: the file has none".to_owned(),
        _ => format!(
            "is not an attribute of the file, which has {}",
            names.join(", ")
        ),
    }
}

/// Parses `NAME=TEXT`.
pub(super) fn parse(text: &str) -> Result<Declaration, String> {
    let split = text
        .split_once('=')
        .filter(|(name, text)| !name.is_empty() && !text.trim().is_empty());
    let (name, text) = split.ok_or("write NAME=TEXT, as radius=micrometer")?;
    Ok(Declaration {
        name: name.to_owned(),
        text: text.trim().to_owned(),
    })
}

/// Scopes and names of the attributes of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AttributeNames(Vec<(&'static str, String)>);

impl AttributeNames {
    pub(super) fn of(geometry: &Geometry) -> Self {
        let mut names = Self::default();
        names.add(geometry);
        names
    }

    /// Reads the start of a source, and rewinds it.
    pub(super) fn of_source(source: &mut (dyn GeometrySource + Send)) -> Result<Self, FileError> {
        let mut names = Self::of(&source.tables().map_err(FileError::of_batch)?);
        let batch = source.next(1).map_err(FileError::of_batch)?;
        source.rewind().map_err(FileError::of_batch)?;
        if let Some(batch) = batch {
            names.add(&batch);
        }
        Ok(names)
    }

    fn add(&mut self, geometry: &Geometry) {
        let attributes = geometry.attributes();
        self.0
            .extend(attributes.map(|(scope, column)| (scope.name(), column.name.clone())));
    }

    fn contains(&self, scope: &str, name: &str) -> bool {
        self.0.iter().any(|(s, n)| *s == scope && n == name)
    }

    /// Adds a member to the declarations of attributes in a design.
    ///
    /// # Errors
    ///
    /// Returns [`DeclarationError`] if a name identifies no attribute or several.
    pub(super) fn declare(
        &self,
        design: &mut Design,
        member: &str,
        declarations: &[Declaration],
    ) -> Result<(), DeclarationError> {
        for Declaration { name, text } in declarations {
            let of_name = |(scope, own): &&(&str, String)| {
                let rest = name
                    .strip_prefix(*scope)
                    .and_then(|rest| rest.strip_prefix('.'));
                own == name || rest == Some(own)
            };
            let found: Vec<_> = self.0.iter().filter(of_name).collect();
            let [(scope, own)] = found[..] else {
                return Err(DeclarationError {
                    name: name.clone(),
                    names: self.0.iter().map(|(s, n)| format!("{s}.{n}")).collect(),
                });
            };
            let of_scope = design.attribute_specs.entry((*scope).to_owned());
            let declared = of_scope.or_default().entry(own.clone()).or_default();
            declared.insert(member.to_owned(), Value::from(text.clone()));
        }
        Ok(())
    }

    /// Drops declarations of attributes that the input does not have.
    pub(super) fn retain(&self, design: &mut Design) {
        design.attribute_specs.retain(|scope, attributes| {
            attributes.retain(|name, _| self.contains(scope, name));
            !attributes.is_empty()
        });
    }
}
