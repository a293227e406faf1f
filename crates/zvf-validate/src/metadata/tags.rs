//! Tags and names of nodes.

use serde_json::{Value, json};

use super::NodeCheck;
use crate::rules::metadata as rules;

impl NodeCheck<'_, '_> {
    /// Checks `zv_array` against the role of the node.
    pub(super) fn tag(&self, expected: &'static str) {
        let attributes = self.node.attributes();
        // Early versions used the second name.
        let spelled = ["zv_array", "zvf_array"].into_iter();
        let mut given = spelled.filter_map(|name| Some((name, attributes.get(name)?)));
        let (name, found) = given.next().unwrap_or(("zv_array", &Value::Null));
        let value = Some(json!(expected));
        match found {
            Value::Null => {
                let message = format!("missing; the path requires {expected:?}");
                let rule = &rules::TAG_MISSING;
                self.context
                    .report_attribute(rule, self.key, &[name], message, value);
            }
            Value::String(found) if found == expected => {}
            // The documents do not name the tag of groups that are rows of ids.
            Value::String(found) if self.has_group_rows() && self.key.name() == Some(found) => {}
            found => {
                let message = format!("{found}, but the path requires {expected:?}");
                let rule = &rules::TAG;
                self.context
                    .report_attribute(rule, self.key, &[name], message, value);
            }
        }
    }

    /// Checks that the name is an identifier, and that the attribute `name` repeats it.
    pub(super) fn name(&self, expected: &str) {
        if !is_identifier(expected) && self.key.name() == Some(expected) {
            let message = format!("{expected:?} is not an identifier of letters, digits and _");
            self.context.report(&rules::IDENTIFIER, self.key, message);
        }
        let Some(found) = self.node.attributes().get("name") else {
            return;
        };
        if found.as_str() != Some(expected) {
            let message = format!("{found}, but the node's path says {expected:?}");
            let (rule, value) = (&rules::NAME_MISMATCH, Some(json!(expected)));
            self.context
                .report_attribute(rule, self.key, &["name"], message, value);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}
