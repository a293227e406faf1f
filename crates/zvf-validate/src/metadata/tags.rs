//! What a node says of itself: its tag and its name.

use serde_json::{Value, json};

use super::Look;
use crate::rules::metadata as rules;

impl Look<'_, '_> {
    /// `zv_array` must say what the node's place says.
    pub(super) fn tag(&self, expected: &'static str) {
        let attributes = self.node.attributes();
        // As early versions spelled it.
        let spelled = ["zv_array", "zvf_array"].into_iter();
        let mut given = spelled.filter_map(|name| Some((name, attributes.get(name)?)));
        let (name, found) = given.next().unwrap_or(("zv_array", &Value::Null));
        let value = Some(json!(expected));
        match found {
            Value::Null => {
                let message = format!("it is missing, {expected:?} belongs there");
                let rule = &rules::TAG_MISSING;
                self.context
                    .find_attribute(rule, self.key, &[name], message, value);
            }
            Value::String(found) if found == expected => {}
            found => {
                let message = format!("{found}, where {expected:?} belongs");
                let rule = &rules::TAG;
                self.context
                    .find_attribute(rule, self.key, &[name], message, value);
            }
        }
    }

    /// Names are identifiers, and the attribute `name` repeats them.
    pub(super) fn name(&self, expected: &str) {
        if !is_identifier(expected) && self.key.name() == Some(expected) {
            let message = format!("{expected:?} is no identifier of letters, digits and _");
            self.context.find(&rules::IDENTIFIER, self.key, message);
        }
        let Some(found) = self.node.attributes().get("name") else {
            return;
        };
        if found.as_str() != Some(expected) {
            let message = format!("{found}, and the node's path says {expected:?}");
            let (rule, value) = (&rules::NAME_UNTRUE, Some(json!(expected)));
            self.context
                .find_attribute(rule, self.key, &["name"], message, value);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}
